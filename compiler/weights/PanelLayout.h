//===- PanelLayout.h - packed weights and activation rows -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one layout that the packer writes and every kernel reads. This header is
// shared with the freestanding micro-kernels: integers and arithmetic only.
//
// A weight is a matrix W[N][K], one row per output. Sixteen rows make a
// *panel* (N is padded with zero rows), panels follow one another:
//
//   panel = [codes, padded to 64 bytes][scales, padded to 64 bytes]
//
// Quantized codes. Per group of 32 along K, in order, the bit planes, low plane
// first. A k-vector j (0..7) of a group is 64 bytes: byte [row r][i] is the code
// of row r, k = 32 g + 4 j + i. So a 32-bit lane holds four consecutive k of one
// row, which is what VNNI, AMX and SDOT multiply. A plane of b bits has b
// vectors; bits [f b, f b + b) of vector v belong to k-vector j = v + b f.
// Codes are unsigned; value = scale * (code - zeroPoint) [+- min], or
// scale * (code - z) where each group has a zero point z of its own. K need be no
// multiple of 32; the codes behind it mean nothing.
//
// Scales without super-groups, a record per max(group, 32) elements, in f16 or
// f32: scale[16], twice for groups of 16, then in the same way min[16] or z[16].
// A group may be longer than the row: one scale per row.
//
// Scales with super-groups, per 256: f16 d[16], (f16 dmin[16]), then per
// sub-group of `group` elements int8 sc[16], then (with mins) per sub-group int8
// mn[16]; value = (d * sc) * (code - zeroPoint) - dmin * mn.
//
// Floats: codes are [K][16 rows] in the source type; there are no scales.
//
// An activation row is made once and serves every format:
//   int8: per group of 32 one 64-byte UkActGroup; x ~= d[half] * q
//   f32:  K floats
//   bf16: K values, padded to 32: no longer than the others, so that code generation may choose
//
// A panel expanded to bf16 has rows of 64 bytes: sixteen pairs (k, k + 1), k even.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_PANELLAYOUT_H
#define LLMC_COMPILER_WEIGHTS_PANELLAYOUT_H

#include <stdint.h>

/// Layout arithmetic folds away in kernels, so it must be inlined there.
#define UK_LAYOUT __attribute__((always_inline)) constexpr

/// What a micro-kernel must know of a format; passed as constants in field order.
struct UkFormat {
  int32_t loBits;     ///< bits of the low code plane: 2, 4 or 8; 0 for float weights
  int32_t hiBits;     ///< bits of the high code plane: 0, 1 or 2
  int32_t group;      ///< elements per (sub-)scale: 16 or a multiple of 32; 0 for float weights
  int32_t superGroup; ///< elements per f16 scale of the sub-scales: 256, or 0 without
  int32_t zeroPoint;  ///< the code (after the codebook) that means 0
  int32_t minSign;    ///< UkMin: what the second number of a scale record is
  int32_t codebook;   ///< UkCodebook
  int32_t floatKind;  ///< UkFloatKind
  int32_t scaleKind;  ///< UkFloatKind of scales and mins: ukF16, or ukF32 without super-groups
};
enum { ukFormatFields = 9 };
/// The group of a format with one scale per row: longer than any row.
enum { ukWholeRow = 1 << 30 };

/// none; value = s q + m; value = s q - m; value = s (q - z).
enum UkMin : int32_t { ukNoMin = 0, ukMinAdded = 1, ukMinSubtracted = -1, ukZeroPoints = 2 };

enum UkCodebook : int32_t { ukCodebookNone = 0, ukCodebookIq4 = 1 };
enum UkFloatKind : int32_t {
  ukQuantized = 0,
  ukF32 = 1,
  ukF16 = 2,
  ukBF16 = 3,
  ukF8E4M3 = 4, ///< no infinities, one NaN of each sign
  ukF8E5M2 = 5, ///< the upper half of an f16
};
enum UkActKind : int32_t { ukActInt8 = 0, ukActF32 = 1, ukActBf16 = 2 };

enum { ukPanelRows = 16, ukGroup = 32 };

