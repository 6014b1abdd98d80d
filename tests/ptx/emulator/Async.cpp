//===- Async.cpp - asynchronous copies and mbarriers ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

#include <algorithm>
#include <bit>

namespace llmc::ptx {

namespace {
void land(Cta &cta, AsyncCopy &copy) {
  if (copy.landed)
    return;
  copy.landed = true;
  if (copy.filled)
    memcpy(cta.shared.data() + copy.to, copy.from, copy.filled);
  memset(cta.shared.data() + copy.to + copy.filled, 0, copy.size - copy.filled);
}

/// The thread has waited for the copies: others may learn of them.
void waited(Warp &w, std::vector<AsyncCopy> &copies) {
  for (AsyncCopy &copy : copies) {
    land(*w.cta, copy);
    if (w.machine->options.checkRaces)
      w.cta->sharedRace.landed(copy.to, copy.size, w.clock);
  }
}

// d, a: addresses in shared and global memory, c: bytes that are read, e: ignore them; imm: bytes
void copyAsync(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *sourceSize = reg<uint32_t>(w, i.c);
  uint32_t ignored = i.sub ? predicateOf(w, i.e) : 0;
  const Options &o = w.machine->options;
  uint64_t to[32], from[32];
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    // The destination's register is in b, its width in count, its offset in target.
    uint64_t base = i.count == 8 ? reg<uint64_t>(w, i.b)[l] : reg<uint32_t>(w, i.b)[l];
    to[l] = uint32_t(base + i.target);
    from[l] = addressOf(w, i, l);
    uint32_t filled = ignored >> l & 1 ? 0 : std::min(sourceSize[l], i.imm);
    AsyncCopy copy;
    copy.size = uint8_t(i.imm);
    copy.filled = uint8_t(filled);
    if (filled) {
      unsigned step = filled == i.imm ? i.imm : 1;
      for (unsigned k = 0; k < filled; k += step) {
        uint8_t *p = access(w, i, l, Space::Global, from[l] + k, step, accessRead);
        if (!p)
          return;
        if (!k)
          copy.from = p;
      }
      if (from[l] % i.imm) {
        w.fail(ErrorKind::Misaligned, l, "copies %u bytes from 0x%llx", i.imm,
               (unsigned long long)from[l]);
        return;
      }
    }
    uint8_t *p = access(w, i, l, Space::Shared, to[l], i.imm, accessWrite | accessAsync);
    if (!p)
      return;
    copy.to = uint32_t(p - w.cta->shared.data());
    if (o.count)
      w.machine->counters.asyncBytes += filled;
    if (!o.lateCopies)
      land(*w.cta, copy);
    w.open[l].copies.push_back(copy);
  }
  if (o.count)
    countGlobal(w, from, mask, i.imm, false);
}

void commit(Warp &w, const Inst &, uint32_t mask) {
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    w.committed[l].push_back(std::move(w.open[l]));
    w.open[l] = {};
  }
}

void landThread(Warp &w, unsigned lane) {
  Cta &cta = *w.cta;
  for (size_t k = 0; k < cta.arrivals.size();) {
    if (cta.arrivals[k].thread != w.tid(lane)) {
      ++k;
      continue;
    }
    PendingArrival arrival = std::move(cta.arrivals[k]);
    cta.arrivals.erase(cta.arrivals.begin() + k);
    landArrival(cta, arrival);
  }
}

// imm: groups that may remain; sub: wait_all
void waitGroup(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    auto &groups = w.committed[l];
    size_t done = groups.size() > i.imm ? groups.size() - i.imm : 0;
    for (size_t k = 0; k < done; ++k)
      waited(w, groups[k].copies);
    groups.erase(groups.begin(), groups.begin() + done);
    if (i.sub) {
      waited(w, w.open[l].copies);
      w.open[l].copies.clear();
      landThread(w, l);
    }
  }
}

MBarrier *barrierAt(Warp &w, const Inst &i, unsigned lane, uint32_t &address, bool init) {
  uint64_t a = addressOf(w, i, lane);
  Space space = i.space == Space::Generic ? spaceOf(a) : i.space;
  if (space != Space::Shared) {
    w.fail(ErrorKind::Barrier, lane, "an mbarrier that is not in shared memory");
    return nullptr;
  }
  address = uint32_t(a);
  if (!init && !w.cta->mbarriers.count(address)) {
    w.fail(ErrorKind::Barrier, lane, "no mbarrier was initialised at 0x%x", address);
    return nullptr;
  }
  // Initialisation is a plain write: what uses the barrier is ordered after it.
  unsigned flags = init ? accessWrite : accessRead | accessWrite | accessStrong;
  uint8_t *p = access(w, i, lane, Space::Shared, address, 8, flags);
  if (!p)
    return nullptr;
  return &w.cta->mbarriers[address];
}

