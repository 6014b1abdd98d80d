//===- Program.h - a program of dispatches, ready to run --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Binding turns an artifact's program into flat tables: the kernels' addresses
// and one array of buffer pointers per dispatch. A step then costs each worker,
// per dispatch, a few loads and one indirect call: tile counts depend on the
// step only through a handful of distinct Tiles records, so every worker first
// works out its range for each of them.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CPU_PROGRAM_H
#define LLMC_RUNTIME_DEVICE_CPU_PROGRAM_H

#include "llmc/kernel_abi.h"
#include "runtime/base/Memory.h"
#include "runtime/base/Status.h"
#include "runtime/base/WorkerPool.h"
#include "runtime/device/Profile.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc::fb {
struct Program;
struct Tiles;
} // namespace llmc::fb

namespace llmc::rt {

/// What Binding.offset counts from, for each BindingKind.
struct BaseAddresses {
  uint8_t *arena;
  const uint8_t *weights;
  uint8_t *kv;
};

/// Where workers keep what belongs to them alone. One is shared by all programs of a session.
class WorkerScratch {
public:
  /// `scratchBytes` for kernels and `rangeCount` tile ranges, for each worker.
  static StatusOr<WorkerScratch> create(unsigned workers, uint64_t scratchBytes, size_t rangeCount);

  using Range = Balance::Range;
  void *scratch(unsigned worker) const { return memory.data() + worker * stride; }
  Range *ranges(unsigned worker) const {
    return reinterpret_cast<Range *>(memory.data() + worker * stride + rangesOffset);
  }

private:
  PageBuffer memory;
  size_t stride = 0;
  size_t rangesOffset = 0;
};

/// Sees the dispatches of a step one after the other, each when it is done.
class StepObserver {
public:
  virtual ~StepObserver() = default;
  /// `dispatch` counts in the program's order; `buffers` are its bindings.
  virtual void done(size_t dispatch, std::span<void *const> buffers, const llmc_step_t &step) = 0;
};

class Program {
public:
  Program() = default;
  /// `program` has been validated: kernel indices and offsets are in range. The dispatches before
  /// `first` are left out.
  Program(const fb::Program &program, std::span<const llmc_kernel_fn_t> kernels,
          const BaseAddresses &bases, size_t first = 0);

  uint32_t maxRows() const { return rows; }
  /// Distinct Tiles records, the ranges that WorkerScratch must have room for.
  size_t rangeCount() const { return tiles.size(); }
  /// Bytes of weights that one step reads.
  uint64_t weightBytes() const { return weights; }

  /// Computes one step on all workers of `pool`, and adds its times to `profile` if there is one.
  /// Now and then it measures how fast the workers are, for the pool's balance. Allocates nothing.
  void run(WorkerPool &pool, const WorkerScratch &scratch, const llmc_step_t &step,
           ProgramProfile *profile = nullptr) const;
  /// The same, slower: all workers meet behind every dispatch, and `observer` is called.
  void run(WorkerPool &pool, const WorkerScratch &scratch, const llmc_step_t &step,
           StepObserver &observer) const;

private:
  struct Tiles {
    uint32_t base, rowBlock, kvChunk, window;
    bool outRows;
    bool operator==(const Tiles &) const = default;
    int64_t count(const llmc_step_t &step) const;
  };
  struct Dispatch {
    llmc_kernel_fn_t kernel;
    uint32_t firstBuffer; ///< index into buffers
    uint16_t range;       ///< index into tiles and the worker's ranges
    bool barrier;
  };
  uint16_t tilesIndex(const fb::Tiles *record);
  std::span<void *const> buffersOf(size_t dispatch) const;
  /// What a worker needed for the dispatches that tell its speed.
  struct Timing {
    bool wanted;
    double seconds = 0;
  };
  /// Calls `started(index)` when a dispatch starts on this worker.
  template <typename Started>
  void runWorker(WorkerPool &pool, unsigned worker, const WorkerScratch &scratch,
                 const llmc_step_t &step, Started started, Timing &timing) const;

  uint32_t rows = 0;
  size_t first = 0; ///< dispatch of the artifact's program
  uint64_t weights = 0;
  std::vector<Tiles> tiles;
  std::vector<Dispatch> dispatches;
  std::vector<void *> buffers;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_CPU_PROGRAM_H
