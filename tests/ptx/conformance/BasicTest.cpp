//===- BasicTest.cpp - kernels with known answers -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <cmath>
#include <numeric>

using namespace llmc::ptx;

namespace {
const char *const source = R"(
#include <cstdio>
#include <cuda_fp16.h>
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
// One sum per block: shuffles, then shared memory.
extern "C" __global__ void sum(const int *a, int *out, int n) {
  __shared__ int part[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? a[i] : 0;
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    v = __reduce_add_sync(~0u, v);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}
// Every lane goes its own way, for its own time.
extern "C" __global__ void collatz(int *out) {
  int n = blockIdx.x * blockDim.x + threadIdx.x + 1, steps = 0;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = steps;
}
__device__ __noinline__ int fib(int n) {
  int a = 0, b = 1;
  for (int i = 0; i < n; ++i) { int c = a + b; a = b; b = c; }
  return a;
}
extern "C" __global__ void calls(int *out) {
  int t = threadIdx.x;
  int v = fib(t % 20);
  if (t % 3 == 0) v += fib(t % 7);
  out[t] = v;
}
extern "C" __global__ void cases(int *out) {
  int t = threadIdx.x, v;
  switch (t % 9) {
  case 0: v = t * 3; break;
  case 1: v = t ^ 21; break;
  case 2: v = -t; break;
  case 3: v = t << 3; break;
  case 4: v = t / 7; break;
  case 5: v = t % 11; break;
  case 6: v = 1 - t * t; break;
  default: v = 1000; break;
  }
  out[t] = v;
}
extern "C" __global__ void prints(int *out) {
  if (threadIdx.x & 1) printf("odd %d\n", threadIdx.x);
  out[threadIdx.x] = printf("%d\n", threadIdx.x) + threadIdx.x;
}
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int counter = 5;
extern __shared__ int dynamic[];
extern "C" __global__ void spaces(int *out) {
  int local[16];
  int t = threadIdx.x;
  for (int i = 0; i < 16; ++i) local[i] = t * i;
  dynamic[t] = table[t % 8];
  __syncthreads();
  int *p = t % 2 ? &dynamic[t ^ 1] : &local[t % 16];
  out[t] = *p + local[(t * 7) % 16];
  atomicAdd(&counter, t);
}
extern "C" __global__ void halves(const __half2 *a, const __half2 *b, __half2 *c) {
  int t = threadIdx.x;
  c[t] = __hfma2(a[t], b[t], __float2half2_rn(1.0f));
}
extern "C" __global__ void maths(const float *x, float *out) {
  int t = threadIdx.x;
  float v = x[t];
  out[t * 8 + 0] = expf(v);
  out[t * 8 + 1] = sinf(v * 1000.f);
  out[t * 8 + 2] = sqrtf(v);
  out[t * 8 + 3] = 1.0f / v;
  out[t * 8 + 4] = logf(v);
  out[t * 8 + 5] = tanhf(v);
  out[t * 8 + 6] = powf(v, 1.7f);
  out[t * 8 + 7] = (float)exp((double)v);
}
extern "C" __global__ void wide(const unsigned long long *a, unsigned long long *out) {
  int t = threadIdx.x;
  unsigned long long x = a[t], y = a[t + 1];
  out[t * 4] = x * y;
  out[t * 4 + 1] = __umul64hi(x, y);
  out[t * 4 + 2] = x / (y | 1);
  out[t * 4 + 3] = x % (y | 1);
}
// The last block adds up what the others have left.
template <bool fences>
__device__ void lastOf(const int *a, int *part, unsigned *count, int *out) {
  __shared__ bool last;
  int v = a[blockIdx.x * 64 + threadIdx.x];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) part[blockIdx.x * 2 + threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (fences) __threadfence();
    last = atomicAdd(count, 1) == gridDim.x - 1;
    if (fences) __threadfence();
  }
  __syncthreads();
  if (!last) return;
  int sum = 0;
  for (int i = threadIdx.x; i < gridDim.x * 2; i += 64) sum += part[i];
  atomicAdd(out, sum);
}
extern "C" __global__ void lastBlock(const int *a, int *part, unsigned *count, int *out) {
  lastOf<true>(a, part, count, out);
}
extern "C" __global__ void noFence(const int *a, int *part, unsigned *count, int *out) {
  lastOf<false>(a, part, count, out);
}
)";

