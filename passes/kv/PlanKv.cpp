//===- PlanKv.cpp - capacity and place of KV caches -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Sched.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/kv/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace llmc::kv {
#define GEN_PASS_DEF_PLANKVPASS
#include "passes/kv/Passes.h.inc"
} // namespace llmc::kv

using namespace mlir;
using namespace llmc;

static constexpr int64_t kPage = 4096;

namespace {
struct PlanKv : kv::impl::PlanKvPassBase<PlanKv> {
  using PlanKvPassBase::PlanKvPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(module);
    if (context <= 0 || maxRows <= 0) {
      module.emitError("plan-kv needs a positive context and max-rows, has ")
          << context.getValue() << " and " << maxRows.getValue();
      return signalPassFailure();
    }
    if (!encoding.empty() && encoding != "f16" && encoding != "f32") {
      module.emitError("KV encoding '") << encoding.getValue() << "' is not known; use f16 or f32";
      return signalPassFailure();
    }
    if (failed(checkPositions(module)))
      return signalPassFailure();
    int64_t all = llvm::alignTo(context, sched::kKvChunk), next = 0;
    for (auto cache : module.getOps<llm::KvOp>()) {
      int64_t capacity = all;
      if (cache.getWindow()) {
        // The first and the last visible chunk may both be partly used.
        int64_t visible = cache.getWindow() + maxRows - 1;
        capacity =
            std::min(all, int64_t(llvm::alignTo(visible, sched::kKvChunk)) + sched::kKvChunk);
      }
      // What is used in one step only gains nothing from fewer bits.
      if (!encoding.empty() || seesWholeStep)
        cache.setEncoding(encoding.empty() ? "f32" : encoding.getValue());
      int64_t bytes =
          cache.getHeads() * cache.getHeadDim() * capacity * (cache.getEncoding() == "f32" ? 4 : 2);
      cache.setCapacityAttr(builder.getI64IntegerAttr(capacity));
      cache.setKOffsetAttr(builder.getI64IntegerAttr(next));
      next += llvm::alignTo(bytes, kPage);
      cache.setVOffsetAttr(builder.getI64IntegerAttr(next));
      next += llvm::alignTo(bytes, kPage);
    }
    module->setAttr("llm.kv_bytes", builder.getI64IntegerAttr(next));
  }

  bool seesWholeStep = false;

  /// Every position that a sequence may have must have its row in a table of learned positions, and
  /// a model whose rows see the whole text must take it in one step.
  LogicalResult checkPositions(ModuleOp module) {
    auto forward = module.lookupSymbol<func::FuncOp>(llm::kForwardName);
    if (!forward || forward.getNumArguments() != 2)
      return success();
    WalkResult result = forward.walk([&](Operation *op) {
      if (auto embed = dyn_cast<llm::EmbedOp>(op);
          embed && embed.getTokens() == forward.getArgument(1)) {
        auto table = SymbolTable::lookupNearestSymbolFrom<llm::WeightOp>(op, embed.getWeightAttr());
        if (table.getRows() < context) {
          op->emitError("the model knows ")
              << table.getRows() << " positions; compile it with --context " << table.getRows();
          return WalkResult::interrupt();
        }
      }
      auto attention = dyn_cast<llm::AttentionOp>(op);
      auto attend = dyn_cast<llm::AttendOp>(op);
      bool whole =
          (attention && attention.getBidirectional()) || (attend && attend.getBidirectional());
      seesWholeStep |= whole;
      if (whole && context > maxRows) {
        op->emitError("a text must fit into one step of ")
            << maxRows.getValue() << " rows; compile it with --context " << maxRows.getValue();
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};
} // namespace
