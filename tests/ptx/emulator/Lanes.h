//===- Lanes.h - operations on the lanes of a warp --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_LANES_H
#define LLMC_TESTS_PTX_EMULATOR_LANES_H

#include "tests/ptx/emulator/Machine.h"

#include <cstring>

namespace llmc::ptx {

/// A register's 32 lanes.
template <class T> inline T *reg(const Warp &w, uint32_t slot) {
  return reinterpret_cast<T *>(w.regs + slot);
}
inline uint32_t predicateOf(const Warp &w, uint32_t slot) { return *reg<uint32_t>(w, slot); }
inline void setPredicate(Warp &w, uint32_t slot, uint32_t mask, uint32_t bits) {
  uint32_t &p = *reg<uint32_t>(w, slot);
  p = (p & ~mask) | (bits & mask);
}

/// Stores f(lane) to the lanes of `mask`. `f` is called for all lanes: it has no effects and is
/// defined for every input.
template <class T, class F> inline void lanes(Warp &w, uint32_t slot, uint32_t mask, F f) {
  T *__restrict d = reg<T>(w, slot);
  T value[32];
  for (unsigned l = 0; l < 32; ++l)
    value[l] = f(l);
  if (mask == ~0u) {
    memcpy(d, value, sizeof value);
    return;
  }
  for (unsigned l = 0; l < 32; ++l)
    d[l] = mask >> l & 1 ? value[l] : d[l];
}

/// The same for a predicate.
template <class F> inline void lanesPredicate(Warp &w, uint32_t slot, uint32_t mask, F f) {
  uint32_t bits = 0;
  for (unsigned l = 0; l < 32; ++l)
    bits |= uint32_t(bool(f(l))) << l;
  setPredicate(w, slot, mask, bits);
}

template <class T, class Op> void unary(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  lanes<T>(w, i.d, mask, [=](unsigned l) { return Op()(a[l]); });
}
template <class T, class Op> void binary(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b);
  lanes<T>(w, i.d, mask, [=](unsigned l) { return Op()(a[l], b[l]); });
}
template <class T, class Op> void ternary(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a), *b = reg<T>(w, i.b), *c = reg<T>(w, i.c);
  lanes<T>(w, i.d, mask, [=](unsigned l) { return Op()(a[l], b[l], c[l]); });
}

/// Calls f with a value of the integer type; false for others.
template <class F> bool withInteger(Type type, F f) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    f(uint16_t());
    return true;
  case Type::S16:
    f(int16_t());
    return true;
  case Type::U32:
  case Type::B32:
    f(uint32_t());
    return true;
  case Type::S32:
    f(int32_t());
    return true;
  case Type::U64:
  case Type::B64:
    f(uint64_t());
    return true;
  case Type::S64:
    f(int64_t());
    return true;
  default:
    return false;
  }
}
/// The same for sizes of registers, as unsigned types.
template <class F> bool withSize(unsigned size, F f) {
  switch (size) {
  case 2:
    f(uint16_t());
    return true;
  case 4:
    f(uint32_t());
    return true;
  case 8:
    f(uint64_t());
    return true;
  default:
    return false;
  }
}

Handler narrowing(unsigned from, unsigned to);
Handler widening(unsigned from, unsigned to, bool isSigned);
void invertPredicate(Warp &, const Inst &, uint32_t);
void nothing(Warp &, const Inst &, uint32_t);
void branchLanes(Warp &, const Inst &, uint32_t);
void branchTable(Warp &, const Inst &, uint32_t);
void exitLanes(Warp &, const Inst &, uint32_t);
void trapLanes(Warp &, const Inst &, uint32_t);

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_LANES_H
