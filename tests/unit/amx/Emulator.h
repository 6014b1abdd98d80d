//===- Emulator.h - runs tile instructions where there are none -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a processor without AMX a tile instruction raises SIGILL. The handler reads
// the instruction at the fault, executes it on the thread's TileUnit and lets the
// thread go on behind it: the machine code under test runs unchanged, on any
// machine with AVX-512. On a processor with AMX nothing is installed and the same
// tests run on silicon.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_AMX_EMULATOR_H
#define LLMC_TESTS_UNIT_AMX_EMULATOR_H

#include "runtime/base/Cpu.h"
#include <cstdint>

namespace llmc::test::amx {

/// How this machine can run tile instructions.
enum class Mode {
  None,     ///< not at all: no AVX-512, or no x86-64
  Emulated, ///< by the handler
  Native,
};

/// Installs the handler where it is needed. Call once, before threads are made.
Mode install();

/// What this machine has, and what the emulator adds.
rt::CpuFeatures features(Mode mode);

/// Instructions since the last reset, of all threads. All zero in native mode.
struct Counts {
  uint64_t loadConfigs, releases, zeros, loads, stores, byteDots, bf16Dots;
};
Counts counts();
void resetCounts();

/// Whether this thread's tiles are in use, of the emulator or of the processor.
bool tilesInUse();

} // namespace llmc::test::amx

#endif // LLMC_TESTS_UNIT_AMX_EMULATOR_H
