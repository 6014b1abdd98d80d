//===- Access.h - checked memory accesses -----------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_ACCESS_H
#define LLMC_TESTS_PTX_EMULATOR_ACCESS_H

#include "tests/ptx/emulator/Machine.h"

namespace llmc::ptx {

// Where the other spaces stand among generic addresses, above all of the process's.
constexpr uint64_t sharedWindow = uint64_t(1) << 56;
constexpr uint64_t localWindow = uint64_t(2) << 56;
constexpr uint64_t paramWindow = uint64_t(3) << 56;
constexpr uint64_t windowMask = ~((uint64_t(1) << 32) - 1);

Space spaceOf(uint64_t generic);

enum AccessFlags : unsigned { accessRead = 1, accessWrite = 2, accessStrong = 4, accessAsync = 8 };

/// Checks one lane's access and gives its bytes, or null after a report. `value` is what a write
/// will store, if that is known.
uint8_t *access(Warp &warp, const Inst &inst, unsigned lane, Space space, uint64_t address,
                unsigned size, unsigned flags, const void *value = nullptr);

/// Address of a lane's memory operand.
inline uint64_t addressOf(const Warp &w, const Inst &i, unsigned lane) {
  uint64_t base = i.wideAddress ? reinterpret_cast<const uint64_t *>(w.regs + i.a)[lane]
                                : reinterpret_cast<const uint32_t *>(w.regs + i.a)[lane];
  return i.space == Space::Shared || i.space == Space::Local || i.space == Space::Param
             ? uint32_t(base + i.offset)
             : base + i.offset;
}

/// Counts a request's 32-byte sectors or its bank conflicts.
void countGlobal(Warp &warp, const uint64_t *addresses, uint32_t mask, unsigned size, bool store);
void countShared(Warp &warp, const uint64_t *addresses, uint32_t mask, unsigned size);

/// The CTA's barrier is complete: results of bar.red.
void finishBarrier(Warp &warp, const Inst &inst, uint32_t lanes, uint32_t votes, uint32_t threads);
/// The thread's copies arrive, and then it at the mbarrier.
void landArrival(Cta &cta, const PendingArrival &arrival);

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_ACCESS_H
