//===- Format.cpp - the table of weight encodings -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Format.h"
#include "llvm/Support/MathExtras.h"
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
          {0, 0, 0, 0, 0, 0, ukCodebookNone, kind, ukF16}};
}

// Offsets are those of the block structs in ggml-common.h.
// clang-format off
constexpr Encoding table[] = {
    floatEncoding("f32", 0, 4, ukF32),
    floatEncoding("f16", 1, 2, ukF16),
    // name, type, elements, bytes, {low plane, high plane}, d, m, sub-scales, at, xor,
    //   {lo, hi, group, super, zero point, min, codebook, float, scales}
    {"q4_0", 2, 32, 18, {{2, 4, 32, split}, noPlane}, 0, 0, SubScales::None, 0, 0,
     {4, 0, 32, 0, 8, 0, ukCodebookNone, ukQuantized, ukF16}},
    {"q4_1", 3, 32, 20, {{4, 4, 32, split}, noPlane}, 0, 2, SubScales::None, 0, 0,
     {4, 0, 32, 0, 0, 1, ukCodebookNone, ukQuantized, ukF16}},
    {"q5_0", 6, 32, 22, {{6, 4, 32, split}, {2, 1, 32, sequential}}, 0, 0, SubScales::None, 0, 0,
     {4, 1, 32, 0, 16, 0, ukCodebookNone, ukQuantized, ukF16}},
    {"q5_1", 7, 32, 24, {{8, 4, 32, split}, {4, 1, 32, sequential}}, 0, 2, SubScales::None, 0, 0,
     {4, 1, 32, 0, 0, 1, ukCodebookNone, ukQuantized, ukF16}},
    {"q8_0", 8, 32, 34, {{2, 8, 32, split}, noPlane}, 0, 0, SubScales::None, 0, 0x80,
     {8, 0, 32, 0, 128, 0, ukCodebookNone, ukQuantized, ukF16}},
    {"q2_k", 10, 256, 84, {{16, 2, 128, split}, noPlane}, 80, 82, SubScales::NibblePairs, 0, 0,
     {2, 0, 16, 256, 0, -1, ukCodebookNone, ukQuantized, ukF16}},
    {"q3_k", 11, 256, 110, {{32, 2, 128, split}, {0, 1, 256, split}}, 108, 0, SubScales::SixBitSigned, 96, 0,
     {2, 1, 16, 256, 4, 0, ukCodebookNone, ukQuantized, ukF16}},
    {"q4_k", 12, 256, 144, {{16, 4, 64, split}, noPlane}, 0, 2, SubScales::SixBitPairs, 4, 0,
     {4, 0, 32, 256, 0, -1, ukCodebookNone, ukQuantized, ukF16}},
    {"q5_k", 13, 256, 176, {{48, 4, 64, split}, {16, 1, 256, split}}, 0, 2, SubScales::SixBitPairs, 4, 0,
     {4, 1, 32, 256, 0, -1, ukCodebookNone, ukQuantized, ukF16}},
    {"q6_k", 14, 256, 210, {{0, 4, 128, split}, {128, 2, 128, split}}, 208, 0, SubScales::Int8, 192, 0,
     {4, 2, 16, 256, 32, 0, ukCodebookNone, ukQuantized, ukF16}},
    {"iq4_nl", 20, 32, 18, {{2, 4, 32, split}, noPlane}, 0, 0, SubScales::None, 0, 0,
     {4, 0, 32, 0, 128, 0, ukCodebookIq4, ukQuantized, ukF16}},
    {"iq4_xs", 23, 256, 136, {{8, 4, 32, split}, noPlane}, 0, 0, SubScales::SixBitSplit, 2, 0,
     {4, 0, 32, 256, 128, 0, ukCodebookIq4, ukQuantized, ukF16}},
    floatEncoding("bf16", 30, 2, ukBF16),
};

/// Encodings that no ggml type has. Raw bytes are elements of any type that only generated code
/// reads: they are never dequantized.
constexpr Encoding otherFloats[] = {
    floatEncoding("raw", ~0u, 1, ukQuantized),
    floatEncoding("f8_e4m3", ~0u, 1, ukF8E4M3),
    floatEncoding("f8_e5m2", ~0u, 1, ukF8E5M2),
};