void complete(Cta &cta, MBarrier &b) {
  if (b.pending || b.bytes)
    return;
  ++b.phase;
  b.pending = b.count;
  b.completed = b.gathered;
  b.gathered = nullptr;
  cta.warps[0]->machine->progress(cta);
}

bool arrive(Warp &w, unsigned lane, MBarrier &b, uint32_t count, bool drop) {
  if (count > b.pending) {
    w.fail(ErrorKind::Barrier, lane, "%u arrivals at an mbarrier that waits for %u", count,
           b.pending);
    return false;
  }
  joinInto(b.gathered, publish(w, lane));
  b.pending -= count;
  if (drop)
    b.count -= count;
  w.machine->progress(*w.cta);
  complete(*w.cta, b);
  return true;
}

enum MOp { Init, Inval, Arrive, ArriveDrop, ExpectTx, CompleteTx, Wait, CopyArrive };
// imm: operation; b: count, bytes, state or parity; sub: flags
enum { arriveExpects = 1, waitParity = 2, copyNoInc = 4 };
void mbarrier(Warp &w, const Inst &i, uint32_t mask) {
  const Options &o = w.machine->options;
  const uint32_t *b32 = reg<uint32_t>(w, i.b);
  uint32_t done = 0;
  uint64_t states[32] = {};
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    uint32_t address;
    MBarrier *b = barrierAt(w, i, l, address, i.imm == Init);
    if (!b)
      return;
    switch (i.imm) {
    case Init:
      if (!b32[l] || b32[l] >= 1u << 20) {
        w.fail(ErrorKind::Barrier, l, "an mbarrier for %u arrivals", b32[l]);
        return;
      }
      *b = {};
      b->count = b->pending = b32[l];
      break;
    case Inval:
      w.cta->mbarriers.erase(address);
      break;
    case Arrive:
    case ArriveDrop: {
      states[l] = b->phase;
      if (i.sub & arriveExpects)
        b->bytes += b32[l];
      if (!arrive(w, l, *b, i.sub & arriveExpects ? 1 : b32[l], i.imm == ArriveDrop))
        return;
      break;
    }
    case ExpectTx:
      b->bytes += b32[l];
      break;
    case CompleteTx:
      b->bytes -= b32[l];
      complete(*w.cta, *b);
      break;
    case Wait: {
      bool complete =
          i.sub & waitParity ? (b->phase & 1) != (b32[l] & 1) : b->phase > reg<uint64_t>(w, i.b)[l];
      if (complete)
        acquire(w, l, b->completed);
      done |= uint32_t(complete) << l;
      break;
    }
    case CopyArrive: {
      PendingArrival arrival;
      arrival.barrier = address;
      arrival.thread = w.tid(l);
      for (CopyGroup &group : w.committed[l])
        arrival.copies.insert(arrival.copies.end(), group.copies.begin(), group.copies.end());
      auto &open = w.open[l].copies;
      arrival.copies.insert(arrival.copies.end(), open.begin(), open.end());
      w.committed[l].clear();
      open.clear();
      if (!(i.sub & copyNoInc))
        ++b->pending;
      if (o.lateCopies)
        w.cta->arrivals.push_back(std::move(arrival));
      else
        landArrival(*w.cta, arrival);
      break;
    }
    }
  }
  if (i.imm == Wait) {
    setPredicate(w, i.d, mask, done);
    if (done != mask) {
      ++w.failedWaits;
      // What is late comes when somebody has waited for it in vain for some time.
      if (w.failedWaits > 8 && !w.cta->arrivals.empty()) {
        w.machine->landAll(*w.cta);
      }
      w.stop = Warp::Yield;
    }
  } else if (i.imm == Arrive || i.imm == ArriveDrop) {
    lanes<uint64_t>(w, i.d, mask, [&](unsigned l) { return states[l]; });
  }
}

void pendingCount(Warp &w, const Inst &i, uint32_t mask) {
  w.fail(ErrorKind::Unsupported, std::countr_zero(mask), "mbarrier.pending_count");
}

void dependencyWait(Warp &w, const Inst &, uint32_t) { w.dependencyWaited = true; }
} // namespace

void landArrival(Cta &cta, const PendingArrival &arrival) {
  Warp &w = *cta.warps[arrival.thread / 32];
  unsigned lane = arrival.thread % 32;
  std::vector<AsyncCopy> copies = arrival.copies;
  waited(w, copies);
  auto it = cta.mbarriers.find(arrival.barrier);
  if (it != cta.mbarriers.end())
    arrive(w, lane, it->second, 1, false);
}

