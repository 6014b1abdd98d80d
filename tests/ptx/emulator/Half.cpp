//===- Half.cpp - f16 and bf16 arithmetic ---------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

// f16 and bf16, alone and in pairs. Every result is the exact one, rounded once.

namespace llmc::ptx {

namespace {
/// x as f32, rounded to odd, so that a rounding to 16 bits afterwards is the only one.
float oddFloat(double x) {
  float f = float(x);
  uint32_t u = asBits(f);
  bool outward = std::fabs(double(f)) > std::fabs(x);
  uint32_t odd = (outward ? u - 1 : u) | 1;
  return asFloat(double(f) != x && x == x ? odd : u);
}

struct F16 {
  static constexpr uint16_t infinity = 0x7c00, one = 0x3c00;
  static float load(uint16_t h) { return halfToFloat(h); }
  static uint16_t store(float x) { return floatToHalf(x); }
  static uint16_t store(double x) { return floatToHalf(oddFloat(x)); }
};
struct BF16 {
  static constexpr uint16_t infinity = 0x7f80, one = 0x3f80;
  static float load(uint16_t h) { return bf16ToFloat(h); }
  static uint16_t store(float x) { return floatToBF16(x); }
  static uint16_t store(double x) { return floatToBF16(oddFloat(x)); }
};

template <class H> uint16_t flushHalf(uint16_t h) { return h & H::infinity ? h : h & 0x8000; }
template <class H> bool isNaN(uint16_t h) { return (h & 0x7fff) > H::infinity; }
template <class H> uint16_t saturateHalf(uint16_t h) {
  if (isNaN<H>(h) || h >> 15)
    return 0;
  return h > H::one ? H::one : h;
}

// A sum that is rounded to f32 first and then to 16 bits is as if rounded once: f32 has more than
// twice their bits.
template <class H> uint16_t sum(float a, float b) { return H::store(a + b); }

struct Add {
  template <class H> static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
    return sum<H>(H::load(a), H::load(b));
  }
};
struct Sub {
  template <class H> static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
    return sum<H>(H::load(a), -H::load(b));
  }
};
struct Mul {
  template <class H> static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
    return H::store(double(H::load(a)) * double(H::load(b)));
  }
};
struct Fma {
  template <class H> static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
    return H::store(addOdd(double(H::load(a)) * double(H::load(b)), double(H::load(c))));
  }
};
template <bool larger, bool nan> struct MinMax {
  template <class H> static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
    bool na = isNaN<H>(a), nb = isNaN<H>(b);
    if (nan ? na || nb : na && nb)
      return 0x7fff;
    if (na || nb)
      return na ? b : a;
    // Order of the numbers as sign and magnitude: -0 is below +0.
    int x = a >> 15 ? -int(a & 0x7fff) - 1 : a, y = b >> 15 ? -int(b & 0x7fff) - 1 : b;
    return (x > y) == larger ? a : b;
  }
};
struct Abs {
  template <class H> static uint16_t run(uint16_t a, uint16_t, uint16_t) { return a & 0x7fff; }
};
struct Neg {
  template <class H> static uint16_t run(uint16_t a, uint16_t, uint16_t) { return a ^ 0x8000; }
};
struct Ex2 {
  template <class H> static uint16_t run(uint16_t a, uint16_t, uint16_t) {
    return H::store(std::exp2(double(H::load(a))));
  }
};
struct Tanh {
  template <class H> static uint16_t run(uint16_t a, uint16_t, uint16_t) {
    return H::store(std::tanh(double(H::load(a))));
  }
};

enum Adjust { adjustFtz = 1, adjustSat = 2, adjustRelu = 4 };
template <class H> uint16_t adjust(uint16_t h, unsigned flags) {
  if (flags & adjustFtz)
    h = flushHalf<H>(h);
  if (flags & adjustSat)
    h = saturateHalf<H>(h);
  if (flags & adjustRelu)
    h = isNaN<H>(h) ? 0x7fff : h >> 15 ? 0 : h;
  return h;
}

