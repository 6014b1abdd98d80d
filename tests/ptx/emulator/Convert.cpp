//===- Convert.cpp - conversions of numbers -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

#include <limits>

namespace llmc::ptx {

namespace {
// What the general conversion does, in `imm`: from and to types, rounding, flags.
enum Flags { flagFtz = 1, flagSat = 2, flagRelu = 4, flagInteger = 8, flagFinite = 16 };
struct Convert {
  Type to, from;
  Rounding rounding;
  unsigned flags;
  static Convert of(const Inst &i) {
    return {Type(i.imm & 255), Type(i.imm >> 8 & 255), Rounding(i.imm >> 16 & 15), i.imm >> 20};
  }
  uint32_t pack() const {
    return unsigned(to) | unsigned(from) << 8 | unsigned(rounding) << 16 | flags << 20;
  }
};

const Format *formatOf(Type t) {
  switch (t) {
  case Type::F16:
  case Type::F16x2:
    return &formatF16;
  case Type::BF16:
  case Type::BF16x2:
    return &formatBF16;
  case Type::F32:
    return &formatF32;
  case Type::TF32:
    return &formatTF32;
  case Type::E4M3:
  case Type::E4M3x2:
    return &formatE4M3;
  case Type::E5M2:
  case Type::E5M2x2:
    return &formatE5M2;
  default:
    return nullptr;
  }
}

/// The value of a lane's source as a double; 64-bit integers are handled apart.
double floatSource(const Warp &w, uint32_t slot, Type type, unsigned lane) {
  switch (type) {
  case Type::F64:
    return reg<double>(w, slot)[lane];
  case Type::F32:
    return reg<float>(w, slot)[lane];
  default:
    return decode(reg<uint16_t>(w, slot)[lane], *formatOf(type));
  }
}
__int128 integerSource(const Warp &w, uint32_t slot, Type type, unsigned lane) {
  switch (type) {
  case Type::U8:
  case Type::B8:
    return uint8_t(reg<uint16_t>(w, slot)[lane]);
  case Type::S8:
    return int8_t(reg<uint16_t>(w, slot)[lane]);
  case Type::U16:
  case Type::B16:
    return reg<uint16_t>(w, slot)[lane];
  case Type::S16:
    return reg<int16_t>(w, slot)[lane];
  case Type::U32:
  case Type::B32:
    return reg<uint32_t>(w, slot)[lane];
  case Type::S32:
    return reg<int32_t>(w, slot)[lane];
  case Type::S64:
    return reg<int64_t>(w, slot)[lane];
  default:
    return reg<uint64_t>(w, slot)[lane];
  }
}
void store(Warp &w, uint32_t slot, Type type, unsigned lane, uint64_t bits) {
  switch (registerSize(type)) {
  case 2:
    reg<uint16_t>(w, slot)[lane] = uint16_t(bits);
    break;
  case 4:
    reg<uint32_t>(w, slot)[lane] = uint32_t(bits);
    break;
  default:
    reg<uint64_t>(w, slot)[lane] = bits;
    break;
  }
}
void limits(Type type, __int128 &low, __int128 &high) {
  unsigned bits = sizeOf(type) * 8;
  low = isSigned(type) ? -(__int128(1) << (bits - 1)) : 0;
  high = isSigned(type) ? (__int128(1) << (bits - 1)) - 1 : (__int128(1) << bits) - 1;
}
uint64_t clampTo(__int128 value, Type type) {
  __int128 low, high;
  limits(type, low, high);
  return uint64_t(value < low ? low : value > high ? high : value);
}

/// An integer as a double, rounded to odd so that the rounding that follows is the only one.
double integerToDouble(__int128 v) {
  double d = double(v);
  __int128 back = __int128(d);
  if (back == v)
    return d;
  uint64_t bits = std::bit_cast<uint64_t>(d);
  bool outward = (back > v) == (v > 0);
  return std::bit_cast<double>((outward ? bits - 1 : bits) | 1);
}

uint64_t floatBits(double x, Type to, const Convert &c) {
  if (to == Type::F64) {
    // The source was exact, or a 64-bit integer, which the caller converts itself.
    return std::bit_cast<uint64_t>(x != x ? NAN : x);
  }
  const Format &f = *formatOf(to);
  uint64_t bits = encode(x, f, c.rounding, c.flags & flagFinite);
  uint64_t exponent = uint64_t(f.maxExponent - f.minExponent + 2)
                      << (to == Type::TF32 ? 23 : f.mantissa);
  if ((c.flags & flagFtz) && to == Type::F32 && !(bits & exponent))
    bits &= 0x80000000;
  if (c.flags & flagSat)
    bits = encode(x != x || x < 0 ? 0 : std::min(decode(uint32_t(bits), f), 1.0), f,
                  Rounding::Nearest);
  if ((c.flags & flagRelu) && x == x && std::signbit(x))
    bits = 0;
  return bits;
}

uint64_t one(Warp &w, const Inst &i, const Convert &c, unsigned lane) {
  if (isFloat(c.from)) {
    double x = floatSource(w, i.a, c.from, lane);
    if ((c.flags & flagFtz) && c.from == Type::F32)
      x = flush(float(x));
    if (isFloat(c.to)) {
      if (c.flags & flagInteger)
        x = roundInteger(x, c.rounding);
      return floatBits(x, c.to, c);
    }
    // To an integer: what is too large becomes the nearest.
    if (x != x)
      return sizeOf(c.to) == 8 || c.from == Type::F64 ? uint64_t(1) << (sizeOf(c.to) * 8 - 1) : 0;
    x = roundInteger(x, c.rounding);
    if (x < -0x1p64)
      x = -0x1p64;
    if (x > 0x1p65)
      x = 0x1p65;
    return clampTo(__int128(x), c.to);
  }
  __int128 v = integerSource(w, i.a, c.from, lane);
  if (!isFloat(c.to))
    return c.flags & flagSat ? clampTo(v, c.to) : uint64_t(v);
  if (c.to == Type::F64 && c.rounding == Rounding::Nearest)
    return std::bit_cast<uint64_t>(double(v));
  if (c.to == Type::F64) {
    double d = double(v);
    __int128 back = __int128(d);
    bool up = c.rounding == Rounding::Up || (c.rounding == Rounding::Zero && v < 0);
    if (up && back < v)
      d = std::nextafter(d, INFINITY);
    else if (!up && back > v)
      d = std::nextafter(d, -INFINITY);
    return std::bit_cast<uint64_t>(d);
  }
  return floatBits(integerToDouble(v), c.to, c);
}

void general(Warp &w, const Inst &i, uint32_t mask) {
  Convert c = Convert::of(i);
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    uint64_t bits = one(w, i, c, l);
    // The register may be wider than an 8-bit result.
    if (c.to == Type::S8)
      bits = uint64_t(int64_t(int8_t(bits)));
    else if (sizeOf(c.to) == 1)
      bits &= 255;
    store(w, i.d, c.to, l, bits);
  }
}

/// Two values into a pair: a is the upper one. To f16x2, bf16x2, e4m3x2, e5m2x2.
void pairOf(Warp &w, const Inst &i, uint32_t mask) {
  Convert c = Convert::of(i);
  const float *a = reg<float>(w, i.a), *b = reg<float>(w, i.b);
  unsigned half = formatOf(c.to)->bits;
  for (unsigned l = 0; l < 32; ++l)
    if (mask >> l & 1)
      store(w, i.d, c.to, l, floatBits(a[l], c.to, c) << half | floatBits(b[l], c.to, c));
}
/// A pair from a pair: f16x2 to fp8 and back.
void pairToPair(Warp &w, const Inst &i, uint32_t mask) {
  Convert c = Convert::of(i);
  const Format &from = *formatOf(c.from), &to = *formatOf(c.to);
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    uint32_t v = from.bits == 8 ? reg<uint16_t>(w, i.a)[l] : reg<uint32_t>(w, i.a)[l];
    uint32_t low = v & ((1u << from.bits) - 1), high = v >> from.bits;
    store(w, i.d, c.to, l,
          floatBits(decode(high, from), c.to, c) << to.bits |
              floatBits(decode(low, from), c.to, c));
  }
}

