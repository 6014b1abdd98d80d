//===- WarpOps.cpp - shuffles, votes and reductions within a warp ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Collective.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

#include <bit>

namespace llmc::ptx {

bool converged(Warp &w, uint32_t members, uint32_t mask) {
  uint32_t wanted = members & w.live;
  if (mask & ~members) {
    w.fail(ErrorKind::Divergent, std::countr_zero(mask & ~members),
           "executes a collective whose mask 0x%x does not name its lane", members);
    return false;
  }
  if ((mask & wanted) == wanted)
    return true;
  w.stop = Warp::Wait;
  return false;
}

bool memberMask(Warp &w, uint32_t slot, uint32_t mask, uint32_t &members) {
  const uint32_t *m = reg<uint32_t>(w, slot);
  members = m[std::countr_zero(mask)];
  return converged(w, members, mask);
}

namespace {
enum Shuffle { Up, Down, Bfly, Idx };
// d, e: value and predicate; a, b, c: value, lane, clamp; vec: member mask
template <class T, unsigned mode> void shuffle(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t members;
  if (!memberMask(w, i.vec, mask, members))
    return;
  T value[32];
  memcpy(value, reg<T>(w, i.a), sizeof value);
  const uint32_t *b = reg<uint32_t>(w, i.b), *c = reg<uint32_t>(w, i.c);
  T result[32];
  uint32_t inside = 0;
  for (unsigned l = 0; l < 32; ++l) {
    unsigned lane = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    unsigned maxLane = (l & segment) | (clamp & ~segment), minLane = l & segment;
    int j;
    bool p;
    switch (mode) {
    case Up:
      j = int(l) - int(lane);
      p = j >= int(maxLane);
      break;
    case Down:
      j = l + lane;
      p = j <= int(maxLane);
      break;
    case Bfly:
      j = l ^ lane;
      p = j <= int(maxLane);
      break;
    default:
      j = minLane | (lane & ~segment);
      p = j <= int(maxLane);
      break;
    }
    if (!p)
      j = l;
    if (!(mask >> j & 1) && (mask >> l & 1)) {
      w.fail(ErrorKind::Divergent, l, "reads the register of lane %d, which does not take part", j);
      return;
    }
    result[l] = value[j];
    inside |= uint32_t(p) << l;
  }
  lanes<T>(w, i.d, mask, [&](unsigned l) { return result[l]; });
  setPredicate(w, i.e, mask, inside);
}

// Votes: a is the predicate, b the member mask.
enum Vote { All, Any, Uni, Ballot };
template <unsigned mode> void vote(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t members;
  if (!memberMask(w, i.b, mask, members))
    return;
  uint32_t bits = predicateOf(w, i.a) & mask;
  if (mode == Ballot) {
    lanes<uint32_t>(w, i.d, mask, [=](unsigned) { return bits; });
    return;
  }
  bool value = mode == All ? bits == mask : mode == Any ? bits != 0 : bits == mask || !bits;
  setPredicate(w, i.d, mask, value ? ~0u : 0);
}

template <class T, bool all> void match(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t members;
  if (!memberMask(w, i.b, mask, members))
    return;
  const T *a = reg<T>(w, i.a);
  uint32_t result[32] = {};
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned k = 0; k < 32; ++k)
      result[l] |= uint32_t((mask >> k & 1) && a[k] == a[l]) << k;
  bool same = result[std::countr_zero(mask)] == mask;
  if (all) {
    lanes<uint32_t>(w, i.d, mask, [&](unsigned) { return same ? mask : 0; });
    setPredicate(w, i.e, mask, same ? ~0u : 0);
  } else {
    lanes<uint32_t>(w, i.d, mask, [&](unsigned l) { return result[l]; });
  }
}

enum Reduction { RedAdd, RedMin, RedMax, RedAnd, RedOr, RedXor };
template <class T> void redux(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t members;
  if (!memberMask(w, i.b, mask, members))
    return;
  const T *a = reg<T>(w, i.a);
  T value = a[std::countr_zero(mask)];
  for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
    T x = a[std::countr_zero(rest)];
    switch (i.sub) {
    case RedAdd:
      value = T(uint32_t(value) + uint32_t(x));
      break;
    case RedMin:
      value = std::min(value, x);
      break;
    case RedMax:
      value = std::max(value, x);
      break;
    case RedAnd:
      value = T(uint32_t(value) & uint32_t(x));
      break;
    case RedOr:
      value = T(uint32_t(value) | uint32_t(x));
      break;
    default:
      value = T(uint32_t(value) ^ uint32_t(x));
      break;
    }
  }
  lanes<T>(w, i.d, mask, [=](unsigned) { return value; });
}

