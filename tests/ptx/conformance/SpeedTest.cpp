//===- SpeedTest.cpp - the emulator's speed -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <cstdio>
#include <ctime>

// How fast the emulator is, so that a loss of speed is seen. A matrix of 4-bit weights times a
// vector, as a kernel does it: 16-byte loads, lop3 to f16, half2 FMAs.

using namespace llmc::ptx;

TEST(Speed, Gemv) {
  std::string text = nvcc(R"(
#include <cuda_fp16.h>
extern "C" __global__ void gemv(const uint4 *w, const __half2 *x, float *y, int k) {
  int row = blockIdx.x * 8 + threadIdx.y;
  const uint4 *p = w + row * (k / 32);
  float sum = 0;
  for (int i = threadIdx.x; i < k / 32; i += 32) {
    uint4 q = p[i];
    const __half2 *xs = x + i * 16;
    unsigned words[4] = {q.x, q.y, q.z, q.w};
    __half2 acc = __float2half2_rn(0);
    for (int j = 0; j < 4; ++j)
      for (int s = 0; s < 4; ++s) {
        unsigned bits = (words[j] >> (4 * s) & 0x000f000f) | 0x64006400;
        acc = __hfma2(__hsub2(*reinterpret_cast<__half2 *>(&bits), __float2half2_rn(1032)), xs[j * 4 + s], acc);
      }
    float2 f = __half22float2(acc);
    sum += f.x + f.y;
  }
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) y[row] = sum;
})");
  LLMC_NEEDS_NVCC(text);
  for (bool full : {false, true}) {
    Options o;
    o.checkInit = o.checkRaces = full;
    Harness h(o);
    h.load(text);
    const unsigned rows = full ? 512 : 2048, k = 4096;
    std::vector<uint32_t> w(rows * k / 8);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = uint32_t(i * 2654435761u);
    std::vector<uint16_t> x(k, 0x3c00);
    uint64_t y = h.allocate(rows * 4);
    LaunchConfig c;
    c.grid[0] = rows / 8;
    c.block[0] = 32;
    c.block[1] = 8;
    uint64_t weights = h.upload(w), vector = h.upload(x);
    // Time of the processor: others may use it, too.
    std::clock_t begin = std::clock();
    Error e = h.launchWith("gemv", c, weights, vector, y, int(k));
    double took = double(std::clock() - begin) / CLOCKS_PER_SEC;
    ASSERT_FALSE(e) << e.message;
    auto got = h.download<float>(y, rows);
    for (unsigned r = 0; r < rows; r += 97) {
      int sum = 0;
      for (unsigned i = 0; i < k / 8; ++i)
        for (unsigned s = 0; s < 8; ++s)
          sum += int(w[r * (k / 8) + i] >> 4 * s & 15) - 8;
      EXPECT_EQ(got[r], sum);
    }
    uint64_t lanes = h.machine.counters.totalLanes();
    std::printf("%s: %.2f lane instructions per weight, %.0f million per second\n",
                full ? "all checks" : "fast", double(lanes) / rows / k, lanes / took / 1e6);
    EXPECT_EQ(h.memory.touchedBytes(), rows * k / 2 + k * 2);
  }
}

TEST(Speed, Mma) {
  std::string text = nvcc(R"(
extern "C" __global__ void mma(float *out, int n) {
  float d[4] = {0, 0, 0, 0};
  unsigned a = 0x3c003c00;
  for (int i = 0; i < n; ++i)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
                 "{%4,%4}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
})");
  LLMC_NEEDS_NVCC(text);
  Options o;
  o.checkInit = o.checkRaces = false;
  Harness h(o);
  h.load(text);
  uint64_t out = h.allocate(128);
  const int n = 20000;
  std::clock_t begin = std::clock();
  Error e = h.launch("mma", 1, 32, out, n);
  double took = double(std::clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_FALSE(e) << e.message;
  EXPECT_EQ(h.download<float>(out, 1)[0], 64.0f * n);
  std::printf("%.2f us per mma.m16n8k16, %.2f G multiplications per second\n", took / n * 1e6,
              2048.0 * n / took / 1e9);
}
