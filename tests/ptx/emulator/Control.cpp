//===- Control.cpp - branches, barriers and fences ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Collective.h"
#include "tests/ptx/emulator/Lanes.h"

#include <bit>

namespace llmc::ptx {

void branchLanes(Warp &w, const Inst &i, uint32_t mask) {
  if (mask == w.mask) {
    w.next = i.target;
    return;
  }
  w.split.clear();
  w.split.push_back({i.target, mask});
  w.split.push_back({w.pc + 1, w.mask & ~mask});
  w.stop = Warp::Split;
}

void branchTable(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *index = reg<uint32_t>(w, i.a);
  const auto &table = w.program->tables[i.target];
  w.split.clear();
  for (uint32_t rest = mask; rest;) {
    unsigned lane = std::countr_zero(rest);
    if (index[lane] >= table.size()) {
      w.fail(ErrorKind::Trap, lane, "branches to entry %u of a table of %zu", index[lane],
             table.size());
      return;
    }
    uint32_t target = table[index[lane]], same = 0;
    for (uint32_t others = rest; others; others &= others - 1) {
      unsigned k = std::countr_zero(others);
      if (index[k] < table.size() && table[index[k]] == target)
        same |= 1u << k;
    }
    w.split.push_back({target, same});
    rest &= ~same;
  }
  if (mask != w.mask)
    w.split.push_back({w.pc + 1, w.mask & ~mask});
  if (w.split.size() == 1)
    w.next = w.split[0].first;
  else
    w.stop = Warp::Split;
}

void exitLanes(Warp &w, const Inst &, uint32_t mask) {
  w.leaving = mask;
  w.stop = Warp::Exit;
}

void trapLanes(Warp &w, const Inst &, uint32_t mask) {
  w.fail(ErrorKind::Trap, std::countr_zero(mask), "the kernel gives up (trap)");
}

namespace {
void yieldLanes(Warp &w, const Inst &, uint32_t) { w.stop = Warp::Yield; }

void fence(Warp &w, const Inst &, uint32_t mask) {
  if (!w.machine->options.checkRaces)
    return;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    acquire(w, l, w.acquired[l]);
    w.fenced[l] = publish(w, l);
  }
}

void warpSync(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t members;
  if (memberMask(w, i.a, mask, members))
    syncWarp(w, mask);
}

enum Barrier { Sync, Popc, RedAnd, RedOr };
// a: barrier, b: threads, c: predicate of bar.red; sub: what it gives | aligned << 4 | blocks << 5
void barrier(Warp &w, const Inst &i, uint32_t mask) {
  if ((i.sub & 16) && !aligned(w, mask))
    return;
  unsigned first = std::countr_zero(mask);
  const uint32_t *id = reg<uint32_t>(w, i.a), *count = reg<uint32_t>(w, i.b);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    if (id[l] != id[first] || count[l] != count[first]) {
      w.fail(ErrorKind::Barrier, l, "lanes of a warp name different barriers");
      return;
    }
  }
  if (id[first] > 15 || count[first] % 32 || count[first] > 1024) {
    w.fail(ErrorKind::Barrier, first, "barrier %u with %u threads: there are 16, of whole warps",
           id[first], count[first]);
    return;
  }
  w.barrier = id[first];
  w.barrierExpected = count[first];
  w.barrierVotes = (i.sub & 15) ? predicateOf(w, i.c) & mask : 0;
  w.barrierBlocks = i.sub & 32;
  w.stop = Warp::Block;
}
} // namespace

void finishBarrier(Warp &w, const Inst &i, uint32_t members, uint32_t votes, uint32_t threads) {
  switch (i.sub & 15) {
  case Popc:
    lanes<uint32_t>(w, i.d, members, [=](unsigned) { return votes; });
    break;
  case RedAnd:
    setPredicate(w, i.d, members, votes == threads ? ~0u : 0);
    break;
  case RedOr:
    setPredicate(w, i.d, members, votes ? ~0u : 0);
    break;
  default:
    break;
  }
}

