//===- SamplerTest.cpp - filters, their order, draws ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Sampler.h"
#include "runtime/llm/LogitMath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace llmc::rt;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> logitsOf(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (double p : probabilities)
    logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::vector<float> randomLogits(size_t count, uint64_t seed, double scale = 10) {
  RandomSource random(seed);
  std::vector<float> logits(count);
  for (float &logit : logits)
    logit = static_cast<float>((random.uniform() - 0.5) * scale);
  return logits;
}

/// How often each token comes up.
std::map<int32_t, int> draws(SamplerOptions options, std::span<const float> logits, int count,
                             std::span<const int32_t> history = {}) {
  Sampler sampler(options, static_cast<uint32_t>(logits.size()));
  std::map<int32_t, int> seen;
  for (int i = 0; i < count; ++i)
    ++seen[sampler.sample(logits, history)];
  return seen;
}

std::set<int32_t> support(SamplerOptions options, std::span<const float> logits) {
  std::set<int32_t> tokens;
  for (const auto &[token, count] : draws(options, logits, 3000))
    tokens.insert(token);
  return tokens;
}

TEST(Greedy, LowestOfEquals) {
  for (size_t size : {1, 5, 31, 32, 33, 64, 65, 1000})
    for (size_t at = 0; at < size; at += size / 7 + 1) {
      std::vector<float> logits(size, -3.0f);
      logits[at] = logits[size - 1] = 2.0f;
      EXPECT_EQ(greedyToken(logits), static_cast<int32_t>(at)) << size;
    }
  EXPECT_EQ(greedyToken(std::vector<float>{kNan, 1, kNan, 2}), 3);
  EXPECT_EQ(greedyToken(std::vector<float>(100, kNan)), 0);
  EXPECT_EQ(greedyToken(std::vector<float>{-kInf, -5, kInf}), 2);
}

/// The greatest of each whole block, as the kernels leave it.
std::vector<float> maximaOf(std::span<const float> logits) {
  std::vector<float> maxima;
  for (size_t i = 0; i + LLMC_LOGIT_BLOCK <= logits.size(); i += LLMC_LOGIT_BLOCK)
    maxima.push_back(greatest(logits.subspan(i, LLMC_LOGIT_BLOCK)));
  return maxima;
}

// The maxima of blocks only spare reading: every sampler draws the same tokens without them.
TEST(Sampler, MaximaChangeNothing) {
  const SamplerOptions options[] = {{},
                                    {.temperature = 1, .topK = 1},
                                    {.temperature = 1, .topK = 40},
                                    {.temperature = 2, .topK = 400, .topP = 0.9f},
                                    {.temperature = 1, .topP = 0.5f},
                                    {.temperature = 1, .minP = 0.05f},
                                    {.temperature = 1},
                                    {.repeatPenalty = 1.5f}};
  const std::vector<int32_t> history = {3, 17, 64};
  for (size_t size : {70, 128, 1000, 4099})
    for (uint64_t seed = 0; seed < 4; ++seed) {
      auto logits = randomLogits(size, seed, 6);
      for (size_t i = 0; i < size; i += 7 * seed + 40)
        logits[i] = seed % 2 ? kNan : -kInf;
      for (size_t i = 16; i < 32; ++i)
        logits[i] = kNan;
      const auto maxima = maximaOf(logits);
      for (const SamplerOptions &option : options) {
        Sampler with(option, size), without(option, size);
        for (int i = 0; i < 20; ++i)
          ASSERT_EQ(with.sample({logits, maxima}, history), without.sample(logits, history));
      }
      // Each position in turn, and two equal ones.
      for (size_t at = 40; at < size; at += 97) {
        const float kept = logits[at];
        logits[at] = logits[size - 1] = 99;
        EXPECT_EQ(greedyToken({logits, maximaOf(logits)}), static_cast<int32_t>(at));
        logits[at] = kept;
      }
    }
}

TEST(LogitMath, ExponentialIsAccurate) {
  for (float x = 0; x > -87; x -= 0.0137f)
    EXPECT_NEAR(exponential(x) / std::exp(double(x)), 1, 3e-7) << x;
  EXPECT_EQ(exponential(0), 1.0f);
  EXPECT_EQ(exponential(-kInf), 0.0f);
  EXPECT_EQ(exponential(kNan), 0.0f);
}

TEST(LogitMath, DivergenceByHand) {
  const auto p = logitsOf({0.5, 0.25, 0.25}), q = logitsOf({0.25, 0.25, 0.5});
  EXPECT_NEAR(divergence(p, q), 0.25 * std::log(2.0), 1e-7);
  EXPECT_EQ(divergence(p, p), 0);
  const auto shifted = std::vector<float>{p[0] + 3, p[1] + 3, p[2] + 3};
  EXPECT_NEAR(divergence(p, shifted), 0, 1e-7);
  EXPECT_NEAR(logPartition(p), 0, 1e-7);
}

TEST(Sampler, SameSeedSameTokens) {
  const auto logits = randomLogits(1000, 1);
  const SamplerOptions options{.temperature = 1, .seed = 42};
  Sampler a(options, 1000), b(options, 1000);
  SamplerOptions reseeded = options;
  reseeded.seed = 43;
  Sampler c(reseeded, 1000);
  int differing = 0;
  for (int i = 0; i < 100; ++i) {
    const int32_t token = a.sample(logits, {});
    EXPECT_EQ(token, b.sample(logits, {}));
    differing += token != c.sample(logits, {});
  }
  EXPECT_GT(differing, 50);
}

