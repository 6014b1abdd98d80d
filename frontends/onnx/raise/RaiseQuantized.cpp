//===- RaiseQuantized.cpp - codes that are made while the model runs ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dynamic quantization, as onnxruntime's tools write it, makes a linear of
//
//   codes, step, zero = DynamicQuantizeLinear(x)
//   y = Cast(MatMulInteger(codes, W, zero, W's zero)) * (step * W's scale)
//
// The weight is taken as it is. How x becomes codes is not a property of the model
// but of how it is computed: kernels quantize in groups, finer than one step for all
// of x, or not at all.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"

using namespace llmc;
using namespace llmc::onnx;
using MeaningKind = Meaning::Kind;

bool Raiser::visitQuantized(Node &node) {
  if (node.is("DynamicQuantizeLinear")) {
    const Value *x = node.input(0);
    Source *source = matrixOf(x);
    if (!source)
      return fail(node, "quantizes rows that are not understood: " + meanings[x].why);
    for (const auto &[i, output] : llvm::enumerate(node.outputs)) {
      Meaning m;
      m.kind = i == 0 ? MeaningKind::Codes : MeaningKind::CodeScale;
      m.source = source;
      meanings[output] = std::move(m);
    }
    return true;
  }
  if (node.is("DequantizeLinear")) {
    const Meaning m = meanings[node.input(0)];
    if (m.kind != MeaningKind::TokenCodes)
      return false;
    return makeEmbed(node, node.outputs[0],
                     weights.scaledCodes(m.codes, node.input(1), node.input(2),
                                         /*isTransposed=*/true));
  }
  if (node.is("MatMulInteger")) {
    const Value *x = node.input(0), *w = node.input(1), *zeros = node.input(3);
    Meaning m = meanings[x];
    if (m.kind != MeaningKind::Codes || !w || isData(w) || (zeros && isData(zeros)))
      return fail(node, "multiplies codes that are not understood");
    const Value *zero = node.input(2);
    if (!zero || meanings[zero].kind != MeaningKind::CodeScale || meanings[zero].source != m.source)
      return fail(node, "multiplies codes with another zero than theirs");
    m.kind = MeaningKind::Product;
    m.codes = w;
    m.zeros = zeros;
    meanings[node.outputs[0]] = std::move(m);
    return true;
  }
  return node.is("Mul") && node.inputs.size() == 2 && visitCodeProduct(node);
}

/// The two multiplications behind a product of codes.
bool Raiser::visitCodeProduct(Node &node) {
  const Value *x = node.input(0), *y = node.input(1);
  auto kindOf = [&](const Value *value) {
    return value && isData(value) ? meanings[value].kind : MeaningKind::None;
  };
  if (kindOf(x) != MeaningKind::CodeScale && kindOf(y) == MeaningKind::CodeScale)
    std::swap(x, y);
  if (kindOf(x) != MeaningKind::CodeScale)
    return false;
  Meaning step = meanings[x];
  if (!isData(y)) {
    if (step.scales)
      return fail(node, "scales a step twice");
    step.scales = y;
    meanings[node.outputs[0]] = std::move(step);
    return true;
  }
  const Meaning product = meanings[y];
  if (product.kind != MeaningKind::Product || product.source != step.source || !step.scales)
    return fail(node, "scales something else than its product of codes");
  makeLinear(node, node.outputs[0], product.source,
             weights.scaledCodes(product.codes, step.scales, product.zeros,
                                 /*isTransposed=*/false),
             std::nullopt);
  return true;
}
