//===- Compare.cpp - comparisons and selection ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

namespace llmc::ptx {

namespace {
enum Relation { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
const char *const relations[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                 "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <class T, unsigned r> bool compare(T a, T b) {
  switch (r) {
  case Eq:
    return a == b;
  case Ne:
    return a < b || a > b;
  case Lt:
    return a < b;
  case Le:
    return a <= b;
  case Gt:
    return a > b;
  case Ge:
    return a >= b;
  // True also if one of them is a NaN.
  case Equ:
    return !(a < b || a > b);
  case Neu:
    return !(a == b);
  case Ltu:
    return !(a >= b);
  case Leu:
    return !(a > b);
  case Gtu:
    return !(a <= b);
  case Geu:
    return !(a < b);
  case Num:
    return a == a && b == b;
  default:
    return a != a || b != b;
  }
}

// Values of 16 bits are compared as f32.
struct HalfValue {
  static float load(uint16_t h) { return halfToFloat(h); }
};
struct BF16Value {
  static float load(uint16_t h) { return bf16ToFloat(h); }
};
struct Flushed {
  static float load(float x) { return flush(x); }
};
template <class T> struct Plain {
  static T load(T x) { return x; }
};

/// Comparison bits of all lanes.
template <class T, class V, unsigned r> uint32_t bitsOf(const T *a, const T *b) {
  uint32_t bits = 0;
  for (unsigned l = 0; l < 32; ++l)
    bits |= uint32_t(compare<decltype(V::load(a[l])), r>(V::load(a[l]), V::load(b[l]))) << l;
  return bits;
}

enum Combine { NoCombine, CombineAnd, CombineOr, CombineXor };
uint32_t combine(unsigned how, uint32_t bits, uint32_t c) {
  return how == CombineAnd   ? bits & c
         : how == CombineOr  ? bits | c
         : how == CombineXor ? bits ^ c
                             : bits;
}

// d: result, e: its counterpart. sub: how the predicate in c is combined.
template <class T, class V, unsigned r> void setp(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t bits = bitsOf<T, V, r>(reg<T>(w, i.a), reg<T>(w, i.b));
  if (!i.sub) {
    setPredicate(w, i.d, mask, bits);
    if (i.count == 2)
      setPredicate(w, i.e, mask, ~bits);
    return;
  }
  uint32_t c = predicateOf(w, i.c);
  setPredicate(w, i.d, mask, combine(i.sub, bits, c));
  if (i.count == 2)
    setPredicate(w, i.e, mask, combine(i.sub, ~bits, c));
}

// imm: what is stored for true.
template <class T, class V, unsigned r> void set(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t bits = bitsOf<T, V, r>(reg<T>(w, i.a), reg<T>(w, i.b));
  if (i.sub)
    bits = combine(i.sub, bits, predicateOf(w, i.c));
  uint32_t yes = i.imm;
  if (i.count == 2)
    lanes<uint16_t>(w, i.d, mask, [=](unsigned l) { return bits >> l & 1 ? uint16_t(yes) : 0; });
  else
    lanes<uint32_t>(w, i.d, mask, [=](unsigned l) { return bits >> l & 1 ? yes : 0; });
}

/// Of a pair: the low half's predicate in d, the high half's in e; or both halves as values.
template <class V, unsigned r> void setPair(Warp &w, const Inst &i, uint32_t mask) {
  const uint16_t *a = reg<uint16_t>(w, i.a), *b = reg<uint16_t>(w, i.b);
  uint32_t bits[2] = {0, 0};
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned h = 0; h < 2; ++h)
      bits[h] |= uint32_t(compare<float, r>(V::load(a[2 * l + h]), V::load(b[2 * l + h]))) << l;
  if (i.sub)
    for (uint32_t &half : bits)
      half = combine(i.sub, half, predicateOf(w, i.c));
  if (i.count == 1) {
    uint32_t yes = i.imm;
    lanes<uint32_t>(w, i.d, mask, [=](unsigned l) {
      return (bits[0] >> l & 1 ? yes & 0xffff : 0) | (bits[1] >> l & 1 ? yes & 0xffff0000 : 0);
    });
    return;
  }
  setPredicate(w, i.d, mask, bits[0]);
  setPredicate(w, i.e, mask, bits[1]);
}

template <template <class, class, unsigned> class F, class T, class V, size_t... r>
Handler ofRelation(unsigned relation, std::index_sequence<r...>) {
  static const Handler table[] = {F<T, V, unsigned(r)>::run...};
  return table[relation];
}
template <class T, class V, unsigned r> struct Setp {
  static void run(Warp &w, const Inst &i, uint32_t m) { setp<T, V, r>(w, i, m); }
};
template <class T, class V, unsigned r> struct Set {
  static void run(Warp &w, const Inst &i, uint32_t m) { set<T, V, r>(w, i, m); }
};
template <class T, class V, unsigned r> struct SetPair {
  static void run(Warp &w, const Inst &i, uint32_t m) { setPair<V, r>(w, i, m); }
};

template <template <class, class, unsigned> class F>
Handler ofType(Type type, unsigned relation, bool ftz) {
  std::make_index_sequence<14> all;
  switch (type) {
  case Type::B16:
  case Type::U16:
    return ofRelation<F, uint16_t, Plain<uint16_t>>(relation, all);
  case Type::S16:
    return ofRelation<F, int16_t, Plain<int16_t>>(relation, all);
  case Type::B32:
  case Type::U32:
    return ofRelation<F, uint32_t, Plain<uint32_t>>(relation, all);
  case Type::S32:
    return ofRelation<F, int32_t, Plain<int32_t>>(relation, all);
  case Type::B64:
  case Type::U64:
    return ofRelation<F, uint64_t, Plain<uint64_t>>(relation, all);
  case Type::S64:
    return ofRelation<F, int64_t, Plain<int64_t>>(relation, all);
  case Type::F32:
    return ftz ? ofRelation<F, float, Flushed>(relation, all)
               : ofRelation<F, float, Plain<float>>(relation, all);
  case Type::F64:
    return ofRelation<F, double, Plain<double>>(relation, all);
  case Type::F16:
    return ofRelation<F, uint16_t, HalfValue>(relation, all);
  case Type::BF16:
    return ofRelation<F, uint16_t, BF16Value>(relation, all);
  default:
    return nullptr;
  }
}

template <class T> void selp(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b);
  uint32_t c = predicateOf(w, i.c);
  lanes<T>(w, i.d, mask, [=](unsigned l) { return c >> l & 1 ? a[l] : b[l]; });
}
template <class T, class C> void slct(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b);
  const C *c = reg<C>(w, i.c);
  lanes<T>(w, i.d, mask, [=](unsigned l) { return c[l] >= 0 ? a[l] : b[l]; });
}
} // namespace

