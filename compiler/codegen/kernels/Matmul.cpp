//===- Matmul.cpp - products with packed weights --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is one panel (16 weight rows, one per lane) times MT activation rows.
// Codes are unpacked to eight byte vectors per group of 32 and used for all MT
// rows; activations are broadcast from memory, four int8 at a time.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Tiles.h"
#include "compiler/codegen/kernels/Uk.h"

#define UK_FORMAT                                                                                  \
  {loBits, hiBits, group, superGroup, zeroPoint, minSign, codebook, floatKind, scaleKind}

namespace {

/// The activations of consecutive rows of one group of 32.
struct ActRows {
  const char *base;
  int64_t stride;
  const UkActGroup &operator[](int m) const __attribute__((always_inline)) {
    return *(const UkActGroup *)(base + m * stride);
  }
};

template <int bits, int S>
UK_INLINE void dotVectors(const vb (&w)[8], const ActRows &a, int half, vi (&dot)[S]) {
  UK_UNROLL for (int m = 0; m < S; ++m) dot[m] = dotStart<bits>(a[m].q + 16 * half);
  UK_UNROLL for (int j = 0; j < 4; ++j) UK_UNROLL for (int m = 0; m < S; ++m) dot[m] =
      dot4<bits>(dot[m], w[4 * half + j], spread4(a[m].q + 16 * half, j));
}

/// out[m] = sum over half `half` of code * q. The integers stay below 2^24: as floats they are
/// exact. S rows advance together: one row's products wait for each other.
template <int S>
UK_INLINE void dotHalf(const UkFormat &f, const vb (&w)[8], const ActRows &a, int half,
                       vf (&out)[S]) {
  vi dot[S];
  if (f.loBits + f.hiBits < 8 && !f.codebook)
    dotVectors<7>(w, a, half, dot);
  else
    dotVectors<8>(w, a, half, dot);
  UK_UNROLL for (int m = 0; m < S; ++m) out[m] = toFloat(dot[m]);
}

/// Adds one group's contribution to S rows.
template <int S>
UK_INLINE void addGroup(const UkFormat &f, const vb (&w)[8], const GroupScales &s, const ActRows &a,
                        vf *acc) {
  vf dot[2][S];
  dotHalf(f, w, a, 0, dot[0]);
  dotHalf(f, w, a, 1, dot[1]);
  UK_UNROLL for (int m = 0; m < S; ++m) addDots(f, s, a[m], dot[0][m], dot[1][m], acc[m * halves]);
}

/// The same for MT rows, at most `together` of them at a time.
template <int MT, int together>
UK_INLINE void addGroups(const UkFormat &f, const vb (&w)[8], const GroupScales &s,
                         const ActRows &a, vf *acc) {
  constexpr int S = MT < together ? MT : together;
  UK_UNROLL for (int m = 0; m < MT; m += S)
      addGroup<S>(f, w, s, {a.base + m * a.stride, a.stride}, acc + m * halves);
}

/// Where a panel is, and where its results go.
struct Tile {
  const uint8_t *codes;
  const uint8_t *scales;
  const char *act;
  int64_t actStride;
  int64_t K;
  float *out;
  int64_t outStride;
};

template <int MT> UK_INLINE void storeTile(const Tile &t, const vf (&acc)[MT][halves]) {
  UK_UNROLL for (int m = 0; m < MT; ++m) UK_UNROLL for (int h = 0; h < halves; ++h)
      store(t.out + m * t.outStride + ukLanes * h, acc[m][h]);
}

/// Fetches step `i` of `steps` of the next panel into the second-level cache. Products of few rows
/// wait for memory; the machine's own prefetchers start too late after each panel's end.
UK_INLINE void prefetchNext(const UkFormat &f, const Tile &t, int64_t i, int64_t steps) {
  const int64_t bytes = ukPanelBytes(f, t.K), share = bytes / steps;
  const uint8_t *next = t.codes + bytes + i * share;
  UK_UNROLL for (int line = 0; line < 10; ++line) if (64 * line < share)
      __builtin_prefetch(next + 64 * line, 0, 2);
}

template <int MT> UK_INLINE void int8Tile(const UkFormat &f, const Tile &t) {
  vf acc[MT][halves] = {};
  const int64_t length = ukScaleRecordLength(f), perRecord = length / ukGroup;
  const int64_t records = ukScaleRecords(f, t.K);
  const int64_t groups = ukRoundUp(t.K, ukGroup) / ukGroup;
  for (int64_t r = 0; r < records; ++r) {
    const uint8_t *record = t.scales + r * ukScaleRecordBytes(f);
    for (int64_t i = 0; i < perRecord; ++i) {
      const int64_t g = r * perRecord + i;
      if (g >= groups)
        break;
      prefetchNext(f, t, g, groups);
      UK_UNROLL for (int h = 0; h < halves; ++h) {
        vb w[8];
        unpack(f, t.codes + g * ukGroupCodeBytes(f), h, w);
        const GroupScales s = loadScales(f, record, i, h);
        const ActRows a = {t.act + g * sizeof(UkActGroup), t.actStride};
        // The correction by a zero point keeps more registers busy.
        if (f.zeroPoint || f.minSign == ukZeroPoints)
          addGroups<MT, ukDotRows / 2>(f, w, s, a, &acc[0][h]);
        else
          addGroups<MT, ukDotRows>(f, w, s, a, &acc[0][h]);
      }
    }
  }
  storeTile<MT>(t, acc);
}

/// acc += w * act[k] for each row.
template <int MT>
UK_INLINE void addColumn(const Tile &t, int64_t k, int h, vf w, vf (&acc)[MT][halves]) {
  UK_UNROLL for (int m = 0; m < MT; ++m) {
    const float *a = (const float *)(t.act + m * t.actStride);
    acc[m][h] = fma(w, vf(a[k]), acc[m][h]);
  }
}

/// Calls body(k, values) for the first `count` columns of half h of group g.
template <typename Body>
UK_INLINE void forEachColumn(const UkFormat &f, const Tile &t, int64_t g, int count, int h,
                             Body body) {
  const int64_t perRecord = ukScaleRecordLength(f) / ukGroup;
  vb w[8];
  unpack(f, t.codes + g * ukGroupCodeBytes(f), h, w);
  const uint8_t *record = t.scales + g / perRecord * ukScaleRecordBytes(f);
  const GroupScales s = loadScales(f, record, g % perRecord, h);
  UK_UNROLL for (int j = 0; j < 8; ++j) UK_UNROLL for (int i = 0; i < 4; ++i) {
    if (4 * j + i >= count)
      break;
    body(g * ukGroup + 4 * j + i, dequantColumn(f, w[j], i, s, j / 4 * (f.group < ukGroup)));
  }
}

template <int MT> UK_INLINE void f32QuantTile(const UkFormat &f, const Tile &t) {
  vf acc[MT][halves] = {};
  auto addGroupOf = [&](int64_t g, int count) __attribute__((always_inline)) {
    UK_UNROLL for (int h = 0; h < halves; ++h)
        forEachColumn(f, t, g, count, h, [&](int64_t k, vf w) __attribute__((always_inline)) {
          addColumn<MT>(t, k, h, w, acc);
        });
  };
  const int64_t whole = t.K / ukGroup;
  for (int64_t g = 0; g < whole; ++g) {
    prefetchNext(f, t, g, whole);
    addGroupOf(g, ukGroup);
  }
  if (t.K % ukGroup)
    addGroupOf(whole, t.K % ukGroup);
  storeTile<MT>(t, acc);
}

template <int MT> UK_INLINE void f32FloatTile(const UkFormat &f, const Tile &t) {
  vf acc[MT][halves] = {};
  const int64_t size = ukFloatBytes(f.floatKind);
  for (int64_t k = 0; k < t.K; ++k) {
    prefetchNext(f, t, k, t.K);
    UK_UNROLL for (int h = 0; h < halves; ++h) addColumn<MT>(
        t, k, h, loadFloats(f, t.codes + (k * ukPanelRows + ukLanes * h) * size), acc);
  }
  storeTile<MT>(t, acc);
}

template <int MT> UK_INLINE void tile(const UkFormat &f, int32_t actKind, const Tile &t) {
  if (f.floatKind)
    f32FloatTile<MT>(f, t);
  else if (actKind == ukActF32)
    f32QuantTile<MT>(f, t);
  else
    int8Tile<MT>(f, t);
}

/// Runs tiles of MT rows while there are MT left.
template <int MT>
UK_INLINE void tilesOf(const UkFormat &f, int32_t actKind, Tile &t, int64_t &rows) {
  for (; rows >= MT; rows -= MT) {
    tile<MT>(f, actKind, t);
    t.act += MT * t.actStride;
    t.out += MT * t.outStride;
  }
}

} // namespace

