//===- Cpu.cpp - what this processor can execute --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Cpu.h"

#include <cstdint>
#include <iterator>
#include <optional>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

using namespace llmc::rt;

namespace {

#if defined(__x86_64__)

enum Register : uint8_t { Eax, Ebx, Ecx, Edx };

// The parts of XCR0 that the operating system must have switched on.
constexpr uint64_t kNone = 0;
constexpr uint64_t kYmm = 0x6;
constexpr uint64_t kZmm = 0xe6;
constexpr uint64_t kTile = 0x60000;

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  uint64_t state;
};

constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, Ecx, 0, kNone},
    {"ssse3", 1, 0, Ecx, 9, kNone},
    {"fma", 1, 0, Ecx, 12, kYmm},
    {"cx16", 1, 0, Ecx, 13, kNone},
    {"sse4.1", 1, 0, Ecx, 19, kNone},
    {"sse4.2", 1, 0, Ecx, 20, kNone},
    {"movbe", 1, 0, Ecx, 22, kNone},
    {"popcnt", 1, 0, Ecx, 23, kNone},
    {"avx", 1, 0, Ecx, 28, kYmm},
    {"f16c", 1, 0, Ecx, 29, kYmm},
    {"bmi", 7, 0, Ebx, 3, kNone},
    {"avx2", 7, 0, Ebx, 5, kYmm},
    {"bmi2", 7, 0, Ebx, 8, kNone},
    {"avx512f", 7, 0, Ebx, 16, kZmm},
    {"avx512dq", 7, 0, Ebx, 17, kZmm},
    {"avx512ifma", 7, 0, Ebx, 21, kZmm},
    {"avx512cd", 7, 0, Ebx, 28, kZmm},
    {"avx512bw", 7, 0, Ebx, 30, kZmm},
    {"avx512vl", 7, 0, Ebx, 31, kZmm},
    {"avx512vbmi", 7, 0, Ecx, 1, kZmm},
    {"avx512vbmi2", 7, 0, Ecx, 6, kZmm},
    {"gfni", 7, 0, Ecx, 8, kNone},
    {"avx512vnni", 7, 0, Ecx, 11, kZmm},
    {"avx512bitalg", 7, 0, Ecx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, Ecx, 14, kZmm},
    {"amx-bf16", 7, 0, Edx, 22, kTile},
    {"avx512fp16", 7, 0, Edx, 23, kZmm},
    {"amx-tile", 7, 0, Edx, 24, kTile},
    {"amx-int8", 7, 0, Edx, 25, kTile},
    {"avxvnni", 7, 1, Eax, 4, kYmm},
    {"avx512bf16", 7, 1, Eax, 5, kZmm},
    {"lzcnt", 0x80000001, 0, Ecx, 5, kNone},
};

uint64_t enabledState() {
  uint32_t r[4];
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &r[Eax], &r[Ebx], &r[Ecx], &r[Edx]) || !(r[Ecx] & osxsave))
    return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool detected(const Feature &feature) {
  static const uint64_t state = enabledState();
  uint32_t r[4];
  return __get_cpuid_count(feature.leaf, feature.subleaf, &r[Eax], &r[Ebx], &r[Ecx], &r[Edx]) &&
         (r[feature.reg] >> feature.bit & 1) && (state & feature.state) == feature.state;
}

/// Asks Linux for the tile registers (ARCH_REQ_XCOMP_PERM of component 18, tile data).
bool requestTiles() {
  constexpr int request = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, request, tileData) == 0;
}

bool permitted(const Feature &feature) {
  return (feature.state & kTile) != kTile || requestTiles();
}

#elif defined(__aarch64__)

struct Feature {
  std::string_view name;
  unsigned long type;
  uint8_t bit;
};

// Bits of AT_HWCAP and AT_HWCAP2 (Linux, arch/arm64/include/uapi/asm/hwcap.h).
constexpr Feature kFeatures[] = {
    {"neon", AT_HWCAP, 1},   {"fullfp16", AT_HWCAP, 10}, {"dotprod", AT_HWCAP, 20},
    {"sve", AT_HWCAP, 22},   {"sve2", AT_HWCAP2, 1},     {"i8mm", AT_HWCAP2, 13},
    {"bf16", AT_HWCAP2, 14}, {"sme", AT_HWCAP2, 23},
};

bool detected(const Feature &feature) { return getauxval(feature.type) >> feature.bit & 1; }

bool permitted(const Feature &) { return true; }

#else
#error "llmc has no CPU feature table for this architecture"
#endif

static_assert(std::size(kFeatures) <= 64);

std::optional<size_t> indexOf(std::string_view name) {
  for (size_t i = 0; i < std::size(kFeatures); ++i)
    if (kFeatures[i].name == name)
      return i;
  return std::nullopt;
}

} // namespace

CpuFeatures CpuFeatures::of(std::span<const std::string_view> names) {
  CpuFeatures set;
  for (std::string_view name : names)
    if (std::optional<size_t> index = indexOf(name))
      set.bits.set(*index);
  return set;
}

CpuFeatures CpuFeatures::host() {
  CpuFeatures set;
  for (size_t i = 0; i < std::size(kFeatures); ++i)
    set.bits.set(i, detected(kFeatures[i]));
  return set;
}

CpuFeatures CpuFeatures::permitted() const {
  CpuFeatures set = *this;
  for (size_t i = 0; i < std::size(kFeatures); ++i)
    if (bits.test(i))
      set.bits.set(i, ::permitted(kFeatures[i]));
  return set;
}

CpuFeatures CpuFeatures::operator|(const CpuFeatures &other) const {
  CpuFeatures set = *this;
  set.bits |= other.bits;
  return set;
}

bool CpuFeatures::has(std::string_view name) const {
  std::optional<size_t> index = indexOf(name);
  return index && bits.test(*index);
}

std::string CpuFeatures::toString() const {
  std::string text;
  for (size_t i = 0; i < std::size(kFeatures); ++i)
    if (bits.test(i)) {
      if (!text.empty())
        text += ' ';
      text += kFeatures[i].name;
    }
  return text;
}
