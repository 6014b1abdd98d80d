//===- Bits.cpp - logic, shifts and bit fields ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

#include <bit>

namespace llmc::ptx {

namespace {
struct And {
  template <class T> T operator()(T a, T b) const { return a & b; }
};
struct Or {
  template <class T> T operator()(T a, T b) const { return a | b; }
};
struct Xor {
  template <class T> T operator()(T a, T b) const { return a ^ b; }
};
struct Not {
  template <class T> T operator()(T a) const { return T(~a); }
};
struct Cnot {
  template <class T> T operator()(T a) const { return a == 0; }
};
struct Brev {
  template <class T> T operator()(T a) const {
    return sizeof(T) == 8 ? T(__builtin_bitreverse64(a)) : T(__builtin_bitreverse32(uint32_t(a)));
  }
};

template <class Op> void predicateBinary(Warp &w, const Inst &i, uint32_t mask) {
  setPredicate(w, i.d, mask, Op()(predicateOf(w, i.a), predicateOf(w, i.b)));
}
void predicateNot(Warp &w, const Inst &i, uint32_t mask) {
  setPredicate(w, i.d, mask, ~predicateOf(w, i.a));
}

// Shift amounts are clamped at the width.
template <class T, bool left> void shift(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  const uint32_t *b = reg<uint32_t>(w, i.b);
  constexpr unsigned width = sizeof(T) * 8;
  lanes<T>(w, i.d, mask, [=](unsigned l) {
    uint32_t n = b[l];
    if (left)
      return n >= width ? T(0) : T(std::make_unsigned_t<T>(a[l]) << (n & (width - 1)));
    if (n >= width)
      return T(std::is_signed_v<T> && a[l] < 0 ? -1 : 0);
    return T(a[l] >> (n & (width - 1)));
  });
}

template <bool left, bool wrap> void funnel(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a), *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    uint64_t both = uint64_t(b[l]) << 32 | a[l];
    uint64_t n = wrap ? c[l] & 31 : c[l] < 32 ? c[l] : 32;
    return left ? uint32_t((both << n) >> 32) : uint32_t(both >> n);
  });
}

template <class T> void extract(Warp &w, const Inst &i, uint32_t mask) {
  using U = std::make_unsigned_t<T>;
  const U *a = reg<U>(w, i.a);
  const uint32_t *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  constexpr unsigned width = sizeof(T) * 8;
  lanes<U>(w, i.d, mask, [=](unsigned l) {
    unsigned pos = b[l] & 255, len = c[l] & 255;
    unsigned there = pos >= width ? 0 : width - pos < len ? width - pos : len;
    U keep = there >= width ? U(-1) : U((U(1) << (there & (width - 1))) - 1);
    U field = pos >= width ? U(0) : U(a[l] >> (pos & (width - 1)) & keep);
    if (!std::is_signed_v<T> || !len)
      return field;
    unsigned top = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
    return a[l] >> top & 1 ? U(field | U(~keep)) : field;
  });
}

template <class T> void insert(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b);
  const uint32_t *c = reg<uint32_t>(w, i.c), *e = reg<uint32_t>(w, i.e);
  constexpr unsigned width = sizeof(T) * 8;
  lanes<T>(w, i.d, mask, [=](unsigned l) {
    unsigned pos = c[l] & 255, len = e[l] & 255;
    T keep = len >= width ? T(-1) : T((T(1) << (len & (width - 1))) - 1);
    keep = pos >= width ? T(0) : T(keep << (pos & (width - 1)));
    T value = pos >= width ? T(0) : T(a[l] << (pos & (width - 1)));
    return T((b[l] & ~keep) | (value & keep));
  });
}

template <class T> void popc(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) { return uint32_t(std::popcount(a[l])); });
}
template <class T> void clz(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) { return uint32_t(std::countl_zero(a[l])); });
}
template <class T, bool amount> void bfind(Warp &w, const Inst &i, uint32_t mask) {
  using U = std::make_unsigned_t<T>;
  const U *a = reg<U>(w, i.a);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    U v = std::is_signed_v<T> && T(a[l]) < 0 ? U(~a[l]) : a[l];
    if (!v)
      return ~0u;
    uint32_t zeros = std::countl_zero(v);
    return amount ? zeros : uint32_t(sizeof(T) * 8 - 1 - zeros);
  });
}