UK_EXPORT UK_TILED void uk_matmul(const void *w, const void *act, int64_t act_stride, int32_t rows,
                                  int64_t K, int32_t act_kind, UK_FORMAT_ARGS, float *out,
                                  int64_t out_stride) {
  const UkFormat f = UK_FORMAT;
  const auto *codes = (const uint8_t *)w;
  Tile t = {codes,     codes + ukPanelCodesBytes(f, K), (const char *)act, act_stride, K, out,
            out_stride};
  int64_t left = rows;
#if defined(UK_AMX)
  if (!f.floatKind && act_kind == ukActInt8) {
    const int64_t done =
        int8TileRows(f, t.codes, t.scales, t.act, act_stride, rows, K, out, out_stride);
    t.act += done * act_stride;
    t.out += done * out_stride;
    left -= done;
  }
#endif
  if constexpr (ukMatmulRows >= 16)
    tilesOf<16>(f, act_kind, t, left);
  if constexpr (ukMatmulRows >= 8)
    tilesOf<8>(f, act_kind, t, left);
  tilesOf<4>(f, act_kind, t, left);
  tilesOf<2>(f, act_kind, t, left);
  tilesOf<1>(f, act_kind, t, left);
}

UK_EXPORT void uk_gemv(const void *w, int32_t panels, const void *act, int64_t K, int32_t act_kind,
                       UK_FORMAT_ARGS, float *out) {
  const UkFormat f = UK_FORMAT;
  const auto *codes = (const uint8_t *)w;
  for (int64_t p = 0; p < panels; ++p) {
    tile<1>(f, act_kind, {codes, codes + ukPanelCodesBytes(f, K), (const char *)act, 0, K, out, 0});
    codes += ukPanelBytes(f, K);
    out += ukPanelRows;
  }
}

UK_EXPORT void uk_dequant_row(const void *w, int64_t row, int64_t K, UK_FORMAT_ARGS, float *out) {
  const UkFormat f = UK_FORMAT;
  const auto *codes = (const uint8_t *)w + row / ukPanelRows * ukPanelBytes(f, K);
  const uint8_t *scales = codes + ukPanelCodesBytes(f, K);
  const int h = row % ukPanelRows / ukLanes, lane = row % ukLanes;
  if (f.floatKind) {
    const int64_t size = ukFloatBytes(f.floatKind);
    for (int64_t k = 0; k < K; ++k)
      out[k] = loadFloats(f, codes + (k * ukPanelRows + ukLanes * h) * size)[lane];
    return;
  }
  const Tile t = {codes, scales, nullptr, 0, K, out, 0};
  auto dequantGroup = [&](int64_t g, int count) __attribute__((always_inline)) {
    forEachColumn(f, t, g, count, h,
                  [&](int64_t k, vf w) __attribute__((always_inline)) { out[k] = w[lane]; });
  };
  for (int64_t g = 0; g < K / ukGroup; ++g)
    dequantGroup(g, ukGroup);
  if (K % ukGroup)
    dequantGroup(K / ukGroup, K % ukGroup);
}
