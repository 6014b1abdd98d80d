//===- SyncTest.cpp - orders that are right and others --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <algorithm>

// Ways of ordering that are right, and what is left when a part of them is missing.

using namespace llmc::ptx;

namespace {
const char *const source = R"(
#include <cuda_pipeline.h>
// Producers and consumers of one buffer with named barriers: 1 is full, 2 is empty.
template <bool empties> __device__ void named(const int *in, int *out) {
  __shared__ int buffer[32];
  int t = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 4; ++i) {
      if (empties) asm volatile("bar.sync 2, 64;" ::: "memory");
      buffer[t] = in[i * 32 + t];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
  } else {
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      if (empties) asm volatile("bar.arrive 2, 64;" ::: "memory");
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += buffer[t ^ 1];
      __syncwarp();
    }
    out[t] = sum;
  }
}
extern "C" __global__ void namedGood(const int *in, int *out) { named<true>(in, out); }
extern "C" __global__ void namedBad(const int *in, int *out) { named<false>(in, out); }

// A lock in global memory.
extern "C" __global__ void lock(int *mutex, int *value, int acquires) {
  if (threadIdx.x % 32 == 0) {
    if (acquires) {
      int old;
      do asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(mutex) : "memory");
      while (old);
    } else {
      while (atomicCAS(mutex, 0, 1)) ;
    }
    int v = value[0];
    value[0] = v + 1;
    asm volatile("st.release.gpu.b32 [%0], 0;" :: "l"(mutex) : "memory");
  }
}

// A flag from one block to another.
template <bool fence> __device__ void flag(int *data, int *ready, int *out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x * 3;
    __syncthreads();
    if (threadIdx.x == 0) {
      if (fence) __threadfence();
      asm volatile("st.relaxed.gpu.b32 [%0], 1;" :: "l"(ready) : "memory");
    }
  } else {
    if (threadIdx.x == 0) {
      int v;
      do asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(ready) : "memory");
      while (!v);
      if (fence) __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x ^ 1];
  }
}
extern "C" __global__ void flagGood(int *d, int *r, int *o) { flag<true>(d, r, o); }
extern "C" __global__ void flagBad(int *d, int *r, int *o) { flag<false>(d, r, o); }

// A pipeline of three stages over cp.async.
template <int waits> __device__ void stages(const int4 *in, int *out, int n) {
  __shared__ int4 buffer[3][64];
  int t = threadIdx.x, sum = 0;
  for (int s = 0; s < 2; ++s) {
    __pipeline_memcpy_async(&buffer[s][t], &in[s * 64 + t], 16);
    __pipeline_commit();
  }
  for (int i = 0; i < n; ++i) {
    __pipeline_wait_prior(waits);
    __syncthreads();
    if (i + 2 < n) __pipeline_memcpy_async(&buffer[(i + 2) % 3][t], &in[(i + 2) * 64 + t], 16);
    __pipeline_commit();
    int4 v = buffer[i % 3][t ^ 33];
    sum += v.x + v.y * v.z - v.w;
  }
  out[t] = sum;
}
extern "C" __global__ void stagesGood(const int4 *in, int *out, int n) { stages<1>(in, out, n); }
extern "C" __global__ void stagesBad(const int4 *in, int *out, int n) { stages<2>(in, out, n); }

// All blocks meet in the middle.
extern "C" __global__ void everybody(int *count, int *data, int *out) {
  data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    int v;
    do asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(count) : "memory");
    while (v < gridDim.x);
  }
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = data[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
}

// Lanes of one warp take a lock in turn.
extern "C" __global__ void lanes(int *mutex, int *order) {
  __shared__ int next;
  if (threadIdx.x == 0) next = 0;
  __syncwarp();
  bool done = false;
  while (!done) {
    if (atomicCAS(mutex, 0, 1) == 0) {
      __threadfence();
      order[next] = threadIdx.x;
      next = next + 1;
      __threadfence();
      atomicExch(mutex, 0);
      done = true;
    }
  }
}
)";

class Sync : public testing::Test {
protected:
  void SetUp() override {
    static const std::string text = nvcc(source);
    LLMC_NEEDS_NVCC(text);
    ptx = text;
  }
  /// Launches with every option; `f` makes a harness, launches and checks.
  template <class F> void all(F f) {
    for (const Options &o : allOptions()) {
      Harness h(o);
      h.load(ptx);
      f(h);
    }
  }
  std::string ptx;
};
std::vector<int> numbers(size_t n) {
  std::vector<int> v(n);
  for (size_t i = 0; i < n; ++i)
    v[i] = int(i * 7 % 31) - 9;
  return v;
}
} // namespace

