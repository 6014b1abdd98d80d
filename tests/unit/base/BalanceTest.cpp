//===- BalanceTest.cpp - shares follow speeds -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Balance.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace llmc::rt;

namespace {

/// Tiles of each worker.
std::vector<int64_t> divide(const Balance &balance, unsigned workers, int64_t count) {
  std::vector<int64_t> sizes;
  int64_t end = 0;
  for (unsigned w = 0; w < workers; ++w) {
    const Balance::Range range = balance.range(w, count);
    EXPECT_EQ(range.begin, end);
    EXPECT_LE(range.begin, range.end);
    sizes.push_back(range.end - range.begin);
    end = range.end;
  }
  EXPECT_EQ(end, count);
  return sizes;
}

/// Steps of `count` tiles on workers that compute speeds[w] tiles per second.
void step(Balance &balance, const std::vector<double> &speeds, int64_t count, int times) {
  const auto workers = static_cast<unsigned>(speeds.size());
  for (int i = 0; i < times; ++i) {
    const std::vector<int64_t> sizes = divide(balance, workers, count);
    for (unsigned w = 0; w < workers; ++w)
      balance.report(w, double(sizes[w]) / speeds[w]);
    balance.update();
  }
}

double secondsOf(const Balance &balance, const std::vector<double> &speeds, int64_t count) {
  const auto workers = static_cast<unsigned>(speeds.size());
  const std::vector<int64_t> sizes = divide(balance, workers, count);
  double longest = 0;
  for (unsigned w = 0; w < workers; ++w)
    longest = std::max(longest, double(sizes[w]) / speeds[w]);
  return longest;
}

TEST(Balance, IsEvenAtFirst) {
  for (unsigned workers : {1, 2, 3, 5, 7, 48, 1024}) {
    Balance balance(workers);
    for (int64_t each : {0, 1, 36, 1000})
      EXPECT_EQ(divide(balance, workers, each * workers), std::vector<int64_t>(workers, each));
    for (int64_t size : divide(balance, workers, 1000 * workers + workers / 2))
      EXPECT_NEAR(double(size), 1000.5, 1.5);
  }
}

TEST(Balance, StaysEvenOnEqualCoresWithNoise) {
  Balance balance(4);
  unsigned noise = 1;
  for (int i = 0; i < 1000; ++i) {
    for (unsigned w = 0; w < 4; ++w) {
      noise = noise * 1664525 + 1013904223;
      balance.report(w, 1 + (noise >> 16) / 65536.0 * 0.2);
    }
    balance.update();
    ASSERT_TRUE(balance.isEven());
  }
}

TEST(Balance, FollowsUnequalCoresAndTheirRecovery) {
  for (const std::vector<double> &speeds :
       {std::vector<double>{1, 0.5}, {0.4, 1}, {1, 1, 0.5, 0.5}, {1, 1, 1, 1, 1, 1, 1, 0.3}}) {
    Balance balance(static_cast<unsigned>(speeds.size()));
    constexpr int64_t count = 10000;
    double total = 0;
    for (double speed : speeds)
      total += speed;
    EXPECT_GT(secondsOf(balance, speeds, count), 1.3 * count / total);
    step(balance, speeds, count, 32);
    EXPECT_LT(secondsOf(balance, speeds, count), 1.15 * count / total);
    step(balance, std::vector<double>(speeds.size(), 1), count, 64);
    EXPECT_TRUE(balance.isEven());
  }
}

TEST(Balance, OneInterruptionChangesLittle) {
  Balance balance(2);
  balance.report(0, 1);
  balance.report(1, 1000);
  balance.update();
  EXPECT_GT(divide(balance, 2, 1000)[1], 400);
  // Nothing reported is nothing learned.
  balance.report(0, 0);
  balance.update();
  EXPECT_GT(divide(balance, 2, 1000)[1], 400);
}

TEST(Balance, NoWorkerIsGivenUp) {
  Balance balance(2);
  step(balance, {1, 1e-6}, 100000, 100);
  EXPECT_GE(divide(balance, 2, 1000)[1], 50);
}

TEST(Balance, MeasuresAFewShortSteps) {
  Balance balance(2);
  int due = 0;
  for (int i = 0; i < 80; ++i)
    due += balance.isDue(/*longStep=*/false);
  EXPECT_EQ(due, 10);
  EXPECT_TRUE(balance.isDue(/*longStep=*/true));
}

} // namespace
