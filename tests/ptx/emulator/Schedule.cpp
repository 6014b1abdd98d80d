//===- Schedule.cpp - which warp runs, and when lanes meet again ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Machine.h"

#include <algorithm>
#include <bit>
#include <string>

namespace llmc::ptx {

// Instructions that a warp may run while others of its lanes wait at a join: they may wait for
// them.
constexpr uint64_t parkedPatience = 50000;
// Failed waits of every warp of a CTA, with nothing else happening, that count as a deadlock.
constexpr uint64_t waitPatience = 64;

void Machine::progress(Cta &cta) {
  for (auto &w : cta.warps)
    w->failedWaits = 0;
}

/// The group that goes on, or -1. Groups at a join go on when no other can.
int Machine::pick(Warp &w) {
  int ready[32], n = 0, parked = -1;
  for (size_t i = 0; i < w.groups.size(); ++i) {
    if (w.groups[i].state == Group::Ready)
      ready[n++] = int(i);
    else if (w.groups[i].state == Group::Parked &&
             (parked < 0 || w.groups[i].pc < w.groups[parked].pc))
      parked = int(i);
  }
  if (parked >= 0 && (!n || w.parkedSince > parkedPatience)) {
    w.parkedSince = 0;
    w.groups[parked].state = Group::Ready;
    w.groups[parked].released = true;
    return parked;
  }
  if (!n)
    return -1;
  return ready[n == 1 ? 0 : random() % n];
}

/// Unites the group with others that have stopped at the same place.
void Machine::merge(Warp &w, size_t index) {
  Group &g = w.groups[index];
  for (size_t i = 0; i < w.groups.size(); ++i) {
    Group &other = w.groups[i];
    if (i == index || other.pc != g.pc || other.state == Group::Blocked)
      continue;
    // At a collective the others may be what it waits for.
    if (other.state != Group::Parked || g.state != Group::Parked)
      other.state = Group::Ready;
    other.mask |= g.mask;
    w.groups.erase(w.groups.begin() + index);
    return;
  }
}

void Machine::wake(Warp &w) {
  for (Group &g : w.groups)
    if (g.state == Group::Waiting)
      g.state = Group::Ready;
}

bool Machine::step(Cta &cta) {
  size_t n = cta.warps.size();
  bool spinning = true;
  size_t first = options.checkRaces ? random() % n : cta.nextWarp % n;
  for (size_t k = 0; k < n; ++k) {
    Warp &w = *cta.warps[(first + k) % n];
    if (!w.live)
      continue;
    int group = pick(w);
    if (group < 0)
      continue;
    cta.nextWarp = uint32_t(first + k + 1);
    spinning = w.failedWaits > waitPatience;
    runGroup(w, group, options.checkRaces ? 1 + random() % 48 : 8192);
    if (!spinning || error)
      return true;
    // All others that can run spin, too?
    for (auto &other : cta.warps)
      for (const Group &g : other->groups)
        if (other->live && (g.state == Group::Ready || g.state == Group::Parked) &&
            other->failedWaits <= waitPatience)
          return true;
    return false;
  }
  return false;
}

void Machine::runGroup(Warp &w, size_t index, uint64_t budget) {
  const Inst *code = program->code.data();
  uint64_t *warpCount = program->warpCount.data(), *laneCount = program->laneCount.data();
  Group g = w.groups[index];
  bool alone = w.groups.size() == 1;
  w.pc = g.pc;
  w.mask = g.mask;
  w.stop = Warp::Run;
  bool released = g.released;
  uint64_t begin = budget;
  while (budget--) {
    const Inst &inst = code[w.pc];
    if (inst.join && !alone && !released) {
      w.groups[index] = {w.pc, w.mask, Group::Parked, false};
      merge(w, index);
      executed += begin - budget;
      return;
    }
    released = false;
    uint32_t mask = w.mask;
    if (inst.pred != Inst::none) {
      uint32_t p = *reinterpret_cast<const uint32_t *>(w.regs + inst.pred);
      mask &= inst.predNegated ? ~p : p;
    }
    w.next = w.pc + 1;
    warpCount[w.pc] += 1;
    laneCount[w.pc] += std::popcount(mask);
    if (mask) {
      w.executing = mask;
      inst.run(w, inst, mask);
      if (w.stop != Warp::Run)
        break;
    }
    w.pc = w.next;
  }
  executed += begin - budget;
  if (!alone)
    w.parkedSince += begin - budget;
  w.groups[index] = {w.pc, w.mask, Group::Ready, false};
  if (w.stop != Warp::Run)
    afterStop(w, index);
}

void Machine::afterStop(Warp &w, size_t index) {
  const Inst &inst = program->code[w.pc];
  Group &g = w.groups[index];
  switch (w.stop) {
  case Warp::Run:
  case Warp::Failed:
    return;
  case Warp::Yield:
    g.pc = w.next;
    return;
  case Warp::Split: {
    auto parts = w.split;
    w.groups.erase(w.groups.begin() + index);
    for (auto [pc, lanes] : parts)
      w.groups.push_back({pc, lanes, Group::Ready, false});
    w.parkedSince = 0;
    return;
  }
  case Warp::Wait:
    // It will be executed again, and is counted then.
    program->warpCount[w.pc] -= 1;
    program->laneCount[w.pc] -= std::popcount(w.executing);
    g.state = Group::Waiting;
    merge(w, index);
    return;
  case Warp::Block: {
    uint32_t lanes = w.mask;
    g.pc = w.next;
    if (w.barrierBlocks)
      g.state = Group::Blocked;
    progress(*w.cta);
    ctaArrive(w, inst, lanes);
    return;
  }
  case Warp::Exit: {
    Cta &cta = *w.cta;
    w.live &= ~w.leaving;
    g.mask &= ~w.leaving;
    g.pc = w.next;
    if (!g.mask)
      w.groups.erase(w.groups.begin() + index);
    cta.liveThreads -= std::popcount(w.leaving);
    wake(w);
    progress(cta);
    for (uint32_t barrier = 0; barrier < 16; ++barrier)
      if (!cta.barriers[barrier].members.empty())
        ctaCheck(cta, barrier);
    return;
  }
  }
}

void Machine::ctaArrive(Warp &w, const Inst &inst, uint32_t lanes) {
  Cta &cta = *w.cta;
  CtaBarrier &b = cta.barriers[w.barrier];
  if (!b.members.empty() && b.expected != w.barrierExpected) {
    fail(ErrorKind::Barrier, &w, std::countr_zero(lanes),
         "barrier " + std::to_string(w.barrier) + " is used with two counts of threads, " +
             std::to_string(b.expected) + " and " + std::to_string(w.barrierExpected) +
             " (0: all)");
    return;
  }
  b.expected = w.barrierExpected;
  // A warp counts as a whole.
  b.arrived += b.expected ? 32 : std::popcount(lanes);
  b.votes += std::popcount(w.barrierVotes);
  b.members.push_back({&w, lanes, &inst, w.barrierBlocks});
  ctaCheck(cta, w.barrier);
}

void Machine::ctaCheck(Cta &cta, uint32_t index) {
  CtaBarrier &b = cta.barriers[index];
  uint32_t wanted = b.expected ? b.expected : cta.liveThreads;
  if (b.arrived < wanted)
    return;
  counters.ctaBarriers += 1;
  uint32_t blocked = 0, lanes = 0;
  for (const auto &member : b.members) {
    lanes += std::popcount(member.lanes);
    if (member.blocked)
      blocked += std::popcount(member.lanes);
  }
  if (blocked >= cta.liveThreads)
    syncCta(cta);
  else
    syncMembers(b.members);
  auto members = std::move(b.members);
  uint32_t votes = b.votes;
  b = {};
  for (const auto &member : members) {
    if (!member.blocked)
      continue;
    finishBarrier(*member.warp, *member.inst, member.lanes, votes, lanes);
    for (Group &g : member.warp->groups)
      if (g.state == Group::Blocked && (g.mask & member.lanes))
        g.state = Group::Ready;
  }
}

bool Machine::landAll(Cta &cta) {
  if (cta.arrivals.empty())
    return false;
  auto arrivals = std::move(cta.arrivals);
  cta.arrivals.clear();
  for (const PendingArrival &arrival : arrivals)
    landArrival(cta, arrival);
  progress(cta);
  return true;
}

/// Nothing can go on: says who waits for what.
void Machine::stuck(Cta &cta) {
  auto lineOf = [&](const Group &g) {
    uint32_t pc = g.state == Group::Blocked && g.pc ? g.pc - 1 : g.pc;
    return std::to_string(program->code[pc].line) + " (" + std::string(program->opcodes[pc]) + ")";
  };
  std::string others;
  const Warp *culprit = nullptr;
  const Group *waiting = nullptr;
  for (auto &w : cta.warps)
    for (const Group &g : w->groups)
      if (g.state == Group::Waiting && !waiting) {
        culprit = w.get();
        waiting = &g;
      }
  if (waiting) {
    for (const Group &g : culprit->groups)
      if (&g != waiting)
        others += ", others of its warp are at line " + lineOf(g);
    Warp &w = *const_cast<Warp *>(culprit);
    w.pc = waiting->pc;
    fail(ErrorKind::Divergent, &w, std::countr_zero(waiting->mask),
         "waits for all lanes that it names, only some of them come (mask " +
             std::to_string(waiting->mask) + " of " + std::to_string(w.live) + ")" + others);
    return;
  }
  unsigned listed = 0;
  Warp *first = nullptr;
  for (auto &w : cta.warps)
    for (const Group &g : w->groups)
      if (listed++ < 4) {
        first = first ? first : w.get();
        others += (listed > 1 ? "; " : "") + std::string("warp ") + std::to_string(w->index) +
                  (g.state == Group::Blocked ? " is at a barrier, line " : " spins, line ") +
                  lineOf(g);
      }
  if (first && !first->groups.empty())
    first->pc = first->groups[0].pc - (first->groups[0].state == Group::Blocked);
  fail(ErrorKind::Deadlock, first, -1, "no thread of the block can go on: " + others);
}

} // namespace llmc::ptx
