//===- CudaExecutor.cpp - steps on a CUDA device --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaExecutor.h"

#include "runtime/schema/llmc_generated.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::rt::cuda;

namespace {

/// Of everything in device memory: no two areas share a cache line or a sector.
constexpr uint64_t kAlignment = 256;
/// Where the tokens of a step stand in its block.
constexpr uint64_t kTokensOffset = 64;
static_assert(sizeof(llmc_cuda_step_t) <= kTokensOffset);

template <typename Pointer> Pointer devicePointer(CUdeviceptr address) {
  return reinterpret_cast<Pointer>(static_cast<uintptr_t>(address));
}

} // namespace

StatusOr<std::unique_ptr<CudaExecutor>> CudaExecutor::create(std::shared_ptr<const CudaModel> model,
                                                             const CudaWork &work,
                                                             const ExecutorOptions &options) {
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(std::move(model), work, options));
  LLMC_RETURN_IF_ERROR(executor->reserve(work));
  return executor;
}

int32_t *CudaExecutor::hostTokens() const {
  return reinterpret_cast<int32_t *>(static_cast<uint8_t *>(stepBlock.get()) + kTokensOffset);
}

float *CudaExecutor::hostMaxima() const {
  return static_cast<float *>(logitsBlock.get()) + size_t(options.logitsRows) * options.vocabSize;
}

Status CudaExecutor::reserve(const CudaWork &work) {
  uint64_t arenaBytes = 0;
  for (const fb::Program *program : work.programs)
    if (program) {
      arenaBytes = std::max(arenaBytes, program->arena_size());
      mostRows = std::max(mostRows, program->max_rows());
    }
  const uint64_t rows = options.logitsRows, vocab = options.vocabSize;
  uint64_t total = 0;
  const auto place = [&](CUdeviceptr &area, uint64_t bytes) {
    area = total;
    total = (total + bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  place(areas.kv, work.kvBytes);
  place(areas.arena, arenaBytes);
  place(areas.logits, rows * vocab * sizeof(float));
  place(areas.maxima, rows * maximaPerRow(vocab) * sizeof(float));
  place(areas.step, kTokensOffset + mostRows * sizeof(int32_t));
  place(areas.picks, rows * sizeof(int32_t));
  counterBytes = model->variant->counter_bytes();
  place(areas.counters, counterBytes);

  LLMC_ASSIGN_OR_RETURN(stream, createStream(device));
  LLMC_ASSIGN_OR_RETURN(memory, allocate(device, total, "the KV cache and intermediate values"));
  for (CUdeviceptr *area : {&areas.kv, &areas.arena, &areas.logits, &areas.maxima, &areas.step,
                            &areas.picks, &areas.counters})
    *area += memory.get();
  LLMC_ASSIGN_OR_RETURN(stepBlock,
                        allocateHost(device, kTokensOffset + mostRows * sizeof(int32_t), "steps"));
  LLMC_ASSIGN_OR_RETURN(picksBlock, allocateHost(device, rows * sizeof(int32_t), "picks"));
  LLMC_ASSIGN_OR_RETURN(
      logitsBlock,
      allocateHost(device, rows * (vocab + maximaPerRow(vocab)) * sizeof(float), "logits"));
  LLMC_RETURN_IF_ERROR(initializeMemory());
  for (size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (!work.programs[phase])
      continue;
    Program &program = programs[phase];
    program.record = work.programs[phase];
    program.end = work.ends[phase];
    LLMC_RETURN_IF_ERROR(prepare(program, options.profiles[phase]));
  }
  return {};
}

Status CudaExecutor::initializeMemory() {
  std::memset(stepBlock.get(), 0, kTokensOffset + mostRows * sizeof(int32_t));
  llmc_cuda_step_t &step = *hostStep();
  step.step.tokens = devicePointer<const int32_t *>(areas.step + kTokensOffset);
  step.step.logits = devicePointer<float *>(areas.logits);
  step.step.logit_maxima = devicePointer<float *>(areas.maxima);
  step.counters = devicePointer<uint32_t *>(areas.counters);
  step.picks = devicePointer<int32_t *>(areas.picks);
  const Driver &driver = device->driver();
  const Current current(*device);
  const std::string doing = "clearing memory on " + device->name();
  // Picks are copied for the most rows, whatever the step wanted.
  const uint64_t picksBytes = options.logitsRows * sizeof(int32_t);
  LLMC_CUDA_RETURN_IF_ERROR(driver, cuMemsetD8Async(areas.picks, 0, picksBytes, stream.get()),
                            doing);
  if (counterBytes != 0)
    LLMC_CUDA_RETURN_IF_ERROR(
        driver, cuMemsetD8Async(areas.counters, 0, counterBytes, stream.get()), doing);
  LLMC_CUDA_RETURN_IF_ERROR(driver, cuStreamSynchronize(stream.get()), doing);
  return {};
}

Status CudaExecutor::prepare(Program &program, ProgramProfile *profile) {
  const uint32_t rows = program.record->max_rows();
  program.in = {stepBlock.get(), areas.step, kTokensOffset + rows * sizeof(int32_t)};
  if (!program.end)
    program.out = {picksBlock.get(), areas.picks,
                   std::min(rows, options.logitsRows) * sizeof(int32_t)};
  LLMC_RETURN_IF_ERROR(addLaunches(program));
  if (!profile) {
    LLMC_ASSIGN_OR_RETURN(program.graph,
                          program.launches.instantiate(model->code, program.in, program.out));
    const Current current(*device);
    LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuGraphUpload(program.graph.get(), stream.get()),
                              "loading a graph on " + device->name());
    return {};
  }
  for (size_t i = 0; i <= program.launches.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Event event, createEvent(device));
    program.events.push_back(std::move(event));
  }
  for (size_t i = 0; i < program.dispatches; ++i)
    profile->dispatches[i].weightBytes =
        program.record->dispatches()->Get(static_cast<uint32_t>(i))->weight_bytes();
  return {};
}

