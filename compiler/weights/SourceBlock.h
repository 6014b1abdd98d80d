//===- SourceBlock.h - reading one ggml block -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decodes a source block into codes and scales, driven by its Encoding. Used by
// the dequantizer and the packer, so that both see the same numbers.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_SOURCEBLOCK_H
#define LLMC_COMPILER_WEIGHTS_SOURCEBLOCK_H

#include "compiler/weights/Format.h"

namespace llmc {

enum { maxBlock = 256, maxSubGroups = 16 };

/// The content of one block: unsigned codes (before any codebook), the raw bits of scale and min (a
/// second of each for groups of 16 without super-group), and the integer sub-scales and sub-mins.
struct SourceBlock {
  uint8_t codes[maxBlock];
  uint32_t scale[2];
  uint32_t min[2];
  int8_t subScale[maxSubGroups];
  int8_t subMin[maxSubGroups];
};

/// Reads block `index` of a row of K elements. Codes behind the row's end are 0.
void readBlock(const Encoding &encoding, const uint8_t *row, uint64_t K, uint64_t index,
               SourceBlock &out);

/// Exact conversions to f32.
float halfToFloat(uint16_t bits);
float bfloatToFloat(uint16_t bits);
float float8ToFloat(UkFloatKind kind, uint8_t bits);
float readFloat(UkFloatKind kind, const uint8_t *src);

/// The value of a code before the scale: codebook, then zero point.
inline float codeValue(const UkFormat &format, uint8_t code) {
  int value = format.codebook == ukCodebookIq4 ? ukIq4Codes[code] : code;
  return static_cast<float>(value - format.zeroPoint);
}

/// One scale record of one row: what a code is multiplied with, and what is added.
struct Affine {
  float scale;
  float min; ///< signed as it is added; or the zero point
};
Affine affineOf(const UkFormat &format, uint32_t scale, uint32_t min, int8_t subScale,
                int8_t subMin);
/// That of element `e` of a block.
Affine affineOf(const UkFormat &format, const SourceBlock &block, unsigned e);

/// scale * value (+ min), rounded after each operation as ggml does.
inline float applyAffine(const UkFormat &format, const Affine &affine, uint8_t code) {
  if (format.minSign == ukZeroPoints)
    return (codeValue(format, code) - affine.min) * affine.scale;
  float product = affine.scale * codeValue(format, code);
  return format.minSign ? product + affine.min : product;
}

} // namespace llmc

#endif // LLMC_COMPILER_WEIGHTS_SOURCEBLOCK_H
