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
  bool startsAtZero = false; ///< of queries that are more than the keys: the first is at 0
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
          mlir::Value first = s.sub(length, s.index(v.queries));
          position = s.add(position, v.startsAtZero ? s.op(Arith::Max, first, s.index(0)) : first);
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

namespace {
/// What attention is computed from, [batch, heads, rows, size]; keys and values may have fewer
/// heads.
struct Attention {
  Array q, k, v;
  Array bias; ///< to be added to scores, as visibilityBias() gives it
  double scale, softcap;
  ElementType softmaxType;
};
struct Attended {
  Array y, scores, biased, weights;
};
} // namespace

/// softmax(q k^T * scale + bias) v.
static Attended attend(ArrayBuilder &a, const Attention &x) {
  const ElementType type = x.q.type;
  const int64_t batch = x.q.dim(0), heads = x.q.dim(1), rows = x.q.dim(2), size = x.q.dim(3);
  const int64_t kvHeads = x.k.dim(1), keys = x.k.dim(2), group = heads / kvHeads;
  // Keys of a group of query heads are not copied: they are broadcast. Each factor carries a root
  // of the scale, rounded to the type.
  auto scaled = [&](Array y) { return a.mulScalar(y, std::sqrt(x.scale)); };
  Array queries = a.reshape(scaled(x.q), {batch, kvHeads, group, rows, size});
  Array keysT = a.unsqueeze(a.transpose(scaled(x.k), {0, 1, 3, 2}), 2);
  Attended result;
  result.scores = a.reshape(a.matmul(queries, keysT), {batch, heads, rows, keys});
  if (x.softcap > 0)
    result.scores = a.mulScalar(a.tanh(a.div(result.scores, a.scalar(type, x.softcap))), x.softcap);
  result.biased = a.add(result.scores, x.bias);
  result.weights = maskedSoftmax(a, a.cast(result.biased, x.softmaxType), x.bias);
  Array weights = a.reshape(a.cast(result.weights, type), {batch, kvHeads, group, rows, keys});
  Array y = a.matmul(weights, a.unsqueeze(x.v, 2));
  result.y = a.reshape(y, {batch, heads, rows, x.v.dim(3)});
  return result;
}