Status CudaExecutor::addLaunches(Program &program) {
  const auto &dispatches = *program.record->dispatches();
  program.dispatches = program.end ? program.end->dispatch() : dispatches.size();
  std::vector<CUdeviceptr> parameters;
  for (uint32_t i = 0; i < program.dispatches; ++i) {
    const fb::Dispatch &dispatch = *dispatches.Get(i);
    parameters.clear();
    if (dispatch.bindings())
      for (const fb::Binding *binding : *dispatch.bindings())
        parameters.push_back(
            binding->kind() == fb::BindingKind::Arena ? areas.arena + binding->offset()
            : binding->kind() == fb::BindingKind::Kv  ? areas.kv + binding->offset()
                                                      : model->weights.address(binding->offset()));
    parameters.push_back(areas.step);
    program.launches.add(model->code.kernel(dispatch.kernel()), *dispatch.launch(), parameters);
    program.weightBytes += dispatch.weight_bytes();
  }
  if (!program.end)
    program.launches.add(model->code.kernel(model->variant->pick_kernel()),
                         *model->variant->pick_launch(), {{areas.step}});
  return {};
}

void CudaExecutor::writeStep(const StepInput &input) {
  llmc_step_t &step = hostStep()->step;
  step.rows = static_cast<int32_t>(input.tokens.size());
  step.position = static_cast<int32_t>(input.position);
  step.out_begin = static_cast<int32_t>(input.outBegin);
  step.out_rows = static_cast<int32_t>(input.outRows);
  std::memcpy(hostTokens(), input.tokens.data(), input.tokens.size_bytes());
}

Status CudaExecutor::run(Phase phase, const StepInput &input) {
  LLMC_RETURN_IF_ERROR(std::exchange(deferred, {}));
  Program &program = programs[phase];
  const Current current(*device);
  wantedRows = fetchedRows = 0;
  writeStep(input);
  LLMC_RETURN_IF_ERROR(launch(program, phase));
  if (program.end)
    LLMC_RETURN_IF_ERROR(copyLive(program, static_cast<uint32_t>(input.tokens.size())));
  // The one place that waits. What a kernel did wrong is found out here.
  LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuStreamSynchronize(stream.get()),
                            "computing the program '" + program.record->name()->str() + "' on " +
                                device->name());
  if (ProgramProfile *profile = options.profiles[phase])
    LLMC_RETURN_IF_ERROR(addTimes(program, input.outRows != 0, *profile));
  wantedRows = program.end ? 0 : input.outRows;
  return {};
}