void lop3(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a), *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  // The table's bit k is the result for bits (a, b, c) = k.
  uint32_t t[8];
  for (unsigned k = 0; k < 8; ++k)
    t[k] = i.imm >> k & 1 ? ~0u : 0;
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    uint32_t x = a[l], y = b[l], z = c[l];
    return (t[0] & ~x & ~y & ~z) | (t[1] & ~x & ~y & z) | (t[2] & ~x & y & ~z) |
           (t[3] & ~x & y & z) | (t[4] & x & ~y & ~z) | (t[5] & x & ~y & z) | (t[6] & x & y & ~z) |
           (t[7] & x & y & z);
  });
}

enum PrmtMode { PrmtIndex, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
void prmt(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a), *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  unsigned mode = i.sub;
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    uint64_t bytes = uint64_t(b[l]) << 32 | a[l];
    uint32_t out = 0;
    unsigned n = c[l] & 3;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned sel;
      switch (mode) {
      case F4e:
        sel = n + k;
        break;
      case B4e:
        sel = (n - k) & 7;
        break;
      case Rc8:
        sel = n;
        break;
      case Ecl:
        sel = k > n ? k : n;
        break;
      case Ecr:
        sel = k < n ? k : n;
        break;
      case Rc16:
        sel = (n & 1) * 2 + (k & 1);
        break;
      default:
        sel = c[l] >> 4 * k & 15;
        break;
      }
      uint32_t byte = uint32_t(bytes >> 8 * (sel & 7)) & 255;
      if (sel & 8)
        byte = byte & 128 ? 255 : 0;
      out |= byte << 8 * k;
    }
    return out;
  });
}

template <bool signedA, bool signedB> void dp4a(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a), *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    int32_t sum = int32_t(c[l]);
    for (unsigned k = 0; k < 4; ++k) {
      uint32_t x = a[l] >> 8 * k & 255, y = b[l] >> 8 * k & 255;
      int32_t p =
          (signedA ? int32_t(int8_t(x)) : int32_t(x)) * (signedB ? int32_t(int8_t(y)) : int32_t(y));
      sum = int32_t(uint32_t(sum) + uint32_t(p));
    }
    return uint32_t(sum);
  });
}
template <bool signedA, bool signedB> void dp2a(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a), *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  unsigned first = i.sub; // of b's bytes
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    uint32_t sum = c[l];
    for (unsigned k = 0; k < 2; ++k) {
      uint32_t x = a[l] >> 16 * k & 0xffff, y = b[l] >> 8 * (k + first) & 255;
      int32_t p = (signedA ? int32_t(int16_t(x)) : int32_t(x)) *
                  (signedB ? int32_t(int8_t(y)) : int32_t(y));
      sum += uint32_t(p);
    }
    return sum;
  });
}

void bmsk(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a), *b = reg<uint32_t>(w, i.b);
  bool wrap = i.sub;
  lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
    unsigned pos = wrap ? a[l] & 31 : a[l] < 32 ? a[l] : 32;
    unsigned len = wrap ? b[l] & 31 : b[l] < 32 ? b[l] : 32;
    return uint32_t(((uint64_t(1) << len) - 1) << pos);
  });
}
} // namespace

