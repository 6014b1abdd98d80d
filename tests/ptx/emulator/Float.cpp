//===- Float.cpp - f32 and f64 arithmetic ---------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

#include <cfenv>

// f32 and f64. Operations with .rn are the processor's; those with another rounding go through the
// exact result in double (f32) or the processor's rounding mode (f64). Approximate instructions
// give the correctly rounded result, which is within every bound that PTX states for them.

namespace llmc::ptx {

namespace {
struct Add {
  template <class T> T operator()(T a, T b) const { return a + b; }
};
struct Sub {
  template <class T> T operator()(T a, T b) const { return a - b; }
};
struct Mul {
  template <class T> T operator()(T a, T b) const { return a * b; }
};
struct Div {
  template <class T> T operator()(T a, T b) const { return a / b; }
};
struct Fma {
  template <class T> T operator()(T a, T b, T c) const {
    return __builtin_elementwise_fma(a, b, c);
  }
};
template <class T> bool negative(T x) { return std::signbit(x); }
struct Min {
  template <class T> T operator()(T a, T b) const {
    T m = a < b || (a == b && negative(a)) ? a : b;
    return a != a ? b : b != b ? a : m;
  }
};
struct Max {
  template <class T> T operator()(T a, T b) const {
    T m = a > b || (a == b && !negative(a)) ? a : b;
    return a != a ? b : b != b ? a : m;
  }
};
template <class Op> struct NaN {
  template <class T> T operator()(T a, T b) const { return a != a || b != b ? T(NAN) : Op()(a, b); }
};
template <class Op> struct XorSign {
  float operator()(float a, float b) const {
    uint32_t sign = (asBits(a) ^ asBits(b)) & 0x80000000;
    float m = Op()(std::fabs(a), std::fabs(b));
    return asFloat((asBits(m) & 0x7fffffff) | sign);
  }
};
struct Abs {
  template <class T> T operator()(T a) const { return std::fabs(a); }
};
struct Neg {
  template <class T> T operator()(T a) const { return -a; }
};
struct CopySign {
  template <class T> T operator()(T a, T b) const { return std::copysign(b, a); }
};
struct Rcp {
  template <class T> T operator()(T a) const { return T(1) / a; }
};
struct Sqrt {
  template <class T> T operator()(T a) const { return std::sqrt(a); }
};
struct Rsqrt {
  float operator()(float a) const { return float(1 / std::sqrt(double(a))); }
  double operator()(double a) const { return 1 / std::sqrt(a); }
};
struct Ex2 {
  float operator()(float a) const { return float(std::exp2(double(a))); }
};
struct Lg2 {
  float operator()(float a) const { return float(std::log2(double(a))); }
};
struct Sin {
  float operator()(float a) const { return float(std::sin(double(a))); }
};
struct Cos {
  float operator()(float a) const { return float(std::cos(double(a))); }
};
struct Tanh {
  float operator()(float a) const { return float(std::tanh(double(a))); }
};

/// Wraps an f32 operation: .ftz, .sat, and the NaN that the hardware gives.
template <class Op, bool ftz, bool sat> struct Single {
  static float in(float x) { return ftz ? flush(x) : x; }
  static float out(float x) {
    x = ftz ? flush(x) : x;
    return sat ? saturate(x) : canonical(x);
  }
  float operator()(float a) const { return out(Op()(in(a))); }
  float operator()(float a, float b) const { return out(Op()(in(a), in(b))); }
  float operator()(float a, float b, float c) const { return out(Op()(in(a), in(b), in(c))); }
};

enum RoundedOp { RoundAdd, RoundSub, RoundMul, RoundFma, RoundDiv, RoundRcp, RoundSqrt };
// sub: operation | rounding << 4 | ftz << 8 | sat << 9
void roundedSingle(Warp &w, const Inst &i, uint32_t mask) {
  const float *a = reg<float>(w, i.a), *b = reg<float>(w, i.b), *c = reg<float>(w, i.c);
  auto rounding = Rounding(i.sub >> 4 & 15);
  bool ftz = i.sub & 256, sat = i.sub & 512;
  unsigned op = i.sub & 15;
  float *d = reg<float>(w, i.d);
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    float x = a[l], y = op >= RoundRcp ? 1 : b[l], z = op == RoundFma ? c[l] : 0;
    if (ftz)
      x = flush(x), y = flush(y), z = flush(z);
    double r, dx = x, dy = y;
    switch (op) {
    case RoundAdd:
      r = addOdd(dx, dy);
      break;
    case RoundSub:
      r = addOdd(dx, -dy);
      break;
    case RoundMul:
      r = dx * dy;
      break;
    case RoundFma:
      r = addOdd(dx * dy, z);
      break;
    default: {
      // q and the sign of what is left of it, as a digit below.
      double n = op == RoundDiv ? dx : op == RoundRcp ? 1 : dx;
      double q = op == RoundSqrt ? std::sqrt(dx) : n / (op == RoundDiv ? dy : dx);
      r = q;
      if (std::isfinite(q) && q != 0) {
        double rest =
            op == RoundSqrt ? std::fma(-q, q, dx) : std::fma(-q, op == RoundDiv ? dy : dx, n);
        if (op != RoundSqrt && (op == RoundDiv ? dy : dx) < 0)
          rest = -rest;
        if (rest != 0) {
          uint64_t bits = std::bit_cast<uint64_t>(q);
          r = std::bit_cast<double>(((rest > 0) == (q > 0) ? bits : bits - 1) | 1);
        }
      }
    }
    }
    // A sum that is exactly zero is -0 only when rounding down (or of two).
    if (op <= RoundFma && r == 0 && op != RoundMul) {
      double s = op == RoundFma ? dx * dy : dx, t = op == RoundFma ? z : op == RoundSub ? -dy : dy;
      bool both = std::signbit(s) && std::signbit(t);
      bool unlike = std::signbit(s) != std::signbit(t);
      r = both || (unlike && rounding == Rounding::Down) ? -0.0 : 0.0;
    }
    float f = asFloat(encode(r, formatF32, rounding));
    if (ftz)
      f = flush(f);
    d[l] = sat ? saturate(f) : canonical(f);
  }
}

void roundedDouble(Warp &w, const Inst &i, uint32_t mask) {
  const double *a = reg<double>(w, i.a), *b = reg<double>(w, i.b), *c = reg<double>(w, i.c);
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
  unsigned op = i.sub & 15;
  double *d = reg<double>(w, i.d);
  fesetround(modes[i.sub >> 4 & 15]);
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    // Volatile: nothing is computed before the mode is set, or after it is reset.
    volatile double x = a[l], y = b[l], z = c[l], r;
    switch (op) {
    case RoundAdd:
      r = x + y;
      break;
    case RoundSub:
      r = x - y;
      break;
    case RoundMul:
      r = x * y;
      break;
    case RoundFma:
      r = std::fma(x, y, z);
      break;
    case RoundDiv:
      r = x / y;
      break;
    case RoundRcp:
      r = 1 / x;
      break;
    default:
      r = std::sqrt(x);
      break;
    }
    d[l] = r;
  }
  fesetround(FE_TONEAREST);
}

