//===- LogitMath.cpp - sums and maxima over a vocabulary ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/LogitMath.h"

#include <cmath>
#include <limits>

using namespace llmc::rt;

namespace {

/// The sum of term(0) .. term(size - 1), in a fixed order that vectorizes.
template <typename Term> double sumOf(size_t size, Term term) {
  constexpr size_t lanes = 16;
  double sums[lanes] = {};
  forBlocks(size, [&](size_t first, size_t count) {
    float terms[64] = {};
    for (size_t i = 0; i < count; ++i)
      terms[i] = term(first + i);
    for (size_t i = 0; i < std::size(terms); i += lanes)
      for (size_t lane = 0; lane < lanes; ++lane)
        sums[lane] += terms[i + lane];
  });
  double total = 0;
  for (double sum : sums)
    total += sum;
  return total;
}

} // namespace

float llmc::rt::greatest(std::span<const float> x) {
  constexpr size_t lanes = 32;
  float best[lanes];
  std::fill(best, best + lanes, -std::numeric_limits<float>::infinity());
  const size_t whole = x.size() / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      best[lane] = x[i + lane] > best[lane] ? x[i + lane] : best[lane];
  for (size_t i = whole; i < x.size(); ++i)
    best[0] = x[i] > best[0] ? x[i] : best[0];
  return *std::max_element(best, best + lanes);
}

float llmc::rt::greatest(const LogitRow &logits) {
  const size_t known = logits.maxima.size() * LLMC_LOGIT_BLOCK;
  return std::max(greatest(logits.maxima), greatest(logits.values.subspan(known)));
}

int32_t llmc::rt::greedyToken(const LogitRow &logits) {
  // The first of the greatest: the first maximum that has it, then the first in its block.
  const float best = greatest(logits);
  const auto firstOf = [best](std::span<const float> x) {
    size_t first = 0;
    bool here = false;
    forBlocks(x.size(), [&](size_t begin, size_t count) {
      if (here)
        return;
      for (size_t i = 0; i < count; ++i)
        here |= x[begin + i] == best;
      first = begin;
    });
    return size_t(std::find(x.begin() + first, x.end(), best) - x.begin());
  };
  const size_t start = firstOf(logits.maxima) * LLMC_LOGIT_BLOCK;
  const size_t found = start + firstOf(logits.values.subspan(start));
  return found == logits.values.size() ? 0 : static_cast<int32_t>(found);
}

double llmc::rt::exponentialSum(std::span<const float> x, float shift) {
  return sumOf(x.size(), [&](size_t i) { return exponential(x[i] - shift); });
}

double llmc::rt::logPartition(std::span<const float> logits) {
  const float best = greatest(logits);
  return best + std::log(exponentialSum(logits, best));
}

double llmc::rt::divergence(std::span<const float> p, std::span<const float> q) {
  const float best = greatest(p);
  const double mass = exponentialSum(p, best);
  const double moment = sumOf(p.size(), [&](size_t i) {
    const float weight = exponential(p[i] - best);
    return weight > 0 ? weight * (p[i] - q[i]) : 0.0f;
  });
  return moment / mass - (best + std::log(mass)) + logPartition(q);
}
