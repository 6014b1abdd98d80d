//===- Numbers.h - number formats and rounding ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_NUMBERS_H
#define LLMC_TESTS_PTX_EMULATOR_NUMBERS_H

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace llmc::ptx {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

/// A binary floating-point format. Every one of these is a subset of double.
struct Format {
  int mantissa;    // stored bits
  int minExponent; // of normal numbers
  int maxExponent;
  bool hasInfinity; // e4m3 has none, and one NaN
  unsigned bits;
};
constexpr Format formatF32{23, -126, 127, true, 32};
constexpr Format formatF16{10, -14, 15, true, 16};
constexpr Format formatBF16{7, -126, 127, true, 16};
constexpr Format formatTF32{10, -126, 127, true, 32};
constexpr Format formatE4M3{3, -6, 8, false, 8};
constexpr Format formatE5M2{2, -14, 15, true, 8};

/// The encoding of x, rounded once. x is exact, or has been rounded to odd.
uint32_t encode(double x, const Format &format, Rounding rounding, bool saturate = false);
double decode(uint32_t bits, const Format &format);
/// x rounded to an integer.
double roundInteger(double x, Rounding rounding);

/// a + b rounded to odd: rounding it again to a format of at most 50 bits gives the exact sum's.
inline double addOdd(double a, double b) {
  double s = a + b;
  double bb = s - a;
  double error = (a - (s - bb)) + (b - bb);
  if (!(error != 0) || !std::isfinite(s))
    return s;
  uint64_t bits = std::bit_cast<uint64_t>(s);
  bool outward = (error > 0) == (s > 0);
  return std::bit_cast<double>((outward ? bits : bits - 1) | 1);
}

inline float asFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t asBits(float x) { return std::bit_cast<uint32_t>(x); }

inline float halfToFloat(uint16_t h) { return float(std::bit_cast<_Float16>(h)); }
/// Round to nearest even; a NaN becomes the canonical one.
inline uint16_t floatToHalf(float x) {
  uint16_t h = std::bit_cast<uint16_t>(_Float16(x));
  return x != x ? 0x7fff : h;
}
inline float bf16ToFloat(uint16_t h) { return asFloat(uint32_t(h) << 16); }
inline uint16_t floatToBF16(float x) {
  uint32_t u = asBits(x);
  return x != x ? 0x7fff : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/// Subnormal numbers become zeros of their sign.
inline float flush(float x) {
  uint32_t u = asBits(x);
  return u & 0x7f800000 ? x : asFloat(u & 0x80000000);
}
/// The one NaN that f32 instructions give.
inline float canonical(float x) { return x != x ? asFloat(0x7fffffff) : x; }
inline float saturate(float x) {
  // A NaN becomes 0.
  x = x > 0 ? x : 0;
  return x < 1 ? x : 1;
}

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_NUMBERS_H