Status CudaExecutor::launch(Program &program, Phase phase) {
  if (options.profiles[phase])
    return program.launches.enqueue(*device, stream.get(), program.in, program.out, program.events);
  LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuGraphLaunch(program.graph.get(), stream.get()),
                            "launching a graph on " + device->name());
  return {};
}

/// Rows stand one after the other: those of the step are the first.
Status CudaExecutor::copyLive(const Program &program, uint32_t rows) {
  if (!program.end->live())
    return {};
  const uint64_t most = program.record->max_rows();
  for (const fb::ArenaRange *range : *program.end->live())
    LLMC_CUDA_RETURN_IF_ERROR(
        device->driver(),
        cuMemcpyDtoHAsync(hostArena + range->offset(), areas.arena + range->offset(),
                          (range->size() * rows + most - 1) / most, stream.get()),
        "copying intermediate values from " + device->name());
  return {};
}

/// The pick is charged to the dispatch before it.
Status CudaExecutor::addTimes(const Program &program, bool wantsLogits,
                              ProgramProfile &profile) const {
  constexpr double nanosPerMilli = 1e6;
  for (size_t i = 0; i < program.launches.size() && program.dispatches != 0; ++i) {
    float millis = 0;
    LLMC_CUDA_RETURN_IF_ERROR(
        device->driver(),
        cuEventElapsedTime(&millis, program.events[i].get(), program.events[i + 1].get()),
        "measuring a step");
    const size_t index = std::min(i, program.dispatches - 1);
    const fb::Dispatch &record = *program.record->dispatches()->Get(static_cast<uint32_t>(index));
    ProgramProfile::Dispatch &dispatch = profile.dispatches[index];
    dispatch.nanoseconds += static_cast<uint64_t>(std::max(0.0, millis * nanosPerMilli));
    dispatch.calls += i == index && (wantsLogits || !record.tiles()->out_rows());
  }
  return {};
}

const float *CudaExecutor::logits(uint32_t first, uint32_t count) {
  // Of rows that nobody wanted there are none; their place is there all the same.
  const uint32_t end = std::min(first + count, wantedRows);
  if (end > fetchedRows)
    fetch(end);
  return static_cast<const float *>(logitsBlock.get()) + size_t(first) * options.vocabSize;
}

const float *CudaExecutor::maxima(uint32_t row) {
  return hostMaxima() + row * maximaPerRow(options.vocabSize);
}

/// Copies the rows before `end` that are not there yet. Nobody can be told of an error here: the
/// rows are not numbers then, and the next step fails.
void CudaExecutor::fetch(uint32_t end) {
  const Driver &driver = device->driver();
  const Current current(*device);
  const auto copy = [&](float *block, CUdeviceptr area, size_t perRow) -> Status {
    const size_t bytes = perRow * sizeof(float);
    LLMC_CUDA_RETURN_IF_ERROR(driver,
                              cuMemcpyDtoHAsync(block + fetchedRows * perRow,
                                                area + fetchedRows * bytes,
                                                (end - fetchedRows) * bytes, stream.get()),
                              "copying logits from " + device->name());
    return {};
  };
  const auto copyAll = [&]() -> Status {
    LLMC_RETURN_IF_ERROR(
        copy(static_cast<float *>(logitsBlock.get()), areas.logits, options.vocabSize));
    LLMC_RETURN_IF_ERROR(copy(hostMaxima(), areas.maxima, maximaPerRow(options.vocabSize)));
    LLMC_CUDA_RETURN_IF_ERROR(driver, cuStreamSynchronize(stream.get()),
                              "copying logits from " + device->name());
    return {};
  };
  if (Status status = copyAll(); !status.ok()) {
    deferred = std::move(status);
    std::fill_n(static_cast<float *>(logitsBlock.get()),
                options.logitsRows * size_t(options.vocabSize + maximaPerRow(options.vocabSize)),
                std::numeric_limits<float>::quiet_NaN());
  }
  fetchedRows = end;
}
