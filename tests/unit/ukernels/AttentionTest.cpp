//===- AttentionTest.cpp - attention over chunks of the KV cache ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include <cmath>

using namespace llmc::test;

namespace {

/// One KV head with `slots` written slots; the rest of the cache is NaN.
struct Cache {
  Cache(const Kernels &kernels, int64_t headDim, int64_t slots, bool f32)
      : headDim(headDim), f32(f32), chunkBytes(ukChunk * headDim * (f32 ? 4 : 2)),
        chunks((slots + ukChunk - 1) / ukChunk), k(chunks * chunkBytes), v(chunks * chunkBytes),
        keys(randomFloats(slots * headDim, 1)), values(randomFloats(slots * headDim, 2)) {
    for (int64_t s = 0; s < slots; ++s) {
      // Store what f16 can hold, so that the oracle needs no rounding of its own.
      for (int64_t d = 0; d < headDim; ++d) {
        float &key = keys[s * headDim + d], &value = values[s * headDim + d];
        key = std::round(key * 64) / 64;
        value = std::round(value * 64) / 64;
      }
      kernels.uk_k_store(&keys[s * headDim], headDim, s, f32, k.data());
      kernels.uk_v_store(&values[s * headDim], headDim, s, f32, v.data());
    }
  }

  int64_t headDim;
  bool f32;
  int64_t chunkBytes, chunks;
  Aligned<char> k, v;
  std::vector<float> keys, values;
};

struct Visible {
  int64_t lo, hi;
};

struct Partials {
  explicit Partials(size_t rows, size_t headDim)
      : m(rows, NAN), l(rows, NAN), o(rows * headDim, NAN) {}
  std::vector<float> m, l, o;
};

constexpr float scale = 0.125f;

Partials attendChunk(const Kernels &k, const Cache &cache, const std::vector<float> &q,
                     const std::vector<Visible> &rows, int64_t chunk, float softcap) {
  std::vector<int32_t> lo, hi;
  for (const Visible &r : rows) {
    lo.push_back(int32_t(std::clamp<int64_t>(r.lo - chunk * ukChunk, 0, ukChunk)));
    hi.push_back(int32_t(std::clamp<int64_t>(r.hi - chunk * ukChunk, 0, ukChunk)));
  }
  Partials p(rows.size(), cache.headDim);
  k.uk_attend_chunk(q.data(), cache.headDim, int32_t(rows.size()), lo.data(), hi.data(),
                    cache.k.data() + chunk * cache.chunkBytes,
                    cache.v.data() + chunk * cache.chunkBytes, cache.headDim, cache.f32, scale,
                    softcap, p.m.data(), p.l.data(), p.o.data(), cache.headDim);
  return p;
}

/// The whole attention: chunks in order, merged, divided.
std::vector<float> attend(const Kernels &k, const Cache &cache, const std::vector<float> &q,
                          const std::vector<Visible> &rows, float softcap) {
  const int64_t D = cache.headDim;
  std::vector<float> out(rows.size() * D, NAN);
  std::vector<float> m(rows.size(), -INFINITY), l(rows.size(), 0), o(rows.size() * D, 0);
  for (int64_t c = 0; c < cache.chunks; ++c) {
    const Partials p = attendChunk(k, cache, q, rows, c, softcap);
    for (size_t r = 0; r < rows.size(); ++r)
      k.uk_attend_merge(&m[r], &l[r], &o[r * D], &p.m[r], &p.l[r], &p.o[r * D], D);
  }
  for (size_t r = 0; r < rows.size(); ++r)
    k.uk_attend_finish(&o[r * D], &l[r], D, &out[r * D]);
  return out;
}

void expectOracle(const Cache &cache, const float *q, Visible visible, float softcap,
                  const float *got) {
  std::vector<double> s;
  double top = -INFINITY, sum = 0;
  for (int64_t p = visible.lo; p < visible.hi; ++p) {
    double dot = 0;
    for (int64_t d = 0; d < cache.headDim; ++d)
      dot += double(q[d]) * cache.keys[p * cache.headDim + d];
    dot *= scale;
    s.push_back(softcap ? softcap * std::tanh(dot / softcap) : dot);
    top = std::max(top, s.back());
  }
  std::vector<double> o(cache.headDim);
  for (int64_t p = visible.lo; p < visible.hi; ++p) {
    const double w = std::exp(s[p - visible.lo] - top);
    sum += w;
    for (int64_t d = 0; d < cache.headDim; ++d)
      o[d] += w * cache.values[p * cache.headDim + d];
  }
  for (int64_t d = 0; d < cache.headDim; ++d)
    ASSERT_NEAR(got[d], sum ? o[d] / sum : 0, 3e-6) << "dim " << d;
}

TEST(Attention, EqualsTheOracleOnEveryInstructionSet) {
  for (int64_t D : {8, 16, 40, 64, 80, 128, 256})
    for (bool f32 : {false, true})
      for (float softcap : {0.0f, 20.0f}) {
        SCOPED_TRACE(testing::Message() << "dim " << D << " f32 " << f32 << " cap " << softcap);
        const int64_t slots = 300;
        const std::vector<Visible> rows = {{0, 1},   {0, 16},    {0, 17},    {0, 255},   {0, 256},
                                           {0, 257}, {0, slots}, {100, 130}, {250, 270}, {0, 0}};
        const auto q = randomFloats(rows.size() * D, 3);
        std::vector<float> first;
        for (const Kernels &k : kernels()) {
          const Cache cache(k, D, slots, f32);
          const auto out = attend(k, cache, q, rows, softcap);
          for (size_t r = 0; r < rows.size(); ++r)
            expectOracle(cache, &q[r * D], rows[r], softcap, &out[r * D]);
          if (first.empty())
            first = out;
          EXPECT_SAME_BITS(out.data(), first.data(), out.size()) << k.isa;
        }
      }
}

TEST(Attention, RowsDoNotDependOnTheirTile) {
  const int64_t D = 64, slots = 200;
  std::vector<Visible> rows;
  for (int64_t r = 0; r < 11; ++r)
    rows.push_back({r % 3 * 20, 150 + r * 5});
  const auto q = randomFloats(rows.size() * D, 4);
  for (const Kernels &k : kernels()) {
    const Cache cache(k, D, slots, false);
    const auto together = attend(k, cache, q, rows, 0);
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> one(q.begin() + r * D, q.begin() + (r + 1) * D);
      const auto alone = attend(k, cache, one, {rows[r]}, 0);
      EXPECT_SAME_BITS(alone.data(), &together[r * D], D) << k.isa << " row " << r;
    }
  }
}

