//===- Access.cpp - checked memory accesses -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llmc::ptx {

Space spaceOf(uint64_t generic) {
  switch (generic & windowMask) {
  case sharedWindow:
    return Space::Shared;
  case localWindow:
    return Space::Local;
  case paramWindow:
    return Space::Param;
  default:
    return Space::Global;
  }
}

static bool report(Warp &w, unsigned lane, const Conflict &c, bool write, const char *space,
                   uint64_t address) {
  const char *verb = write ? "writes" : "reads";
  if (c.kind == Conflict::NotWaited) {
    w.fail(ErrorKind::NotWaited, lane,
           "%s %s address 0x%llx, to which a cp.async of thread %u copies that was not waited for",
           verb, space, (unsigned long long)address, c.otherThread % w.cta->threads);
    return false;
  }
  unsigned block = c.otherThread / w.cta->threads, tid = c.otherThread % w.cta->threads;
  if (c.otherMany)
    w.fail(ErrorKind::Race, lane,
           "%s %s address 0x%llx, which several threads have read, unordered", verb, space,
           (unsigned long long)address);
  else
    w.fail(ErrorKind::Race, lane, "%s %s address 0x%llx, which thread %u of block %u %s, unordered",
           verb, space, (unsigned long long)address, tid, block, c.otherWrote ? "wrote" : "read");
  return false;
}

static bool checkShadow(Warp &w, unsigned lane, ByteSet &init, RaceShadow &race, uint64_t at,
                        unsigned size, unsigned flags, const uint8_t *bytes, const void *value,
                        const char *space, uint64_t address) {
  const Options &o = w.machine->options;
  if (o.checkRaces && !race.empty()) {
    Access a;
    a.warp = &w;
    a.lane = lane;
    a.write = flags & accessWrite;
    a.read = flags & accessRead;
    a.strong = flags & accessStrong;
    a.async = flags & accessAsync;
    a.sameValue = value && !memcmp(bytes, value, size);
    Conflict c = race.access(at, size, a);
    if (c.kind != Conflict::None)
      return report(w, lane, c, a.write, space, address - at + c.at);
  }
  if (o.checkInit && !init.empty()) {
    if ((flags & accessRead) && !init.all(at, size)) {
      w.fail(ErrorKind::Uninitialised, lane, "reads %u bytes at %s address 0x%llx, not all written",
             size, space, (unsigned long long)address);
      return false;
    }
    if (flags & accessWrite)
      init.set(at, size);
  }
  return true;
}