static bool decodeCopy(Builder &b, Modifiers &m) {
  const auto &o = b.insn->operands;
  if (!m.take("async") || m.take("bulk"))
    return b.fail("is not supported (only cp.async without .bulk)");
  if (m.take("commit_group")) {
    b.emit(b.make(Class::AsyncCopy, commit));
    return b.want(0, 0);
  }
  if (m.take("wait_group") || m.take("wait_all")) {
    Inst i = b.make(Class::AsyncCopy, waitGroup);
    i.sub = o.empty();
    if (!b.want(0, 1) || (!o.empty() && o[0].kind != Operand::Int))
      return false;
    i.imm = o.empty() ? 0 : uint32_t(std::min<uint64_t>(o[0].bits, 1 << 20));
    b.emit(i);
    return true;
  }
  if (m.take("mbarrier")) {
    Inst i = b.make(Class::AsyncCopy, mbarrier);
    i.imm = CopyArrive;
    i.sub = m.take("arrive") && m.take("noinc") ? copyNoInc : 0;
    if (m.take("shared") || m.take("shared::cta"))
      i.space = Space::Shared;
    if (m.type() != Type::B64 || !b.want(1, 1) || !b.address(o[0], i))
      return false;
    i.b = b.constant(0, 4);
    b.emit(i);
    return true;
  }
  Inst i = b.make(Class::AsyncCopy, copyAsync);
  bool cg = m.take("cg");
  if (!cg && !m.take("ca"))
    return false;
  if (!(m.take("shared") || m.take("shared::cta")) || !m.take("global"))
    return false;
  m.takePrefix("L2::");
  if (!b.want(3, 5) || o[2].kind != Operand::Int)
    return false;
  uint64_t size = o[2].bits;
  if ((size != 4 && size != 8 && size != 16) || (cg && size != 16))
    return b.fail("copies a number of bytes that it cannot");
  i.imm = uint32_t(size);
  Inst to;
  to.space = Space::Shared;
  if (!b.address(o[0], to))
    return false;
  i.space = Space::Global;
  if (!b.address(o[1], i))
    return false;
  i.b = to.a;
  i.count = to.wideAddress ? 8 : 4;
  i.target = uint32_t(to.offset);
  i.c = b.constant(size, 4);
  if (o.size() > 3) {
    if (b.registerWidth(o[3]) == 0) {
      i.sub = 1;
      if (!b.predicate(o[3], i.e))
        return false;
    } else if (b.registerWidth(o[3]) != 8 && !b.source(o[3], 4, i.c)) {
      return false;
    }
  }
  b.emit(i);
  return true;
}

bool decodeAsync(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  if (base == "cp")
    return decodeCopy(b, m);
  if (base == "griddepcontrol") {
    bool waits = m.take("wait");
    if (!waits && !m.take("launch_dependents"))
      return false;
    b.emit(b.make(Class::Other, waits ? dependencyWait : nothing));
    return b.want(0, 0);
  }
  // mbarrier
  Inst i = b.make(Class::Barrier, mbarrier);
  for (std::string_view name : b.insn->modifiers)
    if (name == "cluster" || name == "shared::cluster")
      return b.fail("is for clusters, which are not supported");
  if (m.take("shared") || m.take("shared::cta"))
    i.space = Space::Shared;
  for (const char *name : {"release", "acquire", "relaxed", "cta", "gpu"})
    m.take(name);
  auto operand = [&](size_t at, unsigned size) {
    if (o.size() > at)
      return b.source(o[at], size, i.b);
    i.b = b.constant(1, size);
    return true;
  };
  if (m.take("init")) {
    i.imm = Init;
    if (m.type() != Type::B64 || !b.want(2, 2) || !b.address(o[0], i) || !operand(1, 4))
      return false;
  } else if (m.take("inval")) {
    i.imm = Inval;
    if (m.type() != Type::B64 || !b.want(1, 1) || !b.address(o[0], i) || !operand(1, 4))
      return false;
  } else if (m.take("arrive") || m.take("arrive_drop")) {
    i.imm = b.insn->opcode.find("arrive_drop") != std::string_view::npos ? ArriveDrop : Arrive;
    i.sub = m.take("expect_tx") ? arriveExpects : 0;
    m.take("noComplete");
    if (m.type() != Type::B64 || !b.want(2, 3) || !b.address(o[1], i) || !operand(2, 4) ||
        !b.destination(o[0], 8, i.d))
      return false;
  } else if (m.take("expect_tx") || m.take("complete_tx")) {
    i.imm = b.insn->opcode.find("expect_tx") != std::string_view::npos ? ExpectTx : CompleteTx;
    if (m.type() != Type::B64 || !b.want(2, 2) || !b.address(o[0], i) || !operand(1, 4))
      return false;
  } else if (m.take("test_wait") || m.take("try_wait")) {
    i.imm = Wait;
    bool parity = m.take("parity");
    i.sub = parity ? waitParity : 0;
    if (m.type() != Type::B64 || !b.want(3, 4) || !b.address(o[1], i) ||
        !operand(2, parity ? 4 : 8) || !b.destination(o[0], 0, i.d))
      return false;
  } else if (m.take("pending_count")) {
    i.run = pendingCount;
    m.type();
  } else {
    return false;
  }
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
