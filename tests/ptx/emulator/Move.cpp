//===- Move.cpp - moves and conversions of addresses ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

namespace llmc::ptx {

namespace {
template <class T> void move(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  lanes<T>(w, i.d, mask, [=](unsigned l) { return a[l]; });
}
void movePredicate(Warp &w, const Inst &i, uint32_t mask) {
  setPredicate(w, i.d, mask, predicateOf(w, i.a));
}

/// Two or four narrow values into a wide one; the slots are in the pool.
template <class Wide, class Narrow> void pack(Warp &w, const Inst &i, uint32_t mask) {
  constexpr unsigned n = sizeof(Wide) / sizeof(Narrow);
  const uint32_t *slots = w.program->pool.data() + i.vec;
  const Narrow *parts[n];
  for (unsigned k = 0; k < n; ++k)
    parts[k] = reg<Narrow>(w, slots[k]);
  lanes<Wide>(w, i.d, mask, [=](unsigned l) {
    Wide value = 0;
    for (unsigned k = 0; k < n; ++k)
      value |= Wide(parts[k][l]) << (k * sizeof(Narrow) * 8);
    return value;
  });
}
template <class Wide, class Narrow> void unpack(Warp &w, const Inst &i, uint32_t mask) {
  constexpr unsigned n = sizeof(Wide) / sizeof(Narrow);
  const uint32_t *slots = w.program->pool.data() + i.vec;
  Wide value[32];
  memcpy(value, reg<Wide>(w, i.a), sizeof value);
  for (unsigned k = 0; k < n; ++k)
    lanes<Narrow>(w, slots[k], mask,
                  [&](unsigned l) { return Narrow(value[l] >> (k * sizeof(Narrow) * 8)); });
}

// cvta: sub is the window's number; to the space the low 32 bits remain.
void toGeneric(Warp &w, const Inst &i, uint32_t mask) {
  const uint64_t *a = reg<uint64_t>(w, i.a);
  uint64_t window = uint64_t(i.sub) << 56;
  lanes<uint64_t>(w, i.d, mask, [=](unsigned l) { return a[l] + window; });
}
void toSpace(Warp &w, const Inst &i, uint32_t mask) {
  const uint64_t *a = reg<uint64_t>(w, i.a);
  uint64_t window = uint64_t(i.sub) << 56;
  lanes<uint64_t>(w, i.d, mask, [=](unsigned l) { return a[l] - window; });
}
void isSpace(Warp &w, const Inst &i, uint32_t mask) {
  const uint64_t *a = reg<uint64_t>(w, i.a);
  uint64_t window = uint64_t(i.sub) << 56;
  lanesPredicate(w, i.d, mask, [=](unsigned l) { return (a[l] & windowMask) == window; });
}
void isGlobal(Warp &w, const Inst &i, uint32_t mask) {
  const uint64_t *a = reg<uint64_t>(w, i.a);
  lanesPredicate(w, i.d, mask, [=](unsigned l) { return spaceOf(a[l]) == Space::Global; });
}

template <class T> void activeMask(Warp &w, const Inst &i, uint32_t mask) {
  T value = T(mask);
  lanes<T>(w, i.d, mask, [=](unsigned) { return value; });
}
/// Clocks count instructions: they only grow.
template <class T> void clock(Warp &w, const Inst &i, uint32_t mask) {
  static uint64_t ticks = 0;
  T value = T(++ticks);
  lanes<T>(w, i.d, mask, [=](unsigned) { return value; });
}

template <class From, class To> void copyLow(Warp &w, const Inst &i, uint32_t mask) {
  const From *a = reg<From>(w, i.a);
  lanes<To>(w, i.d, mask, [=](unsigned l) { return To(a[l]); });
}
} // namespace

Handler narrowing(unsigned from, unsigned to) {
  if (from == 4)
    return copyLow<uint32_t, uint16_t>;
  return to == 2 ? copyLow<uint64_t, uint16_t> : copyLow<uint64_t, uint32_t>;
}
Handler widening(unsigned from, unsigned to, bool isSigned) {
  if (from == 4)
    return isSigned ? copyLow<int32_t, int64_t> : copyLow<uint32_t, uint64_t>;
  if (to == 4)
    return isSigned ? copyLow<int16_t, int32_t> : copyLow<uint16_t, uint32_t>;
  return isSigned ? copyLow<int16_t, int64_t> : copyLow<uint16_t, uint64_t>;
}
void invertPredicate(Warp &w, const Inst &i, uint32_t mask) {
  setPredicate(w, i.d, mask, ~predicateOf(w, i.a));
}
void nothing(Warp &, const Inst &, uint32_t) {}

static bool decodeMov(Builder &b, Modifiers &m) {
  Type type = m.type();
  const auto &o = b.insn->operands;
  if (!b.wantType(type) || !b.want(2, 2))
    return false;
  Inst i = b.make(Class::Move);
  if (type == Type::Pred) {
    i.run = movePredicate;
    if (!b.predicate(o[1], i.a) || !b.destination(o[0], 0, i.d))
      return false;
    b.emit(i);
    return true;
  }
  unsigned size = registerSize(type);
  bool packs = o[1].kind == Operand::Vector, unpacks = o[0].kind == Operand::Vector;
  if (packs || unpacks) {
    const auto &parts = packs ? o[1].elements : o[0].elements;
    size_t n = parts.size();
    if ((n != 2 && n != 4) || size / n < 2 || size % n || packs == unpacks)
      return b.fail("packs a number of values that does not fit");
    unsigned part = size / n;
    i.vec = b.program.pool.size();
    i.run = size == 4   ? (packs ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>)
            : part == 4 ? (packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>)
                        : (packs ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>);
    for (const Operand &element : parts) {
      uint32_t slot;
      if (packs ? !b.source(element, part, slot) : !b.destination(element, part, slot))
        return false;
      b.program.pool.push_back(slot);
    }
    if (packs ? !b.destination(o[0], size, i.d) : !b.source(o[1], size, i.a))
      return false;
    b.emit(i);
    return true;
  }
  if (!b.destination(o[0], size, i.d))
    return false;
  if (o[1].kind == Operand::Special) {
    std::string_view name = o[1].name;
    if (name == "%clock" || name == "%clock_hi" || name == "%clock64" || name == "%globaltimer" ||
        name == "%globaltimer_lo" || name == "%globaltimer_hi") {
      i.run = size == 8 ? clock<uint64_t> : clock<uint32_t>;
      b.emit(i);
      return true;
    }
  }
  if (!withSize(size, [&](auto v) { i.run = move<decltype(v)>; }) || !b.source(o[1], type, i.a))
    return false;
  b.emit(i);
  return true;
}

bool decodeMove(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  if (base == "mov")
    return decodeMov(b, m);
  if (base == "mapa")
    return b.fail("is for clusters, which are not supported");
  const auto &o = b.insn->operands;
  bool to = m.take("to");
  m.takePrefix("shared::");
  m.takePrefix("param::");
  int space = m.oneOf({"global", "shared", "local", "param", "const"});
  for (std::string_view name : b.insn->modifiers) {
    if (name == "shared::cta")
      space = 1;
    if (name == "param::entry")
      space = 3;
    if (name == "shared::cluster")
      return b.fail("is for clusters, which are not supported");
  }
  if (space < 0 || !b.want(2, 2))
    return false;
  Inst i = b.make(Class::Integer);
  i.sub = space == 4 ? 0 : space;
  if (base == "isspacep") {
    i.run = space == 0 ? isGlobal : isSpace;
    if (space == 4)
      return b.fail("of const is not supported");
    if (!b.source(o[1], 8, i.a) || !b.destination(o[0], 0, i.d))
      return false;
  } else {
    Type type = m.type();
    if (type != Type::U64)
      return false;
    i.run = to ? toSpace : toGeneric;
    if (!b.source(o[1], 8, i.a) || !b.destination(o[0], 8, i.d))
      return false;
  }
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