// The common ones, in vectors.
void f32FromHalf(Warp &w, const Inst &i, uint32_t mask) {
  const uint16_t *a = reg<uint16_t>(w, i.a);
  lanes<float>(w, i.d, mask, [=](unsigned l) { return canonical(halfToFloat(a[l])); });
}
void f32FromBF16(Warp &w, const Inst &i, uint32_t mask) {
  const uint16_t *a = reg<uint16_t>(w, i.a);
  lanes<float>(w, i.d, mask, [=](unsigned l) { return canonical(bf16ToFloat(a[l])); });
}
void halfFromF32(Warp &w, const Inst &i, uint32_t mask) {
  const float *a = reg<float>(w, i.a);
  lanes<uint16_t>(w, i.d, mask, [=](unsigned l) { return floatToHalf(a[l]); });
}
void bf16FromF32(Warp &w, const Inst &i, uint32_t mask) {
  const float *a = reg<float>(w, i.a);
  lanes<uint16_t>(w, i.d, mask, [=](unsigned l) { return floatToBF16(a[l]); });
}
template <class T> void f32FromInteger(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  lanes<float>(w, i.d, mask, [=](unsigned l) { return float(a[l]); });
}
void halvesFromF32(Warp &w, const Inst &i, uint32_t mask) {
  const float *a = reg<float>(w, i.a), *b = reg<float>(w, i.b);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    return uint32_t(floatToHalf(a[l])) << 16 | floatToHalf(b[l]);
  });
}
void bf16sFromF32(Warp &w, const Inst &i, uint32_t mask) {
  const float *a = reg<float>(w, i.a), *b = reg<float>(w, i.b);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    return uint32_t(floatToBF16(a[l])) << 16 | floatToBF16(b[l]);
  });
}
template <class To, class From> void fromByte(Warp &w, const Inst &i, uint32_t mask) {
  const uint16_t *a = reg<uint16_t>(w, i.a);
  lanes<To>(w, i.d, mask, [=](unsigned l) { return To(From(a[l])); });
}
template <class To, bool toNearest> void integerFromF32(Warp &w, const Inst &i, uint32_t mask) {
  const float *a = reg<float>(w, i.a);
  constexpr double low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  lanes<To>(w, i.d, mask, [=](unsigned l) {
    double x = a[l];
    x = x < low - 1 ? low : x > high + 1 ? high : x == x ? x : 0;
    x = toNearest ? std::rint(x) : std::trunc(x);
    return To(int64_t(x < low ? low : x > high ? high : x));
  });
}
template <class To, class From> void resize(Warp &w, const Inst &i, uint32_t mask) {
  const From *a = reg<From>(w, i.a);
  lanes<To>(w, i.d, mask, [=](unsigned l) { return To(a[l]); });
}

