//===- LowerAttention.cpp - attention and what belongs to it --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fallback for attention that no pattern raised: products, a bias that holds all
// masks, a softmax. Every step is rounded to the input's type, as the operator is defined.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;

/// [batch, rows, heads * size] as [batch, heads, rows, size].
static Array splitHeads(ArrayBuilder &a, Array x, int64_t heads) {
  Array split = a.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return a.transpose(split, {0, 2, 1, 3});
}

namespace {
/// What decides which keys a query sees.
struct Visibility {
  bool causal;
  int64_t left, right; ///< of a window; -1: open
  int64_t offset;      ///< keys before the first query
  Array lengths;       ///< keys of each batch that count; null: all
  int64_t queries, keys;
};
} // namespace

/// 0 where a query sees a key, else -inf: [batch or 1, 1, queries, keys].
static Array visibilityBias(ArrayBuilder &a, const Visibility &v, ElementType type, int64_t batch) {
  return a.generate(
      type, {v.lengths ? batch : 1, 1, v.queries, v.keys}, [&](ScalarBuilder &s, ValueRange at) {
        mlir::Value seen = s.truth(true), length, position = at[2], key = at[3];
        if (v.lengths) {
          length = s.toIndex(s.loadClamped(v.lengths, at[0]));
          seen = s.less(key, length);
          position = s.add(position, s.sub(length, s.index(v.queries)));
        } else {
          position = s.add(position, s.index(v.offset));
        }
        auto require = [&](mlir::Value condition) { seen = s.logicalAnd(seen, condition); };
        if (v.causal)
          require(s.test(Test::LessOrEqual, key, position));
        if (v.left >= 0)
          require(s.test(Test::LessOrEqual, s.sub(position, key), s.index(v.left)));
        if (v.right >= 0)
          require(s.test(Test::LessOrEqual, s.sub(key, position), s.index(v.right)));
        Type wide = s.computedType(type);
        return s.narrow(s.select(seen, s.constant(wide, 0), s.constant(wide, -INFINITY)), type);
      });
}

/// A mask as something to add, with as many keys as there are: those beyond it are not seen.
static Array maskBias(ArrayBuilder &a, Array mask, ElementType type, int64_t keys) {
  Dims dims(mask.shape());
  dims.back() = keys;
  return a.generate(type, dims, [&](ScalarBuilder &s, ValueRange at) {
    Type wide = s.computedType(type);
    mlir::Value none = s.constant(wide, -INFINITY);
    mlir::Value value = s.widen(s.loadClamped(mask, at), mask.type);
    value = mask.type == ElementType::Bool ? s.select(value, s.constant(wide, 0), none)
                                           : s.convert(value, mask.type, type);
    if (mask.shape().back() >= keys)
      return s.narrow(value, type);
    value = s.select(s.less(at.back(), s.index(mask.shape().back())), value, none);
    return s.narrow(value, type);
  });
}

/// Softmax over the last axis that gives zeros where the bias lets nothing through.
static Array maskedSoftmax(ArrayBuilder &a, Array scores, Array bias) {
  int64_t axis = scores.rank() - 1;
  Array most = a.unary(a.reduceMax(scores, {axis}, true), [](ScalarBuilder &s, mlir::Value v) {
    return s.select(s.test(Test::Equal, v, s.like(v, -INFINITY)), s.like(v, 0), v);
  });
  Array e = a.exp(a.sub(scores, most)), sum = a.reduceSum(e, {axis}, true);
  Array open = a.reduceMax(bias, {bias.rank() - 1}, true);
  return a.map(scores.type, {e, sum, open}, [](ScalarBuilder &s, ValueRange v) {
    mlir::Value zero = s.like(v[0], 0);
    mlir::Value none = s.logicalOr(s.test(Test::Equal, v[2], s.like(v[2], -INFINITY)),
                                   s.test(Test::Equal, v[1], zero));
    return s.select(none, zero, s.div(v[0], v[1]));
  });
}