TEST(Sampler, RandomNumbersAreXoshiro) {
  // Of the reference implementation, state seeded by splitmix64(0).
  RandomSource random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452au);
}

TEST(Sampler, FollowsTheProbabilities) {
  const auto logits = logitsOf({0.6, 0.3, 0.1});
  const int count = 100000;
  auto seen = draws({.temperature = 1, .seed = 7}, logits, count);
  EXPECT_NEAR(seen[0], 0.6 * count, 600);
  EXPECT_NEAR(seen[1], 0.3 * count, 600);
  EXPECT_NEAR(seen[2], 0.1 * count, 600);
  // Temperature 1/2 squares the odds.
  seen = draws({.temperature = 0.5, .seed = 7}, logits, count);
  EXPECT_NEAR(seen[0], 0.36 / 0.46 * count, 600);
}

TEST(Sampler, TopK) {
  const auto logits = logitsOf({0.1, 0.3, 0.05, 0.25, 0.3});
  EXPECT_EQ(support({.temperature = 1, .topK = 1}, logits), (std::set<int32_t>{1}));
  EXPECT_EQ(support({.temperature = 1, .topK = 2}, logits), (std::set<int32_t>{1, 4}));
  EXPECT_EQ(support({.temperature = 1, .topK = 3}, logits), (std::set<int32_t>{1, 3, 4}));
  EXPECT_EQ(support({.temperature = 1, .topK = 99}, logits).size(), 5u);
}

TEST(Sampler, TopPTakesTheTokenThatReachesIt) {
  const auto logits = logitsOf({0.1, 0.3, 0.05, 0.25, 0.3});
  EXPECT_EQ(support({.temperature = 1, .topP = 0.29f}, logits), (std::set<int32_t>{1}));
  EXPECT_EQ(support({.temperature = 1, .topP = 0.59f}, logits), (std::set<int32_t>{1, 4}));
  EXPECT_EQ(support({.temperature = 1, .topP = 0.61f}, logits), (std::set<int32_t>{1, 3, 4}));
  // After top-k the probabilities are those of the tokens that are left: 0.5 and 0.5.
  EXPECT_EQ(support({.temperature = 1, .topK = 2, .topP = 0.49f}, logits), (std::set<int32_t>{1}));
}

TEST(Sampler, TopPIgnoresTheTemperature) {
  const auto logits = logitsOf({0.6, 0.3, 0.1});
  EXPECT_EQ(support({.temperature = 100, .topP = 0.59f}, logits), (std::set<int32_t>{0}));
}

TEST(Sampler, MinP) {
  const auto logits = logitsOf({0.5, 0.26, 0.04, 0.2});
  EXPECT_EQ(support({.temperature = 1, .minP = 0.5f}, logits), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(support({.temperature = 1, .minP = 0.3f}, logits), (std::set<int32_t>{0, 1, 3}));
  EXPECT_EQ(support({.temperature = 5, .minP = 1.0f}, logits), (std::set<int32_t>{0}));
}

TEST(Sampler, TopPAgreesWithASort) {
  // The threshold before the heap must not lose a token of the nucleus.
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto logits = randomLogits(2000, seed, 12);
    std::vector<float> sorted(logits);
    std::sort(sorted.begin(), sorted.end(), std::greater());
    const double total = exponentialSum(sorted, sorted[0]);
    double sum = 0;
    size_t kept = 0;
    while (sum < 0.3f * total)
      sum += exponential(sorted[kept++] - sorted[0]);
    std::set<int32_t> seen;
    Sampler sampler({.temperature = 1000, .topP = 0.3f, .seed = seed}, 2000);
    for (int i = 0; i < 3000; ++i) {
      const int32_t token = sampler.sample(logits, {});
      EXPECT_GE(logits[token], sorted[kept - 1]);
      seen.insert(token);
    }
    EXPECT_NEAR(double(seen.size()), double(kept), 3 + 0.02 * double(kept));
  }
}

TEST(Sampler, RepetitionPenalty) {
  const std::vector<float> logits = {2.0f, 1.9f, -1.0f};
  const std::vector<int32_t> history = {2, 0, 0, 0};
  EXPECT_EQ(draws({}, logits, 1, history), (std::map<int32_t, int>{{0, 1}}));
  EXPECT_EQ(draws({.repeatPenalty = 1.1f}, logits, 1, history), (std::map<int32_t, int>{{1, 1}}));
  // Once for three occurrences: 2 / 1.05 is still above 1.9.
  EXPECT_EQ(draws({.repeatPenalty = 1.05f}, logits, 1, history), (std::map<int32_t, int>{{0, 1}}));
  EXPECT_EQ(draws({.repeatPenalty = 9.0f, .repeatLast = 0}, logits, 1, history),
            (std::map<int32_t, int>{{0, 1}}));
}

TEST(Sampler, SurvivesWhatIsNotANumber) {
  const std::vector<float> nan(300, kNan), impossible(300, -kInf);
  std::vector<float> mixed(300, kNan);
  mixed[200] = 1;
  mixed[7] = kNan;
  for (SamplerOptions options :
       {SamplerOptions{.temperature = 1}, SamplerOptions{.temperature = 1, .topK = 5},
        SamplerOptions{.temperature = 1, .topP = 0.9f},
        SamplerOptions{.temperature = 1, .minP = 0.1f}}) {
    EXPECT_EQ(draws(options, mixed, 10), (std::map<int32_t, int>{{200, 10}}));
    for (const auto &logits : {nan, impossible})
      for (const auto &[token, count] : draws(options, logits, 10))
        EXPECT_LT(token, 300);
  }
}

} // namespace