struct CodeKind {
  const char *name;
  int32_t lo, hi;
  UkCodebook codebook;
};
constexpr CodeKind codeKinds[] = {
    {"int4", 4, 0, ukCodebookNone}, {"int5", 4, 1, ukCodebookNone}, {"int6", 4, 2, ukCodebookNone},
    {"int8", 8, 0, ukCodebookNone}, {"iq4", 4, 0, ukCodebookIq4},
};
// clang-format on
constexpr std::pair<const char *, int32_t> groups[] = {
    {"g16", 16},   {"g32", 32},   {"g64", 64},     {"g128", 128},
    {"g256", 256}, {"g512", 512}, {"g1024", 1024}, {"row", ukWholeRow}};
constexpr std::pair<const char *, UkMin> minKinds[] = {
    {"", ukNoMin}, {"_min", ukMinAdded}, {"_zp", ukZeroPoints}};
constexpr std::pair<const char *, UkFloatKind> scaleKinds[] = {{"", ukF16}, {"_f32", ukF32}};

struct GroupTable {
  std::vector<std::unique_ptr<std::string>> names;
  std::vector<Encoding> rows;
  std::unordered_map<std::string_view, unsigned> index;

  GroupTable() {
    for (const CodeKind &codes : codeKinds)
      for (const auto &[groupName, group] : groups)
        for (const auto &[minName, min] : minKinds)
          for (const auto &[scaleName, scale] : scaleKinds)
            if (!codes.codebook || !min)
              add(codes, std::string(codes.name) + "_" + groupName + minName + scaleName, group,
                  min, scale);
  }

  void add(const CodeKind &codes, const std::string &name, int32_t group, UkMin min,
           UkFloatKind scale) {
    names.push_back(std::make_unique<std::string>(name));
    index[*names.back()] = rows.size();
    const uint16_t high = 4 * codes.lo; // bytes of the low plane of 32 elements
    const int32_t middle = min ? 0 : codes.codebook ? 128 : 1 << (codes.lo + codes.hi - 1);
    rows.push_back({*names.back(),
                    ~0u,
                    ukGroup,
                    uint32_t(4 * (codes.lo + codes.hi)),
                    {{0, uint8_t(codes.lo), ukGroup, sequential},
                     {high, uint8_t(codes.hi), ukGroup, sequential}},
                    0,
                    0,
                    SubScales::None,
                    0,
                    0,
                    {codes.lo, codes.hi, group, 0, middle, min, codes.codebook, ukQuantized, scale},
                    /*grouped=*/true});
  }
};

const GroupTable &groupTable() {
  static const GroupTable all;
  return all;
}

} // namespace

llvm::ArrayRef<Encoding> llmc::encodings() { return table; }
llvm::ArrayRef<Encoding> llmc::groupEncodings() { return groupTable().rows; }

uint64_t Encoding::rowCodesBytes(uint64_t K) const {
  return llvm::divideCeil(K, blockElements) * blockBytes;
}

uint64_t Encoding::rowGroups(uint64_t K) const { return llvm::divideCeil(K, format.group); }

uint64_t Encoding::rowBytes(uint64_t K) const {
  if (!grouped)
    return K / blockElements * blockBytes;
  return rowCodesBytes(K) +
         rowGroups(K) * ukFloatBytes(format.scaleKind) * (format.minSign ? 2 : 1);
}

const Encoding *llmc::lookupEncoding(llvm::StringRef name) {
  for (llvm::ArrayRef<Encoding> list : {llvm::ArrayRef(table), llvm::ArrayRef(otherFloats)})
    for (const Encoding &encoding : list)
      if (encoding.name == name)
        return &encoding;
  auto found = groupTable().index.find({name.data(), name.size()});
  return found == groupTable().index.end() ? nullptr : &groupTable().rows[found->second];
}

const Encoding *llmc::lookupGgmlType(uint32_t id) {
  for (const Encoding &encoding : table)
    if (encoding.ggmlType == id)
      return &encoding;
  return nullptr;
}

std::array<int32_t, ukFormatFields> llmc::kernelFormatArgs(const Encoding &encoding) {
  const UkFormat &f = encoding.format;
  return {f.loBits,  f.hiBits,   f.group,     f.superGroup, f.zeroPoint,
          f.minSign, f.codebook, f.floatKind, f.scaleKind};
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
