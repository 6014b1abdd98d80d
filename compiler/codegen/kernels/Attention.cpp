//===- Attention.cpp - KV cache and attention over one chunk --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores of 16 slots are one vector (K is stored slot-minor), outputs are
// vectors over the head dimension (V is stored dim-minor). Query rows that share
// a tile share the loads and nothing else: a slot that a row does not see has
// weight exactly 0 and leaves its sums as they are.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Math.h"

namespace {

constexpr float infinity = __builtin_inff();

UK_INLINE xf loadKv(const void *p, int64_t index, int32_t f32) {
  return f32 ? loadAs<xf>((const float *)p + index)
             : load<xf, _Float16>((const _Float16 *)p + index);
}
UK_INLINE float loadKvScalar(const void *p, int64_t index, int32_t f32) {
  return f32 ? ((const float *)p)[index] : float(((const _Float16 *)p)[index]);
}

/// The arguments of one tile of query rows.
struct AttendTile {
  const float *q;
  int64_t qStride;
  const int32_t *lo, *hi;
  const void *k, *v;
  int64_t headDim;
  int32_t kvF32;
  float scale, softcap;
  float *m, *l, *o;
  int64_t oStride;
};

/// p[r][16 b ..] = q[r] . k for `BT` blocks of 16 slots from block b.
template <int RT, int BT>
UK_INLINE void scoreBlocks(const AttendTile &t, int64_t b, float (*p)[ukChunk]) {
  xf s[RT][BT] = {};
  for (int64_t d = 0; d < t.headDim; ++d) {
    xf k[BT];
    UK_UNROLL for (int i = 0; i < BT; ++i) k[i] =
        loadKv(t.k, ((b + i) * t.headDim + d) * xLanes, t.kvF32);
    UK_UNROLL for (int r = 0; r < RT; ++r) UK_UNROLL for (int i = 0; i < BT; ++i) s[r][i] =
        fma(k[i], xf(t.q[r * t.qStride + d]), s[r][i]);
  }
  UK_UNROLL for (int r = 0; r < RT; ++r) UK_UNROLL for (int i = 0; i < BT; ++i)
      store(&p[r][(b + i) * xLanes], s[r][i]);
}

/// The scores of one row in the blocks [begin, end) become weights exp(scale s - m); writes m and
/// l.
template <bool masked>
UK_INLINE void softmaxRow(const AttendTile &t, int r, int64_t begin, int64_t end, float *p) {
  const xi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  xf top = -infinity;
  for (int64_t b = begin; b < end; ++b) {
    xf s = loadAs<xf>(p + b * xLanes);
    if (t.softcap != 0)
      s = t.softcap * tanhOf(s * t.scale / t.softcap);
    if (masked) {
      xi slot = lane + int32_t(b * xLanes);
      s = select((slot >= t.lo[r]) & (slot < t.hi[r]), s, xf(-infinity));
    }
    top = maxOf(top, s);
    if (masked || t.softcap != 0)
      store(p + b * xLanes, s);
  }
  const float scale = t.softcap != 0 ? 1.0f : t.scale;
  const float m = maxOf(top) * scale;
  const float origin = m == -infinity ? 0.0f : -m; // -inf - -inf is not a number
  xf sum = 0.0f;
  for (int64_t b = begin; b < end; ++b) {
    xf w = expOfNegative(fma(loadAs<xf>(p + b * xLanes), xf(scale), xf(origin)));
    sum += w;
    store(p + b * xLanes, w);
  }
  t.m[r] = m;
  t.l[r] = sumOf(sum);
}

/// o[r][d ..] = sum over slots of p[r] * v, for `VT` vectors of dims from d on; where `tail` is not
/// 0 the (only) vector has that many dims.
template <int RT, int VT>
UK_INLINE void weightValues(const AttendTile &t, int64_t begin, int64_t end, int64_t d,
                            int64_t tail, const float (*p)[ukChunk]) {
  xf o[RT][VT] = {};
  for (int64_t slot = begin; slot < end; ++slot) {
    const int64_t at = slot * t.headDim + d;
    xf v[VT];
    UK_UNROLL for (int i = 0; i < VT; ++i) v[i] = 0.0f;
    if (tail) {
      UK_UNROLL for (int j = 0; j < xLanes; ++j) if (j < tail) v[0][j] =
          loadKvScalar(t.v, at + j, t.kvF32);
    } else {
      UK_UNROLL for (int i = 0; i < VT; ++i) v[i] = loadKv(t.v, at + i * xLanes, t.kvF32);
    }
    UK_UNROLL for (int r = 0; r < RT; ++r) UK_UNROLL for (int i = 0; i < VT; ++i) o[r][i] =
        fma(v[i], xf(p[r][slot]), o[r][i]);
  }
  UK_UNROLL for (int r = 0; r < RT; ++r) UK_UNROLL for (int i = 0; i < VT; ++i) {
    float *to = t.o + r * t.oStride + d + i * xLanes;
    if (tail)
      storeTail(to, o[r][i], tail);
    else
      store(to, o[r][i]);
  }
}

template <int RT> UK_INLINE void attendTile(const AttendTile &t) {
  int32_t lo = ukChunk, hi = 0;
  UK_UNROLL for (int r = 0; r < RT; ++r) if (t.lo[r] < t.hi[r]) {
    lo = t.lo[r] < lo ? t.lo[r] : lo;
    hi = t.hi[r] > hi ? t.hi[r] : hi;
  }
  lo = lo < hi ? lo : hi;
  const int64_t begin = lo / xLanes, end = (hi + xLanes - 1) / xLanes;

  // As many vectors beside each other as there are registers for their sums.
  constexpr int vectors = ukAttendSums / RT < 4 ? ukAttendSums / RT : 4;
  alignas(64) float p[RT][ukChunk];
  int64_t b = begin;
  for (; b + vectors <= end; b += vectors)
    scoreBlocks<RT, vectors>(t, b, p);
  for (; b < end; ++b)
    scoreBlocks<RT, 1>(t, b, p);
  UK_NO_UNROLL for (int r = 0; r < RT; ++r) {
    if (t.lo[r] <= begin * xLanes && t.hi[r] >= end * xLanes)
      softmaxRow<false>(t, r, begin, end, p[r]);
    else
      softmaxRow<true>(t, r, begin, end, p[r]);
  }

  int64_t d = 0;
  for (; d + vectors * xLanes <= t.headDim; d += vectors * xLanes)
    weightValues<RT, vectors>(t, lo, hi, d, 0, p);
  for (; d + xLanes <= t.headDim; d += xLanes)
    weightValues<RT, 1>(t, lo, hi, d, 0, p);
  if (d < t.headDim)
    weightValues<RT, 1>(t, lo, hi, d, t.headDim - d, p);
}

template <int RT> UK_INLINE void attendTiles(AttendTile &t, int64_t &rows) {
  for (; rows >= RT; rows -= RT) {
    attendTile<RT>(t);
    t.q += RT * t.qStride;
    t.o += RT * t.oStride;
    t.lo += RT;
    t.hi += RT;
    t.m += RT;
    t.l += RT;
  }
}

UK_INLINE float expOne(float x) { return expOf(xf(x))[0]; }

/// What a partial result with maximum `m` is worth once the maximum is `top`.
UK_INLINE float weightAt(float m, float top) { return m == -infinity ? 0.0f : expOne(m - top); }

} // namespace

