//===- WorkerPoolTest.cpp - regions and barriers --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/WorkerPool.h"

#include <gtest/gtest.h>

#include <thread>

using namespace llmc::rt;

namespace {

std::unique_ptr<WorkerPool> makePool(unsigned workers) {
  auto pool = WorkerPool::create(workers);
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return pool.take();
}

TEST(WorkerPool, EveryWorkerRunsOnce) {
  for (unsigned workers : {1, 2, 3, 8}) {
    auto pool = makePool(workers);
    std::vector<int> calls(workers);
    for (int round = 0; round < 100; ++round)
      pool->run([&](unsigned worker) { ++calls[worker]; });
    EXPECT_EQ(calls, std::vector<int>(workers, 100));
  }
}

TEST(WorkerPool, BarriersOrderPhases) {
  // More workers than any small machine has cores, so the sleeping paths are used too.
  for (unsigned workers : {2, 3, 7}) {
    auto pool = makePool(workers);
    std::vector<uint32_t> cells(workers);
    std::atomic<int> errors{0};
    constexpr uint32_t phases = 200;
    for (uint32_t round = 0; round < 5; ++round)
      pool->run([&](unsigned worker) {
        for (uint32_t phase = 0; phase < phases; ++phase) {
          cells[worker] = round * phases + phase;
          pool->barrier();
          for (uint32_t cell : cells)
            errors += cell != round * phases + phase;
          pool->barrier();
        }
      });
    EXPECT_EQ(errors, 0);
  }
}

TEST(WorkerPool, WakesUpAfterALongPause) {
  auto pool = makePool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> calls{0};
    pool->run([&](unsigned) { ++calls; });
    EXPECT_EQ(calls, 2);
  }
}

TEST(WorkerPool, RefusesImpossibleSizes) {
  EXPECT_EQ(WorkerPool::create(0).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(WorkerPool::create(WorkerPool::kMaxWorkers + 1).status().code(),
            StatusCode::InvalidArgument);
}

} // namespace