TEST_F(Sync, NamedBarriers) {
  auto in = numbers(128);
  all([&](Harness &h) {
    uint64_t out = h.allocate(128);
    Error e = h.launch("namedGood", 1, 64, h.upload(in), out);
    ASSERT_FALSE(e) << e.message;
    auto got = h.download<int>(out, 32);
    for (int t = 0; t < 32; ++t)
      EXPECT_EQ(got[t], in[t ^ 1] + in[32 + (t ^ 1)] + in[64 + (t ^ 1)] + in[96 + (t ^ 1)]);
    // Without the way back the producer overwrites what is read, or arrives twice.
    e = h.launch("namedBad", 1, 64, h.upload(in), h.allocate(128));
    EXPECT_TRUE(e.kind == ErrorKind::Race || e.kind == ErrorKind::Deadlock ||
                e.kind == ErrorKind::Barrier)
        << e.message;
  });
}

TEST_F(Sync, Lock) {
  all([&](Harness &h) {
    uint64_t value = h.upload(std::vector<int>{0});
    Error e = h.launch("lock", 4, 128, h.upload(std::vector<int>{0}), value, 1);
    ASSERT_FALSE(e) << e.message;
    EXPECT_EQ(h.download<int>(value, 1)[0], 16);
    e = h.launch("lock", 4, 128, h.upload(std::vector<int>{0}), value, 0);
    EXPECT_STREQ(nameOf(e.kind), "race");
  });
}

TEST_F(Sync, FlagBetweenBlocks) {
  all([&](Harness &h) {
    uint64_t data = h.allocate(256), out = h.allocate(256);
    Error e = h.launch("flagGood", 2, 64, data, h.upload(std::vector<int>{0}), out);
    ASSERT_FALSE(e) << e.message;
    EXPECT_EQ(h.download<int>(out, 3), (std::vector<int>{3, 0, 9}));
    e = h.launch("flagBad", 2, 64, data, h.upload(std::vector<int>{0}), out);
    EXPECT_STREQ(nameOf(e.kind), "race");
  });
}

TEST_F(Sync, StagesOfCopies) {
  auto in = numbers(64 * 4 * 8);
  all([&](Harness &h) {
    uint64_t out = h.allocate(256);
    Error e = h.launch("stagesGood", 1, 64, h.upload(in), out, 8);
    ASSERT_FALSE(e) << e.message;
    auto got = h.download<int>(out, 64);
    for (int t = 0; t < 64; ++t) {
      int sum = 0;
      for (int i = 0; i < 8; ++i) {
        const int *v = &in[(i * 64 + (t ^ 33)) * 4];
        sum += v[0] + v[1] * v[2] - v[3];
      }
      EXPECT_EQ(got[t], sum);
    }
    e = h.launch("stagesBad", 1, 64, h.upload(in), out, 8);
    EXPECT_STREQ(nameOf(e.kind), nameOf(ErrorKind::NotWaited));
  });
}

TEST_F(Sync, LanesOfAWarpWaitForEachOther) {
  all([&](Harness &h) {
    uint64_t order = h.allocate(128);
    Error e = h.launch("lanes", 1, 32, h.upload(std::vector<int>{0}), order);
    ASSERT_FALSE(e) << e.message;
    auto got = h.download<int>(order, 32);
    std::sort(got.begin(), got.end());
    for (int t = 0; t < 32; ++t)
      EXPECT_EQ(got[t], t);
  });
}

TEST_F(Sync, CooperativeBlocks) {
  all([&](Harness &h) {
    h.machine.options.residentCtas = 2;
    h.machine.options.maxInstructions = 1000000;
    LaunchConfig c;
    c.block[0] = 32;
    c.grid[0] = 20;
    c.cooperative = true;
    uint64_t data = h.allocate(2560), out = h.allocate(2560);
    Error e = h.launchWith("everybody", c, h.upload(std::vector<int>{0}), data, out);
    ASSERT_FALSE(e) << e.message;
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(h.download<int>(out, 640)[i * 32], (i + 1) % 20);
    // In the usual launch they need not be there together.
    c.cooperative = false;
    e = h.launchWith("everybody", c, h.upload(std::vector<int>{0}), data, out);
    EXPECT_STREQ(nameOf(e.kind), nameOf(ErrorKind::Endless));
  });
}
