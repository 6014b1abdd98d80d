//===- Integer.cpp - integer arithmetic -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

#include <limits>
#include <type_traits>

namespace llmc::ptx {

namespace {
template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Double = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// Arithmetic wraps: it is done without sign. 16 bits would be promoted to int.
template <class T> T wrapMul(T a, T b) { return T(uint64_t(Unsigned<T>(a)) * Unsigned<T>(b)); }

struct Add {
  template <class T> T operator()(T a, T b) const { return T(Unsigned<T>(a) + Unsigned<T>(b)); }
};
struct AddSat {
  int32_t operator()(int32_t a, int32_t b) const {
    int64_t s = int64_t(a) + b;
    return s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : int32_t(s);
  }
};
struct Sub {
  template <class T> T operator()(T a, T b) const { return T(Unsigned<T>(a) - Unsigned<T>(b)); }
};
struct SubSat {
  int32_t operator()(int32_t a, int32_t b) const {
    int64_t s = int64_t(a) - b;
    return s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : int32_t(s);
  }
};
struct MulLo {
  template <class T> T operator()(T a, T b) const { return wrapMul(a, b); }
};
struct MulHi {
  template <class T> T operator()(T a, T b) const {
    return T((Double<T>(a) * Double<T>(b)) >> (sizeof(T) * 8));
  }
};
// What the hardware gives for a division by zero is all ones.
struct Div {
  template <class T> T operator()(T a, T b) const {
    if (!b)
      return T(-1);
    if (std::is_signed_v<T> && b == T(-1))
      return T(0 - Unsigned<T>(a));
    return T(a / b);
  }
};
struct Rem {
  template <class T> T operator()(T a, T b) const {
    if (!b)
      return a;
    if (std::is_signed_v<T> && b == T(-1))
      return 0;
    return T(a % b);
  }
};
struct Min {
  template <class T> T operator()(T a, T b) const { return a < b ? a : b; }
};
struct Max {
  template <class T> T operator()(T a, T b) const { return a > b ? a : b; }
};
template <class Op> struct Relu {
  template <class T> T operator()(T a, T b) const {
    T m = Op()(a, b);
    return m > T(0) ? m : T(0);
  }
};
struct Abs {
  template <class T> T operator()(T a) const {
    return std::is_signed_v<T> && a < T(0) ? T(0 - Unsigned<T>(a)) : a;
  }
};
struct Neg {
  template <class T> T operator()(T a) const { return T(0 - Unsigned<T>(a)); }
};
struct MadLo {
  template <class T> T operator()(T a, T b, T c) const {
    return T(Unsigned<T>(wrapMul(a, b)) + Unsigned<T>(c));
  }
};
struct MadHi {
  template <class T> T operator()(T a, T b, T c) const {
    return T(Unsigned<T>(MulHi()(a, b)) + Unsigned<T>(c));
  }
};
struct Sad {
  template <class T> T operator()(T a, T b, T c) const {
    Unsigned<T> d = a < b ? Unsigned<T>(b) - Unsigned<T>(a) : Unsigned<T>(a) - Unsigned<T>(b);
    return T(Unsigned<T>(c) + d);
  }
};
template <bool high> struct Mul24 {
  template <class T> T operator()(T a, T b) const {
    int64_t x = std::is_signed_v<T> ? int64_t(int32_t(uint32_t(a) << 8) >> 8) : a & 0xffffff;
    int64_t y = std::is_signed_v<T> ? int64_t(int32_t(uint32_t(b) << 8) >> 8) : b & 0xffffff;
    return T(uint64_t(x * y) >> (high ? 16 : 0));
  }
};

template <class T> void mulWide(Warp &w, const Inst &i, uint32_t mask) {
  using D = Double<T>;
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b);
  lanes<D>(w, i.d, mask, [=](unsigned l) { return D(D(a[l]) * D(b[l])); });
}
template <class T> void madWide(Warp &w, const Inst &i, uint32_t mask) {
  using D = Double<T>;
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b);
  const D *c = reg<D>(w, i.c);
  lanes<D>(w, i.d, mask,
           [=](unsigned l) { return D(Unsigned<D>(D(a[l]) * D(b[l])) + Unsigned<D>(c[l])); });
}

// add.cc and the like: the carry is a predicate, i.e. in and out.
enum CarryKind { CarryAdd, CarrySub, CarryMadLo, CarryMadHi };
template <class T> void carry(Warp &w, const Inst &i, uint32_t mask) {
  using U = Unsigned<T>;
  const U *a = reg<U>(w, i.a), *b = reg<U>(w, i.b), *c = reg<U>(w, i.c);
  unsigned kind = i.sub & 15;
  bool takes = i.sub & 16, sets = i.sub & 32;
  uint32_t in = takes ? predicateOf(w, i.e) : 0, out = 0;
  U *d = reg<U>(w, i.d);
  for (unsigned l = 0; l < 32; ++l) {
    if (!(mask >> l & 1))
      continue;
    U x = a[l], y = b[l], carryIn = in >> l & 1;
    bool carryOut;
    if (kind == CarryMadLo || kind == CarryMadHi) {
      x = kind == CarryMadLo ? U(MulLo()(T(a[l]), T(b[l]))) : U(MulHi()(T(a[l]), T(b[l])));
      y = c[l];
    }
    U sum;
    if (kind == CarrySub) {
      sum = x - y - carryIn;
      carryOut = carryIn ? x <= y : x < y;
    } else {
      sum = x + y + carryIn;
      carryOut = carryIn ? sum <= x : sum < x;
    }
    d[l] = sum;
    out |= uint32_t(carryOut) << l;
  }
  if (sets)
    setPredicate(w, i.e, mask, out);
}
} // namespace

