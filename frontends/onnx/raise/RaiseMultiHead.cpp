//===- RaiseMultiHead.cpp - com.microsoft MultiHeadAttention --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Twine;
using MeaningKind = Meaning::Kind;
using FactorKind = Factor::Kind;

/// Query, key, value, bias, key padding mask, attention bias, past key, past value; every head has
/// keys and values of its own.
bool Raiser::visitMultiHead(Node &node) {
  if (!node.is("MultiHeadAttention", "com.microsoft"))
    return false;
  const Value *out = node.outputs[0];
  const int64_t heads = node.integer("num_heads", 0);
  Source *rows[3];
  for (size_t i = 0; i < 3; ++i) {
    const Value *operand = node.input(i);
    rows[i] = operand && isData(operand) ? matrixOf(operand) : nullptr;
    if (!rows[i])
      return fail(node, "has queries, keys or values that are not rows of their own");
    if (heads <= 0 || rows[i]->features % heads || rows[i]->features != rows[0]->features)
      return fail(node, "has heads of different sizes");
  }
  const int64_t features = rows[0]->features, dim = features / heads;
  if (const Value *bias = node.input(3)) {
    WeightRef all = isData(bias) ? WeightRef() : weights.vector(bias);
    if (!all || all.columns != 3 * features)
      return fail(node, "has a bias that cannot be a weight");
    for (size_t i = 0; i < 3; ++i) {
      if (rows[i]->kind != Source::Kind::Linear || rows[i]->bias)
        return fail(node, "adds a bias to something that is no plain product");
      Source *next = newSource(Source::Kind::Linear, out, features);
      next->input = rows[i]->input;
      next->weight = rows[i]->weight;
      next->bias = all.slice(int64_t(i) * features, features);
      next->layout = rows[i]->layout;
      rows[i] = next;
    }
  }
  int operands[2];
  for (size_t i = 0; i < 2; ++i) {
    const Value *past = node.input(6 + i), *present = node.output(1 + i);
    bool isPast = past && isData(past) && meanings[past].kind == MeaningKind::Past;
    if ((past && !isPast) || (isPast && appended.contains(past)))
      return fail(node, "appends to a past that is not understood");
    if (!past && !roles.pasts.empty())
      return fail(node, "attends to the step alone, but the graph has a past");
    caches.push_back({past, rows[1 + i], heads, dim});
    operands[i] = int(caches.size()) - 1;
    if (isPast)
      appended[past] = present;
    if (present)
      meanings[present] = presentCache(operands[i], heads, dim);
  }
  Scores s;
  s.query = rows[0];
  s.heads = heads;
  s.headDim = dim;
  s.cache = operands[0];
  const float scale = node.number("scale", 0);
  s.scale = scale != 0 ? double(scale) : 1 / std::sqrt(double(dim));
  s.causal = node.integer("unidirectional", 0) != 0;
  for (size_t i : {4, 5}) {
    const Value *mask = node.input(i);
    if (mask && (isData(mask) || !applyMask(s, mask, /*isCondition=*/i == 4)))
      return fail(node, "has a mask that is neither causal nor windowed");
  }
  return finishAttention(node, out, s, operands[1],
                         rowMajorLayout(out->shape ? out->shape->size() : 3, features));
}
