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

void llmc::readBlock(const Encoding &encoding, const uint8_t *block, SourceBlock &out) {
  out = {};
  const BitPlane &low = encoding.planes[0];
  readPlane(low, block, encoding.blockElements, 0, out.codes);
  readPlane(encoding.planes[1], block, encoding.blockElements, low.bits, out.codes);
  if (encoding.codeXor)
    for (uint8_t &code : out.codes)
      code ^= encoding.codeXor;
  out.scale = read16le(block + encoding.scaleOffset);
  if (encoding.format.minSign)
    out.min = read16le(block + encoding.minOffset);
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

float llmc::readFloat(UkFloatKind kind, const uint8_t *src) {
  switch (kind) {
  case ukF16:
    return halfToFloat(read16le(src));
  case ukBF16:
    return bfloatToFloat(read16le(src));
  default:
    return llvm::bit_cast<float>(read32le(src));
  }
}

Affine llmc::affineOf(const UkFormat &format, uint16_t scale, uint16_t min, int8_t subScale,
                      int8_t subMin) {
  Affine affine = {halfToFloat(scale), 0};
  if (format.minSign)
    affine.min = halfToFloat(min);
  if (format.superGroup) {
    affine.scale *= static_cast<float>(subScale);
    affine.min *= static_cast<float>(subMin);
  }
  if (format.minSign < 0)
    affine.min = -affine.min;
  return affine;
}
