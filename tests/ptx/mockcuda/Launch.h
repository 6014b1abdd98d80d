//===- Launch.h - arguments of launches -------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_MOCKCUDA_LAUNCH_H
#define LLMC_TESTS_PTX_MOCKCUDA_LAUNCH_H

#include "tests/ptx/mockcuda/State.h"

namespace llmc::mock {

/// Copies a launch's arguments, given one by one or as a buffer.
CUresult gatherParams(CUfunction function, void **params, void **extra, ptx::LaunchConfig &config);

inline void setDims(ptx::LaunchConfig &config, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                    unsigned by, unsigned bz, unsigned shared) {
  config.grid[0] = gx, config.grid[1] = gy, config.grid[2] = gz;
  config.block[0] = bx, config.block[1] = by, config.block[2] = bz;
  config.dynamicShared = shared;
}

} // namespace llmc::mock

#endif // LLMC_TESTS_PTX_MOCKCUDA_LAUNCH_H
