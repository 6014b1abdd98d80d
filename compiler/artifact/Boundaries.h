//===- Boundaries.h - where a program may change devices --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_ARTIFACT_BOUNDARIES_H
#define LLMC_COMPILER_ARTIFACT_BOUNDARIES_H

#include "compiler/ir/Sched.h"
#include <vector>

namespace llmc {

/// Between the dispatches of the layers before `layer` and those after them. What precedes the
/// first layer belongs to the former, what follows the last one to the latter.
struct LayerBoundary {
  int64_t layer;
  size_t dispatch;                         ///< the first one after it
  llvm::SmallVector<sched::BufferOp> live; ///< written before it and read after it
};

/// One before every layer but the first. A layer whose dispatches are mixed with another's has
/// none.
std::vector<LayerBoundary> layerBoundaries(sched::ProgramOp program);

} // namespace llmc

#endif // LLMC_COMPILER_ARTIFACT_BOUNDARIES_H
