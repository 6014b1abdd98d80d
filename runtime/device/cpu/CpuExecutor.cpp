//===- CpuExecutor.cpp - steps on the workers of a pool -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CpuExecutor.h"

#include "runtime/schema/llmc_generated.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::rt;

StatusOr<std::unique_ptr<CpuExecutor>> CpuExecutor::create(const CpuWork &work,
                                                           std::shared_ptr<WorkerPool> pool,
                                                           const ExecutorOptions &options) {
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(std::move(pool), options));
  LLMC_RETURN_IF_ERROR(executor->reserve(work));
  return executor;
}

Status CpuExecutor::reserve(const CpuWork &work) {
  uint64_t arenaSize = 0, scratchSize = 0;
  for (const fb::Program *program : work.programs)
    if (program) {
      arenaSize = std::max(arenaSize, program->arena_size());
      scratchSize = std::max(scratchSize, program->scratch_size());
    }
  LLMC_ASSIGN_OR_RETURN(arena, PageBuffer::reserve(arenaSize, "arena"));
  LLMC_ASSIGN_OR_RETURN(kv, PageBuffer::reserve(work.kvBytes, "KV cache"));
  const uint64_t rows = options.logitsRows;
  LLMC_ASSIGN_OR_RETURN(logitsArea,
                        PageBuffer::reserve(rows * options.vocabSize * sizeof(float), "logits"));
  LLMC_ASSIGN_OR_RETURN(maximaArea,
                        PageBuffer::reserve(rows * maximaPerRow(options.vocabSize) * sizeof(float),
                                            "maxima of logits"));
  size_t ranges = 0;
  for (size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (!work.programs[phase])
      continue;
    programs[phase] = Program(*work.programs[phase], work.kernels,
                              {arena.data(), work.weights, kv.data()}, work.first[phase]);
    ranges = std::max(ranges, programs[phase].rangeCount());
  }
  LLMC_ASSIGN_OR_RETURN(scratch, WorkerScratch::create(pool->size(), scratchSize, ranges));
  return {};
}

Status CpuExecutor::run(Phase phase, const StepInput &input) {
  const llmc_step_t step{static_cast<int32_t>(input.tokens.size()),
                         static_cast<int32_t>(input.position),
                         static_cast<int32_t>(input.outBegin),
                         static_cast<int32_t>(input.outRows),
                         input.tokens.data(),
                         floats(logitsArea),
                         floats(maximaArea)};
  if (options.promptObserver && phase == Phase::Prefill)
    programs[phase].run(*pool, scratch, step, *options.promptObserver);
  else
    programs[phase].run(*pool, scratch, step, options.profiles[phase]);
  return {};
}