void activeMask(Warp &w, const Inst &i, uint32_t mask) {
  lanes<uint32_t>(w, i.d, mask, [=](unsigned) { return mask; });
}
void elect(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t members;
  if (!memberMask(w, i.b, mask, members))
    return;
  unsigned leader = std::countr_zero(mask);
  lanes<uint32_t>(w, i.d, mask, [=](unsigned) { return leader; });
  setPredicate(w, i.e, mask, 1u << leader);
}
} // namespace

bool decodeWarp(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  Inst i = b.make(Class::Warp);
  if (base == "activemask") {
    if (m.type() != Type::B32 || !b.want(1, 1) || !b.destination(o[0], 4, i.d))
      return false;
    i.run = activeMask;
    b.emit(i);
    return true;
  }
  if (!m.take("sync"))
    return b.fail("is not supported without .sync");
  bool two = !o.empty() && o[0].kind == Operand::Pair;
  const Operand *first = two ? &o[0].elements[0] : o.empty() ? nullptr : &o[0];
  if (!first)
    return false;
  if (base == "shfl") {
    int mode = m.oneOf({"up", "down", "bfly", "idx"});
    if (mode < 0 || m.type() != Type::B32 || !b.want(5, 5))
      return false;
    static const Handler table[] = {shuffle<uint32_t, Up>, shuffle<uint32_t, Down>,
                                    shuffle<uint32_t, Bfly>, shuffle<uint32_t, Idx>};
    i.run = table[mode];
    i.e = b.scratch(0);
    if (!b.source(o[1], 4, i.a) || !b.source(o[2], 4, i.b) || !b.source(o[3], 4, i.c) ||
        !b.source(o[4], 4, i.vec) || !b.destination(*first, 4, i.d) ||
        (two && !b.destination(o[0].elements[1], 0, i.e)))
      return false;
  } else if (base == "vote") {
    int mode = m.oneOf({"all", "any", "uni", "ballot"});
    Type type = m.type();
    if (mode < 0 || type != (mode == Ballot ? Type::B32 : Type::Pred) || !b.want(3, 3))
      return false;
    static const Handler table[] = {vote<All>, vote<Any>, vote<Uni>, vote<Ballot>};
    i.run = table[mode];
    if (!b.predicate(o[1], i.a) || !b.source(o[2], 4, i.b) ||
        !b.destination(o[0], mode == Ballot ? 4 : 0, i.d))
      return false;
  } else if (base == "match") {
    bool all = m.take("all");
    if (!all && !m.take("any"))
      return false;
    Type type = m.type();
    if ((type != Type::B32 && type != Type::B64) || !b.want(3, 3))
      return false;
    i.run = type == Type::B32 ? (all ? match<uint32_t, true> : match<uint32_t, false>)
                              : (all ? match<uint64_t, true> : match<uint64_t, false>);
    i.e = b.scratch(0);
    if (!b.source(o[1], type, i.a) || !b.source(o[2], 4, i.b) || !b.destination(*first, 4, i.d) ||
        (two && !b.destination(o[0].elements[1], 0, i.e)))
      return false;
  } else if (base == "redux") {
    int op = m.oneOf({"add", "min", "max", "and", "or", "xor"});
    Type type = m.type();
    if (op < 0 || !b.want(3, 3) ||
        (type != Type::U32 && type != Type::S32 && !(type == Type::B32 && op >= RedAnd)))
      return false;
    i.run = type == Type::S32 ? redux<int32_t> : redux<uint32_t>;
    i.sub = op;
    if (!b.source(o[1], 4, i.a) || !b.source(o[2], 4, i.b) || !b.destination(o[0], 4, i.d))
      return false;
  } else { // elect.sync d|p, mask
    if (!b.want(2, 2) || !two || !b.source(o[1], 4, i.b) || !b.destination(*first, 4, i.d) ||
        !b.destination(o[0].elements[1], 0, i.e))
      return false;
    i.run = elect;
  }
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
