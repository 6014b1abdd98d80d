//===- Attention.cpp - rotary embedding and fused attention ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

namespace {
/// The tables: cos and sin are [positions, dims / 2] with position ids, else [batch, sequence,
/// dims / 2].
struct RotaryInputs {
  size_t x, cos, sin, positions;
};
constexpr RotaryInputs kStandard = {0, 1, 2, 3}; // ai.onnx
constexpr RotaryInputs kContrib = {0, 2, 3, 1};  // com.microsoft
} // namespace

/// x is [batch, heads, sequence, head dim], or [batch, sequence, heads * head dim].
template <const RotaryInputs *in> static FoldResult foldRotary(const FoldContext &context) {
  const Tensor &x = context.input(in->x), &cos = context.input(in->cos),
               &sin = context.input(in->sin);
  const Node &node = context.node();
  bool hasPositions = context.has(in->positions);
  bool flat = x.dims.size() == 3;
  if ((!flat && x.dims.size() != 4) || cos.dims != sin.dims ||
      cos.dims.size() != (hasPositions ? 2u : 3u))
    return context.error("has inputs of ranks that do not go together");
  int64_t batch = x.dims[0], sequence = flat ? x.dims[1] : x.dims[2];
  int64_t pairs = cos.dims.back(), heads = flat ? node.integer("num_heads", 0) : x.dims[1];
  int64_t rotated = node.integer("rotary_embedding_dim", 0);
  if (flat && heads == 0) // contrib: the heads follow from the table, which covers all of a head
    heads = pairs > 0 ? x.dims[2] / (2 * pairs) : 0;
  int64_t dim = flat ? (heads > 0 ? x.dims[2] / heads : 0) : x.dims[3];
  rotated = rotated == 0 ? dim : rotated;
  if (heads <= 0 || dim <= 0 || (flat && heads * dim != x.dims[2]) || rotated > dim ||
      rotated < 0 || pairs < rotated / 2)
    return context.error("rotates " + Twine(rotated) + " of " + Twine(dim) +
                         " features with tables of " + Twine(pairs));
  std::vector<int64_t> positions;
  if (hasPositions) {
    positions = context.input(in->positions).integers();
    if (positions.size() == 1) { // contrib: the first position
      int64_t first = positions[0];
      positions.assign(size_t(batch * sequence), 0);
      for (size_t i = 0; i < positions.size(); ++i)
        positions[i] = first + int64_t(i) % sequence;
    }
    if (int64_t(positions.size()) != batch * sequence)
      return context.error("has " + Twine(positions.size()) + " positions for " +
                           Twine(batch * sequence) + " rows");
  } else if (cos.dims[0] * cos.dims[1] != batch * sequence) {
    return context.error("has tables for another number of rows");
  }
  bool interleaved = node.integer("interleaved", 0) != 0;
  double scale = node.number("scale", 1);
  std::vector<double> values = x.doubles(), c = cos.doubles(), s = sin.doubles(), out = values;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t row = 0; row < sequence; ++row) {
      int64_t at = b * sequence + row, entry = hasPositions ? positions[size_t(at)] : at;
      if (entry < 0 || entry >= int64_t(c.size()) / std::max<int64_t>(pairs, 1))
        return context.error("has no table entry for position " + Twine(entry));
      for (int64_t h = 0; h < heads; ++h) {
        int64_t base = flat ? (at * heads + h) * dim : ((b * heads + h) * sequence + row) * dim;
        for (int64_t i = 0; i < rotated / 2; ++i) {
          size_t p = size_t(base + (interleaved ? 2 * i : i));
          size_t q = interleaved ? p + 1 : p + size_t(rotated / 2);
          double cosine = c[size_t(entry * pairs + i)], sine = s[size_t(entry * pairs + i)];
          out[p] = (values[p] * cosine - values[q] * sine) * scale;
          out[q] = (values[p] * sine + values[q] * cosine) * scale;
        }
      }
    }
  return one(Tensor::ofDoubles(x.type, x.dims, out));
}

//===----------------------------------------------------------------------===//
// Shapes of fused attention
//===----------------------------------------------------------------------===//