// The first merge gives the partial itself; an empty partial changes nothing.
TEST(Attention, MergeIdentities) {
  const int64_t D = 64;
  for (const Kernels &k : kernels()) {
    const Cache cache(k, D, 100, false);
    const auto q = randomFloats(D, 5);
    const Partials p = attendChunk(k, cache, q, {{0, 100}}, 0, 0);
    const Partials none = attendChunk(k, cache, q, {{40, 40}}, 0, 0);
    EXPECT_EQ(none.m[0], -INFINITY);
    EXPECT_EQ(none.l[0], 0);
    float m = -INFINITY, l = 0;
    std::vector<float> o(D, NAN); // not written yet
    k.uk_attend_merge(&m, &l, o.data(), none.m.data(), none.l.data(), none.o.data(), D);
    k.uk_attend_merge(&m, &l, o.data(), p.m.data(), p.l.data(), p.o.data(), D);
    k.uk_attend_merge(&m, &l, o.data(), none.m.data(), none.l.data(), none.o.data(), D);
    EXPECT_EQ(m, p.m[0]);
    EXPECT_EQ(l, p.l[0]);
    EXPECT_SAME_BITS(o.data(), p.o.data(), D);
  }
}

// A widened chunk is the same numbers, so it gives the same bits.
TEST(Attention, WidenedChunks) {
  std::vector<uint16_t> every(65536 + 5);
  for (size_t i = 0; i < every.size(); ++i)
    every[i] = uint16_t(i);
  for (const Kernels &k : kernels()) {
    std::vector<float> wide(every.size(), NAN);
    k.uk_kv_widen(every.data(), every.size(), wide.data());
    for (size_t i = 0; i < every.size(); ++i) {
      const float expected = float(reinterpret_cast<const _Float16 *>(every.data())[i]);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(wide[i]) : wide[i] == expected) << i;
    }

    const int64_t D = 64;
    Cache cache(k, D, 250, false);
    const auto q = randomFloats(9 * D, 8);
    const std::vector<Visible> rows(9, {3, 250});
    const auto narrow = attend(k, cache, q, rows, 0);
    Aligned<char> keys(2 * cache.chunkBytes), values(2 * cache.chunkBytes);
    k.uk_kv_widen(cache.k.data(), 256 * D, reinterpret_cast<float *>(keys.data()));
    k.uk_kv_widen(cache.v.data(), 250 * D, reinterpret_cast<float *>(values.data()));
    std::swap(cache.k, keys);
    std::swap(cache.v, values);
    cache.f32 = true;
    EXPECT_SAME_BITS(attend(k, cache, q, rows, 0).data(), narrow.data(), narrow.size()) << k.isa;
  }
}

// Large scores do not overflow: only differences are exponentiated.
TEST(Attention, LargeScores) {
  const int64_t D = 16;
  for (const Kernels &k : kernels()) {
    const Cache cache(k, D, 64, true);
    const auto q = randomFloats(D, 6, 1e4f);
    const auto out = attend(k, cache, q, {{0, 64}}, 0);
    expectOracle(cache, q.data(), {0, 64}, 0, out.data());
  }
}

} // namespace
