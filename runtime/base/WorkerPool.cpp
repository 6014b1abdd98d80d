//===- WorkerPool.cpp - threads that run one region together --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/WorkerPool.h"

#include "runtime/base/Topology.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llmc::rt;

namespace {

// How long to stay awake at most. At a barrier: longer than workers usually differ. Between
// regions: longer than it takes to sample a token.
constexpr double kBarrierSeconds = 50e-6;
constexpr double kIdleSeconds = 200e-6;
/// The same for more workers than cores, where a pause is the turn of another thread.
constexpr uint32_t kBarrierTurns = 64, kIdleTurns = 64;
/// The shortest spinning phase, as a part of the longest.
constexpr uint32_t kLeastPart = 16;

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("isb" ::: "memory");
#endif
}

/// Pauses per second: they differ tenfold between processors.
double measureRelax() {
  constexpr int count = 256;
  using Clock = std::chrono::steady_clock;
  double best = 1;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i)
      relax();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return count / std::max(best, 1e-9);
}

} // namespace

void Signal::advance() {
  // Sequentially consistent with wait(): either the sleeper sees the new count, or we see it.
  count.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    futexWakeAll(count);
}

bool Signal::spin(uint32_t seen, uint32_t limit) const {
  for (uint32_t i = 0; i < limit; ++i) {
    if (value() != seen)
      return true;
    if (yieldsCore)
      sched_yield();
    else
      relax();
  }
  return value() != seen;
}

void Signal::wait(uint32_t seen) {
  const uint32_t limit = std::max(spins.load(std::memory_order_relaxed), mostSpins / kLeastPart);
  if (spin(seen, limit)) {
    // On a quiet machine there is nothing to write: the limit is at its most.
    if (limit < mostSpins)
      spins.store(std::min(2 * limit + 1, mostSpins), std::memory_order_relaxed);
    return;
  }
  spins.store(limit - limit / 4, std::memory_order_relaxed);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (count.load(std::memory_order_seq_cst) == seen)
    futexWait(count, seen);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::create(unsigned workers) {
  if (workers == 0 || workers > kMaxWorkers)
    return invalidArgument("the number of threads must be 1 to " + std::to_string(kMaxWorkers) +
                           ", not " + std::to_string(workers));
  std::unique_ptr<WorkerPool> pool(new WorkerPool(workers));
  if (workers > affinityCpus().size()) {
    pool->met.setSpins(kBarrierTurns, /*yields=*/true);
    pool->started.setSpins(kIdleTurns, /*yields=*/true);
  } else if (workers > 1) {
    const double rate = measureRelax();
    pool->met.setSpins(static_cast<uint32_t>(kBarrierSeconds * rate), /*yields=*/false);
    pool->started.setSpins(static_cast<uint32_t>(kIdleSeconds * rate), /*yields=*/false);
  }
  pool->seats.reserve(workers - 1);
  for (unsigned worker = 1; worker < workers; ++worker) {
    Seat &seat = pool->seats.emplace_back(Seat{pool.get(), worker, {}});
    if (int error = pthread_create(&seat.thread, nullptr, threadMain, &seat)) {
      pool->seats.pop_back();
      return Status(StatusCode::ResourceExhausted, "cannot start thread " + std::to_string(worker) +
                                                       " of " + std::to_string(workers) + ": " +
                                                       std::strerror(error));
    }
  }
  return pool;
}

WorkerPool::~WorkerPool() {
  current = nullptr;
  started.advance();
  for (Seat &seat : seats)
    pthread_join(seat.thread, nullptr);
}

void *WorkerPool::threadMain(void *argument) {
  auto *seat = static_cast<Seat *>(argument);
  seat->pool->serve(seat->worker);
  return nullptr;
}

void WorkerPool::serve(unsigned worker) {
  // The first region may have been started before this thread came so far.
  for (uint32_t seen = 0;; ++seen) {
    started.wait(seen);
    if (!current)
      return;
    (*current)(worker);
    barrier();
  }
}

void WorkerPool::run(Region region) {
  current = &region;
  if (workers > 1)
    started.advance();
  region(0);
  barrier();
}

void WorkerPool::barrier() {
  if (workers == 1)
    return;
  const uint32_t round = met.value();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) {
    arrived.store(0, std::memory_order_relaxed);
    met.advance();
  } else {
    met.wait(round);
  }
}
