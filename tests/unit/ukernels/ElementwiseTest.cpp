//===- ElementwiseTest.cpp - norms, activations and rope against double ---===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include <cmath>
#include <functional>
#include <numbers>

using namespace llmc::test;

namespace {

constexpr int64_t lengths[] = {1, 7, 15, 16, 17, 48, 64, 100, 576, 641};

/// Runs `kernel(k, out)` on every instruction set: the same bits on all; returns them.
std::vector<float> onAll(size_t n, const std::function<void(const Kernels &, float *)> &kernel) {
  std::vector<float> first;
  for (const Kernels &k : kernels()) {
    std::vector<float> out(n + 1, 12345.0f);
    kernel(k, out.data());
    EXPECT_EQ(out[n], 12345.0f) << k.isa << " wrote past the end";
    out.resize(n);
    if (first.empty())
      first = out;
    EXPECT_SAME_BITS(out.data(), first.data(), n) << k.isa;
  }
  return first;
}

TEST(Norms, RmsNorm) {
  for (int64_t n : lengths) {
    const auto x = randomFloats(n, 1, 3), w = randomFloats(n, 2);
    double squares = 0;
    for (float v : x)
      squares += double(v) * v;
    const double scale = 1 / std::sqrt(squares / n + 1e-5);
    for (bool weighted : {true, false}) {
      const auto out = onAll(n, [&](const Kernels &k, float *o) {
        k.uk_rms_norm(x.data(), weighted ? w.data() : nullptr, n, 1e-5f, o);
      });
      for (int64_t i = 0; i < n; ++i)
        EXPECT_LT(ulps(out[i], x[i] * scale * (weighted ? w[i] : 1)), 4);
    }
    const auto inPlace = onAll(n, [&](const Kernels &k, float *o) {
      std::copy(x.begin(), x.end(), o);
      k.uk_rms_norm(o, w.data(), n, 1e-5f, o);
    });
    const auto apart = onAll(
        n, [&](const Kernels &k, float *o) { k.uk_rms_norm(x.data(), w.data(), n, 1e-5f, o); });
    EXPECT_SAME_BITS(inPlace.data(), apart.data(), n);
  }
}

// Squares of large rows must not overflow or be lost (field report b3).
TEST(Norms, LargeRow) {
  const std::vector<float> x(64, 20000.0f), one(64, 1.0f);
  const auto out = onAll(
      64, [&](const Kernels &k, float *o) { k.uk_rms_norm(x.data(), one.data(), 64, 1e-6f, o); });
  for (float v : out)
    EXPECT_NEAR(v, 1, 1e-6);
}

TEST(Norms, LayerNorm) {
  for (int64_t n : lengths) {
    const auto x = randomFloats(n, 3, 2), w = randomFloats(n, 4), b = randomFloats(n, 5);
    double mean = 0, squares = 0;
    for (float v : x)
      mean += v;
    mean /= n;
    for (float v : x)
      squares += (v - mean) * (v - mean);
    const double scale = 1 / std::sqrt(squares / n + 1e-5);
    for (int parts = 0; parts < 4; ++parts) {
      const bool weighted = parts & 1, biased = parts & 2;
      const auto out = onAll(n, [&](const Kernels &k, float *o) {
        k.uk_layer_norm(x.data(), weighted ? w.data() : nullptr, biased ? b.data() : nullptr, n,
                        1e-5f, o);
      });
      for (int64_t i = 0; i < n; ++i)
        EXPECT_NEAR(out[i], (x[i] - mean) * scale * (weighted ? w[i] : 1) + (biased ? b[i] : 0),
                    2e-6);
    }
  }
}

TEST(Elementwise, AddAndScale) {
  for (int64_t n : lengths) {
    const auto x = randomFloats(n, 6), y = randomFloats(n, 7);
    const auto sum =
        onAll(n, [&](const Kernels &k, float *o) { k.uk_add(x.data(), y.data(), 0.22f, n, o); });
    const auto scaled =
        onAll(n, [&](const Kernels &k, float *o) { k.uk_scale(x.data(), 12.5f, n, o); });
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(sum[i], std::fmaf(y[i], 0.22f, x[i]));
      EXPECT_EQ(scaled[i], x[i] * 12.5f);
    }
  }
}

double reference(int32_t kind, double x) {
  switch (kind) {
  case ukSilu:
    return x / (1 + std::exp(-x));
  case ukGeluTanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  case ukGeluErf:
    return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  case ukRelu:
    return std::max(x, 0.0);
  case ukReluSquared:
    return std::max(x, 0.0) * std::max(x, 0.0);
  default:
    return x;
  }
}

/// -12 to 12 in small steps, with the ends of the float range.
std::vector<float> sweep() {
  std::vector<float> x = {0.0f, -0.0f, 1e-30f, -1e-30f, 100.0f, -100.0f, 1e20f, -1e20f};
  for (float v = -12; v < 12; v += 1.0f / 1024)
    x.push_back(v);
  return x;
}