#define LLMC_PTX_SINGLE(shape)                                                                     \
  (ftz ? (sat ? shape<float, Single<Op, true, true>> : shape<float, Single<Op, true, false>>)      \
       : (sat ? shape<float, Single<Op, false, true>> : shape<float, Single<Op, false, false>>))
template <class Op> Handler unaryF32(bool ftz, bool sat) { return LLMC_PTX_SINGLE(unary); }
template <class Op> Handler binaryF32(bool ftz, bool sat) { return LLMC_PTX_SINGLE(binary); }
template <class Op> Handler ternaryF32(bool ftz, bool sat) { return LLMC_PTX_SINGLE(ternary); }
#undef LLMC_PTX_SINGLE

enum Test { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <class T> void testp(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  unsigned kind = i.sub;
  lanesPredicate(w, i.d, mask, [=](unsigned l) {
    T x = a[l];
    switch (kind) {
    case Finite:
      return std::isfinite(x);
    case Infinite:
      return std::isinf(x);
    case Number:
      return !std::isnan(x);
    case NotANumber:
      return std::isnan(x);
    case Normal:
      return std::isnormal(x);
    default:
      return !std::isnormal(x) && std::isfinite(x) && x != 0;
    }
  });
}
} // namespace

/// Bits of abs and neg are changed, whatever they mean: no canonical NaN.
template <bool absolute> static void signOf(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a);
  bool ftz = i.sub;
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    uint32_t x = ftz ? asBits(flush(asFloat(a[l]))) : a[l];
    return absolute ? x & 0x7fffffff : x ^ 0x80000000;
  });
}