template <class H, class Op, class T, bool plain> void half(Warp &w, const Inst &i, uint32_t mask) {
  const uint16_t *a = reg<uint16_t>(w, i.a), *b = reg<uint16_t>(w, i.b), *c = reg<uint16_t>(w, i.c);
  unsigned flags = i.sub;
  auto one = [=](unsigned k) -> uint16_t {
    if constexpr (plain)
      return Op::template run<H>(a[k], b[k], c[k]);
    bool ftz = flags & adjustFtz;
    uint16_t x = ftz ? flushHalf<H>(a[k]) : a[k], y = ftz ? flushHalf<H>(b[k]) : b[k];
    return adjust<H>(Op::template run<H>(x, y, ftz ? flushHalf<H>(c[k]) : c[k]), flags);
  };
  // A pair is two values one after the other.
  if constexpr (sizeof(T) == 2) {
    lanes<uint16_t>(w, i.d, mask, one);
  } else {
    uint16_t value[64];
    for (unsigned k = 0; k < 64; ++k)
      value[k] = one(k);
    const uint32_t *pairs = reinterpret_cast<const uint32_t *>(value);
    uint32_t copy[32];
    memcpy(copy, pairs, sizeof copy);
    uint32_t *d = reg<uint32_t>(w, i.d);
    for (unsigned l = 0; l < 32; ++l)
      d[l] = mask >> l & 1 ? copy[l] : d[l];
  }
}

template <class Op> Handler pick(Type type, unsigned flags) {
  switch (type) {
  case Type::F16:
    return flags ? half<F16, Op, uint16_t, false> : half<F16, Op, uint16_t, true>;
  case Type::F16x2:
    return flags ? half<F16, Op, uint32_t, false> : half<F16, Op, uint32_t, true>;
  case Type::BF16:
    return flags ? half<BF16, Op, uint16_t, false> : half<BF16, Op, uint16_t, true>;
  case Type::BF16x2:
    return flags ? half<BF16, Op, uint32_t, false> : half<BF16, Op, uint32_t, true>;
  default:
    return nullptr;
  }
}
} // namespace

bool decodeHalf(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  bool approx = m.take("approx");
  m.take("rn"); // there is no other rounding
  unsigned flags = 0;
  flags |= m.take("ftz") ? adjustFtz : 0;
  flags |= m.take("sat") ? adjustSat : 0;
  flags |= m.take("relu") ? adjustRelu : 0;
  bool nan = m.take("NaN");
  Type type = m.type();
  Inst i = b.make(base == "ex2" || base == "tanh" ? Class::Special : Class::Half);
  unsigned operands = 3;
  if (base == "add")
    i.run = pick<Add>(type, flags);
  else if (base == "sub")
    i.run = pick<Sub>(type, flags);
  else if (base == "mul")
    i.run = pick<Mul>(type, flags);
  else if (base == "fma")
    i.run = pick<Fma>(type, flags), operands = 4;
  else if (base == "min")
    i.run = nan ? pick<MinMax<false, true>>(type, flags) : pick<MinMax<false, false>>(type, flags);
  else if (base == "max")
    i.run = nan ? pick<MinMax<true, true>>(type, flags) : pick<MinMax<true, false>>(type, flags);
  else if (base == "abs")
    i.run = pick<Abs>(type, flags), operands = 2;
  else if (base == "neg")
    i.run = pick<Neg>(type, flags), operands = 2;
  else if (base == "ex2" && approx)
    i.run = pick<Ex2>(type, flags), operands = 2;
  else if (base == "tanh" && approx)
    i.run = pick<Tanh>(type, flags), operands = 2;
  if (!i.run)
    return false;
  i.sub = flags;
  unsigned size = sizeOf(type);
  if (!b.want(operands, operands) || !b.source(o[1], size, i.a) ||
      (operands > 2 && !b.source(o[2], size, i.b)) ||
      (operands > 3 && !b.source(o[3], size, i.c)) || !b.destination(o[0], size, i.d))
    return false;
  if (operands < 3)
    i.b = i.a;
  if (operands < 4)
    i.c = i.a;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
