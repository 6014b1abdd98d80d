//===- Memory.cpp - the device's memory -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Memory.h"

#include <bit>
#include <cstring>
#include <sys/mman.h>

namespace llmc::ptx {

constexpr uint64_t gap = 4096;
// What memory holds before anything is stored: a NaN as f32 and as f16, far from small integers.
constexpr uint8_t garbage = 0xfe;

void ByteSet::setRange(uint64_t at, uint64_t size) {
  while (size && at % 64) {
    set(at++, 1);
    --size;
  }
  std::fill_n(words.begin() + at / 64, size / 64, ~uint64_t(0));
  at += size / 64 * 64;
  for (size %= 64; size; --size)
    set(at++, 1);
}

void ByteSet::copyRange(uint64_t at, const ByteSet &from, uint64_t fromAt, uint64_t size) {
  for (uint64_t i = 0; i < size; ++i) {
    uint64_t bit = uint64_t(1) << (at + i) % 64;
    uint64_t &word = words[(at + i) / 64];
    word = from.get(fromAt + i, 1) ? word | bit : word & ~bit;
  }
}

uint64_t ByteSet::count() const {
  uint64_t n = 0;
  for (uint64_t word : words)
    n += std::popcount(word);
  return n;
}

DeviceMemory::DeviceMemory(uint64_t capacity) : limit(capacity) {
  // Address space is cheap, and gaps between allocations need some.
  regionSize = capacity * 2 + (uint64_t(1) << 30);
  void *base = mmap(nullptr, regionSize, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    regionSize = 0;
    limit = 0;
    return;
  }
  region = top = reinterpret_cast<uint64_t>(base);
}

DeviceMemory::~DeviceMemory() {
  if (regionSize)
    munmap(reinterpret_cast<void *>(region), regionSize);
}

uint64_t DeviceMemory::allocate(uint64_t size, uint64_t align) {
  if (!size || size > limit - inUse)
    return 0;
  uint64_t need = (size + gap * 2 - 1) / gap * gap;
  uint64_t base = 0;
  if (auto hole = holes.lower_bound(need); hole != holes.end() && hole->first < need * 2) {
    base = hole->second;
    holes.erase(hole);
  } else {
    base = (top + std::max(align, gap) - 1) & ~(std::max(align, gap) - 1);
    if (base + need > region + regionSize)
      return 0;
    top = base + need;
  }
  Allocation &a = allocations[base];
  a.base = base;
  a.size = size;
  a.init.resize(size);
  a.touched.resize(size);
  a.race.resize(size);
  inUse += size;
  // Large memory stays as the system gives it: to fill it would make it resident.
  if (size <= (1u << 20))
    memset(reinterpret_cast<void *>(base), garbage, size);
  return base;
}

void DeviceMemory::registerHost(void *base, uint64_t size) {
  Allocation &a = allocations[reinterpret_cast<uint64_t>(base)];
  a.base = reinterpret_cast<uint64_t>(base);
  a.size = size;
  a.host = true;
  a.init.resize(size);
  a.init.setRange(0, size);
  a.touched.resize(size);
  a.race.resize(size);
}

bool DeviceMemory::free(uint64_t address) {
  auto it = allocations.find(address);
  if (it == allocations.end())
    return false;
  Allocation &a = it->second;
  freedTouched += a.touched.count();
  if (!a.host) {
    inUse -= a.size;
    uint64_t need = (a.size + gap * 2 - 1) / gap * gap;
    madvise(reinterpret_cast<void *>(a.base), need, MADV_DONTNEED);
    holes.emplace(need, a.base);
  }
  allocations.erase(it);
  return true;
}

Allocation *DeviceMemory::nearest(uint64_t address) {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return it == allocations.end() ? nullptr : &it->second;
  return &std::prev(it)->second;
}

Allocation *DeviceMemory::find(uint64_t address) {
  Allocation *a = nearest(address);
  return a && address >= a->base && address < a->end() ? a : nullptr;
}

uint64_t DeviceMemory::touchedBytes() const {
  uint64_t n = freedTouched;
  for (const auto &[base, a] : allocations)
    n += a.touched.count();
  return n;
}

void DeviceMemory::resetTouched() {
  freedTouched = 0;
  for (auto &[base, a] : allocations)
    a.touched.clear();
}

} // namespace llmc::ptx
