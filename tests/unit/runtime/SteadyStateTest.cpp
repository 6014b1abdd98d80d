//===- SteadyStateTest.cpp - no allocation, no lock, no system call per token ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that would give one away are replaced, in this program, by ones
// that count and pass the call on to glibc.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Topology.h"
#include "runtime/llm/Generator.h"
#include "runtime/llm/NgramDraft.h"
#include "tests/unit/runtime/Sessions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdarg>
#include <dlfcn.h>
#include <sys/syscall.h>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

std::atomic<bool> counting;
std::atomic<int> allocations, locks, systemCalls;

void note(std::atomic<int> &counter) {
  if (counting.load(std::memory_order_relaxed))
    ++counter;
}

} // namespace

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

__attribute__((visibility("default"))) void *malloc(size_t size) {
  note(allocations);
  return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size) {
  note(allocations);
  return __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *pointer, size_t size) {
  note(allocations);
  return __libc_realloc(pointer, size);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex) {
  using Function = int (*)(pthread_mutex_t *);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  note(locks);
  return next(mutex);
}

__attribute__((visibility("default"))) long syscall(long number, ...) {
  using Function = long (*)(long, long, long, long, long, long, long);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
  note(systemCalls);
  va_list list;
  va_start(list, number);
  long a[6];
  for (long &value : a)
    value = va_arg(list, long);
  va_end(list);
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

} // extern "C"

namespace {

constexpr int kWarmUp = 16, kMeasured = 200;

/// Generates with `options` and counts from the 16th token on.
void measure(unsigned threads, GenerateOptions options, DraftSource *draft = nullptr) {
  ChainModel chain = ChainModel::counting(300);
  chain.context = 512;
  auto session = makeSession(chain, threads);
  options.maxTokens = kWarmUp + kMeasured;
  options.stops = {"no such text", "t1 t2 t4"};
  auto generator = Generator::create(*session, options, draft);
  ASSERT_TRUE(generator.ok());
  allocations = locks = systemCalls = 0;
  size_t bytes = 0;
  auto result = generator.value().generate(iota(20), [&](std::string_view text) {
    bytes += text.size();
    const size_t count = generator.value().completion().size();
    counting = count >= kWarmUp && count < kWarmUp + kMeasured - 1;
    return true;
  });
  counting = false;
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().completionTokens, uint32_t(kWarmUp + kMeasured));
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  // With company, a worker that is not scheduled in time makes the others sleep, rightly.
  if (threads == 1) {
    EXPECT_EQ(systemCalls, 0);
  }
}

TEST(SteadyState, CountersWork) {
  allocations = locks = systemCalls = 0;
  counting = true;
  void *volatile block = malloc(1000);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  syscall(SYS_getpid);
  counting = false;
  pthread_mutex_unlock(&mutex);
  free(block);
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(locks, 1);
  EXPECT_EQ(systemCalls, 1);
}

TEST(SteadyState, Greedy) {
  for (unsigned threads : {1, 2})
    measure(threads, {});
}

TEST(SteadyState, AllFilters) {
  for (unsigned threads : {1, 2})
    for (uint32_t topK : {0u, 40u})
      measure(threads, {.sampler = {.temperature = 0.8f,
                                    .topK = topK,
                                    .topP = 0.95f,
                                    .minP = 0.01f,
                                    .repeatPenalty = 1.1f,
                                    .seed = 1}});
}

TEST(SteadyState, Drafts) {
  struct Counting : DraftSource {
    Proposal propose(std::span<const int32_t>, int32_t last, std::span<int32_t> draft) override {
      for (int32_t &token : draft)
        token = last = (last + 1) % 300;
      return {draft.size()};
    }
  } draft;
  for (bool adaptive : {false, true})
    measure(1, {.draft = {.adaptive = adaptive}}, &draft);
}

TEST(SteadyState, NgramDrafts) {
  NgramDraft draft(512);
  for (bool adaptive : {false, true})
    measure(1, {.draft = {.adaptive = adaptive}}, &draft);
}

/// With more workers than cores, meeting costs turns of the cores and seldom a sleep.
TEST(SteadyState, OversubscribedBarriers) {
  constexpr int regions = 50, barriers = 40;
  const auto workers = static_cast<unsigned>(2 * affinityCpus().size());
  if (workers > 32)
    GTEST_SKIP() << "many cores";
  auto pool = WorkerPool::create(workers);
  ASSERT_TRUE(pool.ok());
  systemCalls = 0;
  counting = true;
  for (int region = 0; region < regions; ++region)
    pool.value()->run([&](unsigned) {
      for (int i = 0; i < barriers; ++i)
        pool.value()->barrier();
    });
  counting = false;
  // Each of these would be a sleep of a worker, or the call that ends it.
  EXPECT_LT(systemCalls, regions * barriers * int(workers) / 2);
}

} // namespace
