//===- Race.cpp - what is ordered, and what races -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Race.h"

#include "tests/ptx/emulator/Machine.h"

namespace llmc::ptx {

void Knowledge::join(const Knowledge &other) {
  for (const auto &[cta, from] : other.entries) {
    Entry &to = entries[cta];
    to.base = std::max(to.base, from.base);
    if (to.threads.size() < from.threads.size())
      to.threads.resize(from.threads.size());
    for (size_t i = 0; i < from.threads.size(); ++i)
      to.threads[i] = std::max(to.threads[i], from.threads[i]);
  }
}

RaceShadow::Page &RaceShadow::page(uint64_t at, unsigned size) {
  std::unique_ptr<Page> &slot = pages[at / pageBytes];
  if (!slot) {
    slot = std::make_unique<Page>();
    slot->cells.resize(pageBytes >> slot->shift);
  }
  if (slot->shift && (at % 4 || size % 4)) {
    std::vector<RaceCell> fine(pageBytes);
    for (uint64_t i = 0; i < pageBytes; ++i)
      fine[i] = slot->cells[i >> slot->shift];
    slot->cells = std::move(fine);
    slot->shift = 0;
  }
  return *slot;
}

void RaceShadow::landed(uint64_t at, unsigned size, uint32_t clock) {
  Page &p = page(at, size);
  for (uint64_t i = at % pageBytes >> p.shift; i <= (at + size - 1) % pageBytes >> p.shift; ++i) {
    p.cells[i].async = false;
    p.cells[i].writeClock = clock;
  }
}

/// Are all the cell's reads ordered before the access?
static bool knowsReads(const RaceCell &cell, const Access &a) {
  const Warp &w = *a.warp;
  switch (cell.readers) {
  case RaceCell::None:
    return true;
  case RaceCell::One:
    return knows(w, a.lane, cell.readThread, cell.readClock);
  case RaceCell::Many:
    return cell.readClock < w.machine->launchClock;
  case RaceCell::Warps:
    break;
  }
  if (cell.readClock < w.machine->launchClock)
    return true;
  bool sameCta = cell.readThread / w.cta->threads == w.cta->linear;
  if (sameCta && cell.readClock < w.cta->barrierClock)
    return true;
  for (uint32_t warps = cell.readWarps; warps; warps &= warps - 1) {
    uint32_t first = __builtin_ctz(warps) * 32;
    for (uint32_t tid = first; tid < std::min(first + 32, w.cta->threads); ++tid)
      if (!knows(w, a.lane, cell.readThread + tid, cell.readClock))
        return false;
  }
  return true;
}

static void recordRead(RaceCell &cell, const Access &a, uint32_t thread, uint32_t clock) {
  const Warp &w = *a.warp;
  bool fresh = cell.readers == RaceCell::None ||
               (cell.readers == RaceCell::One && cell.readThread == thread) ||
               cell.readClock < w.machine->launchClock ||
               (cell.readers == RaceCell::One && knowsReads(cell, a));
  if (fresh) {
    cell.readers = RaceCell::One;
    cell.readThread = thread;
    cell.readClock = clock;
    cell.readStrong = a.strong;
    return;
  }
  uint32_t threads = w.cta->threads;
  uint32_t otherCta = cell.readThread / threads;
  cell.readStrong &= a.strong;
  if (cell.readers == RaceCell::One) {
    cell.readWarps = 1u << (cell.readThread % threads / 32);
    cell.readThread = otherCta * threads;
    cell.readers = RaceCell::Warps;
  }
  if (otherCta != w.cta->linear)
    cell.readers = RaceCell::Many;
  else
    cell.readWarps |= 1u << w.index;
  cell.readClock = std::max(cell.readClock, clock);
}

Conflict RaceShadow::access(uint64_t at, unsigned size, const Access &a) {
  Page &p = page(at, size);
  Warp &w = *a.warp;
  uint32_t thread = w.cta->linear * w.cta->threads + w.tid(a.lane);
  uint32_t clock = w.clock;
  uint64_t last = (at % pageBytes + size - 1) >> p.shift;
  for (uint64_t i = at % pageBytes >> p.shift; i <= last; ++i) {
    RaceCell &cell = p.cells[i];
    Conflict conflict;
    conflict.at = at / pageBytes * pageBytes + (i << p.shift);
    conflict.otherThread = cell.writeThread;
    conflict.otherWrote = true;
    if (cell.async && cell.writeClock >= w.machine->launchClock) {
      conflict.kind = Conflict::NotWaited;
      return conflict;
    }
    bool benign =
        (a.strong && cell.writeStrong) || (a.write && a.sameValue && cell.writeClock == clock &&
                                           cell.writeThread / 32 == thread / 32);
    if (cell.written && !benign && !knows(w, a.lane, cell.writeThread, cell.writeClock)) {
      conflict.kind = Conflict::Race;
      return conflict;
    }
    if (a.write) {
      if (cell.readers != RaceCell::None && !(a.strong && cell.readStrong) &&
          !knowsReads(cell, a)) {
        conflict.kind = Conflict::Race;
        conflict.otherWrote = false;
        conflict.otherMany = cell.readers != RaceCell::One;
        conflict.otherThread = cell.readThread;
        return conflict;
      }
      cell.written = true;
      cell.writeThread = thread;
      cell.writeClock = clock;
      cell.writeStrong = a.strong;
      cell.async = a.async;
      cell.readers = RaceCell::None;
    } else {
      recordRead(cell, a, thread, clock);
    }
  }
  return {};
}

} // namespace llmc::ptx
