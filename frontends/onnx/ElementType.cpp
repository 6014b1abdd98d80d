//===- ElementType.cpp - element types of ONNX tensors --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ElementType.h"
#include <bit>
#include <cmath>
#include <limits>

using namespace llmc;
using namespace llmc::onnx;

namespace {

enum class Kind : uint8_t { None, Float, Signed, Unsigned, Bool };

/// How a small float type uses its codes. IEEE types have infinities and NaNs in the last exponent.
enum class Specials : uint8_t {
  Ieee,
  NanOnly,      ///< all ones is NaN, no infinity (e4m3fn)
  NegativeZero, ///< the code of -0 is NaN (the fnuz types)
  None,         ///< all codes are numbers (e2m1)
};

struct FloatFormat {
  uint8_t exponentBits, mantissaBits;
  int bias;
  Specials specials;
};

struct TypeRow {
  llvm::StringLiteral name;
  uint8_t bits;
  Kind kind;
  FloatFormat format = {0, 0, 0, Specials::Ieee};
};

constexpr TypeRow table[kElementTypes] = {
    {"undefined", 0, Kind::None},
    {"float", 32, Kind::Float, {8, 23, 127, Specials::Ieee}},
    {"uint8", 8, Kind::Unsigned},
    {"int8", 8, Kind::Signed},
    {"uint16", 16, Kind::Unsigned},
    {"int16", 16, Kind::Signed},
    {"int32", 32, Kind::Signed},
    {"int64", 64, Kind::Signed},
    {"string", 0, Kind::None},
    {"bool", 8, Kind::Bool},
    {"float16", 16, Kind::Float, {5, 10, 15, Specials::Ieee}},
    {"double", 64, Kind::Float, {11, 52, 1023, Specials::Ieee}},
    {"uint32", 32, Kind::Unsigned},
    {"uint64", 64, Kind::Unsigned},
    {"complex64", 64, Kind::None},
    {"complex128", 128, Kind::None},
    {"bfloat16", 16, Kind::Float, {8, 7, 127, Specials::Ieee}},
    {"float8e4m3fn", 8, Kind::Float, {4, 3, 7, Specials::NanOnly}},
    {"float8e4m3fnuz", 8, Kind::Float, {4, 3, 8, Specials::NegativeZero}},
    {"float8e5m2", 8, Kind::Float, {5, 2, 15, Specials::Ieee}},
    {"float8e5m2fnuz", 8, Kind::Float, {5, 2, 16, Specials::NegativeZero}},
    {"uint4", 4, Kind::Unsigned},
    {"int4", 4, Kind::Signed},
    {"float4e2m1", 4, Kind::Float, {2, 1, 1, Specials::None}},
    {"float8e8m0", 8, Kind::Float, {8, 0, 127, Specials::Ieee}},
    {"uint2", 2, Kind::Unsigned},
    {"int2", 2, Kind::Signed},
};

const TypeRow &row(ElementType type) { return table[unsigned(type)]; }

/// The magnitude of a code without its sign bit.
double magnitude(const FloatFormat &f, uint64_t code) {
  uint64_t mantissa = code & ((uint64_t(1) << f.mantissaBits) - 1);
  int exponent = int(code >> f.mantissaBits);
  if (exponent == 0)
    return std::ldexp(double(mantissa), 1 - f.bias - f.mantissaBits);
  return std::ldexp(double(mantissa | (uint64_t(1) << f.mantissaBits)),
                    exponent - f.bias - f.mantissaBits);
}

/// The first code, without sign, that is no finite number.
uint64_t firstSpecial(const FloatFormat &f) {
  uint64_t codes = uint64_t(1) << (f.exponentBits + f.mantissaBits);
  switch (f.specials) {
  case Specials::Ieee:
    return codes - (uint64_t(1) << f.mantissaBits);
  case Specials::NanOnly:
    return codes - 1;
  case Specials::NegativeZero:
  case Specials::None:
    return codes;
  }
  return codes;
}

} // namespace