bool decodeBits(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  Inst i = b.make(Class::Logic);
  auto finish = [&](unsigned n, Type ta, Type tb, Type tc, Type td, Type te = Type::None) {
    if (!i.run)
      return false;
    if (!b.want(n, n) || !b.source(o[1], ta, i.a) || (n > 2 && !b.source(o[2], tb, i.b)) ||
        (n > 3 && !b.source(o[3], tc, i.c)) || (n > 4 && !b.source(o[4], te, i.e)) ||
        !b.destination(o[0], td == Type::Pred ? 0 : registerSize(td), i.d))
      return false;
    b.emit(i);
    return true;
  };
  if (base == "shf") {
    bool left = m.take("l");
    if (!left && !m.take("r"))
      return false;
    bool wrap = m.take("wrap");
    if (!wrap && !m.take("clamp"))
      return false;
    if (m.type() != Type::B32)
      return false;
    i.run = left ? (wrap ? funnel<true, true> : funnel<true, false>)
                 : (wrap ? funnel<false, true> : funnel<false, false>);
    return finish(4, Type::B32, Type::B32, Type::U32, Type::B32);
  }
  if (base == "lop3") {
    if (m.type() != Type::B32 || !b.want(5, 5) || o[4].kind != Operand::Int || o[4].bits > 255)
      return false;
    i.run = lop3;
    i.imm = o[4].bits;
    if (!b.source(o[1], 4, i.a) || !b.source(o[2], 4, i.b) || !b.source(o[3], 4, i.c) ||
        !b.destination(o[0], 4, i.d))
      return false;
    b.emit(i);
    return true;
  }
  if (base == "prmt") {
    if (m.type() != Type::B32)
      return false;
    i.run = prmt;
    i.sub = 1 + m.oneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    return finish(4, Type::B32, Type::B32, Type::B32, Type::B32);
  }
  if (base == "dp4a" || base == "dp2a") {
    i.cls = Class::Integer;
    bool four = base == "dp4a";
    if (!four) {
      bool hi = m.take("hi");
      if (!hi && !m.take("lo"))
        return false;
      i.sub = hi ? 2 : 0;
    }
    Type ta = m.type(), tb = m.type();
    if ((ta != Type::U32 && ta != Type::S32) || (tb != Type::U32 && tb != Type::S32))
      return false;
    bool sa = ta == Type::S32, sb = tb == Type::S32;
    i.run = four ? (sa ? (sb ? dp4a<true, true> : dp4a<true, false>)
                       : (sb ? dp4a<false, true> : dp4a<false, false>))
                 : (sa ? (sb ? dp2a<true, true> : dp2a<true, false>)
                       : (sb ? dp2a<false, true> : dp2a<false, false>));
    return finish(4, Type::B32, Type::B32, Type::B32, Type::B32);
  }
  if (base == "bmsk") {
    bool wrap = m.take("wrap");
    if ((!wrap && !m.take("clamp")) || m.type() != Type::B32)
      return false;
    i.run = bmsk;
    i.sub = wrap;
    return finish(3, Type::U32, Type::U32, Type::None, Type::B32);
  }
  bool amount = m.take("shiftamt");
  Type type = m.type();
  if (type == Type::Pred) {
    i.run = base == "and"   ? predicateBinary<And>
            : base == "or"  ? predicateBinary<Or>
            : base == "xor" ? predicateBinary<Xor>
            : base == "not" ? predicateNot
                            : nullptr;
    return finish(base == "not" ? 2 : 3, type, type, type, type);
  }
  unsigned operands = 3;
  Type second = type, third = type, result = type;
  bool known = withInteger(type, [&](auto v) {
    using T = decltype(v);
    using U = std::make_unsigned_t<T>;
    if (base == "and")
      i.run = binary<U, And>;
    else if (base == "or")
      i.run = binary<U, Or>;
    else if (base == "xor")
      i.run = binary<U, Xor>;
    else if (base == "not")
      i.run = unary<U, Not>, operands = 2;
    else if (base == "cnot")
      i.run = unary<U, Cnot>, operands = 2;
    else if (base == "shl")
      i.run = shift<T, true>, second = Type::U32;
    else if (base == "shr")
      i.run = shift<T, false>, second = Type::U32;
    if constexpr (sizeof(T) >= 4) {
      if (base == "bfe")
        i.run = extract<T>, operands = 4, second = third = Type::U32;
      else if (base == "bfi")
        i.run = insert<U>, operands = 5, third = Type::U32;
      else if (base == "brev")
        i.run = unary<U, Brev>, operands = 2;
      else if (base == "popc")
        i.run = popc<U>, operands = 2, result = Type::U32;
      else if (base == "clz")
        i.run = clz<U>, operands = 2, result = Type::U32;
      else if (base == "bfind")
        i.run = amount ? bfind<T, true> : bfind<T, false>, operands = 2, result = Type::U32;
    }
  });
  return known && finish(operands, type, second, third, result, Type::U32);
}

} // namespace llmc::ptx