class Basic : public testing::Test {
protected:
  void SetUp() override {
    static const std::string text = nvcc(source);
    LLMC_NEEDS_NVCC(text);
    h.load(text);
  }
  Harness h;
};
} // namespace

TEST_F(Basic, AddsVectors) {
  std::vector<float> a(1000), b(1000);
  for (int i = 0; i < 1000; ++i)
    a[i] = i, b[i] = 3 * i;
  uint64_t c = h.allocate(4000);
  Error e = h.launch("add", 8, 128, h.upload(a), h.upload(b), c, 1000);
  ASSERT_FALSE(e) << e.message;
  auto out = h.download<float>(c, 1000);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(out[i], 4.0f * i);
  EXPECT_EQ(h.machine.counters.globalLoadBytes, 8000u);
  EXPECT_EQ(h.machine.counters.globalLoadSectors, 250u);
  EXPECT_EQ(h.machine.counters.globalLoadIdealSectors, 250u);
  EXPECT_EQ(h.machine.counters.globalStoreBytes, 4000u);
  EXPECT_EQ(h.machine.counters.globalStoreRequests, 32u);
  EXPECT_EQ(h.machine.counters.globalStoreSectors, 125u);
  EXPECT_EQ(h.memory.touchedBytes(), 8000u);
  h.memory.free(c); // was only written
  EXPECT_EQ(h.memory.touchedBytes(), 8000u);
}

TEST_F(Basic, CountsWhatWasReadOfFreedMemory) {
  std::vector<float> a(1000);
  uint64_t x = h.upload(a);
  Error e = h.launch("add", 8, 128, x, x, h.allocate(4000), 1000);
  ASSERT_FALSE(e) << e.message;
  h.memory.free(x);
  EXPECT_EQ(h.memory.touchedBytes(), 4000u);
  h.memory.resetTouched();
  EXPECT_EQ(h.memory.touchedBytes(), 0u);
}

TEST_F(Basic, SumsOfBlocks) {
  std::vector<int> a(1000);
  std::iota(a.begin(), a.end(), -100);
  uint64_t in = h.upload(a), out = h.allocate(16);
  for (const Options &o : allOptions()) {
    h.machine.options = o;
    Error e = h.launch("sum", 4, 256, in, out, 1000);
    ASSERT_FALSE(e) << e.message;
    auto sums = h.download<int>(out, 4);
    for (int b = 0; b < 4; ++b)
      EXPECT_EQ(sums[b],
                std::accumulate(a.begin() + b * 256, a.begin() + std::min(1000, b * 256 + 256), 0));
  }
}

TEST_F(Basic, DivergentLoops) {
  uint64_t out = h.allocate(4 * 200);
  Error e = h.launch("collatz", 2, 100, out);
  ASSERT_FALSE(e) << e.message;
  auto steps = h.download<int>(out, 200);
  for (int i = 0; i < 200; ++i) {
    int n = i + 1, s = 0;
    for (; n != 1; ++s)
      n = n % 2 ? 3 * n + 1 : n / 2;
    EXPECT_EQ(steps[i], s);
  }
}

TEST_F(Basic, Calls) {
  uint64_t out = h.allocate(4 * 64);
  Error e = h.launch("calls", 1, 64, out);
  ASSERT_FALSE(e) << e.message;
  auto fib = [](int n) {
    int a = 0, b = 1;
    while (n--)
      std::swap(a, b), b += a;
    return a;
  };
  auto got = h.download<int>(out, 64);
  for (int t = 0; t < 64; ++t)
    EXPECT_EQ(got[t], fib(t % 20) + (t % 3 ? 0 : fib(t % 7)));
}

TEST_F(Basic, PrintfPrintsNothing) {
  uint64_t out = h.allocate(128);
  Error e = h.launch("prints", 1, 32, out);
  ASSERT_FALSE(e) << e.message;
  EXPECT_EQ(h.download<int>(out, 32)[17], 17);
}

