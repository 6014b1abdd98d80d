//===- Format.h - weight encodings as data --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An encoding is a row of one table: where the bits of a source block are, and
// what they mean. One dequantizer, one packer and one family of micro-kernels
// read the table; a new encoding is a new row and its test.
//
// Source blocks are those of ggml (ggml-common.h): a row of K elements is K /
// blockElements blocks. Codes lie in *bit planes*: a plane of b bits covers the
// block in chunks of C elements, S = C b / 8 bytes each, and element e = c C + r is
//   split:      byte c S + r % S, bits from (r / S) b
//   sequential: byte c S + r b / 8, bits from r b % 8
// The code is low plane | high plane << bits of the low plane.
//
// Besides ggml's there is the family of *group encodings*, in which ONNX's block
// and channel quantization arrives and into which `--quant` quantizes. A row is
//   codes: per 32 elements the low plane, then the high plane, sequential
//   scales: f16 or f32, one per group (the last group may be short)
//   mins or zero points, in the same way, where the encoding has them
// and its name says all: int4_g32, int8_row_f32 (a scale per row), int4_g64_min
// (scale * code + min), int4_g128_zp_f32 (scale * (code - zero point)), iq4_g64.
// Without mins and zero points the middle code means zero.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_FORMAT_H
#define LLMC_COMPILER_WEIGHTS_FORMAT_H

#include "compiler/weights/PanelLayout.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>

namespace llmc {

/// Where one plane of code bits lies in a source block.
struct BitPlane {
  uint16_t offset; ///< first byte in the block
  uint8_t bits;    ///< bits per element; 0: the plane does not exist
  uint16_t chunk;  ///< elements per chunk
  enum Order : uint8_t { Split, Sequential } order;
};

/// How the sub-scales (and sub-mins) of a super-group are packed in the source.
enum class SubScales : uint8_t {
  None,
  NibblePairs,  ///< 16 bytes: low nibble scale, high nibble min (q2_k)
  SixBitSigned, ///< 12 bytes: 16 six-bit scales, offset 32 (q3_k)
  SixBitPairs,  ///< 12 bytes: 8 six-bit scales and 8 six-bit mins (q4_k, q5_k)
  Int8,         ///< 16 signed bytes (q6_k)
  SixBitSplit,  ///< u16 high pairs of bits, then 4 bytes of low nibbles, offset 32 (iq4_xs)
};

/// One weight encoding: the source block and the numbers it stands for.
struct Encoding {
  llvm::StringRef name;
  uint32_t ggmlType;
  uint32_t blockElements;
  uint32_t blockBytes;
  BitPlane planes[2];   ///< low bits, high bits
  uint16_t scaleOffset; ///< f16 scale (d) in the block
  uint16_t minOffset;   ///< f16 min (m or dmin) in the block, where format.minSign != 0
  SubScales subScales;
  uint16_t subScaleOffset;
  uint8_t codeXor; ///< makes source codes unsigned (0x80 where they are two's complement)
  UkFormat format; ///< the numeric description shared with the micro-kernels
  /// A group encoding: blocks of 32 codes, then the scales of the row.
  bool grouped = false;

  bool isFloat() const { return format.floatKind != ukQuantized; }
  /// True where a row of K elements is made of whole blocks.
  bool acceptsRow(uint64_t K) const { return grouped || K % blockElements == 0; }
  /// Bytes of the codes of a row, where they lie apart from the scales.
  uint64_t rowCodesBytes(uint64_t K) const;
  /// Groups in a row of a group encoding.
  uint64_t rowGroups(uint64_t K) const;
  /// Bytes of a source row of K elements; `acceptsRow(K)` must hold.
  uint64_t rowBytes(uint64_t K) const;
};

/// The encodings of ggml's types and of floats, in the order of their ggml type ids.
llvm::ArrayRef<Encoding> encodings();
/// The family of group encodings.
llvm::ArrayRef<Encoding> groupEncodings();
/// The encoding of that name ("q4_k") or ggml type id; null where there is none.
const Encoding *lookupEncoding(llvm::StringRef name);
const Encoding *lookupGgmlType(uint32_t id);

/// The constant arguments that a micro-kernel takes for this encoding, in order.
std::array<int32_t, ukFormatFields> kernelFormatArgs(const Encoding &encoding);

/// Sizes in bytes of a packed weight of N rows, K columns (see PanelLayout.h).
struct PackedLayout {
  uint64_t panels;
  uint64_t panelBytes;
  uint64_t codesBytes;  ///< per panel
  uint64_t scalesBytes; ///< per panel
  uint64_t totalBytes;
};
PackedLayout packedLayout(const Encoding &encoding, uint64_t N, uint64_t K);

/// Dequantizes one source row to dst[K]. Bit-exact with ggml's dequantize_row_*.
void dequantizeRow(const Encoding &encoding, const uint8_t *src, float *dst, uint64_t K);

/// Packs the panels [panelBegin, panelEnd) of a weight of N source rows at `src`; panel p goes to
/// dst + (p - panelBegin) * panelBytes. Every byte of these panels is written. Lossless.
void packPanels(const Encoding &encoding, const uint8_t *src, uint64_t N, uint64_t K,
                uint64_t panelBegin, uint64_t panelEnd, uint8_t *dst);

/// Dequantizes row `row` of a packed weight to dst[K]; equals dequantizeRow of the source bit for
/// bit. `packed` is the start of panel 0.
void dequantizePackedRow(const Encoding &encoding, const uint8_t *packed, uint64_t K, uint64_t row,
                         float *dst);

} // namespace llmc

#endif // LLMC_COMPILER_WEIGHTS_FORMAT_H
