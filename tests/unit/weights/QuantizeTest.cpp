//===- QuantizeTest.cpp - floats into group encodings ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Quantize.h"
#include "RandomWeights.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::vector<float> normal(uint64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> distribution(0, 0.02f);
  std::vector<float> x(n);
  for (float &v : x)
    v = distribution(rng);
  return x;
}

/// What the quantized row stands for; `error` is compared with that of the row.
std::vector<float> roundTrip(const char *name, const std::vector<float> &x,
                             const float *importance = nullptr, QuantizeError *error = nullptr) {
  const Encoding &encoding = *lookupEncoding(name);
  std::vector<uint8_t> row(encoding.rowBytes(x.size()), 0xaa);
  const QuantizeError reported = quantizeRow(encoding, x.data(), x.size(), importance, row.data());
  std::vector<float> out(x.size());
  dequantizeRow(encoding, row.data(), out.data(), x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += (importance ? importance[i] : 1) * std::pow(double(x[i]) - out[i], 2);
  if (!importance || importance[0] > 0)
    EXPECT_NEAR(reported.error, sum, 1e-3 * sum + 1e-12) << name;
  if (error)
    *error = reported;
  return out;
}

double squareError(const std::vector<float> &a, const std::vector<float> &b,
                   const std::vector<float> *weights = nullptr) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (weights ? (*weights)[i] : 1) * std::pow(double(a[i]) - b[i], 2);
  return sum;
}

/// Nearest codes for the scale that just fits, as simple quantizers do.
double plainError(const std::vector<float> &x, uint64_t group, int bits, bool min) {
  double sum = 0;
  for (size_t k = 0; k < x.size(); k += group) {
    float low = x[k], high = x[k], extreme = 0;
    for (size_t i = k; i < k + group; ++i) {
      low = std::min(low, x[i]), high = std::max(high, x[i]);
      extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
    }
    const int codes = 1 << bits;
    const float scale = min ? (high - low) / float(codes - 1) : extreme / float(-codes / 2);
    const float from = min ? low : scale * float(-codes / 2);
    for (size_t i = k; i < k + group; ++i) {
      const float code = std::fmin(std::fmax(std::round((x[i] - from) / scale), 0), codes - 1);
      sum += std::pow(double(x[i]) - (from + scale * code), 2);
    }
  }
  return sum;
}

TEST(Quantize, Targets) {
  EXPECT_EQ(quantizationTarget(*lookupEncoding("q4_1"))->name, "int4_g32_min");
  EXPECT_EQ(quantizationTarget(*lookupEncoding("q8_0"))->name, "int8_g32");
  EXPECT_EQ(quantizationTarget(*lookupEncoding("iq4_nl"))->name, "iq4_g32");
  EXPECT_EQ(quantizationTarget(*lookupEncoding("int6_row_f32"))->name, "int6_row_f32");
  for (const char *name : {"f32", "f8_e4m3", "q4_k", "int4_g32_zp"})
    EXPECT_EQ(quantizationTarget(*lookupEncoding(name)), nullptr) << name;
  EXPECT_TRUE(sameGrid(*lookupEncoding("q4_0"), *lookupEncoding("int4_g32")));
  EXPECT_FALSE(sameGrid(*lookupEncoding("q4_0"), *lookupEncoding("int4_g32_f32")));
  EXPECT_FALSE(sameGrid(*lookupEncoding("f32"), *lookupEncoding("f32")));
}

TEST(Quantize, BeatsPlainRounding) {
  const auto x = normal(4096, 1);
  EXPECT_LT(squareError(x, roundTrip("int4_g32", x)), 0.92 * plainError(x, 32, 4, false));
  EXPECT_LT(squareError(x, roundTrip("int4_g32_min", x)), 0.9 * plainError(x, 32, 4, true));
  EXPECT_LT(squareError(x, roundTrip("int4_g128", x)), 0.9 * plainError(x, 128, 4, false));
  EXPECT_LT(squareError(x, roundTrip("int8_g32", x)), 1.02 * plainError(x, 32, 8, false));
  EXPECT_LT(squareError(x, roundTrip("iq4_g32", x)), squareError(x, roundTrip("int4_g32", x)));
}

// What is on the grid comes back as it was, in every encoding that can be asked for.
TEST(Quantize, PointsOfTheGridAreFound) {
  for (const Encoding &encoding : groupEncodings()) {
    if (quantizationTarget(encoding) != &encoding)
      continue;
    const UkFormat &f = encoding.format;
    const int codes = 1 << (f.loBits + f.hiBits);
    const uint64_t K = f.group < ukWholeRow ? std::min(2 * f.group, 1024) : 96;
    std::vector<float> x(K);
    for (uint64_t k = 0; k < K; ++k) {
      const int code = f.codebook   ? ukIq4Codes[k % 16]
                       : k % 16 < 2 ? int(k % 2) * (codes - 1)
                                    : int(k * 7 % codes);
      x[k] = 0.03125f * float(code - f.zeroPoint) - (f.minSign ? 1.0f : 0.0f);
    }
    EXPECT_EQ(roundTrip(encoding.name.data(), x), x) << encoding.name.str();
  }
}

// Half of the columns count a hundred times as much as the others.
TEST(Quantize, ImportanceCounts) {
  const auto x = normal(4096, 2);
  std::vector<float> weights(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    weights[i] = i % 2 ? 100 : 1;
  for (const char *name : {"int4_g32", "int4_g64_min", "iq4_g32"})
    EXPECT_LT(squareError(x, roundTrip(name, x, weights.data()), &weights),
              0.93 * squareError(x, roundTrip(name, x), &weights))
        << name;
}

// A group need not divide the row: 192 by 128, 40 by 128, 33 by 32.
TEST(Quantize, ShortGroups) {
  for (uint64_t K : {192, 40, 33, 1})
    for (const char *name : {"int4_g128", "int4_g128_min", "int8_row", "iq4_g32", "int5_g16"})
      for (float value : roundTrip(name, std::vector<float>(K, 0.5f)))
        EXPECT_NEAR(value, 0.5f, 0.002f) << name << " " << K;
}

TEST(Quantize, DegenerateGroups) {
  const float weights[64] = {}; // columns that nothing ever reached
  for (const char *name : {"int4_g32", "int4_g32_min", "int8_row", "iq4_g32"}) {
    EXPECT_EQ(roundTrip(name, std::vector<float>(64, 0.0f)), std::vector<float>(64, 0.0f));
    for (float value : roundTrip(name, normal(64, 3), weights))
      EXPECT_TRUE(std::isfinite(value));
    // Not finite, and too large for f16.
    std::vector<float> bad(64, 1.0f);
    bad[3] = NAN, bad[40] = INFINITY, bad[50] = 1e30f;
    std::vector<uint8_t> row(lookupEncoding(name)->rowBytes(64));
    quantizeRow(*lookupEncoding(name), bad.data(), 64, nullptr, row.data());
    dequantizeRow(*lookupEncoding(name), row.data(), bad.data(), 64);
    for (float value : bad)
      EXPECT_TRUE(std::isfinite(value)) << name;
  }
}

} // namespace
