//===- Format.cpp - the table of weight encodings -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Format.h"

using namespace llmc;

namespace {

constexpr BitPlane noPlane = {0, 0, 32, BitPlane::Split};
constexpr auto split = BitPlane::Split;
constexpr auto sequential = BitPlane::Sequential;

constexpr Encoding floatEncoding(llvm::StringLiteral name, uint32_t type, uint32_t bytes,
                                 UkFloatKind kind) {
  return {name,
          type,
          1,
          bytes,
          {noPlane, noPlane},
          0,
          0,
          SubScales::None,
          0,
          0,
          {0, 0, 0, 0, 0, 0, ukCodebookNone, kind}};
}

// Offsets are those of the block structs in ggml-common.h.
// clang-format off
constexpr Encoding table[] = {
    floatEncoding("f32", 0, 4, ukF32),
    floatEncoding("f16", 1, 2, ukF16),
    // name, type, elements, bytes, {low plane, high plane}, d, m, sub-scales, at, xor,
    //   {lo, hi, group, super, zero point, min, codebook, float}
    {"q4_0", 2, 32, 18, {{2, 4, 32, split}, noPlane}, 0, 0, SubScales::None, 0, 0,
     {4, 0, 32, 0, 8, 0, ukCodebookNone, ukQuantized}},
    {"q4_1", 3, 32, 20, {{4, 4, 32, split}, noPlane}, 0, 2, SubScales::None, 0, 0,
     {4, 0, 32, 0, 0, 1, ukCodebookNone, ukQuantized}},
    {"q5_0", 6, 32, 22, {{6, 4, 32, split}, {2, 1, 32, sequential}}, 0, 0, SubScales::None, 0, 0,
     {4, 1, 32, 0, 16, 0, ukCodebookNone, ukQuantized}},
    {"q5_1", 7, 32, 24, {{8, 4, 32, split}, {4, 1, 32, sequential}}, 0, 2, SubScales::None, 0, 0,
     {4, 1, 32, 0, 0, 1, ukCodebookNone, ukQuantized}},
    {"q8_0", 8, 32, 34, {{2, 8, 32, split}, noPlane}, 0, 0, SubScales::None, 0, 0x80,
     {8, 0, 32, 0, 128, 0, ukCodebookNone, ukQuantized}},
    {"q2_k", 10, 256, 84, {{16, 2, 128, split}, noPlane}, 80, 82, SubScales::NibblePairs, 0, 0,
     {2, 0, 16, 256, 0, -1, ukCodebookNone, ukQuantized}},
    {"q3_k", 11, 256, 110, {{32, 2, 128, split}, {0, 1, 256, split}}, 108, 0, SubScales::SixBitSigned, 96, 0,
     {2, 1, 16, 256, 4, 0, ukCodebookNone, ukQuantized}},
    {"q4_k", 12, 256, 144, {{16, 4, 64, split}, noPlane}, 0, 2, SubScales::SixBitPairs, 4, 0,
     {4, 0, 32, 256, 0, -1, ukCodebookNone, ukQuantized}},
    {"q5_k", 13, 256, 176, {{48, 4, 64, split}, {16, 1, 256, split}}, 0, 2, SubScales::SixBitPairs, 4, 0,
     {4, 1, 32, 256, 0, -1, ukCodebookNone, ukQuantized}},
    {"q6_k", 14, 256, 210, {{0, 4, 128, split}, {128, 2, 128, split}}, 208, 0, SubScales::Int8, 192, 0,
     {4, 2, 16, 256, 32, 0, ukCodebookNone, ukQuantized}},
    {"iq4_nl", 20, 32, 18, {{2, 4, 32, split}, noPlane}, 0, 0, SubScales::None, 0, 0,
     {4, 0, 32, 0, 128, 0, ukCodebookIq4, ukQuantized}},
    {"iq4_xs", 23, 256, 136, {{8, 4, 32, split}, noPlane}, 0, 0, SubScales::SixBitSplit, 2, 0,
     {4, 0, 32, 256, 128, 0, ukCodebookIq4, ukQuantized}},
    floatEncoding("bf16", 30, 2, ukBF16),
};
// clang-format on

} // namespace

llvm::ArrayRef<Encoding> llmc::encodings() { return table; }

const Encoding *llmc::lookupEncoding(llvm::StringRef name) {
  for (const Encoding &encoding : table)
    if (encoding.name == name)
      return &encoding;
  return nullptr;
}

const Encoding *llmc::lookupGgmlType(uint32_t id) {
  for (const Encoding &encoding : table)
    if (encoding.ggmlType == id)
      return &encoding;
  return nullptr;
}

std::array<int32_t, ukFormatFields> llmc::kernelFormatArgs(const Encoding &encoding) {
  const UkFormat &f = encoding.format;
  return {f.loBits,    f.hiBits,  f.group,    f.superGroup,
          f.zeroPoint, f.minSign, f.codebook, f.floatKind};
}

PackedLayout llmc::packedLayout(const Encoding &encoding, uint64_t N, uint64_t K) {
  PackedLayout layout;
  layout.panels = (N + ukPanelRows - 1) / ukPanelRows;
  layout.codesBytes = ukPanelCodesBytes(encoding.format, K);
  layout.scalesBytes = ukPanelScalesBytes(encoding.format, K);
  layout.panelBytes = layout.codesBytes + layout.scalesBytes;
  layout.totalBytes = layout.panels * layout.panelBytes;
  return layout;
}