static Error lowerAttention(LowerContext &c) {
  const Node &node = c.node();
  ArrayBuilder &a = c.a;
  Array q = c.input(0), k = c.input(1), v = c.input(2), mask = c.input(3);
  ElementType type = q.type;
  bool flat = q.rank() == 3;
  int64_t heads = node.integer("q_num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
  if (q.rank() != k.rank() || q.rank() != v.rank() || (q.rank() != 3 && q.rank() != 4))
    return c.error("has a query, key and value of ranks other than 3 or 4");
  if (flat) {
    if (heads <= 0 || kvHeads <= 0 || q.dim(2) % heads || k.dim(2) % kvHeads || v.dim(2) % kvHeads)
      return c.error("has heads that do not divide its features");
    q = splitHeads(a, q, heads);
    k = splitHeads(a, k, kvHeads);
    v = splitHeads(a, v, kvHeads);
  }
  heads = q.dim(1);
  kvHeads = k.dim(1);
  Array pastKey = c.input(4), pastValue = c.input(5);
  int64_t past = 0;
  auto extend = [&](Array old, Array now) {
    return old.rank() == 4 && old.dim(0) == now.dim(0) && old.dim(1) == now.dim(1) &&
           old.dim(3) == now.dim(3);
  };
  if (pastKey && pastValue) {
    if (!extend(pastKey, k) || !extend(pastValue, v))
      return c.error("has a cache of a shape that does not go with its keys or values");
    past = pastKey.dim(2);
    k = a.concat({pastKey, k}, 2);
    v = a.concat({pastValue, v}, 2);
  }
  if (kvHeads == 0 || heads % kvHeads || v.dim(1) != kvHeads || q.dim(3) != k.dim(3) ||
      k.dim(2) != v.dim(2))
    return c.error("has a query, key and value of shapes that do not go together");
  if (c.wants(1))
    c.set(1, k);
  if (c.wants(2))
    c.set(2, v);

  int64_t batch = q.dim(0), rows = q.dim(2), size = q.dim(3), keys = k.dim(2);
  int64_t group = heads / kvHeads;
  double scale = node.number("scale", float(1 / std::sqrt(double(std::max<int64_t>(size, 1)))));
  // Keys of a group of query heads are not copied: they are broadcast. Each factor carries a root
  // of the scale, rounded to the type.
  auto scaled = [&](Array x) { return a.mulScalar(x, std::sqrt(scale)); };
  Array queries = a.reshape(scaled(q), {batch, kvHeads, group, rows, size});
  Array keysT = a.unsqueeze(a.transpose(scaled(k), {0, 1, 3, 2}), 2);
  Array scores = a.reshape(a.matmul(queries, keysT), {batch, heads, rows, keys});
  if (double cap = node.number("softcap", 0); cap > 0)
    scores = a.mulScalar(a.tanh(a.div(scores, a.scalar(type, cap))), cap);

  Visibility visibility{node.integer("is_causal", 0) != 0,
                        node.integer("left_window_size", -1),
                        node.integer("right_window_size", -1),
                        past,
                        c.input(6),
                        rows,
                        keys};
  Array bias = visibilityBias(a, visibility, type, batch);
  if (mask) {
    Array extra = maskBias(a, mask, type, keys);
    if (extra.rank() == 1)
      extra = a.unsqueeze(extra, 0);
    if (!broadcastShape(extra.shape(), scores.shape()))
      return c.error("has a mask of a shape that does not go with its scores'");
    bias = a.add(bias, extra);
  }
  Array biased = a.add(scores, bias);
  int64_t precision = node.integer("softmax_precision", int64_t(type));
  if (precision <= 0 || uint64_t(precision) >= kElementTypes || !isFloat(ElementType(precision)))
    return c.error("has a softmax precision that is no float");
  Array weights = maskedSoftmax(a, a.cast(biased, ElementType(precision)), bias);
  if (c.wants(3)) {
    int64_t mode = node.integer("qk_matmul_output_mode", 0);
    c.set(3, a.cast(mode == 3 ? weights : mode == 2 ? biased : scores, type));
  }
  Array probabilities = a.reshape(a.cast(weights, type), {batch, kvHeads, group, rows, keys});
  Array y = a.matmul(probabilities, a.unsqueeze(v, 2));
  y = a.reshape(y, {batch, heads, rows, v.dim(3)});
  if (flat)
    y = a.reshape(a.transpose(y, {0, 2, 1, 3}), {batch, rows, heads * v.dim(3)});
  return c.done(y);
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

static Error rotate(LowerContext &c, Array x, Array cosine, Array sine, Array positions) {
  const Node &node = c.node();
  ArrayBuilder &a = c.a;
  Dims given(x.shape());
  int64_t heads = node.integer("num_heads", 0);
  bool flat = x.rank() == 3;
  if (flat) {
    if (heads == 0 && cosine.rank() > 0) // of the whole head
      heads = std::max<int64_t>(1, x.dim(2) / std::max<int64_t>(2 * cosine.shape().back(), 1));
    if (x.dim(2) % heads)
      return c.error("has heads that do not divide its features");
    x = a.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  } else if (x.rank() == 4) {
    x = a.transpose(x, {0, 2, 1, 3});
  } else {
    return c.error("rotates a tensor of a rank other than 3 or 4");
  }
  int64_t rotated = node.integer("rotary_embedding_dim", 0);
  if (rotated == 0)
    rotated = x.dim(3);
  int64_t half = rotated / 2;
  bool interleaved = node.integer("interleaved", 0);
  int64_t tableRank = positions ? 2 : 3;
  if (rotated <= 0 || rotated > x.dim(3) || rotated % 2 || cosine.rank() != tableRank ||
      cosine.shape() != sine.shape() || cosine.shape().back() != half)
    return c.error("has tables that do not go with the features it rotates");
  // x is [batch, rows, heads, features].
  Array y = a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value d = at[3], isRotated = s.less(d, s.index(rotated));
    mlir::Value isFirst =
        interleaved ? s.test(Test::Equal, s.remainder(d, 2), s.index(0)) : s.less(d, s.index(half));
    mlir::Value pair =
        interleaved ? s.quotient(d, 2) : s.select(isFirst, d, s.sub(d, s.index(half)));
    SmallVector<mlir::Value> first(at), second(at), place;
    first[3] = interleaved ? s.mul(pair, s.index(2)) : pair;
    second[3] = s.add(first[3], s.index(interleaved ? 1 : half));
    if (positions) {
      mlir::Value position;
      if (positions.rank() == 2) {
        position = s.toIndex(s.loadClamped(positions, {at[0], at[1]}));
      } else { // an offset
        mlir::Value begin =
            positions.rank() == 0 ? s.load(positions, {}) : s.loadClamped(positions, s.index(0));
        position = s.add(s.toIndex(begin), at[1]);
      }
      place = {position, pair};
    } else {
      place = {at[0], at[1], pair};
    }
    mlir::Value cos = s.widen(s.loadClamped(cosine, place), cosine.type);
    mlir::Value sin = s.widen(s.loadClamped(sine, place), sine.type);
    mlir::Value u = s.widen(s.loadClamped(x, first), x.type);
    mlir::Value v = s.widen(s.loadClamped(x, second), x.type);
    mlir::Value real = s.sub(s.mul(cos, u), s.mul(sin, v));
    mlir::Value imaginary = s.add(s.mul(sin, u), s.mul(cos, v));
    mlir::Value turned = s.narrow(s.select(isFirst, real, imaginary), x.type);
    return s.select(isRotated, turned, s.load(x, at));
  });
  return c.done(flat ? a.reshape(y, given) : a.transpose(y, {0, 2, 1, 3}));
}

