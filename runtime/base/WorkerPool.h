//===- WorkerPool.h - threads that run one region together ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A region is a function that all workers execute at the same time; the caller
// of run() is worker 0. Inside a region workers meet at barriers.
//
// Waiting has two phases: spinning, because the other side is usually a few
// microseconds away, and then sleeping in the kernel, because otherwise it may
// be gone for long (no next token, a busy machine). The spinning phase adapts:
// where it keeps ending in sleep it shrinks, because on a busy machine it only
// keeps the awaited thread from running. With more workers than cores the awaited
// one is probably waiting for this very core: then spinning is handing it over,
// which costs less than sleeping and being woken. While all waits end within their spinning phase,
// neither run() nor barrier() makes a system call; neither ever allocates or locks.
//
// Affinity is respected and never set.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_WORKERPOOL_H
#define LLMC_RUNTIME_BASE_WORKERPOOL_H

#include "runtime/base/Balance.h"
#include "runtime/base/FunctionRef.h"
#include "runtime/base/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

namespace llmc::rt {

/// A counter that threads wait on until it moves.
class Signal {
public:
  /// Waiting spins for at most so many pauses or, with `yields`, as many times lets another thread
  /// have the core.
  void setSpins(uint32_t most, bool yields) {
    mostSpins = most;
    spins = most;
    yieldsCore = yields;
  }

  uint32_t value() const { return count.load(std::memory_order_acquire); }
  /// Adds 1 and wakes whoever sleeps in wait().
  void advance();
  /// Returns once value() differs from `seen`.
  void wait(uint32_t seen);

private:
  bool spin(uint32_t seen, uint32_t limit) const;

  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> spins{0}; ///< what recent waits have found worth while
  uint32_t mostSpins = 0;
  bool yieldsCore = false;
};

class WorkerPool {
public:
  using Region = FunctionRef<void(unsigned worker)>;

  static constexpr unsigned kMaxWorkers = 1024;

  /// Starts `workers` - 1 threads. `workers` is 1..kMaxWorkers.
  static StatusOr<std::unique_ptr<WorkerPool>> create(unsigned workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  unsigned size() const { return workers; }
  /// How regions divide their work. Changed between regions only.
  Balance &balance() { return shares; }
  const Balance &balance() const { return shares; }

  /// Executes `region` on every worker and returns when all have finished. One caller at a time.
  void run(Region region);

  /// Inside a region: returns when all workers have called it; their writes before it are visible
  /// after it.
  void barrier();

private:
  explicit WorkerPool(unsigned workers) : workers(workers), shares(workers) {}
  static void *threadMain(void *argument);
  void serve(unsigned worker);

  struct Seat {
    WorkerPool *pool;
    unsigned worker;
    pthread_t thread;
  };

  const unsigned workers;
  Balance shares;
  std::vector<Seat> seats;
  const Region *current = nullptr; ///< null asks the threads to end

  // Each on its own cache line: all workers hammer them.
  alignas(64) Signal started;
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) Signal met;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_WORKERPOOL_H
