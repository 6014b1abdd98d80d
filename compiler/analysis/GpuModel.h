//===- GpuModel.h - how long a kernel takes on a GPU, as a model -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A roofline with the things that keep a small kernel from it: a launch, the
// latency of memory, and multiprocessors that have nothing to do. docs/design/
// gpu-model.md says what is assumed, and why.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_ANALYSIS_GPUMODEL_H
#define LLMC_COMPILER_ANALYSIS_GPUMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>

namespace llmc {

struct Gpu {
  llvm::StringRef name, title;
  unsigned capability; ///< 10 * major + minor
  int64_t multiprocessors;
  double clockGHz;
  double memoryGBs;                     ///< that a plain read reaches
  int64_t threads, blocks, sharedBytes; ///< of a multiprocessor
  double launchUs;                      ///< between two kernels of a graph
};

llvm::ArrayRef<Gpu> gpus();
/// The GPU of that name ("h200"); null where there is none.
const Gpu *lookupGpu(llvm::StringRef name);

/// One launch of a kernel.
struct KernelWork {
  double bytes = 0;            ///< read from memory
  double laneInstructions = 0; ///< of all threads; 0 where it is not known
  int64_t blocks = 1;          ///< with work
  int64_t threads = 256;       ///< of a block
  int64_t registers = 0;       ///< of a thread; 0 where it is not known
  int64_t sharedBytes = 0;     ///< of a block
};

/// Microseconds.
struct KernelTime {
  double memory = 0, issue = 0, latency = 0, launch = 0;
  int64_t residentBlocks = 0; ///< that fit a multiprocessor

  double execution() const { return std::max({memory, issue, latency}); }
  double total() const { return launch + execution(); }
  /// What bounds it: "memory", "issue" or "latency".
  llvm::StringRef bound() const;
};
KernelTime predictKernel(const Gpu &gpu, const KernelWork &work);

} // namespace llmc

#endif // LLMC_COMPILER_ANALYSIS_GPUMODEL_H