TEST_F(Basic, Cases) {
  uint64_t out = h.allocate(4 * 96);
  Error e = h.launch("cases", 1, 96, out);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<int>(out, 96);
  for (int t = 0; t < 96; ++t) {
    int want[] = {t * 3, t ^ 21, -t, t << 3, t / 7, t % 11, 1 - t * t, 1000, 1000};
    EXPECT_EQ(got[t], want[t % 9]);
  }
}

TEST_F(Basic, Spaces) {
  uint64_t out = h.allocate(4 * 64);
  LaunchConfig c;
  c.block[0] = 64;
  c.dynamicShared = 256;
  Error e = h.launchWith("spaces", c, out);
  ASSERT_FALSE(e) << e.message;
  int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
  auto got = h.download<int>(out, 64);
  for (int t = 0; t < 64; ++t)
    EXPECT_EQ(got[t], (t % 2 ? table[(t ^ 1) % 8] : t * (t % 16)) + t * (t * 7 % 16));
  EXPECT_EQ(h.download<int>(h.module->variable("counter"), 1)[0], 5 + 63 * 32);
}

TEST_F(Basic, Halves) {
  std::vector<_Float16> a(64), b(64);
  for (int i = 0; i < 64; ++i)
    a[i] = _Float16(i * 0.37 - 9), b[i] = _Float16(3.3 - i * 0.11);
  uint64_t c = h.allocate(128);
  Error e = h.launch("halves", 1, 32, h.upload(a), h.upload(b), c);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<_Float16>(c, 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(float(got[i]), float(_Float16(double(a[i]) * double(b[i]) + 1)));
}

TEST_F(Basic, Maths) {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i)
    x[i] = 0.05f + i * 0.41f;
  uint64_t out = h.allocate(4 * 32 * 8);
  Error e = h.launch("maths", 1, 32, h.upload(x), out);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<float>(out, 32 * 8);
  for (int i = 0; i < 32; ++i) {
    double v = x[i];
    double want[] = {
        exp(v), sin(double(x[i] * 1000.f)), sqrt(v), 1 / v, log(v), tanh(v), pow(v, 1.7f), exp(v)};
    for (int k = 0; k < 8; ++k)
      EXPECT_NEAR(got[i * 8 + k], want[k], 4e-6 * std::max(1.0, std::fabs(want[k])))
          << k << " " << v;
  }
}

TEST_F(Basic, WideIntegers) {
  std::vector<uint64_t> a(33);
  uint64_t x = 88172645463325252ull;
  for (uint64_t &v : a) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    v = x >> (x & 63);
  }
  uint64_t out = h.allocate(8 * 4 * 32);
  Error e = h.launch("wide", 1, 32, h.upload(a), out);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<uint64_t>(out, 4 * 32);
  for (int t = 0; t < 32; ++t) {
    unsigned __int128 product = (unsigned __int128)a[t] * a[t + 1];
    EXPECT_EQ(got[t * 4], uint64_t(product));
    EXPECT_EQ(got[t * 4 + 1], uint64_t(product >> 64));
    EXPECT_EQ(got[t * 4 + 2], a[t] / (a[t + 1] | 1));
    EXPECT_EQ(got[t * 4 + 3], a[t] % (a[t + 1] | 1));
  }
}

TEST_F(Basic, LastBlockSeesTheOthers) {
  std::vector<int> a(64 * 20);
  std::iota(a.begin(), a.end(), 7);
  uint64_t in = h.upload(a);
  for (const Options &o : allOptions()) {
    h.machine.options = o;
    uint64_t part = h.allocate(4 * 40);
    uint64_t count = h.upload(std::vector<int>{0}), out = h.upload(std::vector<int>{0});
    Error e = h.launch("lastBlock", 20, 64, in, part, count, out);
    ASSERT_FALSE(e) << e.message;
    EXPECT_EQ(h.download<int>(out, 1)[0], std::accumulate(a.begin(), a.end(), 0));
    EXPECT_EQ(h.launch("noFence", 20, 64, in, part, count, out).kind, ErrorKind::None);
    // The counter was not reset: now it is.
    count = h.upload(std::vector<int>{0});
    EXPECT_STREQ(nameOf(h.launch("noFence", 20, 64, in, part, count, out).kind), "race");
  }
}