llvm::StringRef onnx::elementTypeName(ElementType type) { return row(type).name; }
unsigned onnx::elementBits(ElementType type) { return row(type).bits; }
bool onnx::isFloat(ElementType type) { return row(type).kind == Kind::Float; }
bool onnx::isInteger(ElementType type) {
  return row(type).kind == Kind::Signed || row(type).kind == Kind::Unsigned;
}
bool onnx::isSignedInteger(ElementType type) { return row(type).kind == Kind::Signed; }

double onnx::floatFromBits(ElementType type, uint64_t bits) {
  if (type == ElementType::Float)
    return std::bit_cast<float>(uint32_t(bits));
  if (type == ElementType::Double)
    return std::bit_cast<double>(bits);
  if (type == ElementType::Float8E8M0) // a power of two, nothing else
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                       : std::ldexp(1.0, int(bits) - 127);
  const FloatFormat &f = row(type).format;
  unsigned signBit = f.exponentBits + f.mantissaBits;
  bool negative = bits >> signBit & 1;
  uint64_t code = bits & ((uint64_t(1) << signBit) - 1);
  double nan = std::numeric_limits<double>::quiet_NaN();
  if (f.specials == Specials::NegativeZero && negative && code == 0)
    return nan;
  double value;
  if (code >= firstSpecial(f)) {
    bool infinite = f.specials == Specials::Ieee && code == firstSpecial(f);
    value = infinite ? std::numeric_limits<double>::infinity() : nan;
  } else {
    value = magnitude(f, code);
  }
  return negative ? -value : value;
}

uint64_t onnx::floatToBits(ElementType type, double value, bool saturate) {
  if (type == ElementType::Float)
    return std::bit_cast<uint32_t>(float(value));
  if (type == ElementType::Double)
    return std::bit_cast<uint64_t>(value);
  if (type == ElementType::Float8E8M0) {
    if (!(value > 0) || std::isinf(value))
      return value > 0 ? 254 : (std::isnan(value) ? 255 : 0);
    int exponent;
    double fraction = std::frexp(value, &exponent); // in [0.5, 1)
    int code = exponent - 1 + 127 + (fraction > 0.5 ? 1 : 0);
    return uint64_t(std::min(std::max(code, 0), 254));
  }
  const FloatFormat &f = row(type).format;
  unsigned signBit = f.exponentBits + f.mantissaBits;
  uint64_t special = firstSpecial(f), sign = uint64_t(std::signbit(value)) << signBit;
  if (std::isnan(value)) {
    if (f.specials == Specials::NegativeZero)
      return uint64_t(1) << signBit;
    if (f.specials == Specials::None)
      return 0;
    return sign | (f.specials == Specials::Ieee ? special | (uint64_t(1) << (f.mantissaBits - 1))
                                                : (uint64_t(1) << signBit) - 1);
  }
  double m = std::fabs(value);
  uint64_t code;
  if (m == 0) {
    code = 0;
  } else if (std::isinf(m)) {
    code = special;
  } else {
    int exponent;
    std::frexp(m, &exponent);
    exponent = std::max(exponent - 1, 1 - f.bias); // of the leading bit, or subnormal
    // Steps of the mantissa, rounded to even; a carry moves into the exponent by itself.
    double steps = std::nearbyint(std::ldexp(m, f.mantissaBits - exponent));
    code = exponent + f.bias > 4096
               ? special
               : uint64_t(steps) + (uint64_t(exponent + f.bias - 1) << f.mantissaBits);
    if (code > special)
      code = special;
  }
  if (code >= special && m != 0) {
    bool wide = f.exponentBits + f.mantissaBits > 7; // float16 and bfloat16 overflow to infinity
    if (wide)
      code = special;
    else if (saturate || f.specials == Specials::None)
      code = special - 1;
    else if (f.specials == Specials::NegativeZero)
      return uint64_t(1) << signBit;
    else
      code = special;
  }
  if (code == 0 && f.specials == Specials::NegativeZero)
    return 0;
  return sign | code;
}