/// One group of 32 of an int8 activation row; each half of 16 has a scale of its own (two products
/// more per group than one scale costs, a quarter less error). The sums of q serve zero points and
/// mins: d * sum for each half, and over both.
struct UkActGroup {
  int8_t q[32];
  float d[2];    ///< scale of each half: amax / 127
  float dsum[2]; ///< d * sum of q, exact in float but for the product
  float dsums;   ///< dsum[0] + dsum[1]
  float pad[3];
};
static_assert(sizeof(UkActGroup) == 64, "one cache line per group");

UK_LAYOUT int64_t ukRoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// K as it is stored: whole groups, whole super-groups; float weights are not padded.
UK_LAYOUT int64_t ukPaddedK(const UkFormat &f, int64_t k) {
  return f.floatKind ? k : ukRoundUp(k, f.superGroup ? f.superGroup : int64_t(ukGroup));
}

/// Bytes of the codes of 16 rows of one group of 32.
UK_LAYOUT int64_t ukGroupCodeBytes(const UkFormat &f) { return 64 * (f.loBits + f.hiBits); }

/// Bytes of a float of that kind.
UK_LAYOUT int64_t ukFloatBytes(int32_t kind) { return kind == ukF32 ? 4 : kind < ukF8E4M3 ? 2 : 1; }

/// Scales per row and record, without super-groups.
UK_LAYOUT int64_t ukScalesPerRecord(const UkFormat &f) { return f.group < ukGroup ? 2 : 1; }

/// Bytes of the scales of 16 rows of one scale record (a group, two short groups, or a
/// super-group).
UK_LAYOUT int64_t ukScaleRecordBytes(const UkFormat &f) {
  int64_t perRow =
      f.superGroup ? 2 + f.superGroup / f.group : ukFloatBytes(f.scaleKind) * ukScalesPerRecord(f);
  return ukPanelRows * perRow * (f.minSign ? 2 : 1);
}
UK_LAYOUT int64_t ukScaleRecordLength(const UkFormat &f) {
  return f.superGroup ? f.superGroup : f.group < ukGroup ? int64_t(ukGroup) : f.group;
}

/// Scale records of a row of k elements; the last may be for fewer.
UK_LAYOUT int64_t ukScaleRecords(const UkFormat &f, int64_t k) {
  return ukRoundUp(k, ukScaleRecordLength(f)) / ukScaleRecordLength(f);
}

/// Bytes of the two regions of a panel, each padded to 64.
UK_LAYOUT int64_t ukPanelCodesBytes(const UkFormat &f, int64_t k) {
  if (f.floatKind)
    return ukRoundUp(k * ukPanelRows * ukFloatBytes(f.floatKind), 64);
  return ukPaddedK(f, k) / ukGroup * ukGroupCodeBytes(f);
}
UK_LAYOUT int64_t ukPanelScalesBytes(const UkFormat &f, int64_t k) {
  if (f.floatKind)
    return 0;
  return ukRoundUp(ukScaleRecords(f, k) * ukScaleRecordBytes(f), 64);
}
UK_LAYOUT int64_t ukPanelBytes(const UkFormat &f, int64_t k) {
  return ukPanelCodesBytes(f, k) + ukPanelScalesBytes(f, k);
}

/// Bytes from one activation row to the next.
UK_LAYOUT int64_t ukActStride(int32_t actKind, int64_t k) {
  return actKind == ukActF32 ? ukRoundUp(k * 4, 64)
                             : ukRoundUp(k, ukGroup) / ukGroup * int64_t(sizeof(UkActGroup));
}

/// Bytes of a panel expanded to bf16.
UK_LAYOUT int64_t ukBf16PanelBytes(int64_t k) { return ukRoundUp(k, ukGroup) * ukPanelRows * 2; }

/// Values of the IQ4 codebook (ggml kvalues_iq4nl), as codes with zero point 128.
constexpr uint8_t ukIq4Codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                    129, 141, 153, 166, 181, 197, 217, 241};

#endif // LLMC_COMPILER_WEIGHTS_PANELLAYOUT_H
