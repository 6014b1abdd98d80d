//===- Collective.h - what lanes do together --------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_COLLECTIVE_H
#define LLMC_TESTS_PTX_EMULATOR_COLLECTIVE_H

#include "tests/ptx/emulator/Machine.h"

namespace llmc::ptx {

/// Are all living lanes of `members` among those that execute (`mask`)? If not, the group waits for
/// the others, or it was an error; the handler returns either way.
bool converged(Warp &warp, uint32_t members, uint32_t mask);
/// The same, with the members in a register.
bool memberMask(Warp &warp, uint32_t slot, uint32_t mask, uint32_t &members);
/// An instruction with .aligned: all living lanes of the warp execute it.
inline bool aligned(Warp &warp, uint32_t mask) { return converged(warp, ~0u, mask); }

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_COLLECTIVE_H