static Error lowerRotary(LowerContext &c) {
  return rotate(c, c.input(0), c.input(1), c.input(2), c.input(3));
}
/// com.microsoft has the positions second.
static Error lowerMicrosoftRotary(LowerContext &c) {
  return rotate(c, c.input(0), c.input(2), c.input(3), c.input(1));
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

static Error lowerSwiGlu(LowerContext &c) {
  Array x = c.input(0), y = c.input(1);
  if (x.shape() != y.shape())
    return c.error("gates a tensor of another shape");
  double alpha = c.node().number("alpha", 1);
  return c.done(c.a.map(x.type, {x, y}, [&](ScalarBuilder &s, ValueRange v) {
    mlir::Value one = s.like(v[0], 1);
    mlir::Value e = s.exp(s.neg(s.mul(v[0], s.like(v[0], alpha))));
    return s.mul(s.div(v[0], s.add(one, e)), v[1]);
  }));
}

void onnx::addAttentionLowerings(OpTable<LowerFn> &table) {
  table.add("", "Attention", 23, lowerAttention);
  table.add("", "RotaryEmbedding", 23, lowerRotary);
  table.add("", "SwiGLU", 1, lowerSwiGlu);
  table.add("com.microsoft", "RotaryEmbedding", 1, lowerMicrosoftRotary);
}
