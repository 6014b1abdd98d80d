//===- PortableBitsTest.cpp - the same bits on every architecture ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products are compared with exact oracles elsewhere. Kernels that are compared
// with double arithmetic only are pinned here: a checksum of their results,
// the same constant on x86-64 and AArch64. A deliberate change of a kernel's
// arithmetic changes its constant.
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include <algorithm>

using namespace llmc::test;

namespace {

/// Floats made by integer arithmetic alone: library functions differ between machines.
std::vector<float> numbers(size_t n, uint32_t seed, float range) {
  std::vector<float> x(n);
  for (float &v : x) {
    seed = seed * 1664525u + 1013904223u;
    v = float(int32_t(seed) >> 8) * (range / 8388608.0f);
  }
  return x;
}

class Checksum {
public:
  void add(const std::vector<float> &values) {
    for (float v : values) {
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      hash = (hash ^ bits) * 0x100000001b3u; // FNV-1a over words
    }
  }
  uint64_t hash = 0xcbf29ce484222325u;
};

/// Expects `fill(kernels, checksum)` to give `expected` on every instruction set.
template <typename Fill> void expectChecksum(uint64_t expected, Fill fill) {
  for (const Kernels &k : kernels()) {
    Checksum sum;
    fill(k, sum);
    EXPECT_EQ(sum.hash, expected) << k.isa << std::hex << ": 0x" << sum.hash;
  }
}

constexpr int64_t lengths[] = {7, 16, 100, 641};

TEST(PortableBits, Norms) {
  expectChecksum(0x18a660074c682e8d, [](const Kernels &k, Checksum &sum) {
    for (int64_t n : lengths) {
      const auto x = numbers(n, 1, 30), w = numbers(n, 2, 2), b = numbers(n, 3, 1);
      std::vector<float> out(n);
      k.uk_rms_norm(x.data(), w.data(), n, 1e-5f, out.data());
      sum.add(out);
      k.uk_layer_norm(x.data(), w.data(), b.data(), n, 1e-5f, out.data());
      sum.add(out);
    }
  });
}

TEST(PortableBits, Activations) {
  expectChecksum(0x5ce2a3cc46e6c98e, [](const Kernels &k, Checksum &sum) {
    for (float range : {1.0f, 12.0f, 100.0f}) {
      const auto x = numbers(2000, 4, range);
      for (int32_t kind = ukIdentity; kind <= ukReluSquared; ++kind) {
        auto out = x;
        k.uk_act(kind, out.data(), out.size());
        sum.add(out);
      }
      auto out = x;
      k.uk_softcap(out.data(), 30.0f, out.size());
      sum.add(out);
    }
  });
}

TEST(PortableBits, Rope) {
  expectChecksum(0xc22a088554562ece, [](const Kernels &k, Checksum &sum) {
    auto frequency = numbers(37, 5, 1);
    for (int32_t position : {0, 1, 511, 131071}) {
      std::vector<float> table(2 * frequency.size());
      k.uk_rope_table(position, frequency.data(), frequency.size(), 1.25f, table.data());
      sum.add(table);
      for (int32_t interleaved : {0, 1}) {
        auto x = numbers(table.size(), 6, 3);
        k.uk_rope(x.data(), table.data(), x.size(), interleaved);
        sum.add(x);
      }
    }
  });
}

TEST(PortableBits, Attention) {
  expectChecksum(0xc1c5b9610c7cc381, [](const Kernels &k, Checksum &sum) {
    constexpr int32_t slots = ukChunk, rows = 7;
    for (int64_t D : {16, 40, 128})
      for (int32_t f32 : {0, 1})
        for (float softcap : {0.0f, 20.0f}) {
          const auto keys = numbers(slots * D, 7, 2), values = numbers(slots * D, 8, 2);
          const auto q = numbers(rows * D, 9, 2);
          Aligned<char> kHead(slots * D * 4), vHead(slots * D * 4);
          for (int32_t s = 0; s < slots; ++s) {
            k.uk_k_store(&keys[s * D], D, s, f32, kHead.data());
            k.uk_v_store(&values[s * D], D, s, f32, vHead.data());
          }
          const int32_t lo[rows] = {0, 0, 0, 10, 100, 30, 0};
          const int32_t hi[rows] = {1, 16, 33, 60, 256, 30, 255};
          std::vector<float> m(rows), l(rows), o(rows * D);
          k.uk_attend_chunk(q.data(), D, rows, lo, hi, kHead.data(), vHead.data(), D, f32, 0.25f,
                            softcap, m.data(), l.data(), o.data(), D);
          for (int32_t r = 1; r < rows; ++r)
            k.uk_attend_merge(&m[0], &l[0], &o[0], &m[r], &l[r], &o[r * D], D);
          std::vector<float> out(D);
          k.uk_attend_finish(o.data(), l.data(), D, out.data());
          sum.add(m);
          sum.add(l);
          sum.add(o);
          sum.add(out);
        }
  });
}

} // namespace
