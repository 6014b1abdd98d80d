//===- Balance.cpp - how work is divided among workers --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Balance.h"

#include <algorithm>
#include <cmath>

using namespace llmc::rt;

namespace {

/// How fast averages follow.
constexpr double kRate = 0.25;
/// A worker that was interrupted counts as so many times slower than it is on average at most.
constexpr double kMostSlowdown = 2;
/// The least share of a worker, as a part of an equal one.
constexpr double kLeastShare = 0.125;
/// Shares are left alone while they are so near to the speeds, and equal again when speeds are.
constexpr double kTolerance = 0.15, kNearlyEqual = 0.05;

} // namespace

Balance::Balance(unsigned workers)
    : bounds(size_t(workers) + 1), speeds(workers, 1.0 / workers), busy(workers) {
  divideEvenly();
}

void Balance::divideEvenly() {
  const auto workers = static_cast<int64_t>(speeds.size());
  // Rounded up, so that a count that can be divided evenly is.
  for (int64_t worker = 0; worker <= workers; ++worker)
    bounds[worker] = ((worker << kBits) + workers - 1) / workers;
  even = true;
}

void Balance::update() {
  const size_t workers = speeds.size();
  double total = 0;
  for (size_t w = 0; w < workers; ++w) {
    if (!(busy[w] > 0))
      return;
    total += share(w) / busy[w];
  }
  double sum = 0;
  for (size_t w = 0; w < workers; ++w) {
    const double seen = share(w) / busy[w] / total;
    speeds[w] += kRate * (std::max(seen, speeds[w] / kMostSlowdown) - speeds[w]);
    speeds[w] = std::max(speeds[w], kLeastShare / double(workers));
    sum += speeds[w];
  }
  double offShare = 0, offEqual = 0;
  for (size_t w = 0; w < workers; ++w) {
    speeds[w] /= sum;
    offShare = std::max(offShare, std::abs(speeds[w] / share(w) - 1));
    offEqual = std::max(offEqual, std::abs(speeds[w] * double(workers) - 1));
  }
  if (offEqual < kNearlyEqual) {
    divideEvenly();
  } else if (offShare > kTolerance) {
    double end = 0;
    for (size_t w = 0; w + 1 < workers; ++w) {
      end += speeds[w];
      bounds[w + 1] = std::lround(end * (1 << kBits));
    }
    even = false;
  }
}
