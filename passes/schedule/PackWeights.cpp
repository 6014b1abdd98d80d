//===- PackWeights.cpp - weights in the layouts of the kernels -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/schedule/Passes.h"

namespace llmc::schedule {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "passes/schedule/Passes.h.inc"
} // namespace llmc::schedule

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct PackWeights : schedule::impl::PackWeightsPassBase<PackWeights> {
  using PackWeightsPassBase::PackWeightsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseSet<StringAttr> matrices, vectors;
    auto addMatrices = [&](ArrayAttr symbols) {
      for (Attribute symbol : symbols)
        matrices.insert(cast<FlatSymbolRefAttr>(symbol).getAttr());
    };
    auto addNorm = [&](NormAttr norm) {
      if (!norm)
        return;
      vectors.insert(norm.getWeight().getAttr());
      if (norm.getBias())
        vectors.insert(norm.getBias().getAttr());
    };
    auto addBiases = [&](std::optional<ArrayAttr> biases) {
      for (Attribute bias : biases.value_or(ArrayAttr::get(&getContext(), {})))
        if (auto symbol = dyn_cast<FlatSymbolRefAttr>(bias))
          vectors.insert(symbol.getAttr());
    };
    module.walk([&](Operation *op) {
      if (auto embed = dyn_cast<EmbedOp>(op)) {
        matrices.insert(embed.getWeightAttr().getAttr());
      } else if (auto linear = dyn_cast<LinearOp>(op)) {
        addMatrices(linear.getWeights());
        addBiases(linear.getBiases());
        addNorm(linear.getNormAttr());
      } else if (auto qkv = dyn_cast<QkvOp>(op)) {
        addMatrices(qkv.getWeights());
        addBiases(qkv.getBiases());
        addNorm(qkv.getNormAttr());
        addNorm(qkv.getQNormAttr());
        addNorm(qkv.getKNormAttr());
      } else if (auto norm = dyn_cast<NormOp>(op)) {
        addNorm(norm.getNorm());
      }
    });

    SmallVector<StringAttr> packed;
    for (const std::string &layout : layouts)
      packed.push_back(StringAttr::get(&getContext(), layout));
    if (packed.empty())
      packed.push_back(StringAttr::get(&getContext(), "panel16"));
    for (auto weight : llvm::make_early_inc_range(module.getOps<WeightOp>())) {
      StringAttr name = weight.getSymNameAttr();
      bool matrix = matrices.contains(name), vector = vectors.contains(name);
      if (matrix && vector) {
        weight.emitError("is used both as a matrix and as a vector");
        return signalPassFailure();
      }
      // A weight that nothing uses is not part of the artifact.
      if (!matrix && !vector)
        weight.erase();
      else if (matrix)
        weight.appendStep(PackAttr::get(&getContext(), packed));
      else if (weight.getFinalEncoding() != "f32")
        weight.appendStep(CastAttr::get(&getContext(), "f32"));
    }
  }
};
} // namespace