TEST(Elementwise, Activations) {
  const auto x = sweep();
  const int64_t n = x.size();
  const std::vector<float> two(n, 2.0f);
  for (int32_t kind = ukIdentity; kind <= ukReluSquared; ++kind) {
    const auto out = onAll(n, [&](const Kernels &k, float *o) {
      std::copy(x.begin(), x.end(), o);
      k.uk_act(kind, o, n);
    });
    const auto glu =
        onAll(n, [&](const Kernels &k, float *o) { k.uk_glu(kind, x.data(), two.data(), n, o); });
    for (int64_t i = 0; i < n; ++i) {
      const double expected = reference(kind, x[i]);
      if (std::fabs(expected) < 1e30) { // beyond, the square is infinite
        ASSERT_NEAR(out[i], expected, 3e-7 * std::max(std::fabs(expected), 0.5))
            << kind << " " << x[i];
      }
      EXPECT_EQ(glu[i], out[i] * 2);
    }
  }
}

TEST(Elementwise, Softcap) {
  const auto x = sweep();
  const int64_t n = x.size();
  for (float cap : {1.0f, 30.0f, 50.0f}) {
    const auto out = onAll(n, [&](const Kernels &k, float *o) {
      std::copy(x.begin(), x.end(), o);
      k.uk_softcap(o, cap, n);
    });
    for (int64_t i = 0; i < n; ++i)
      EXPECT_LT(ulps(out[i], cap * std::tanh(double(x[i]) / cap)), 4) << x[i];
  }
}

TEST(Elementwise, BlockMax) {
  for (int64_t n : {1, 15, 16, 17, 100}) {
    auto x = randomFloats(n, 7);
    if (n > 40) {
      std::fill(x.begin() + 16, x.begin() + 32, NAN);
      x[35] = NAN;
      x[50] = INFINITY;
    }
    const auto out =
        onAll((n + 15) / 16, [&](const Kernels &k, float *o) { k.uk_block_max(x.data(), n, o); });
    for (size_t block = 0; block < out.size(); ++block) {
      float best = -INFINITY;
      for (int64_t i = 16 * block; i < std::min<int64_t>(n, 16 * block + 16); ++i)
        best = x[i] > best ? x[i] : best;
      EXPECT_EQ(out[block], best) << block;
    }
  }
}

TEST(Rope, TableIsCorrectlyRounded) {
  for (int64_t pairs : {1, 3, 8, 32, 37}) {
    std::vector<float> frequency(pairs);
    for (int64_t i = 0; i < pairs; ++i)
      frequency[i] = std::pow(10000.0f, -float(i) / pairs);
    for (int32_t position : {0, 1, 511, 4096, 131071, 1 << 20}) {
      const auto table = onAll(2 * pairs, [&](const Kernels &k, float *o) {
        k.uk_rope_table(position, frequency.data(), pairs, 1.25f, o);
      });
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = double(position) * frequency[i];
        EXPECT_LT(ulps(table[i], 1.25 * std::cos(angle)), 0.51) << position << " " << i;
        EXPECT_LT(ulps(table[pairs + i], 1.25 * std::sin(angle)), 0.51) << position << " " << i;
      }
    }
  }
}

// The two layouts of a pair, cos = 0 and sin = 1 (field report b4).
TEST(Rope, PairLayouts) {
  const std::vector<float> quarter = {0, 0, 1, 1};
  for (auto [interleaved, expected] : {std::pair{0, std::vector<float>{-3, -4, 1, 2, 5, 6, 7, 8}},
                                       {1, std::vector<float>{-2, 1, -4, 3, 5, 6, 7, 8}}}) {
    const auto out = onAll(8, [&](const Kernels &k, float *o) {
      for (int i = 0; i < 8; ++i)
        o[i] = float(i + 1);
      k.uk_rope(o, quarter.data(), 4, interleaved);
    });
    EXPECT_EQ(out, expected);
  }
}

TEST(Rope, Rotates) {
  for (int64_t dims : {2, 6, 64, 80}) {
    const auto x = randomFloats(dims, 8), table = randomFloats(dims, 9);
    for (int32_t interleaved : {0, 1}) {
      const auto out = onAll(dims, [&](const Kernels &k, float *o) {
        std::copy(x.begin(), x.end(), o);
        k.uk_rope(o, table.data(), dims, interleaved);
      });
      for (int64_t i = 0; i < dims / 2; ++i) {
        const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + dims / 2;
        const float cos = table[i], sin = table[dims / 2 + i];
        EXPECT_EQ(out[a], std::fmaf(x[a], cos, -(x[b] * sin)));
        EXPECT_EQ(out[b], std::fmaf(x[b], cos, x[a] * sin));
      }
    }
  }
}

} // namespace
