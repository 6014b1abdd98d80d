//===- Ukernels.cpp - embedded micro-kernel bitcode -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Ukernels.h"
#include <array>

using namespace llmc;
using llvm::StringRef;

// Defined by the generated UkernelBlobs.S.
#define UK_BLOB(symbol) extern "C" const char llmc_uk_##symbol[], llmc_uk_##symbol##_end[];
UK_BLOB(x86_64_v3)
UK_BLOB(x86_64_v4_vnni)
UK_BLOB(aarch64)
UK_BLOB(aarch64_i8mm)
UK_BLOB(sapphirerapids)
#undef UK_BLOB

namespace {

/// One row of the table; the bitcode's length is known to the linker only.
struct Row {
  llvm::StringLiteral name, triple, cpu, features;
  llvm::ArrayRef<StringRef> cpuFeatures;
  llvm::ArrayRef<std::pair<StringRef, StringRef>> functionAttributes;
  const char *begin, *end;
  bool bf16Tiles = false;
};

constexpr StringRef v3Features[] = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
constexpr StringRef v4VnniFeatures[] = {"avx",      "avx2",     "bmi",      "bmi2",      "f16c",
                                        "fma",      "lzcnt",    "movbe",    "avx512f",   "avx512bw",
                                        "avx512cd", "avx512dq", "avx512vl", "avx512vnni"};
constexpr StringRef aarch64Features[] = {"neon", "dotprod"};
constexpr StringRef aarch64I8mmFeatures[] = {"neon", "dotprod", "i8mm"};
constexpr StringRef sapphireRapidsFeatures[] = {
    "avx",      "avx2",       "bmi",      "bmi2",     "f16c",     "fma",
    "lzcnt",    "movbe",      "avx512f",  "avx512bw", "avx512cd", "avx512dq",
    "avx512vl", "avx512vnni", "amx-tile", "amx-int8", "amx-bf16"};

using Attribute = std::pair<StringRef, StringRef>;
// No library function may be made of a loop: there is no library.
constexpr Attribute v3Attributes[] = {{"no-builtins", ""}, {"target-cpu", "x86-64-v3"}};
constexpr Attribute v4VnniAttributes[] = {{"no-builtins", ""},
                                          {"target-cpu", "x86-64-v4"},
                                          {"target-features", "+avx512vnni"},
                                          {"prefer-vector-width", "512"},
                                          {"min-legal-vector-width", "512"}};
constexpr Attribute aarch64Attributes[] = {
    {"no-builtins", ""},
    {"target-cpu", "generic"},
    {"target-features", "+dotprod,+fp-armv8,+neon,+v8a,-fmv,-outline-atomics"}};
constexpr Attribute aarch64I8mmAttributes[] = {
    {"no-builtins", ""},
    {"target-cpu", "generic"},
    {"target-features", "+dotprod,+fp-armv8,+i8mm,+neon,+v8a,-fmv,-outline-atomics"}};

const Row rows[] = {
    {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "", v3Features, v3Attributes,
     llmc_uk_x86_64_v3, llmc_uk_x86_64_v3_end},
    {"x86-64-v4+vnni", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni", v4VnniFeatures,
     v4VnniAttributes, llmc_uk_x86_64_v4_vnni, llmc_uk_x86_64_v4_vnni_end},
    // Tiles are a feature of the kernels that use them, not of the code around.
    {"sapphirerapids", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni",
     sapphireRapidsFeatures, v4VnniAttributes, llmc_uk_sapphirerapids, llmc_uk_sapphirerapids_end,
     /*bf16Tiles=*/true},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic", "+dotprod", aarch64Features,
     aarch64Attributes, llmc_uk_aarch64, llmc_uk_aarch64_end},
    {"aarch64+i8mm", "aarch64-unknown-linux-gnu", "generic", "+dotprod,+i8mm", aarch64I8mmFeatures,
     aarch64I8mmAttributes, llmc_uk_aarch64_i8mm, llmc_uk_aarch64_i8mm_end},
};

} // namespace

llvm::ArrayRef<UkernelIsa> llmc::ukernelIsas() {
  static const auto isas = [] {
    std::array<UkernelIsa, std::size(rows)> all;
    for (size_t i = 0; i < std::size(rows); ++i) {
      const Row &r = rows[i];
      all[i] = {r.name,
                r.triple,
                r.cpu,
                r.features,
                r.cpuFeatures,
                r.functionAttributes,
                StringRef(r.begin, r.end - r.begin),
                r.bf16Tiles};
    }
    return all;
  }();
  return isas;
}

const UkernelIsa *llmc::lookupUkernelIsa(StringRef name) {
  for (const UkernelIsa &isa : ukernelIsas())
    if (isa.name == name)
      return &isa;
  return nullptr;
}