Handler fast(Type to, Type from, Rounding rounding, unsigned flags) {
  if (flags)
    return nullptr;
  bool nearest = rounding == Rounding::Nearest;
  if (to == Type::F32 && from == Type::F16)
    return f32FromHalf;
  if (to == Type::F32 && from == Type::BF16)
    return f32FromBF16;
  if (to == Type::F16 && from == Type::F32 && nearest)
    return halfFromF32;
  if (to == Type::BF16 && from == Type::F32 && nearest)
    return bf16FromF32;
  if (to == Type::F32 && from == Type::S32 && nearest)
    return f32FromInteger<int32_t>;
  if (to == Type::F32 && from == Type::U32 && nearest)
    return f32FromInteger<uint32_t>;
  if (to == Type::F32 && from == Type::S16)
    return f32FromInteger<int16_t>;
  if (to == Type::F32 && from == Type::U16)
    return f32FromInteger<uint16_t>;
  if (from == Type::F32 && (nearest || rounding == Rounding::Zero)) {
    if (to == Type::S32)
      return nearest ? integerFromF32<int32_t, true> : integerFromF32<int32_t, false>;
    if (to == Type::U32)
      return nearest ? integerFromF32<uint32_t, true> : integerFromF32<uint32_t, false>;
  }
  bool isByte = from == Type::U8 || from == Type::S8;
  if (isByte && to == Type::F32)
    return from == Type::U8 ? fromByte<float, uint8_t> : fromByte<float, int8_t>;
  if (isByte && (to == Type::U32 || to == Type::S32))
    return from == Type::U8 ? fromByte<uint32_t, uint8_t> : fromByte<uint32_t, int8_t>;
  if (isByte && (to == Type::U16 || to == Type::S16))
    return from == Type::U8 ? fromByte<uint16_t, uint8_t> : fromByte<uint16_t, int8_t>;
  Handler found = nullptr;
  withInteger(from, [&](auto f) {
    withSize(sizeOf(to), [&](auto t) {
      if (!isFloat(to) && to != Type::Pred)
        found = resize<decltype(t), decltype(f)>;
    });
  });
  return found;
}
} // namespace

