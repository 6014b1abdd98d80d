//===- WarpLayout.h - weights as the warps of a GPU read them ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout "warp32". A weight is a matrix W[N][K]. Thirty-two rows make a
// *tile* (N is padded with zero rows, K to whole groups of 32, with super-groups
// to whole ones). What a tile holds of a row is a few byte streams; a stream is
// cut into units of 2 to 16 bytes, and unit u of all 32 rows lies together:
//
//   byte x of row r is at offset + x / unit * (32 * unit) + r * unit + x % unit
//
// so that lane r of a warp reads its row in single loads, and the warp whole
// sectors. The streams of a quantized weight:
//
//   low     codes, low bit plane: per group of 32, 4 * bits bytes
//   high    codes, high bit plane (may be empty), likewise
//   scales  records as in PanelLayout.h, one row of them: per group (or per
//           super-group) the scales, then the mins or zero points
//   subs    per super-group of 256 the int8 sub-scales, then the sub-mins
//
// Codes in a plane of b bits: k-vector v (0..7) holds k = 4 v .. 4 v + 3 of its
// group in the four bytes of word v % (b words), at bits (v / words) b of each
// byte, with `words` = b for b = 4 and 8; for b = 1 and 2 word v b / 8, bits
// v b % 8. This is the order in which dp4a, and a fragment of
// mma.m16n8k16.s8 (lane t of four: vectors t and 4 + t), take them. Codes of eight
// bits are stored as signed ones (code - 128).
//
// Floats: one stream, the row itself, in units of 16 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_WARPLAYOUT_H
#define LLMC_COMPILER_WEIGHTS_WARPLAYOUT_H

#include "compiler/weights/Format.h"

namespace llmc {

inline constexpr uint64_t kWarpRows = 32;

struct WarpStream {
  uint64_t offset = 0;   ///< in the tile
  uint64_t rowBytes = 0; ///< of one row, a multiple of unit; 0: the stream is empty
  uint64_t unit = 16;

  uint64_t position(uint64_t byte, uint64_t row) const {
    return offset + byte / unit * (kWarpRows * unit) + row * unit + byte % unit;
  }
};

struct WarpLayout {
  WarpStream low, high, scales, subs;
  uint64_t paddedK;
  uint64_t tiles, tileBytes, totalBytes;
};
WarpLayout warpLayout(const Encoding &encoding, uint64_t N, uint64_t K);

/// Where k-vector `v` of a group is in a plane of `bits`: its word, and the shift of its codes.
struct WarpCode {
  unsigned word, shift;
};
WarpCode warpCode(unsigned bits, unsigned v);

/// True where the low plane holds signed bytes.
bool warpCodesAreSigned(const UkFormat &format);

/// Packs the tiles [begin, end) of a weight of N source rows at `src`; tile t goes to dst + (t -
/// begin) * tileBytes. Every byte of these tiles is written. Lossless.
void packWarpTiles(const Encoding &encoding, const uint8_t *src, uint64_t N, uint64_t K,
                   uint64_t begin, uint64_t end, uint8_t *dst);

/// Dequantizes row `row` of a packed weight to dst[K]; equals dequantizeRow of the source bit for
/// bit.
void dequantizeWarpRow(const Encoding &encoding, const uint8_t *packed, uint64_t K, uint64_t row,
                       float *dst);

} // namespace llmc

#endif // LLMC_COMPILER_WEIGHTS_WARPLAYOUT_H
