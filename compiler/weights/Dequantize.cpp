//===- Dequantize.cpp - source and packed rows to float -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/SourceBlock.h"
#include "llvm/Support/Endian.h"

using namespace llmc;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;

void llmc::dequantizeRow(const Encoding &encoding, const uint8_t *src, float *dst, uint64_t K) {
  const UkFormat &format = encoding.format;
  if (encoding.isFloat()) {
    for (uint64_t k = 0; k < K; ++k)
      dst[k] = readFloat(UkFloatKind(format.floatKind), src + k * encoding.blockBytes);
    return;
  }
  SourceBlock block;
  for (uint64_t k = 0; k < K; k += encoding.blockElements) {
    readBlock(encoding, src, K, k / encoding.blockElements, block);
    const uint32_t elements = std::min<uint64_t>(K - k, encoding.blockElements);
    for (uint32_t e = 0; e < elements;) {
      Affine affine = affineOf(format, block, e);
      for (uint32_t end = std::min<uint32_t>(elements, e + format.group); e < end; ++e)
        dst[k + e] = applyAffine(format, affine, block.codes[e]);
    }
  }
}

namespace {

/// The code of row r, element k of a panel.
uint8_t packedCode(const UkFormat &format, const uint8_t *codes, unsigned r, uint64_t k) {
  const uint8_t *group = codes + k / ukGroup * ukGroupCodeBytes(format);
  unsigned j = k % ukGroup / 4, code = 0, shift = 0;
  for (unsigned bits : {format.loBits, format.hiBits}) {
    if (bits == 0)
      continue;
    unsigned byte = group[j % bits * 64 + r * 4 + k % 4];
    code |= ((byte >> (j / bits * bits)) & ((1u << bits) - 1)) << shift;
    group += 64 * bits;
    shift += bits;
  }
  return code;
}

/// The scale and min of row r, element k of a panel.
Affine packedAffine(const UkFormat &format, const uint8_t *scales, unsigned r, uint64_t k) {
  const uint64_t length = ukScaleRecordLength(format);
  const uint8_t *record = scales + k / length * ukScaleRecordBytes(format);
  const unsigned size = ukFloatBytes(format.scaleKind);
  const unsigned perRecord = format.superGroup ? 1 : ukScalesPerRecord(format);
  const unsigned half = perRecord == 2 ? k % length / format.group : 0;
  auto read = [&](unsigned i) -> uint32_t {
    const uint8_t *at = record + size * (i * ukPanelRows + r);
    return size == 4 ? read32le(at) : read16le(at);
  };
  uint32_t scale = read(half), min = format.minSign ? read(perRecord + half) : 0;
  const uint8_t *subs = record + size * ukPanelRows * perRecord * (format.minSign ? 2 : 1);
  int8_t subScale = 1, subMin = 0;
  if (format.superGroup) {
    unsigned count = format.superGroup / format.group, sub = k % length / format.group;
    subScale = static_cast<int8_t>(subs[sub * ukPanelRows + r]);
    if (format.minSign)
      subMin = static_cast<int8_t>(subs[(count + sub) * ukPanelRows + r]);
  }
  return affineOf(format, scale, min, subScale, subMin);
}

} // namespace

void llmc::dequantizePackedRow(const Encoding &encoding, const uint8_t *packed, uint64_t K,
                               uint64_t row, float *dst) {
  const UkFormat &format = encoding.format;
  const PackedLayout layout = packedLayout(encoding, row + 1, K);
  const uint8_t *panel = packed + row / ukPanelRows * layout.panelBytes;
  const unsigned r = row % ukPanelRows;
  for (uint64_t k = 0; k < K; ++k) {
    if (encoding.isFloat())
      dst[k] = readFloat(UkFloatKind(format.floatKind),
                         panel + (k * ukPanelRows + r) * encoding.blockBytes);
    else
      dst[k] = applyAffine(format, packedAffine(format, panel + layout.codesBytes, r, k),
                           packedCode(format, panel, r, k));
  }
}
