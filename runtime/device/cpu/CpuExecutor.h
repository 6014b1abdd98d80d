//===- CpuExecutor.h - steps on the workers of a pool -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CPU_CPUEXECUTOR_H
#define LLMC_RUNTIME_DEVICE_CPU_CPUEXECUTOR_H

#include "runtime/device/Executor.h"
#include "runtime/device/cpu/Program.h"

#include <memory>

namespace llmc::rt {

/// What a CpuExecutor computes. All of it is validated and outlives the executor.
struct CpuWork {
  PerPhase<const fb::Program *> programs = {}; ///< null where there is none
  PerPhase<size_t> first = {};                 ///< dispatch: those before are done elsewhere
  std::span<const llmc_kernel_fn_t> kernels;
  const uint8_t *weights = nullptr;
  uint64_t kvBytes = 0;
};

class CpuExecutor final : public Executor {
public:
  static StatusOr<std::unique_ptr<CpuExecutor>>
  create(const CpuWork &work, std::shared_ptr<WorkerPool> pool, const ExecutorOptions &options);

  Status run(Phase phase, const StepInput &input) override;
  const float *logits(uint32_t first, uint32_t) override {
    return floats(logitsArea) + size_t(first) * options.vocabSize;
  }
  const float *maxima(uint32_t row) override {
    return floats(maximaArea) + row * maximaPerRow(options.vocabSize);
  }
  uint64_t weightBytes(Phase phase) const override { return programs[phase].weightBytes(); }

  /// Where another device may leave what this one goes on with.
  uint8_t *arenaData() const { return arena.data(); }

private:
  CpuExecutor(std::shared_ptr<WorkerPool> pool, const ExecutorOptions &options)
      : pool(std::move(pool)), options(options) {}
  Status reserve(const CpuWork &work);
  static float *floats(const PageBuffer &area) { return reinterpret_cast<float *>(area.data()); }

  std::shared_ptr<WorkerPool> pool;
  const ExecutorOptions options;
  PageBuffer arena, kv, logitsArea, maximaArea;
  WorkerScratch scratch;
  PerPhase<Program> programs;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_CPU_CPUEXECUTOR_H