bool decodeConvert(Builder &b, Modifiers &m) {
  const auto &o = b.insn->operands;
  Convert c{};
  c.rounding = Rounding::Nearest;
  int mode = m.oneOf({"rn", "rz", "rm", "rp", "rna"});
  int integer = m.oneOf({"rni", "rzi", "rmi", "rpi"});
  if (mode >= 0)
    c.rounding = Rounding(mode);
  if (integer >= 0)
    c.rounding = Rounding(integer), c.flags |= flagInteger;
  c.flags |= m.take("ftz") ? flagFtz : 0;
  c.flags |= m.take("relu") ? flagRelu : 0;
  c.flags |= m.take("satfinite") ? flagFinite : 0;
  c.flags |= m.take("sat") ? flagSat : 0;
  c.to = m.type();
  c.from = m.type();
  if (!b.wantType(c.to) || !b.wantType(c.from) || c.to == Type::Pred || c.from == Type::Pred)
    return false;
  auto fp8 = [](Type t) { return t == Type::E4M3x2 || t == Type::E5M2x2; };
  bool pair = fp8(c.to) || c.to == Type::F16x2 || c.to == Type::BF16x2;
  Inst i = b.make(Class::Convert);
  if (pair && c.from == Type::F32) {
    if (fp8(c.to) && !(c.flags & flagFinite))
      return b.fail("wants .satfinite");
    i.run = c.flags || c.rounding != Rounding::Nearest ? pairOf
            : c.to == Type::F16x2                      ? halvesFromF32
            : c.to == Type::BF16x2                     ? bf16sFromF32
                                                       : pairOf;
    i.imm = c.pack();
    if (!b.want(3, 3) || !b.source(o[1], 4, i.a) || !b.source(o[2], 4, i.b) ||
        !b.destination(o[0], registerSize(c.to), i.d))
      return false;
    b.emit(i);
    return true;
  }
  if (pair) {
    if (!(fp8(c.to) && c.from == Type::F16x2) && !(c.to == Type::F16x2 && fp8(c.from)))
      return false;
    i.run = pairToPair;
    i.imm = c.pack();
    if (!b.want(2, 2) || !b.source(o[1], registerSize(c.from), i.a) ||
        !b.destination(o[0], registerSize(c.to), i.d))
      return false;
    b.emit(i);
    return true;
  }
  if (sizeOf(c.from) == 1 && isFloat(c.from))
    return false;
  if (isFloat(c.to) && sizeOf(c.to) == 1)
    return false;
  // f32 to s8: rounding to an integer is implied by the types.
  i.run = fast(c.to, c.from, c.rounding, c.flags & ~(isFloat(c.to) ? 0 : flagInteger));
  if (isFloat(c.from) && !isFloat(c.to) && integer < 0)
    return b.fail("wants a rounding to integers");
  if (!i.run)
    i.run = general;
  i.imm = c.pack();
  if (!b.want(2, 2) || !b.source(o[1], registerSize(c.from), i.a, true) ||
      !b.widerDestination(o[0], c.to, i.d))
    return false;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
