//===- Tiles.cpp - matrix tiles (AMX): state, bf16 products ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bf16 products for prefill that need not give decode's bits. A panel is expanded
// once for all rows of a step; two panels and two blocks of 16 rows make four
// products of four loads. One instruction adds 32 k, in an order that the
// architecture fixes, so rows and panels may be split at will.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Tiles.h"
#include "compiler/codegen/kernels/Uk.h"

#if defined(UK_AMX)

#define UK_FORMAT                                                                                  \
  {loBits, hiBits, group, superGroup, zeroPoint, minSign, codebook, floatKind, scaleKind}

namespace {

/// The operand of ldtilecfg.
struct TileConfig {
  uint8_t palette, startRow, zero[14];
  uint16_t rowBytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

/// `k` bytes of K in one product.
constexpr TileConfig tileConfig(uint8_t k) {
  TileConfig c = {1, 0, {}, {}, {}};
  for (int i = 0; i < 8; ++i) {
    c.rowBytes[i] = i == 4 || i == 5 ? k : 64;
    c.rows[i] = i < 6 ? ukTileRows : k / 4;
  }
  return c;
}
constexpr TileConfig int8Config = tileConfig(16), bf16Config = tileConfig(64);

typedef UkVec<ukLanes>::U vu;

/// To the nearest bf16, ties away from zero, in the upper half of a lane.
UK_INLINE vu roundBf16(vf v) { return (vu)v + 0x8000; }

/// Two columns as pairs of bf16.
UK_INLINE vu bf16Pairs(vf even, vf odd) {
  return roundBf16(even) >> 16 | (roundBf16(odd) & 0xffff0000u);
}

UK_INLINE void bf16FloatPanel(const UkFormat &f, const uint8_t *codes, int64_t K, char *to) {
  const int64_t bytes = ukFloatBytes(f.floatKind) * ukPanelRows;
  for (int64_t k = 0; k < ukRoundUp(K, ukGroup); k += 2, to += 64)
    store(to, bf16Pairs(k < K ? loadFloats(f, codes + k * bytes) : vf(0.0f),
                        k + 1 < K ? loadFloats(f, codes + (k + 1) * bytes) : vf(0.0f)));
}

template <int blocks, int panels>
UK_TILED UK_INLINE void bf16Tile(const char *b, int64_t panelBytes, const char *act, int64_t stride,
                                 int64_t groups, float *out, int64_t outStride) {
  _tile_zero(0);
  if constexpr (panels == 2)
    _tile_zero(1);
  if constexpr (blocks == 2)
    _tile_zero(2);
  if constexpr (blocks == 2 && panels == 2)
    _tile_zero(3);
  for (int64_t g = 0; g < groups; ++g) {
    const char *a = act + 64 * g, *w = b + 1024 * g;
    _tile_loadd(6, w, 64);
    _tile_loadd(4, a, stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (panels == 2) {
      _tile_loadd(7, w + panelBytes, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (blocks == 2) {
      _tile_loadd(5, a + ukTileRows * stride, stride);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (blocks == 2 && panels == 2)
      _tile_dpbf16ps(3, 5, 7);
  }
  const int64_t bytes = outStride * 4;
  _tile_stored(0, out, bytes);
  if constexpr (panels == 2)
    _tile_stored(1, out + ukPanelRows, bytes);
  if constexpr (blocks == 2)
    _tile_stored(2, out + ukTileRows * outStride, bytes);
  if constexpr (blocks == 2 && panels == 2)
    _tile_stored(3, out + ukTileRows * outStride + ukPanelRows, bytes);
}

template <int panels>
UK_TILED UK_INLINE void bf16Rows(const char *b, int64_t panelBytes, const char *act, int64_t stride,
                                 int64_t rows, int64_t groups, float *out, int64_t outStride) {
  for (; rows > ukTileRows; rows -= 2 * ukTileRows) {
    bf16Tile<2, panels>(b, panelBytes, act, stride, groups, out, outStride);
    act += 2 * ukTileRows * stride;
    out += 2 * ukTileRows * outStride;
  }
  if (rows > 0)
    bf16Tile<1, panels>(b, panelBytes, act, stride, groups, out, outStride);
}

} // namespace

UK_EXPORT UK_TILED void uk_tiles_begin(int32_t rows, int32_t act_kind) {
  if (act_kind == ukActBf16)
    _tile_loadconfig(&bf16Config);
  else if (act_kind == ukActInt8 && rows >= ukTileRows)
    _tile_loadconfig(&int8Config);
}

UK_EXPORT UK_TILED void uk_tiles_end(int32_t rows, int32_t act_kind) {
  if (act_kind == ukActBf16 || (act_kind == ukActInt8 && rows >= ukTileRows))
    _tile_release();
}

UK_EXPORT void uk_bf16_act(const float *x, int64_t K, void *act_row) {
  auto *row = (uint16_t *)act_row;
  const int64_t end = ukRoundUp(K, ukGroup);
  forEachVector(K, [&](int64_t i, auto load, auto) __attribute__((always_inline)) {
    typedef uint16_t Half __attribute__((ext_vector_type(xLanes)));
    store(row + i, __builtin_convertvector(roundBf16(load(x + i)) >> 16, Half));
  });
  for (int64_t i = ukRoundUp(K, xLanes); i < end; ++i)
    row[i] = 0;
}

UK_EXPORT void uk_bf16_panels(const void *w, int32_t panels, int64_t K, UK_FORMAT_ARGS, void *out) {
  const UkFormat f = UK_FORMAT;
  const int64_t groups = ukRoundUp(K, ukGroup) / ukGroup;
  const int64_t perRecord = ukScaleRecordLength(f) / ukGroup;
  const auto *codes = (const uint8_t *)w;
  auto *to = (char *)out;
  for (int64_t p = 0; p < panels; ++p, codes += ukPanelBytes(f, K)) {
    if (f.floatKind) {
      bf16FloatPanel(f, codes, K, to);
      to += ukBf16PanelBytes(K);
      continue;
    }
    const uint8_t *scales = codes + ukPanelCodesBytes(f, K);
    for (int64_t g = 0; g < groups; ++g, to += 1024) {
      vb w8[8];
      unpack(f, codes + g * ukGroupCodeBytes(f), 0, w8);
      const GroupScales s =
          loadScales(f, scales + g / perRecord * ukScaleRecordBytes(f), g % perRecord, 0);
      UK_UNROLL for (int j = 0; j < 8; ++j) UK_UNROLL for (int i = 0; i < 4; i += 2) {
        const int sub = j / 4 * (f.group < ukGroup);
        store(to + 64 * (2 * j + i / 2), bf16Pairs(dequantColumn(f, w8[j], i, s, sub),
                                                   dequantColumn(f, w8[j], i + 1, s, sub)));
      }
    }
  }
}

UK_EXPORT UK_TILED void uk_bf16_matmul(const void *b, int32_t panels, const void *act,
                                       int64_t act_stride, int32_t rows, int64_t K, float *out,
                                       int64_t out_stride) {
  const int64_t groups = ukRoundUp(K, ukGroup) / ukGroup, panelBytes = ukBf16PanelBytes(K);
  if (panels == 2)
    bf16Rows<2>((const char *)b, panelBytes, (const char *)act, act_stride, rows, groups, out,
                out_stride);
  else
    bf16Rows<1>((const char *)b, panelBytes, (const char *)act, act_stride, rows, groups, out,
                out_stride);
}

#else

// Without tiles there is no state.
UK_EXPORT void uk_tiles_begin(int32_t, int32_t) {}
UK_EXPORT void uk_tiles_end(int32_t, int32_t) {}

#endif