static bool decodeBarrier(Builder &b, Modifiers &m) {
  bool isBar = b.insn->base() == "bar";
  const auto &o = b.insn->operands;
  if (m.take("cluster"))
    return b.fail("is for clusters, which are not supported");
  if (m.take("warp")) {
    Inst i = b.make(Class::Barrier, warpSync);
    if (!m.take("sync") || !b.want(1, 1) || !b.source(o[0], 4, i.a))
      return false;
    b.emit(i);
    return true;
  }
  m.take("cta");
  bool isAligned = m.take("aligned") || isBar;
  Inst i = b.make(Class::Barrier, barrier);
  i.sub = (isAligned ? 16 : 0) | 32;
  size_t at = 0;
  if (m.take("arrive")) {
    i.sub &= ~32;
    if (!b.want(2, 2))
      return false;
  } else if (m.take("red")) {
    int op = m.oneOf({"popc", "and", "or"});
    Type type = m.type();
    if (op < 0 || type != (op == 0 ? Type::U32 : Type::Pred) || !b.want(3, 4) ||
        !b.predicate(o.back(), i.c) || !b.destination(o[0], op == 0 ? 4 : 0, i.d))
      return false;
    i.sub |= Popc + op;
    at = 1;
  } else if (!m.take("sync") || !b.want(1, 2)) {
    return false;
  }
  bool counted = o.size() - at - (at ? 1 : 0) == 2;
  if (!b.source(o[at], 4, i.a))
    return false;
  if (counted) {
    if (!b.source(o[at + 1], 4, i.b))
      return false;
  } else {
    i.b = b.constant(0, 4);
  }
  b.emit(i);
  return true;
}

bool decodeControl(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  m.take("uni");
  if (base == "bra") {
    if (!b.want(1, 1) || o[0].kind != Operand::Name)
      return false;
    b.emit(b.make(Class::Branch, branchLanes));
    b.branch(o[0].name);
    return true;
  }
  if (base == "brx") {
    Inst i = b.make(Class::Branch, branchTable);
    if (!m.take("idx") || !b.want(2, 2) || !b.source(o[0], 4, i.a) || o[1].kind != Operand::Name)
      return false;
    auto it = b.frame->function->branchTables.find(o[1].name);
    if (it == b.frame->function->branchTables.end())
      return b.fail("names no .branchtargets");
    i.target = b.program.tables.size();
    b.program.tables.emplace_back();
    b.tableFixups.push_back({i.target, 0, it->second.labels, b.insn->line});
    b.emit(i);
    return true;
  }
  if (base == "exit" || (base == "ret" && b.frame->depth == 0)) {
    b.emit(b.make(Class::Branch, exitLanes));
    return b.want(0, 0);
  }
  if (base == "ret") {
    b.emit(b.make(Class::Branch, branchLanes));
    b.branch({});
    return b.want(0, 0);
  }
  if (base == "trap" || base == "brkpt") {
    b.emit(b.make(Class::Other, trapLanes));
    return true;
  }
  if (base == "nanosleep") {
    m.take("u32");
    b.emit(b.make(Class::Other, yieldLanes));
    return true;
  }
  if (base == "membar" || base == "fence") {
    bool known = false;
    for (const char *name : {"cta", "gl", "gpu", "sys", "sc", "acq_rel", "acquire", "release"})
      known |= m.take(name);
    // Between ways to the same memory, which are one here.
    if (m.take("proxy")) {
      known = true;
      for (const char *name : {"alias", "async", "async::generic", "sync_restrict::shared::cta",
                               "sync_restrict::shared::cluster", "global", "shared::cta", "cluster",
                               "shared::cluster", "tensormap::generic"})
        m.take(name);
    }
    if (m.take("mbarrier_init"))
      m.take("cluster"), known = true;
    if (!known)
      return false;
    b.emit(b.make(Class::Other, fence));
    return true;
  }
  if (base == "pmevent" || base == "setmaxnreg") {
    m.take("mask");
    m.take("inc");
    m.take("dec");
    m.take("sync");
    m.take("aligned");
    m.take("u32");
    b.emit(b.make(Class::Other, nothing));
    return true;
  }
  return decodeBarrier(b, m);
}

} // namespace llmc::ptx
