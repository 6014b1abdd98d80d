//===- CudaExecutor.h - steps on a CUDA device ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block of device memory holds the KV area, the arena, the logits and what is
// small. A step fills the pinned copy of llmc_cuda_step_t, launches its program's
// graph and waits once. What comes back is a pick per wanted row; logits are
// copied when somebody asks for them.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_CUDAEXECUTOR_H
#define LLMC_RUNTIME_DEVICE_CUDA_CUDAEXECUTOR_H

#include "llmc/cuda_abi.h"
#include "runtime/device/Executor.h"
#include "runtime/device/cuda/Launches.h"
#include "runtime/device/cuda/Weights.h"

#include <memory>
#include <vector>

namespace llmc::fb {
struct Boundary;
} // namespace llmc::fb

namespace llmc::rt {

/// What all sessions on a model share.
struct CudaModel {
  cuda::Code code;
  const fb::Variant *variant = nullptr;
  cuda::Weights weights;
};

/// What a CudaExecutor computes. All of it is validated and outlives the executor.
struct CudaWork {
  PerPhase<const fb::Program *> programs = {}; ///< null where there is none
  uint64_t kvBytes = 0;
  /// Where the programs end on this device; null: all of them are done whole, logits and picks
  /// included.
  PerPhase<const fb::Boundary *> ends = {};
  /// The arena of the device that goes on there, which gets what is live.
  uint8_t *hostArena = nullptr;
};

class CudaExecutor final : public Executor {
public:
  static StatusOr<std::unique_ptr<CudaExecutor>> create(std::shared_ptr<const CudaModel> model,
                                                        const CudaWork &work,
                                                        const ExecutorOptions &options);

  Status run(Phase phase, const StepInput &input) override;
  const float *logits(uint32_t first, uint32_t count) override;
  const float *maxima(uint32_t row) override;
  std::span<const int32_t> picks() const override { return {hostPicks(), wantedRows}; }
  uint64_t weightBytes(Phase phase) const override { return programs[phase].weightBytes; }
  double memoryBandwidth() const override { return device->memoryBandwidth(); }

private:
  /// Addresses within the one block of memory.
  struct Areas {
    cuda::CUdeviceptr kv, arena, logits, maxima, step, picks, counters;
  };
  struct Program {
    const fb::Program *record = nullptr;
    const fb::Boundary *end = nullptr;
    size_t dispatches = 0; ///< on this device
    uint64_t weightBytes = 0;
    cuda::Launches launches;
    cuda::HostCopy in, out;
    cuda::GraphExec graph;           ///< where steps are not measured
    std::vector<cuda::Event> events; ///< where they are
  };

  CudaExecutor(std::shared_ptr<const CudaModel> model, const CudaWork &work,
               const ExecutorOptions &options)
      : model(std::move(model)), options(options), device(this->model->code.device()),
        hostArena(work.hostArena) {}
  Status reserve(const CudaWork &work);
  Status initializeMemory();
  Status prepare(Program &program, ProgramProfile *profile);
  Status addLaunches(Program &program);
  void writeStep(const StepInput &input);
  Status launch(Program &program, Phase phase);
  Status copyLive(const Program &program, uint32_t rows);
  Status addTimes(const Program &program, bool wantsLogits, ProgramProfile &profile) const;
  void fetch(uint32_t end);

  llmc_cuda_step_t *hostStep() const { return static_cast<llmc_cuda_step_t *>(stepBlock.get()); }
  int32_t *hostTokens() const;
  int32_t *hostPicks() const { return static_cast<int32_t *>(picksBlock.get()); }
  float *hostMaxima() const;

  std::shared_ptr<const CudaModel> model;
  const ExecutorOptions options;
  std::shared_ptr<const cuda::Device> device;
  uint8_t *const hostArena;
  uint32_t mostRows = 0;     ///< of a step
  uint64_t counterBytes = 0; ///< of zeroed memory

  // In the order in which they are made; released the other way round.
  cuda::Stream stream;
  cuda::DeviceMemory memory;
  Areas areas = {};
  cuda::HostMemory stepBlock, picksBlock;
  cuda::HostMemory logitsBlock; ///< logits, then maxima
  PerPhase<Program> programs;

  uint32_t wantedRows = 0;  ///< rows of the last step whose logits were wanted
  uint32_t fetchedRows = 0; ///< those of them that logitsBlock holds
  Status deferred;          ///< of a copy of logits; the next step reports it
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_CUDA_CUDAEXECUTOR_H