UK_EXPORT void uk_k_store(const float *k, int64_t head_dim, int64_t slot, int32_t kv_f32,
                          void *k_head) {
  const int64_t base = slot / xLanes * head_dim * xLanes + slot % xLanes;
  for (int64_t d = 0; d < head_dim; ++d) {
    if (kv_f32)
      ((float *)k_head)[base + d * xLanes] = k[d];
    else
      ((_Float16 *)k_head)[base + d * xLanes] = _Float16(k[d]);
  }
}

UK_EXPORT void uk_v_store(const float *v, int64_t head_dim, int64_t slot, int32_t kv_f32,
                          void *v_head) {
  const int64_t base = slot * head_dim;
  for (int64_t d = 0; d < head_dim; ++d) {
    if (kv_f32)
      ((float *)v_head)[base + d] = v[d];
    else
      ((_Float16 *)v_head)[base + d] = _Float16(v[d]);
  }
}

UK_EXPORT void uk_kv_widen(const void *f16, int64_t count, float *out) {
  int64_t i = 0;
  for (; i + xLanes <= count; i += xLanes)
    store(out + i, loadKv(f16, i, 0));
  for (; i < count; ++i)
    out[i] = loadKvScalar(f16, i, 0);
}

UK_EXPORT void uk_attend_chunk(const float *q, int64_t q_stride, int32_t rows, const int32_t *lo,
                               const int32_t *hi, const void *k_chunk, const void *v_chunk,
                               int64_t head_dim, int32_t kv_f32, float scale, float softcap,
                               float *m, float *l, float *o, int64_t o_stride) {
  AttendTile t = {q,      q_stride, lo,      hi, k_chunk, v_chunk, head_dim,
                  kv_f32, scale,    softcap, m,  l,       o,       o_stride};
  int64_t left = rows;
  if constexpr (ukAttendRows >= 8)
    attendTiles<8>(t, left);
  attendTiles<4>(t, left);
  attendTiles<3>(t, left);
  attendTiles<2>(t, left);
  attendTiles<1>(t, left);
}

UK_EXPORT void uk_attend_merge(float *m, float *l, float *o, const float *mb, const float *lb,
                               const float *ob, int64_t head_dim) {
  const float top = *m < *mb ? *mb : *m;
  const float a = weightAt(*m, top), b = weightAt(*mb, top);
  *m = top;
  *l = __builtin_fmaf(*lb, b, *l * a);
  forEachVector(head_dim, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    // An output that weighs nothing may not be written yet.
    store(o + i, fma(load(ob + i), xf(b), a == 0.0f ? xf(0.0f) : load(o + i) * a));
  });
}

UK_EXPORT void uk_attend_finish(const float *o, const float *l, int64_t head_dim, float *out) {
  const float sum = *l;
  forEachVector(head_dim, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    store(out + i, sum == 0.0f ? xf(0.0f) : load(o + i) / sum);
  });
}
