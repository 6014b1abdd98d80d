//===- Program.cpp - a program of dispatches, ready to run ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Program.h"

#include "runtime/device/cpu/DispatchTimer.h"
#include "runtime/schema/llmc_generated.h"

#include <algorithm>
#include <chrono>

using namespace llmc::rt;

namespace {

constexpr size_t kCacheLine = 64;

constexpr size_t alignUp(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

void *resolve(const llmc::fb::Binding &binding, const BaseAddresses &bases) {
  switch (binding.kind()) {
  case llmc::fb::BindingKind::Arena:
    return bases.arena + binding.offset();
  case llmc::fb::BindingKind::Weight:
    // Kernels take all buffers as void *; the mapping itself is read-only.
    return const_cast<uint8_t *>(bases.weights) + binding.offset();
  case llmc::fb::BindingKind::Kv:
    return bases.kv + binding.offset();
  }
  return nullptr;
}

} // namespace

StatusOr<WorkerScratch> WorkerScratch::create(unsigned workers, uint64_t scratchBytes,
                                              size_t rangeCount) {
  WorkerScratch result;
  result.rangesOffset = alignUp(scratchBytes, kCacheLine);
  // Two more lines, so that neighbours never share one with the prefetcher.
  result.stride =
      alignUp(result.rangesOffset + rangeCount * sizeof(Range), kCacheLine) + 2 * kCacheLine;
  LLMC_ASSIGN_OR_RETURN(result.memory,
                        PageBuffer::reserve(result.stride * workers, "workers' scratch"));
  return result;
}

Program::Program(const fb::Program &program, std::span<const llmc_kernel_fn_t> kernels,
                 const BaseAddresses &bases, size_t first)
    : rows(program.max_rows()), first(first) {
  const size_t count = program.dispatches()->size();
  dispatches.reserve(count - first);
  for (size_t i = first; i < count; ++i) {
    const fb::Dispatch *record = program.dispatches()->Get(static_cast<uint32_t>(i));
    dispatches.push_back({kernels[record->kernel()], static_cast<uint32_t>(buffers.size()),
                          tilesIndex(record->tiles()), record->barrier()});
    if (record->bindings())
      for (const fb::Binding *binding : *record->bindings())
        buffers.push_back(resolve(*binding, bases));
    weights += record->weight_bytes();
  }
}

uint16_t Program::tilesIndex(const fb::Tiles *record) {
  Tiles wanted{record->base(), record->row_block(), record->kv_chunk(), record->window(),
               record->out_rows()};
  auto found = std::find(tiles.begin(), tiles.end(), wanted);
  if (found == tiles.end())
    found = tiles.insert(found, wanted);
  return static_cast<uint16_t>(found - tiles.begin());
}

int64_t Program::Tiles::count(const llmc_step_t &step) const {
  const int64_t stepRows = outRows ? step.out_rows : step.rows;
  int64_t result = base;
  result *= rowBlock ? (stepRows + rowBlock - 1) / rowBlock : stepRows > 0;
  if (kvChunk) {
    const int64_t first =
        window ? std::max<int64_t>(0, int64_t(step.position) - window + 1) / kvChunk : 0;
    const int64_t last = (int64_t(step.position) + step.rows - 1) / kvChunk;
    result *= last - first + 1;
  }
  return result;
}

void Program::run(WorkerPool &pool, const WorkerScratch &scratch, const llmc_step_t &step,
                  ProgramProfile *profile) const {
  constexpr int manyRows = 32;
  const bool measures = pool.size() > 1 && pool.balance().isDue(step.rows >= manyRows);
  const auto work = [&](unsigned worker, auto started) {
    Timing timing{measures};
    runWorker(pool, worker, scratch, step, started, timing);
    if (measures)
      pool.balance().report(worker, timing.seconds);
  };
  const auto untimed = [](size_t) {};
  if (!profile) {
    pool.run([&](unsigned worker) { work(worker, untimed); });
  } else {
    DispatchTimer timer(*profile, first);
    const auto timed = [&](size_t dispatch) { timer.start(first + dispatch); };
    pool.run([&](unsigned worker) { worker == 0 ? work(worker, timed) : work(worker, untimed); });
    timer.finish();
    for (size_t i = 0; i < dispatches.size(); ++i)
      profile->dispatches[first + i].calls += tiles[dispatches[i].range].count(step) > 0;
  }
  if (measures)
    pool.balance().update();
}

std::span<void *const> Program::buffersOf(size_t dispatch) const {
  const size_t begin = dispatches[dispatch].firstBuffer;
  const bool last = dispatch + 1 == dispatches.size();
  const size_t end = last ? buffers.size() : dispatches[dispatch + 1].firstBuffer;
  return {buffers.data() + begin, end - begin};
}

void Program::run(WorkerPool &pool, const WorkerScratch &scratch, const llmc_step_t &step,
                  StepObserver &observer) const {
  for (size_t i = 0; i < dispatches.size(); ++i) {
    const Dispatch &dispatch = dispatches[i];
    const int64_t count = tiles[dispatch.range].count(step);
    pool.run([&](unsigned worker) {
      const auto range = pool.balance().range(worker, count);
      if (range.begin != range.end)
        dispatch.kernel(buffers.data() + dispatch.firstBuffer, &step, scratch.scratch(worker),
                        range.begin, range.end);
    });
    observer.done(first + i, buffersOf(i), step);
  }
}

template <typename Started>
void Program::runWorker(WorkerPool &pool, unsigned worker, const WorkerScratch &scratch,
                        const llmc_step_t &step, Started started, Timing &timing) const {
  using Clock = std::chrono::steady_clock;
  const Balance &balance = pool.balance();
  WorkerScratch::Range *const ranges = scratch.ranges(worker);
  for (size_t i = 0; i < tiles.size(); ++i)
    ranges[i] = balance.range(worker, tiles[i].count(step));
  void *const mine = scratch.scratch(worker);
  for (const Dispatch &dispatch : dispatches) {
    if (dispatch.barrier)
      pool.barrier();
    started(&dispatch - dispatches.data());
    const WorkerScratch::Range range = ranges[dispatch.range];
    if (range.begin == range.end)
      continue;
    const auto compute = [&] {
      dispatch.kernel(buffers.data() + dispatch.firstBuffer, &step, mine, range.begin, range.end);
    };
    if (timing.wanted && tiles[dispatch.range].count(step) >= balance.leastTiles()) {
      const auto start = Clock::now();
      compute();
      timing.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    } else {
      compute();
    }
  }
}
