//===- Tiles.h - products on matrix tiles (AMX) ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile product takes 16 rows of A, k bytes each, and k / 4 rows of B, sixteen
// columns of four k: the panel's own order. Sums are int32 (or float), exact for
// codes and int8 activations.
//
// int8: the products of one scale's 16 k are one instruction; the sums go through
// memory to vectors, where they are scaled just as in Matmul.cpp, so the bits are
// the same. Vectors, not tiles, are the limit: 6 to 8 operations per row and group
// of 32, against 14 to 16 with vpdpbusd.
//
// Eight tile registers: 0-3 sums, 4-5 activations, 6-7 weights. They are
// configured by uk_tiles_begin, once per range of a dispatch.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_TILES_H
#define LLMC_COMPILER_CODEGEN_KERNELS_TILES_H

#include "compiler/codegen/kernels/Panel.h"

#if defined(UK_AMX)

namespace {

/// Groups that are unpacked at a time, for up to tileBlocks blocks of 16 rows: what they need stays
/// in the first cache.
constexpr int64_t tileGroups = 8, tileBlocks = 4;

struct UnpackedGroups {
  vb codes[tileGroups][8];
  GroupScales scales[tileGroups];
};

/// The sums of both halves of a group, of 16 activation rows with 16 weight rows.
struct TileDots {
  vi half[2][ukTileRows];
};

/// `sum`: the first of the two sum registers. Two pairs take turns, so that the next group's
/// products need not wait for this one's to be stored.
template <int sum>
UK_TILED UK_INLINE void multiplyGroup(const char *act, int64_t stride, const vb (&codes)[8],
                                      TileDots &dots) {
  _tile_zero(sum);
  _tile_loadd(4, act, stride);
  _tile_loadd(6, &codes[0], 64);
  _tile_dpbsud(sum, 4, 6);
  _tile_stored(sum, dots.half[0], 64);
  _tile_zero(sum + 1);
  _tile_loadd(5, act + 16, stride);
  _tile_loadd(7, &codes[4], 64);
  _tile_dpbsud(sum + 1, 5, 7);
  _tile_stored(sum + 1, dots.half[1], 64);
}

UK_INLINE void addTileDots(const UkFormat &f, const GroupScales &s, const char *act, int64_t stride,
                           const TileDots &dots, vf (&acc)[ukTileRows]) {
  UK_UNROLL for (int m = 0; m < ukTileRows; ++m)
      addDots(f, s, *(const UkActGroup *)(act + m * stride), toFloat(dots.half[0][m]),
              toFloat(dots.half[1][m]), acc[m]);
}

/// Adds n groups to the sums of 16 rows at `out`, or to zero.
UK_TILED UK_INLINE void int8TileBlock(const UkFormat &f, const UnpackedGroups &u, int64_t n,
                                      const char *act, int64_t stride, bool first, float *out,
                                      int64_t outStride) {
  vf acc[ukTileRows];
  UK_UNROLL for (int m = 0; m < ukTileRows; ++m) acc[m] =
      first ? vf(0.0f) : loadAs<vf>(out + m * outStride);
  const auto at = [&](int64_t g)
                      __attribute__((always_inline)) { return act + g * sizeof(UkActGroup); };
  TileDots even, odd;
  // The products run one group ahead of the vectors.
  multiplyGroup<0>(at(0), stride, u.codes[0], even);
  int64_t g = 0;
  for (; g + 1 < n; g += 2) {
    multiplyGroup<2>(at(g + 1), stride, u.codes[g + 1], odd);
    addTileDots(f, u.scales[g], at(g), stride, even, acc);
    if (g + 2 < n)
      multiplyGroup<0>(at(g + 2), stride, u.codes[g + 2], even);
    addTileDots(f, u.scales[g + 1], at(g + 1), stride, odd, acc);
  }
  if (g < n)
    addTileDots(f, u.scales[g], at(g), stride, even, acc);
  UK_UNROLL for (int m = 0; m < ukTileRows; ++m) store(out + m * outStride, acc[m]);
}

/// Whole blocks of 16 rows of a panel; returns how many rows that were.
UK_TILED UK_INLINE int64_t int8TileRows(const UkFormat &f, const uint8_t *codes,
                                        const uint8_t *scales, const char *act, int64_t stride,
                                        int64_t rows, int64_t K, float *out, int64_t outStride) {
  const int64_t groups = ukRoundUp(K, ukGroup) / ukGroup;
  const int64_t perRecord = ukScaleRecordLength(f) / ukGroup;
  const int64_t blocks = rows / ukTileRows;
  for (int64_t b = 0; b < blocks; b += tileBlocks) {
    const int64_t last = b + tileBlocks < blocks ? b + tileBlocks : blocks;
    for (int64_t g = 0; g < groups; g += tileGroups) {
      const int64_t n = g + tileGroups < groups ? tileGroups : groups - g;
      UnpackedGroups u;
      for (int64_t i = 0; i < n; ++i) {
        vb w[8];
        unpack(f, codes + (g + i) * ukGroupCodeBytes(f), 0, w);
        UK_UNROLL for (int j = 0; j < 8; ++j) u.codes[i][j] = w[j];
        u.scales[i] = loadScales(f, scales + (g + i) / perRecord * ukScaleRecordBytes(f),
                                 (g + i) % perRecord, 0);
      }
      for (int64_t at = b; at < last; ++at)
        int8TileBlock(f, u, n, act + at * ukTileRows * stride + g * sizeof(UkActGroup), stride,
                      g == 0, out + at * ukTileRows * outStride, outStride);
    }
  }
  return blocks * ukTileRows;
}

} // namespace

#endif // UK_AMX

#endif // LLMC_COMPILER_CODEGEN_KERNELS_TILES_H