uint8_t *access(Warp &w, const Inst &i, unsigned lane, Space space, uint64_t address, unsigned size,
                unsigned flags, const void *value) {
  Machine &m = *w.machine;
  if (space == Space::Generic) {
    space = spaceOf(address);
    if (space != Space::Global)
      address = uint32_t(address);
  }
  auto misaligned = [&](const char *name) -> uint8_t * {
    w.fail(ErrorKind::Misaligned, lane, "%s address 0x%llx is not a multiple of %u", name,
           (unsigned long long)address, size);
    return nullptr;
  };
  auto outside = [&](const char *name, uint64_t low, uint64_t high) -> uint8_t * {
    w.fail(ErrorKind::OutOfBounds, lane,
           "%u bytes at %s address 0x%llx, it goes from 0x%llx to 0x%llx", size, name,
           (unsigned long long)address, (unsigned long long)low, (unsigned long long)high);
    return nullptr;
  };
  switch (space) {
  case Space::Shared: {
    Cta &cta = *w.cta;
    if (address < sharedStart || address - sharedStart + size > cta.shared.size())
      return outside("shared", sharedStart, sharedStart + cta.shared.size());
    if (address % size)
      return misaligned("shared");
    uint64_t at = address - sharedStart;
    uint8_t *bytes = cta.shared.data() + at;
    return checkShadow(w, lane, cta.sharedInit, cta.sharedRace, at, size, flags, bytes, value,
                       "shared", address)
               ? bytes
               : nullptr;
  }
  case Space::Local: {
    if (address + size > w.program->localBytes)
      return outside("local", 0, w.program->localBytes);
    if (address % size)
      return misaligned("local");
    uint64_t at = uint64_t(lane) * w.program->localBytes + address;
    static RaceShadow noRaces;
    uint8_t *bytes = w.local.data() + at;
    return checkShadow(w, lane, w.localInit, noRaces, at, size, flags, bytes, nullptr, "local",
                       address)
               ? bytes
               : nullptr;
  }
  case Space::Param: {
    if (address + size > m.config->params.size())
      return outside("param", 0, m.config->params.size());
    if (flags & accessWrite) {
      w.fail(ErrorKind::OutOfBounds, lane, "writes a kernel parameter");
      return nullptr;
    }
    return const_cast<uint8_t *>(m.config->params.data()) + address;
  }
  default:
    break;
  }
  Allocation *a = m.lastAllocation;
  if (!a || address < a->base || address >= a->end())
    a = m.lastAllocation = m.memory.find(address);
  if (!a || address + size > a->end()) {
    Allocation *near = m.memory.nearest(address);
    if (near && address >= near->base)
      w.fail(ErrorKind::OutOfBounds, lane,
             "%u bytes at global address 0x%llx, %llu bytes past the end of an allocation of %llu",
             size, (unsigned long long)address, (unsigned long long)(address + size - near->end()),
             (unsigned long long)near->size);
    else
      w.fail(ErrorKind::OutOfBounds, lane, "%u bytes at global address 0x%llx, in no allocation",
             size, (unsigned long long)address);
    return nullptr;
  }
  if (address % size)
    return misaligned("global");
  if ((flags & accessWrite) && a->readOnly) {
    w.fail(ErrorKind::OutOfBounds, lane, "writes constant memory");
    return nullptr;
  }
  i.cacheLow = a->base;
  i.cacheHigh = a->end();
  uint64_t at = address - a->base;
  auto *bytes = reinterpret_cast<uint8_t *>(address);
  if (!checkShadow(w, lane, a->init, a->race, at, size, flags, bytes, value, "global", address))
    return nullptr;
  if (m.options.count && (flags & accessRead))
    a->touched.set(at, size);
  return bytes;
}

void countGlobal(Warp &w, const uint64_t *addresses, uint32_t mask, unsigned size, bool store) {
  uint64_t sectors[64], distinct[32];
  unsigned n = 0, words = 0;
  uint64_t last = ~uint64_t(0);
  bool ordered = true;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint64_t address = addresses[std::countr_zero(rest)];
    uint64_t sector = address / 32;
    distinct[words++] = address;
    if (sector == last)
      continue;
    ordered &= last == ~uint64_t(0) || sector > last;
    sectors[n++] = sector;
    last = sector;
  }
  if (!ordered) {
    std::sort(sectors, sectors + n);
    n = unsigned(std::unique(sectors, sectors + n) - sectors);
    std::sort(distinct, distinct + words);
  }
  words = unsigned(std::unique(distinct, distinct + words) - distinct);
  Counters &c = w.machine->counters;
  uint64_t bytes = uint64_t(std::popcount(mask)) * size;
  if (store) {
    c.globalStoreRequests += 1;
    c.globalStoreSectors += n;
    c.globalStoreBytes += bytes;
  } else {
    c.globalLoadRequests += 1;
    c.globalLoadSectors += n;
    c.globalLoadBytes += bytes;
    c.globalLoadIdealSectors += (uint64_t(words) * size + 31) / 32;
  }
}

void countShared(Warp &w, const uint64_t *addresses, uint32_t mask, unsigned size) {
  // Lanes that one pass serves: 128 bytes of 4-byte words.
  unsigned lanes = size <= 4 ? 32 : size == 8 ? 16 : 8;
  unsigned words = std::max(size / 4, 1u);
  Counters &c = w.machine->counters;
  c.sharedAccesses += 1;
  c.sharedBytes += uint64_t(std::popcount(mask)) * size;
  for (unsigned first = 0; first < 32; first += lanes) {
    uint64_t seen[32];
    unsigned n = 0, perBank[32] = {}, worst = 0;
    for (unsigned lane = first; lane < first + lanes; ++lane) {
      if (!(mask >> lane & 1))
        continue;
      for (unsigned k = 0; k < words; ++k) {
        uint64_t word = addresses[lane] / 4 + k;
        if (std::find(seen, seen + n, word) != seen + n)
          continue;
        seen[n++] = word;
        worst = std::max(worst, ++perBank[word % 32]);
      }
    }
    c.bankConflicts += worst > 1 ? worst - 1 : 0;
  }
}

} // namespace llmc::ptx