static bool decodeCarry(Builder &b, Modifiers &m, std::string_view base) {
  bool sets = m.take("cc");
  bool takes = base.back() == 'c';
  std::string_view op = base.substr(0, 3);
  unsigned kind = op == "add" ? CarryAdd : op == "sub" ? CarrySub : CarryMadLo;
  if (op == "mad") {
    bool hi = m.take("hi");
    if (!hi && !m.take("lo"))
      return false;
    kind = hi ? CarryMadHi : CarryMadLo;
  }
  Type type = m.type();
  Inst i = b.make(Class::Integer);
  bool known = withInteger(type, [&](auto v) {
    if constexpr (sizeof(v) >= 4)
      i.run = carry<decltype(v)>;
  });
  if (!known || !i.run)
    return false;
  bool mad = op == "mad";
  const auto &o = b.insn->operands;
  if (!b.want(mad ? 4 : 3, mad ? 4 : 3) || !b.source(o[1], type, i.a) ||
      !b.source(o[2], type, i.b) || (mad && !b.source(o[3], type, i.c)) ||
      !b.destination(o[0], sizeOf(type), i.d))
    return false;
  i.sub = kind | (takes ? 16 : 0) | (sets ? 32 : 0);
  i.e = b.special(SpecialSlot::Zero, 0); // the carry flag's predicate
  b.emit(i);
  return true;
}

bool decodeInteger(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  for (std::string_view name : b.insn->modifiers) {
    Type t = typeNamed(name);
    if (isFloat(t))
      return t == Type::F32 || t == Type::F64 ? decodeFloat(b, m) : decodeHalf(b, m);
    if (name == "cc")
      return decodeCarry(b, m, base);
  }
  if (base == "addc" || base == "subc" || base == "madc")
    return decodeCarry(b, m, base);
  bool lo = m.take("lo"), hi = !lo && m.take("hi"), wide = !lo && !hi && m.take("wide");
  bool sat = m.take("sat"), relu = m.take("relu");
  Type type = m.type();
  Inst i = b.make(Class::Integer);
  unsigned operands = 3;
  Type result = type, third = type;
  // 16-bit pairs.
  if (type == Type::None)
    return false;
  bool known = withInteger(type, [&](auto v) {
    using T = decltype(v);
    if (base == "add")
      i.run = sat ? binary<int32_t, AddSat> : binary<T, Add>;
    else if (base == "sub")
      i.run = sat ? binary<int32_t, SubSat> : binary<T, Sub>;
    else if (base == "mul" && lo)
      i.run = binary<T, MulLo>;
    else if (base == "mul" && hi)
      i.run = binary<T, MulHi>;
    else if (base == "mad" && lo)
      i.run = ternary<T, MadLo>;
    else if (base == "mad" && hi)
      i.run = ternary<T, MadHi>;
    else if (base == "div")
      i.run = binary<T, Div>;
    else if (base == "rem")
      i.run = binary<T, Rem>;
    else if (base == "min")
      i.run = relu ? binary<T, Relu<Min>> : binary<T, Min>;
    else if (base == "max")
      i.run = relu ? binary<T, Relu<Max>> : binary<T, Max>;
    else if (base == "abs")
      i.run = unary<T, Abs>;
    else if (base == "neg")
      i.run = unary<T, Neg>;
    else if (base == "sad")
      i.run = ternary<T, Sad>;
    if constexpr (sizeof(T) == 4) {
      if (base == "mul24" && (lo || hi))
        i.run = lo ? binary<T, Mul24<false>> : binary<T, Mul24<true>>;
    }
    if constexpr (sizeof(T) <= 4) {
      if (wide && base == "mul")
        i.run = mulWide<T>;
      else if (wide && base == "mad")
        i.run = madWide<T>;
    }
  });
  if (!known || !i.run || (sat && type != Type::S32))
    return false;
  if (i.sub == 0 && (base == "abs" || base == "neg"))
    operands = 2;
  if (base == "mad" || base == "sad")
    operands = 4;
  if (wide) {
    static const std::pair<Type, Type> wider[] = {{Type::U16, Type::U32},
                                                  {Type::S16, Type::S32},
                                                  {Type::U32, Type::U64},
                                                  {Type::S32, Type::S64}};
    for (auto [narrow, w] : wider)
      if (narrow == type)
        result = third = w;
  }
  const auto &o = b.insn->operands;
  if (!b.want(operands, operands) || !b.source(o[1], type, i.a) ||
      (operands > 2 && !b.source(o[2], type, i.b)) ||
      (operands > 3 && !b.source(o[3], third, i.c)) ||
      !b.destination(o[0], registerSize(result), i.d))
    return false;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