/// [batch, heads, rows, size] as [batch, rows, heads * size].
static Array joinHeads(ArrayBuilder &a, Array x) {
  return a.reshape(a.transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

/// True where keys or values `now` continue a cache: the same but for the number of positions.
static bool continues(Array old, Array now) {
  return old.rank() == 4 && old.dim(0) == now.dim(0) && old.dim(1) == now.dim(1) &&
         old.dim(3) == now.dim(3);
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
  if (pastKey && pastValue) {
    if (!continues(pastKey, k) || !continues(pastValue, v))
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
  double scale = node.number("scale", float(1 / std::sqrt(double(std::max<int64_t>(size, 1)))));
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
    if (!broadcastShape(extra.shape(), {batch, heads, rows, keys}))
      return c.error("has a mask of a shape that does not go with its scores'");
    bias = a.add(bias, extra);
  }
  int64_t precision = node.integer("softmax_precision", int64_t(type));
  if (precision <= 0 || uint64_t(precision) >= kElementTypes || !isFloat(ElementType(precision)))
    return c.error("has a softmax precision that is no float");
  Attended result =
      attend(a, {q, k, v, bias, scale, double(node.number("softcap", 0)), ElementType(precision)});
  if (c.wants(3)) {
    int64_t mode = node.integer("qk_matmul_output_mode", 0);
    c.set(3, a.cast(mode == 3 ? result.weights : mode == 2 ? result.biased : result.scores, type));
  }
  return c.done(flat ? joinHeads(a, result.y) : result.y);
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

/// Rotates pairs of the first `rotated` features of x, [batch, rows, heads, features]. `rowOf` says
/// which row of the tables belongs to an index of x.
static Array
rotateRows(ArrayBuilder &a, Array x, Array cosine, Array sine, int64_t rotated, bool interleaved,
           llvm::function_ref<SmallVector<mlir::Value>(ScalarBuilder &, ValueRange)> rowOf) {
  return a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value d = at[3], isRotated = s.less(d, s.index(rotated)), half = s.index(rotated / 2);
    mlir::Value isFirst =
        interleaved ? s.test(Test::Equal, s.remainder(d, 2), s.index(0)) : s.less(d, half);
    mlir::Value pair = interleaved ? s.quotient(d, 2) : s.select(isFirst, d, s.sub(d, half));
    SmallVector<mlir::Value> first(at), second(at), place = rowOf(s, at);
    first[3] = interleaved ? s.mul(pair, s.index(2)) : pair;
    second[3] = s.add(first[3], interleaved ? s.index(1) : half);
    place.push_back(pair);
    mlir::Value cos = s.widen(s.loadClamped(cosine, place), cosine.type);
    mlir::Value sin = s.widen(s.loadClamped(sine, place), sine.type);
    mlir::Value u = s.widen(s.loadClamped(x, first), x.type);
    mlir::Value v = s.widen(s.loadClamped(x, second), x.type);
    mlir::Value real = s.sub(s.mul(cos, u), s.mul(sin, v));
    mlir::Value imaginary = s.add(s.mul(sin, u), s.mul(cos, v));
    mlir::Value turned = s.narrow(s.select(isFirst, real, imaginary), x.type);
    return s.select(isRotated, turned, s.load(x, at));
  });
}

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
  bool interleaved = node.integer("interleaved", 0);
  int64_t tableRank = positions ? 2 : 3;
  if (rotated <= 0 || rotated > x.dim(3) || rotated % 2 || cosine.rank() != tableRank ||
      cosine.shape() != sine.shape() || cosine.shape().back() != rotated / 2)
    return c.error("has tables that do not go with the features it rotates");
  Array y =
      rotateRows(a, x, cosine, sine, rotated, interleaved, [&](ScalarBuilder &s, ValueRange at) {
        if (!positions)
          return SmallVector<mlir::Value>{at[0], at[1]};
        if (positions.rank() == 2)
          return SmallVector<mlir::Value>{s.toIndex(s.loadClamped(positions, {at[0], at[1]}))};
        // An offset.
        mlir::Value begin =
            positions.rank() == 0 ? s.load(positions, {}) : s.loadClamped(positions, s.index(0));
        return SmallVector<mlir::Value>{s.add(s.toIndex(begin), at[1])};
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
// com.microsoft's attention
//===----------------------------------------------------------------------===//

/// GroupQueryAttention: query, key, value, past key, past value, last positions, total length,
/// cosines, sines, ... Without key and value the query holds all three, or, where its features are
/// those of its own heads, the past is all that is attended to (layers that share a cache).
static Error lowerGroupQuery(LowerContext &c) {
  const Node &node = c.node();
  ArrayBuilder &a = c.a;
  const int64_t heads = node.integer("num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
  Array q = c.input(0), k = c.input(1), v = c.input(2), pastKey = c.input(3),
        pastValue = c.input(4), last = c.input(5);
  for (size_t i : {9, 10, 11})
    if (c.has(i))
      return c.error("has positions, an attention bias or sinks of its own, which are not "
                     "supported");
  if (node.integer("smooth_softmax", 0) > 0 || node.integer("qk_output", 0) != 0)
    return c.error("has a smooth softmax or gives its scores away, which is not supported");
  if (q.rank() != 3 || heads <= 0 || kvHeads <= 0 || heads % kvHeads || bool(k) != bool(v) ||
      bool(pastKey) != bool(pastValue))
    return c.error("has a query, key, value or cache that does not go with its heads");
  const bool sharesCache =
      !k && pastKey && pastKey.rank() == 4 && q.dim(2) == heads * pastKey.dim(3);
  if (!k && !sharesCache) {
    const int64_t size = q.dim(2) / (heads + 2 * kvHeads);
    if (size * (heads + 2 * kvHeads) != q.dim(2))
      return c.error("has a query that holds no keys and values, and none to attend to");
    k = a.slice(q, 2, heads * size, kvHeads * size);
    v = a.slice(q, 2, (heads + kvHeads) * size, kvHeads * size);
    q = a.slice(q, 2, 0, heads * size);
  }
  if (q.dim(2) % heads || (k && (k.rank() != 3 || v.rank() != 3 || k.dim(2) % kvHeads ||
                                 v.dim(2) % kvHeads || k.shape() != v.shape())))
    return c.error("has heads that do not divide its features");
  const int64_t batch = q.dim(0), rows = q.dim(1), size = q.dim(2) / heads;
  const int64_t past = pastKey ? pastKey.rank() == 4 ? pastKey.dim(2) : -1 : 0;
  if (past < 0 || (last && last.elements() != batch) || size == 0)
    return c.error("has a cache or lengths of an unknown form");
  Array lengths; // of keys, per sequence
  if (last)
    lengths = a.addScalar(a.reshape(last, {batch}), 1);
  if (node.integer("do_rotary", 0)) {
    Array cosine = c.input(7), sine = c.input(8);
    if (!cosine || !sine || cosine.rank() != 2 || cosine.shape() != sine.shape() ||
        2 * cosine.dim(1) > size)
      return c.error("has tables that do not go with the features it rotates");
    auto rowOf = [&](ScalarBuilder &s, ValueRange at) {
      mlir::Value first = s.index(past);
      if (lengths)
        first = s.op(Arith::Max, s.sub(s.toIndex(s.loadClamped(lengths, at[0])), s.index(rows)),
                     s.index(0));
      return SmallVector<mlir::Value>{s.add(first, at[1])};
    };
    auto rotated = [&](Array x, int64_t count) {
      Array split = a.reshape(x, {batch, x.dim(1), count, x.dim(2) / count});
      Array y = rotateRows(a, split, cosine, sine, 2 * cosine.dim(1),
                           node.integer("rotary_interleaved", 0), rowOf);
      return a.reshape(y, x.shape());
    };
    q = rotated(q, heads);
    if (k)
      k = rotated(k, kvHeads);
  }
  q = splitHeads(a, q, heads);
  if (sharesCache) {
    k = pastKey;
    v = pastValue;
  } else {
    k = splitHeads(a, k, kvHeads);
    v = splitHeads(a, v, kvHeads);
    if (pastKey) {
      if (!continues(pastKey, k) || !continues(pastValue, v))
        return c.error("has a cache of a shape that does not go with its keys or values");
      k = a.concat({pastKey, k}, 2);
      v = a.concat({pastValue, v}, 2);
    }
  }
  if (k.dim(0) != batch || k.dim(1) != kvHeads || k.dim(3) != size || v.shape() != k.shape())
    return c.error("has a query, key and value of shapes that do not go together");
  c.set(1, k);
  c.set(2, v);
  const int64_t window = node.integer("local_window_size", -1), keys = k.dim(2);
  const Visibility visibility{true,
                              window > 0 ? window - 1 : -1,
                              -1,
                              std::max<int64_t>(keys - rows, 0),
                              lengths,
                              rows,
                              keys,
                              /*startsAtZero=*/true};
  const double given = node.number("scale", 0);
  return c.done(joinHeads(a, attend(a, {q, k, v, visibilityBias(a, visibility, q.type, batch),
                                        given != 0 ? given : 1 / std::sqrt(double(size)),
                                        double(node.number("softcap", 0)), q.type})
                                 .y));
}

/// MultiHeadAttention: query, key, value, bias, key padding mask, attention bias, past key, past
/// value.
static Error lowerMultiHead(LowerContext &c) {
  const Node &node = c.node();
  ArrayBuilder &a = c.a;
  const int64_t heads = node.integer("num_heads", 0);
  Array q = c.input(0), k = c.input(1), v = c.input(2), bias = c.input(3), padding = c.input(4),
        extra = c.input(5), pastKey = c.input(6), pastValue = c.input(7);
  if (!k || !v || q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || heads <= 0 ||
      q.dim(2) % heads || k.dim(2) != q.dim(2) || v.dim(2) % heads || v.dim(1) != k.dim(1) ||
      k.dim(0) != q.dim(0) || v.dim(0) != q.dim(0) || q.dim(2) == 0)
    return c.error("has a query, key and value that are not three rows of its heads' features");
  if (bool(pastKey) != bool(pastValue) || c.has(8) || c.has(9))
    return c.error("has a cache that is shared or incomplete, which is not supported");
  if (bias) {
    if (bias.rank() != 1 || bias.dim(0) != 2 * q.dim(2) + v.dim(2))
      return c.error("has a bias of another size than its features");
    auto part = [&](int64_t begin, int64_t count) { return a.slice(bias, 0, begin, count); };
    q = a.add(q, part(0, q.dim(2)));
    v = a.add(v, part(2 * k.dim(2), v.dim(2)));
    k = a.add(k, part(k.dim(2), k.dim(2)));
  }
  q = splitHeads(a, q, heads);
  k = splitHeads(a, k, heads);
  v = splitHeads(a, v, heads);
  int64_t past = 0;
  if (pastKey) {
    if (!continues(pastKey, k) || !continues(pastValue, v))
      return c.error("has a cache of a shape that does not go with its keys or values");
    past = pastKey.dim(2);
    k = a.concat({pastKey, k}, 2);
    v = a.concat({pastValue, v}, 2);
  }
  if (c.wants(1))
    c.set(1, k);
  if (c.wants(2))
    c.set(2, v);
  const int64_t batch = q.dim(0), rows = q.dim(2), keys = k.dim(2);
  Array lengths, mask;
  if (padding) {
    if (padding.rank() == 1 && padding.dim(0) == batch)
      lengths = padding;
    else if (padding.rank() == 2 && padding.dim(0) == batch && padding.dim(1) == keys)
      mask = a.reshape(a.cast(padding, ElementType::Bool), {batch, 1, 1, keys});
    else
      return c.error("has a key padding mask of an unknown form");
  }
  Visibility visibility{node.integer("unidirectional", 0) != 0,
                        -1,
                        -1,
                        past,
                        lengths,
                        rows,
                        keys,
                        /*startsAtZero=*/true};
  Array visible = visibilityBias(a, visibility, q.type, batch);
  if (mask)
    visible = a.add(visible, maskBias(a, mask, q.type, keys));
  if (extra) {
    if (!broadcastShape(extra.shape(), {batch, heads, rows, keys}))
      return c.error("has an attention bias of a shape that does not go with its scores'");
    visible = a.add(visible, extra);
  }
  const double given = node.number("scale", 0);
  return c.done(joinHeads(
      a,
      attend(a, {q, k, v, visible, given != 0 ? given : 1 / std::sqrt(double(q.dim(3))), 0, q.type})
          .y));
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
  table.add("com.microsoft", "GroupQueryAttention", 1, lowerGroupQuery);
  table.add("com.microsoft", "MultiHeadAttention", 1, lowerMultiHead);
}
