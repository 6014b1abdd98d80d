//===- Sync.cpp - who knows what has happened -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Machine.h"

namespace llmc::ptx {

bool knows(const Warp &w, unsigned lane, uint32_t thread, uint32_t clock) {
  const Cta &cta = *w.cta;
  const Machine &m = *w.machine;
  bool waited = w.dependencyWaited || !m.checksDependency;
  if (clock < (waited ? m.launchClock : m.chainClock))
    return true;
  if (clock < m.launchClock)
    return false; // of a launch that may still run
  uint32_t other = thread / cta.threads, tid = thread % cta.threads;
  if (other == cta.linear) {
    if (tid == w.tid(lane) || clock < cta.barrierClock)
      return true;
    if (tid / 32 == w.index && clock < w.syncClock)
      return true;
  } else if (cta.foreign && cta.foreign->knows(other, tid, clock)) {
    return true;
  }
  return w.own[lane] && w.own[lane]->knows(other, tid, clock);
}

void joinInto(SharedKnowledge &into, const SharedKnowledge &from) {
  if (!from || into == from)
    return;
  if (!into) {
    into = from;
    return;
  }
  auto joined = std::make_shared<Knowledge>(*into);
  joined->join(*from);
  into = joined;
}

static void gather(Knowledge &into, const Warp &w, unsigned lane) {
  const Cta &cta = *w.cta;
  if (w.own[lane])
    into.join(*w.own[lane]);
  if (cta.foreign)
    into.join(*cta.foreign);
  into.base(cta.linear, cta.barrierClock);
  if (w.syncClock > cta.barrierClock)
    for (unsigned l = 0; l < 32 && w.tid(l) < cta.threads; ++l)
      into.thread(cta.linear, w.tid(l), w.syncClock);
  into.thread(cta.linear, w.tid(lane), w.clock + 1);
}

SharedKnowledge publish(Warp &w, unsigned lane) {
  if (!w.machine->options.checkRaces)
    return nullptr;
  auto out = std::make_shared<Knowledge>();
  gather(*out, w, lane);
  ++w.clock;
  return out;
}

void acquire(Warp &w, unsigned lane, const SharedKnowledge &knowledge) {
  joinInto(w.own[lane], knowledge);
}

void syncWarp(Warp &w, uint32_t lanes) {
  if (!w.machine->options.checkRaces)
    return;
  bool whole = lanes == w.live && w.groups.size() == 1;
  SharedKnowledge first = w.own[__builtin_ctz(lanes)];
  bool alike = true;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    alike &= w.own[__builtin_ctz(rest)] == first;
  if (whole && alike) {
    w.syncClock = ++w.clock;
    return;
  }
  auto joined = std::make_shared<Knowledge>();
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    gather(*joined, w, __builtin_ctz(rest));
  ++w.clock;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    w.own[__builtin_ctz(rest)] = joined;
  if (whole)
    w.syncClock = w.clock;
}

void syncCta(Cta &cta) {
  Machine &m = *cta.warps[0]->machine;
  bool waited = false;
  for (auto &w : cta.warps)
    waited |= w->dependencyWaited;
  for (auto &w : cta.warps)
    w->dependencyWaited = waited;
  if (!m.options.checkRaces)
    return;
  uint32_t clock = 0;
  std::shared_ptr<Knowledge> foreign;
  const Knowledge *last = nullptr;
  for (auto &w : cta.warps) {
    clock = std::max(clock, w->clock + 1);
    for (SharedKnowledge &own : w->own) {
      if (own && own.get() != last) {
        if (!foreign)
          foreign = cta.foreign ? std::make_shared<Knowledge>(*cta.foreign)
                                : std::make_shared<Knowledge>();
        foreign->join(*own);
        last = own.get();
      }
      // Kept alive by its other holders until compared.
    }
  }
  for (auto &w : cta.warps) {
    for (SharedKnowledge &own : w->own)
      own = nullptr;
    w->clock = w->syncClock = clock;
  }
  cta.barrierClock = clock;
  if (foreign) {
    foreign->forget(cta.linear);
    cta.foreign = foreign->empty() ? nullptr : foreign;
  }
}

void syncMembers(const std::vector<CtaBarrier::Member> &members) {
  if (members.empty() || !members[0].warp->machine->options.checkRaces)
    return;
  auto joined = std::make_shared<Knowledge>();
  for (const auto &member : members)
    for (uint32_t rest = member.lanes; rest; rest &= rest - 1)
      gather(*joined, *member.warp, __builtin_ctz(rest));
  bool waited = false;
  for (const auto &member : members) {
    ++member.warp->clock;
    waited |= member.warp->dependencyWaited;
  }
  for (const auto &member : members) {
    if (!member.blocked)
      continue;
    member.warp->dependencyWaited |= waited;
    for (uint32_t rest = member.lanes; rest; rest &= rest - 1)
      member.warp->own[__builtin_ctz(rest)] = joined;
  }
}

} // namespace llmc::ptx