bool decodeFloat(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  for (std::string_view name : b.insn->modifiers) {
    Type t = typeNamed(name);
    if (t == Type::F16 || t == Type::F16x2 || t == Type::BF16 || t == Type::BF16x2)
      return decodeHalf(b, m);
  }
  const auto &o = b.insn->operands;
  if (base == "testp") {
    Inst i = b.make(Class::Compare);
    int kind = m.oneOf({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    Type type = m.type();
    if (kind < 0 || (type != Type::F32 && type != Type::F64))
      return false;
    i.run = type == Type::F32 ? testp<float> : testp<double>;
    i.sub = kind;
    if (!b.want(2, 2) || !b.source(o[1], type, i.a) || !b.destination(o[0], 0, i.d))
      return false;
    b.emit(i);
    return true;
  }
  bool approx = m.take("approx");
  bool full = m.take("full");
  int mode = m.oneOf({"rn", "rz", "rm", "rp"});
  bool ftz = m.take("ftz"), sat = m.take("sat"), nan = m.take("NaN");
  bool xorsign = m.take("xorsign");
  if (xorsign && !m.take("abs"))
    return false;
  Type type = m.type();
  if (type != Type::F32 && type != Type::F64)
    return false;
  bool wide = type == Type::F64;
  if (wide && (ftz || sat || xorsign) && base != "rcp" && base != "rsqrt")
    return false;
  bool special = base == "rcp" || base == "sqrt" || base == "rsqrt" || base == "ex2" ||
                 base == "lg2" || base == "sin" || base == "cos" || base == "tanh";
  Inst i = b.make(special || base == "div" ? Class::Special : Class::Float);
  unsigned operands = 3;
  int rounded = -1; // the operation as a RoundedOp
#define LLMC_PTX_FLOAT(shape, Op) i.run = wide ? shape<double, Op> : shape##F32<Op>(ftz, sat)
  if (base == "add")
    LLMC_PTX_FLOAT(binary, Add), rounded = RoundAdd;
  else if (base == "sub")
    LLMC_PTX_FLOAT(binary, Sub), rounded = RoundSub;
  else if (base == "mul")
    LLMC_PTX_FLOAT(binary, Mul), rounded = RoundMul;
  else if (base == "div" && (approx || full || mode >= 0))
    LLMC_PTX_FLOAT(binary, Div), rounded = RoundDiv;
  else if ((base == "fma" || base == "mad") && mode >= 0)
    LLMC_PTX_FLOAT(ternary, Fma), rounded = RoundFma, operands = 4;
  else if (base == "min")
    i.run = xorsign ? (nan ? binaryF32<XorSign<NaN<Min>>>(ftz, false)
                           : binaryF32<XorSign<Min>>(ftz, false))
            : nan   ? binaryF32<NaN<Min>>(ftz, false)
            : wide  ? binary<double, Min>
                    : binaryF32<Min>(ftz, false);
  else if (base == "max")
    i.run = xorsign ? (nan ? binaryF32<XorSign<NaN<Max>>>(ftz, false)
                           : binaryF32<XorSign<Max>>(ftz, false))
            : nan   ? binaryF32<NaN<Max>>(ftz, false)
            : wide  ? binary<double, Max>
                    : binaryF32<Max>(ftz, false);
  else if (base == "abs")
    i.run = wide ? unary<double, Abs> : signOf<true>, operands = 2;
  else if (base == "neg")
    i.run = wide ? unary<double, Neg> : signOf<false>, operands = 2;
  else if (base == "copysign")
    i.run = wide ? binary<double, CopySign> : binary<float, CopySign>;
  else if (base == "rcp" && (approx || mode >= 0))
    LLMC_PTX_FLOAT(unary, Rcp), rounded = RoundRcp, operands = 2;
  else if (base == "sqrt" && (approx || mode >= 0))
    LLMC_PTX_FLOAT(unary, Sqrt), rounded = RoundSqrt, operands = 2;
  else if (base == "rsqrt" && approx)
    LLMC_PTX_FLOAT(unary, Rsqrt), operands = 2;
  else if (approx && !wide) {
    operands = 2;
    if (base == "ex2")
      i.run = unaryF32<Ex2>(ftz, false);
    else if (base == "lg2")
      i.run = unaryF32<Lg2>(ftz, false);
    else if (base == "sin")
      i.run = unaryF32<Sin>(ftz, false);
    else if (base == "cos")
      i.run = unaryF32<Cos>(ftz, false);
    else if (base == "tanh")
      i.run = unaryF32<Tanh>(false, false);
  }
#undef LLMC_PTX_FLOAT
  if (!i.run || (nan && base != "min" && base != "max"))
    return false;
  if (mode > 0) {
    if (rounded < 0)
      return false;
    i.run = wide ? roundedDouble : roundedSingle;
    i.sub = rounded | mode << 4 | (ftz ? 256 : 0) | (sat ? 512 : 0);
  } else {
    i.sub = ftz;
  }
  // min.f32 and max.f32 also take three operands.
  if ((base == "min" || base == "max") && o.size() == 4)
    return b.fail("of three operands is not supported");
  if (!b.want(operands, operands) || !b.source(o[1], type, i.a) ||
      (operands > 2 && !b.source(o[2], type, i.b)) ||
      (operands > 3 && !b.source(o[3], type, i.c)) || !b.destination(o[0], sizeOf(type), i.d))
    return false;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