/// ai.onnx Attention: Q, K, V, mask, past key, past value -> Y, present key, present value, QK.
static Error inferAttention(InferContext &context) {
  const Shape *q = context.shape(0), *k = context.shape(1), *v = context.shape(2);
  const Node &node = context.node();
  std::optional<Shape> y, presentKey, presentValue, scores;
  if (q && k && v) {
    bool flat = q->size() == 3;
    if ((!flat && q->size() != 4) || k->size() != q->size() || v->size() != q->size())
      return context.error("needs inputs of 3 or 4 dimensions");
    int64_t qHeads = node.integer("q_num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
    if (flat && (qHeads <= 0 || kvHeads <= 0))
      return context.error("needs the numbers of heads for inputs of 3 dimensions");
    auto split = [&](const Dim &width, int64_t heads) {
      std::optional<Dim> size = width.dividedBy(Dim(heads));
      return size ? *size : context.symbols().fresh("head");
    };
    Dim vDim = flat ? split((*v)[2], kvHeads) : (*v)[3];
    Dim kDim = flat ? split((*k)[2], kvHeads) : (*k)[3];
    Dim heads = flat ? Dim(kvHeads) : (*k)[1];
    Dim total = flat ? (*k)[1] : (*k)[2], rows = flat ? (*q)[1] : (*q)[2];
    if (context.has(4) && context.shape(4) && context.shape(4)->size() == 4)
      total = total + (*context.shape(4))[2];
    y = flat ? Shape{(*q)[0], rows, Dim(qHeads) * vDim} : Shape{(*q)[0], (*q)[1], rows, vDim};
    presentKey = Shape{(*k)[0], heads, total, kDim};
    presentValue = Shape{(*k)[0], heads, total, vDim};
    scores = Shape{(*q)[0], flat ? Dim(qHeads) : (*q)[1], rows, total};
  }
  context.set(0, context.type(0), std::move(y));
  context.set(1, context.type(1), std::move(presentKey));
  context.set(2, context.type(2), std::move(presentValue));
  context.set(3, context.type(0), std::move(scores));
  return Error::success();
}

/// GroupQueryAttention: query, key, value, past key, past value, ... -> Y, present key and value.
static Error inferGroupQuery(InferContext &context) {
  const Shape *q = context.shape(0);
  const Node &node = context.node();
  int64_t heads = node.integer("num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
  constexpr int64_t kMostHeads = 1 << 16;
  if (heads <= 0 || kvHeads <= 0 || heads > kMostHeads || kvHeads > kMostHeads)
    return context.error("needs num_heads and kv_num_heads");
  std::optional<Shape> y, presentKey, presentValue;
  if (q && q->size() == 3) {
    const Shape *past = context.shape(3);
    // Without keys, the query holds them, or they are all in the past.
    bool sharesCache =
        !context.has(1) && past && past->size() == 4 && (*q)[2] == Dim(heads) * (*past)[3];
    bool packed = !context.has(1) && !sharesCache;
    std::optional<Dim> dim = (*q)[2].dividedBy(Dim(packed ? heads + 2 * kvHeads : heads));
    if (!dim)
      return context.error("has a query of " + (*q)[2].text(context.symbols()) +
                           " features, which " + Twine(heads) + " heads do not divide");
    y = Shape{(*q)[0], (*q)[1], Dim(heads) * *dim};
    for (size_t i : {3, 4}) {
      Shape present{(*q)[0], Dim(kvHeads), (*q)[1], *dim};
      if (context.shape(i) && context.shape(i)->size() == 4)
        present[2] = sharesCache ? (*context.shape(i))[2] : (*context.shape(i))[2] + (*q)[1];
      (i == 3 ? presentKey : presentValue) = std::move(present);
    }
  }
  context.set(0, context.type(0), std::move(y));
  context.set(1, context.type(0), std::move(presentKey));
  context.set(2, context.type(0), std::move(presentValue));
  return Error::success();
}

/// com.microsoft MultiHeadAttention: query, key, value [batch, sequence, features], bias, mask,
/// attention bias, past key, past value.
static Error inferMultiHead(InferContext &context) {
  const Shape *q = context.shape(0), *v = context.shape(2);
  std::optional<Shape> y;
  if (q && q->size() == 3)
    y = Shape{(*q)[0], (*q)[1], v && v->size() == 3 ? (*v)[2] : (*q)[2]};
  context.set(0, context.type(0), std::move(y));
  for (size_t i = 1; i < context.outputCount(); ++i)
    context.set(i, context.type(0), std::nullopt);
  return Error::success();
}

void onnx::addAttentionOps(OpRegistry &r) {
  llvm::StringRef contrib = "com.microsoft";
  r.infer.add("", "RotaryEmbedding", 23, inferSame);
  r.fold.add("", "RotaryEmbedding", 23, foldRotary<&kStandard>);
  r.infer.add(contrib, "RotaryEmbedding", 1, inferSame);
  r.fold.add(contrib, "RotaryEmbedding", 1, foldRotary<&kContrib>);
  r.infer.add("", "Attention", 23, inferAttention);
  r.infer.add(contrib, "GroupQueryAttention", 1, inferGroupQuery);
  r.infer.add(contrib, "MultiHeadAttention", 1, inferMultiHead);
}
