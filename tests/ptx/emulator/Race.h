//===- Race.h - what is ordered, and what races -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_RACE_H
#define LLMC_TESTS_PTX_EMULATOR_RACE_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace llmc::ptx {

struct Warp;

/// What a thread knows to have happened: for each CTA, a clock before which all its threads'
/// accesses are known, and where threads differ, one clock for each.
class Knowledge {
public:
  bool knows(uint32_t cta, uint32_t tid, uint32_t clock) const {
    auto it = entries.find(cta);
    if (it == entries.end())
      return false;
    const Entry &e = it->second;
    return clock < e.base || (tid < e.threads.size() && clock < e.threads[tid]);
  }
  void join(const Knowledge &other);
  void base(uint32_t cta, uint32_t clock) {
    uint32_t &value = entries[cta].base;
    value = std::max(value, clock);
  }
  void thread(uint32_t cta, uint32_t tid, uint32_t clock) {
    auto &threads = entries[cta].threads;
    if (threads.size() <= tid)
      threads.resize(tid + 1);
    threads[tid] = std::max(threads[tid], clock);
  }
  void forget(uint32_t cta) { entries.erase(cta); }
  bool empty() const { return entries.empty(); }

private:
  struct Entry {
    uint32_t base = 0;
    std::vector<uint32_t> threads;
  };
  std::map<uint32_t, Entry> entries;
};
using SharedKnowledge = std::shared_ptr<const Knowledge>;

/// The last write and the last reads of a granule.
///
/// A clock belongs to a warp and grows with its synchronisations; an access is ordered before
/// another if the second's thread knows the clock of the first. Clocks only grow over launches.
struct RaceCell {
  enum Readers : uint8_t { None, One, Warps, Many };
  uint32_t writeThread = 0, writeClock = 0; // thread: cta * threads + tid
  uint32_t readThread = 0, readClock = 0;   // Warps: the cta's first thread
  uint32_t readWarps = 0;
  Readers readers = None;
  bool written = false;
  bool writeStrong = false, readStrong = false;
  bool async = false; // by a copy that has not been waited for
};

struct Access {
  Warp *warp = nullptr;
  unsigned lane = 0;
  bool write = false;
  bool read = false; // both: an atomic
  bool strong = false;
  bool async = false;
  bool sameValue = false; // a write of what is there already
};

struct Conflict {
  enum Kind : uint8_t { None, Race, NotWaited } kind = None;
  bool otherWrote = false;
  uint32_t otherThread = 0;
  bool otherMany = false;
  uint64_t at = 0;
};

/// Cells of a stretch of memory, of four bytes each until something smaller is accessed.
class RaceShadow {
public:
  void resize(uint64_t bytes) {
    pages.clear();
    pages.resize((bytes + pageBytes - 1) / pageBytes);
  }
  bool empty() const { return pages.empty(); }
  /// Checks an access against what came before, and records it.
  Conflict access(uint64_t at, unsigned size, const Access &access);
  /// An asynchronous write has been waited for by its thread.
  void landed(uint64_t at, unsigned size, uint32_t clock);

private:
  static constexpr uint64_t pageBytes = 1024;
  struct Page {
    unsigned shift = 2;
    std::vector<RaceCell> cells;
  };
  Page &page(uint64_t at, unsigned size);
  std::vector<std::unique_ptr<Page>> pages;
};

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_RACE_H
