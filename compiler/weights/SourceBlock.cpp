//===- SourceBlock.cpp - reading one ggml block ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/SourceBlock.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"

using namespace llmc;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;

namespace {

/// ORs the plane's bits, shifted left by `shift`, into codes[blockElements].
void readPlane(const BitPlane &plane, const uint8_t *block, uint32_t elements, unsigned shift,
               uint8_t *codes) {
  if (plane.bits == 0)
    return;
  const unsigned chunkBytes = plane.chunk * plane.bits / 8;
  const unsigned perByte = 8 / plane.bits;
  const unsigned mask = (1u << plane.bits) - 1;
  const uint8_t *src = block + plane.offset;
  for (uint32_t base = 0; base < elements; base += plane.chunk, src += chunkBytes)
    for (unsigned byte = 0; byte < chunkBytes; ++byte)
      for (unsigned field = 0; field < perByte; ++field) {
        unsigned r =
            plane.order == BitPlane::Split ? field * chunkBytes + byte : byte * perByte + field;
        codes[base + r] |= ((src[byte] >> (field * plane.bits)) & mask) << shift;
      }
}

void readSubScales(SubScales packing, const uint8_t *src, SourceBlock &out) {
  switch (packing) {
  case SubScales::None:
    out.subScale[0] = 1;
    return;
  case SubScales::NibblePairs:
    for (int j = 0; j < 16; ++j) {
      out.subScale[j] = src[j] & 15;
      out.subMin[j] = src[j] >> 4;
    }
    return;
  case SubScales::SixBitSigned: // low nibbles in 8 bytes, high pairs of bits in 4
    for (int j = 0; j < 16; ++j) {
      int low = (src[j % 8] >> (j / 8 * 4)) & 15;
      int high = (src[8 + j % 4] >> (j / 4 * 2)) & 3;
      out.subScale[j] = (low | high << 4) - 32;
    }
    return;
  case SubScales::SixBitPairs: // the first four whole, the upper bits of the rest above them
    for (int j = 0; j < 4; ++j) {
      out.subScale[j] = src[j] & 63;
      out.subMin[j] = src[j + 4] & 63;
      out.subScale[j + 4] = (src[j + 8] & 15) | (src[j] >> 6 << 4);
      out.subMin[j + 4] = (src[j + 8] >> 4) | (src[j + 4] >> 6 << 4);
    }
    return;
  case SubScales::Int8:
    for (int j = 0; j < 16; ++j)
      out.subScale[j] = static_cast<int8_t>(src[j]);
    return;
  case SubScales::SixBitSplit: {
    unsigned high = read16le(src);
    for (int j = 0; j < 8; ++j) {
      int low = (src[2 + j / 2] >> (j % 2 * 4)) & 15;
      out.subScale[j] = (low | ((high >> (2 * j)) & 3) << 4) - 32;
    }
    return;
  }
  }
}

} // namespace

/// Reads the scales (or mins) of the groups of one block from the row's list at `list`.
static void readScales(const UkFormat &format, const uint8_t *list, uint64_t groups,
                       uint64_t element, uint32_t (&out)[2]) {
  for (uint64_t half = 0, first = element / format.group; half < 2; ++half) {
    uint64_t g = format.group < ukGroup ? first + half : first;
    if (g < groups)
      out[half] = format.scaleKind == ukF32 ? read32le(list + 4 * g) : read16le(list + 2 * g);
  }
}

void llmc::readBlock(const Encoding &encoding, const uint8_t *row, uint64_t K, uint64_t index,
                     SourceBlock &out) {
  out = {};
  const uint8_t *block = row + index * encoding.blockBytes;
  const BitPlane &low = encoding.planes[0];
  readPlane(low, block, encoding.blockElements, 0, out.codes);
  readPlane(encoding.planes[1], block, encoding.blockElements, low.bits, out.codes);
  if (encoding.codeXor)
    for (uint8_t &code : out.codes)
      code ^= encoding.codeXor;
  if (encoding.grouped) {
    const UkFormat &format = encoding.format;
    const uint64_t groups = encoding.rowGroups(K), first = index * encoding.blockElements;
    std::fill(out.codes + std::min<uint64_t>(K - first, encoding.blockElements),
              std::end(out.codes), 0);
    const uint8_t *scales = row + encoding.rowCodesBytes(K);
    readScales(format, scales, groups, first, out.scale);
    if (format.minSign)
      readScales(format, scales + groups * ukFloatBytes(format.scaleKind), groups, first, out.min);
    return;
  }
  out.scale[0] = read16le(block + encoding.scaleOffset);
  if (encoding.format.minSign)
    out.min[0] = read16le(block + encoding.minOffset);
  readSubScales(encoding.subScales, block + encoding.subScaleOffset, out);
}

float llmc::halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31;
  uint32_t mantissa = bits & 1023;
  if (exponent == 31)
    return llvm::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0)
    return llvm::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f; // subnormal or zero: exact
  return llvm::bit_cast<float>(sign | llvm::bit_cast<uint32_t>(magnitude));
}

float llmc::bfloatToFloat(uint16_t bits) {
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float llmc::float8ToFloat(UkFloatKind kind, uint8_t bits) {
  if (kind == ukF8E5M2)
    return halfToFloat(static_cast<uint16_t>(bits << 8));
  if ((bits & 127) == 127)
    return halfToFloat(static_cast<uint16_t>((bits & 128) << 8 | 0x7e00));
  // The exponent's bias is less by 8 than that of a half.
  return halfToFloat(static_cast<uint16_t>((bits & 128) << 8 | (bits & 127) << 7)) * 256.0f;
}

float llmc::readFloat(UkFloatKind kind, const uint8_t *src) {
  switch (kind) {
  case ukF8E4M3:
  case ukF8E5M2:
    return float8ToFloat(kind, *src);
  case ukF16:
    return halfToFloat(read16le(src));
  case ukBF16:
    return bfloatToFloat(read16le(src));
  default:
    return llvm::bit_cast<float>(read32le(src));
  }
}

static float scaleOf(const UkFormat &format, uint32_t bits) {
  return format.scaleKind == ukF32 ? llvm::bit_cast<float>(bits) : halfToFloat(bits);
}

Affine llmc::affineOf(const UkFormat &format, const SourceBlock &block, unsigned e) {
  const unsigned half = format.group < ukGroup && !format.superGroup ? e / format.group : 0;
  const unsigned sub = format.superGroup ? e / format.group : 0;
  return affineOf(format, block.scale[half], block.min[half], block.subScale[sub],
                  block.subMin[sub]);
}

Affine llmc::affineOf(const UkFormat &format, uint32_t scale, uint32_t min, int8_t subScale,
                      int8_t subMin) {
  Affine affine = {scaleOf(format, scale), 0};
  if (format.minSign)
    affine.min = scaleOf(format, min);
  if (format.superGroup) {
    affine.scale *= static_cast<float>(subScale);
    affine.min *= static_cast<float>(subMin);
  }
  if (format.minSign < 0)
    affine.min = -affine.min;
  return affine;
}