static bool isPair(Type t) { return t == Type::F16x2 || t == Type::BF16x2; }

bool decodeCompare(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  Inst i = b.make(Class::Compare);
  if (base == "selp" || base == "slct") {
    m.take("ftz");
    Type type = m.type();
    if (type == Type::None || type == Type::Pred || !b.want(4, 4))
      return false;
    if (base == "selp") {
      if (!withSize(registerSize(type), [&](auto v) { i.run = selp<decltype(v)>; }) ||
          !b.predicate(o[3], i.c))
        return false;
    } else {
      Type select = m.type();
      if (select != Type::S32 && select != Type::F32)
        return false;
      if (!withSize(registerSize(type),
                    [&](auto v) {
                      i.run = select == Type::S32 ? slct<decltype(v), int32_t>
                                                  : slct<decltype(v), float>;
                    }) ||
          !b.source(o[3], 4, i.c))
        return false;
    }
    if (!b.source(o[1], type, i.a) || !b.source(o[2], type, i.b) ||
        !b.destination(o[0], registerSize(type), i.d))
      return false;
    b.emit(i);
    return true;
  }
  int relation = m.oneOf(relations);
  // Unsigned comparisons may also be written lo, ls, hi, hs.
  if (relation < 0) {
    static const Relation same[] = {Lt, Le, Gt, Ge};
    int other = m.oneOf({"lo", "ls", "hi", "hs"});
    if (other < 0)
      return false;
    relation = same[other];
  }
  i.sub = 1 + m.oneOf({"and", "or", "xor"});
  bool ftz = m.take("ftz");
  bool isSet = base == "set";
  Type result = isSet ? m.type() : Type::Pred;
  Type type = m.type();
  bool pair = isPair(type);
  if (type == Type::None || !b.want(i.sub ? 4 : 3, i.sub ? 4 : 3))
    return false;
  bool floating = isFloat(type);
  if (!floating && relation >= Equ)
    return false;
  // Of floating-point numbers ne is false for a NaN, of integers there is none.
  if (!b.source(o[1], type, i.a) || !b.source(o[2], type, i.b) ||
      (i.sub && !b.predicate(o[3], i.c)))
    return false;
  if (pair) {
    i.run =
        type == Type::F16x2
            ? ofRelation<SetPair, uint16_t, HalfValue>(relation, std::make_index_sequence<14>())
            : ofRelation<SetPair, uint16_t, BF16Value>(relation, std::make_index_sequence<14>());
  } else {
    i.run = isSet ? ofType<Set>(type, relation, ftz) : ofType<Setp>(type, relation, ftz);
  }
  if (!i.run)
    return false;
  if (isSet) {
    switch (result) {
    case Type::U32:
    case Type::S32:
      i.imm = ~0u;
      break;
    case Type::F32:
      i.imm = asBits(1.0f);
      break;
    case Type::F16:
    case Type::F16x2:
      i.imm = 0x3c003c00;
      break;
    case Type::BF16:
    case Type::BF16x2:
      i.imm = 0x3f803f80;
      break;
    case Type::U16:
    case Type::S16:
      i.imm = 0xffff;
      break;
    default:
      return false;
    }
    if (pair != isPair(result) && !(pair && (result == Type::U32 || result == Type::S32)))
      return false;
    i.count = pair || registerSize(result) == 4 ? 1 : 2;
    if (!b.destination(o[0], registerSize(result), i.d))
      return false;
    b.emit(i);
    return true;
  }
  bool two = o[0].kind == Operand::Pair;
  if (pair && !two)
    return b.fail("wants two predicates");
  i.count = two ? 2 : 1;
  if (!b.destination(two ? o[0].elements[0] : o[0], 0, i.d) ||
      (two && !b.destination(o[0].elements[1], 0, i.e)))
    return false;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
