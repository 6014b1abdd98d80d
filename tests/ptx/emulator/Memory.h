//===- Memory.h - the device's memory ---------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_MEMORY_H
#define LLMC_TESTS_PTX_EMULATOR_MEMORY_H

#include "tests/ptx/emulator/Race.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace llmc::ptx {

/// One bit per byte: which bytes have a value, or were touched.
class ByteSet {
public:
  void resize(uint64_t bytes) { words.assign((bytes + 63) / 64 + 1, 0); }
  bool empty() const { return words.empty(); }
  void clear() { std::fill(words.begin(), words.end(), 0); }
  /// Bits of up to 16 bytes from `at`.
  uint32_t get(uint64_t at, unsigned size) const {
    uint64_t shift = at % 64, bits = words[at / 64] >> shift;
    if (shift + size > 64)
      bits |= words[at / 64 + 1] << (64 - shift);
    return uint32_t(bits) & mask(size);
  }
  bool all(uint64_t at, unsigned size) const { return get(at, size) == mask(size); }
  void set(uint64_t at, unsigned size) {
    uint64_t shift = at % 64, bits = mask(size);
    words[at / 64] |= bits << shift;
    if (shift + size > 64)
      words[at / 64 + 1] |= bits >> (64 - shift);
  }
  void setRange(uint64_t at, uint64_t size);
  void copyRange(uint64_t at, const ByteSet &from, uint64_t fromAt, uint64_t size);
  uint64_t count() const;

private:
  static uint32_t mask(unsigned size) { return size >= 32 ? ~0u : (1u << size) - 1; }
  std::vector<uint64_t> words;
};

struct Allocation {
  uint64_t base = 0, size = 0;
  bool readOnly = false; // constant memory
  bool host = false;     // pinned host memory, elsewhere
  ByteSet init;
  ByteSet touched; // bytes read by kernels since the counters were reset
  RaceShadow race;
  uint64_t end() const { return base + size; }
};

/// The device's memory: one reserved stretch of the process's addresses, so that a device address
/// of an allocation is a host address, and any other is nothing. Between allocations are gaps.
class DeviceMemory {
public:
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;

  /// 0 if there is no room. Contents are not initialised (a pattern, not zeros).
  uint64_t allocate(uint64_t size, uint64_t align = 256);
  /// Makes host memory visible to kernels under its own address.
  void registerHost(void *base, uint64_t size);
  bool free(uint64_t address);
  /// The allocation that `address` is in, or null.
  Allocation *find(uint64_t address);
  /// The nearest one, to say by how far an access has missed it.
  Allocation *nearest(uint64_t address);
  uint64_t used() const { return inUse; }
  uint64_t capacity() const { return limit; }
  /// Bytes that kernels have read at least once, those of freed memory included.
  uint64_t touchedBytes() const;
  void resetTouched();

private:
  uint64_t region = 0, regionSize = 0, top = 0, limit = 0, inUse = 0, freedTouched = 0;
  std::map<uint64_t, Allocation> allocations; // by base
  std::multimap<uint64_t, uint64_t> holes;    // size -> base, of what was freed
};

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_MEMORY_H
