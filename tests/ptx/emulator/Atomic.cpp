//===- Atomic.cpp - atomic operations -------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

#include <bit>

namespace llmc::ptx {

namespace {
enum Op { OpAnd, OpOr, OpXor, OpCas, OpExch, OpAdd, OpInc, OpDec, OpMin, OpMax };
const char *const ops[] = {"and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"};
enum Order { orderAcquire = 1, orderRelease = 2, orderReduction = 4 };

template <class F> uint64_t halves(uint64_t old, uint64_t b, unsigned n, F f) {
  uint64_t out = 0;
  for (unsigned k = 0; k < n; ++k)
    out |= uint64_t(f(uint16_t(old >> 16 * k), uint16_t(b >> 16 * k))) << 16 * k;
  return out;
}

uint64_t apply(unsigned op, Type type, uint64_t old, uint64_t b, uint64_t c) {
  switch (op) {
  case OpAnd:
    return old & b;
  case OpOr:
    return old | b;
  case OpXor:
    return old ^ b;
  case OpCas:
    return old == b ? c : old;
  case OpExch:
    return b;
  case OpInc:
    return old >= b ? 0 : old + 1;
  case OpDec:
    return old == 0 || old > b ? b : old - 1;
  case OpAdd:
    switch (type) {
    case Type::F32:
      // Atomic additions of f32 flush subnormal numbers in global memory only; here never.
      return asBits(canonical(asFloat(uint32_t(old)) + asFloat(uint32_t(b))));
    case Type::F64:
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    case Type::F16:
    case Type::F16x2:
      return halves(old, b, type == Type::F16 ? 1 : 2, [](uint16_t x, uint16_t y) {
        return floatToHalf(halfToFloat(x) + halfToFloat(y));
      });
    case Type::BF16:
    case Type::BF16x2:
      return halves(old, b, type == Type::BF16 ? 1 : 2, [](uint16_t x, uint16_t y) {
        return floatToBF16(bf16ToFloat(x) + bf16ToFloat(y));
      });
    default:
      return old + b;
    }
  default: {
    bool less = type == Type::S32   ? int32_t(b) < int32_t(old)
                : type == Type::S64 ? int64_t(b) < int64_t(old)
                                    : b < old;
    return less == (op == OpMin) ? b : old;
  }
  }
}

uint64_t read(const Warp &w, uint32_t slot, unsigned size, unsigned lane) {
  return size == 2   ? reg<uint16_t>(w, slot)[lane]
         : size == 4 ? reg<uint32_t>(w, slot)[lane]
                     : reg<uint64_t>(w, slot)[lane];
}

// imm: op | type << 8; sub: order.
void atomic(Warp &w, const Inst &i, uint32_t mask) {
  Machine &m = *w.machine;
  unsigned op = i.imm & 255;
  Type type = Type(i.imm >> 8);
  unsigned size = sizeOf(type);
  m.counters.atomics += std::popcount(mask);
  m.progress(*w.cta);
  unsigned first = m.options.checkRaces ? unsigned(m.random() % 32) : 0;
  for (unsigned k = 0; k < 32; ++k) {
    unsigned l = (first + k) % 32;
    if (!(mask >> l & 1))
      continue;
    uint64_t address = addressOf(w, i, l);
    Space space = i.space == Space::Generic ? spaceOf(address) : i.space;
    if (m.options.checkRaces) {
      uint64_t key = space == Space::Shared
                         ? sharedWindow | uint64_t(w.cta->linear) << 20 | (address & 0xfffff)
                         : address;
      SharedKnowledge &there = m.atomicKnowledge[key];
      if (i.sub & orderAcquire)
        acquire(w, l, there);
      else if (!(i.sub & orderReduction))
        joinInto(w.acquired[l], there);
      joinInto(there, i.sub & orderRelease ? publish(w, l) : w.fenced[l]);
    }
    uint8_t *p = access(w, i, l, i.space, address, size, accessRead | accessWrite | accessStrong);
    if (!p)
      return;
    uint64_t old = 0;
    memcpy(&old, p, size);
    uint64_t value =
        apply(op, type, old, read(w, i.b, size, l), op == OpCas ? read(w, i.c, size, l) : 0);
    memcpy(p, &value, size);
    if (i.sub & orderReduction)
      continue;
    if (size == 2)
      reg<uint16_t>(w, i.d)[l] = uint16_t(old);
    else if (size == 4)
      reg<uint32_t>(w, i.d)[l] = uint32_t(old);
    else
      reg<uint64_t>(w, i.d)[l] = old;
  }
}
} // namespace

bool decodeAtomic(Builder &b, Modifiers &m) {
  const auto &o = b.insn->operands;
  bool isRed = b.insn->base() == "red";
  if (m.take("async"))
    return b.fail("is not supported with .async");
  Inst i = b.make(Class::Atomic, atomic);
  i.strong = true;
  bool both = m.take("acq_rel");
  if (m.take("acquire") || both)
    i.sub |= orderAcquire;
  if (m.take("release") || both)
    i.sub |= orderRelease;
  m.take("relaxed");
  for (const char *scope : {"cta", "cluster", "gpu", "sys"})
    m.take(scope);
  if (m.take("global"))
    i.space = Space::Global;
  else if (m.take("shared") || m.take("shared::cta"))
    i.space = Space::Shared;
  m.take("noftz");
  m.takePrefix("L2::");
  int op = m.oneOf(ops);
  Type type = m.type();
  if (op < 0 || !b.wantType(type))
    return false;
  bool floating = isFloat(type);
  bool bitwise = op <= OpXor || op == OpExch || op == OpCas;
  if (floating && (op != OpAdd || type == Type::TF32 || sizeOf(type) == 1))
    return false;
  if (!floating && sizeOf(type) < 4 && op != OpCas)
    return false;
  if (bitwise && isSigned(type) && op != OpExch && op != OpCas)
    return false;
  if (sizeOf(type) > 8 || sizeOf(type) < 2)
    return false;
  i.imm = unsigned(op) | unsigned(type) << 8;
  unsigned size = registerSize(type), at = isRed ? 0 : 1, n = (op == OpCas ? 3 : 2) + at;
  if (isRed)
    i.sub |= orderReduction;
  if (!b.want(n, n) || !b.address(o[at], i) || !b.source(o[at + 1], type, i.b) ||
      (op == OpCas && !b.source(o[at + 2], type, i.c)) ||
      (!isRed && !b.destination(o[0], size, i.d)))
    return false;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
