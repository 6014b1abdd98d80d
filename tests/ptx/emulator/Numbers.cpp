//===- Numbers.cpp - number formats and rounding --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Numbers.h"

namespace llmc::ptx {

double roundInteger(double x, Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return std::trunc(x);
  case Rounding::Down:
    return std::floor(x);
  case Rounding::Up:
    return std::ceil(x);
  case Rounding::NearestAway:
    return std::round(x);
  case Rounding::Nearest:
    break;
  }
  // To even, whatever mode the processor is in.
  double down = std::floor(x), rest = x - down;
  if (rest < 0.5)
    return down == 0 ? std::copysign(0.0, x) : down;
  double up = down + 1;
  double nearest = rest > 0.5 || std::fmod(down, 2) != 0 ? up : down;
  return nearest == 0 ? std::copysign(0.0, x) : nearest;
}

uint32_t encode(double x, const Format &f, Rounding rounding, bool saturateIt) {
  uint32_t sign = uint32_t(std::signbit(x)) << (f.bits - 1);
  unsigned shift = f.bits == 32 ? 23 - f.mantissa : 0; // TF32 is kept like an f32
  uint32_t quiet = (uint32_t(1) << (f.bits - 1)) - 1;  // 0x7fffffff, 0x7fff, 0x7f
  if (std::isnan(x))
    return quiet;
  uint32_t exponentMax = (f.maxExponent - f.minExponent + 1);
  double largest =
      std::ldexp(f.hasInfinity ? 2 - std::ldexp(1.0, -f.mantissa) : 1.75, f.maxExponent);
  uint32_t largestBits = f.hasInfinity ? exponentMax << f.mantissa | ((1u << f.mantissa) - 1)
                                       : exponentMax << f.mantissa | ((1u << f.mantissa) - 2);
  uint32_t infinity = f.hasInfinity ? (exponentMax + 1) << f.mantissa : quiet >> shift;
  double a = std::fabs(x);
  if (std::isinf(x))
    return sign | (saturateIt ? largestBits : infinity) << shift;
  // Directions are those of the magnitude from here on.
  Rounding r = rounding;
  if (std::signbit(x) && (r == Rounding::Up || r == Rounding::Down))
    r = r == Rounding::Up ? Rounding::Down : Rounding::Up;
  if (a == 0)
    return sign;
  int e = std::max(std::ilogb(a), f.minExponent);
  double units = roundInteger(std::ldexp(a, f.mantissa - e), r);
  double rounded = std::ldexp(units, e - f.mantissa);
  if (rounded > largest) {
    bool toLargest = saturateIt || r == Rounding::Zero || r == Rounding::Down;
    return sign | (toLargest ? largestBits : infinity) << shift;
  }
  if (rounded == 0)
    return sign;
  e = std::max(std::ilogb(rounded), f.minExponent);
  uint32_t m = uint32_t(std::ldexp(rounded, f.mantissa - e));
  bool normal = m >> f.mantissa;
  uint32_t bits =
      (normal ? uint32_t(e - f.minExponent + 1) << f.mantissa : 0) | (m & ((1u << f.mantissa) - 1));
  return sign | bits << shift;
}

double decode(uint32_t bits, const Format &f) {
  unsigned shift = f.bits == 32 ? 23 - f.mantissa : 0;
  bool negative = bits >> (f.bits - 1) & 1;
  uint32_t magnitude = (bits & ((uint32_t(1) << (f.bits - 1)) - 1)) >> shift;
  uint32_t e = magnitude >> f.mantissa, m = magnitude & ((1u << f.mantissa) - 1);
  uint32_t top = f.maxExponent - f.minExponent + 2;
  double value;
  if (f.hasInfinity && e == top)
    value = m ? NAN : INFINITY;
  else if (!f.hasInfinity && e == top - 1 && m == (1u << f.mantissa) - 1)
    value = NAN;
  else if (e)
    value = std::ldexp(double(m | 1u << f.mantissa), int(e) - 1 + f.minExponent - f.mantissa);
  else
    value = std::ldexp(double(m), f.minExponent - f.mantissa);
  return negative ? -value : value;
}

} // namespace llmc::ptx
