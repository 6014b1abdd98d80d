//===- LogitMath.h - sums and maxima over a vocabulary ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All of it gives the same bits on every machine: sums have a fixed order, and
// the exponential is made of additions and multiplications that no compiler may
// fuse (CMakeLists.txt sees to it for the files that include this).
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_LOGITMATH_H
#define LLMC_RUNTIME_LLM_LOGITMATH_H

#include "llmc/kernel_abi.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace llmc::rt {

/// exp(x) for x <= 0, with a relative error below 3e-7; 0 below -87 and for what is not a number.
inline float exponential(float x) {
  constexpr float log2e = 1.44269504f;
  constexpr float ln2High = 0.693145752f, ln2Low = 1.42860677e-6f;
  constexpr float rounder = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * log2e + rounder;
  const float n = shifted - rounder;
  const float r = (x - n * ln2High) - n * ln2Low;
  float p = 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665796e-2f;
  p = p * r + 1.6666666e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // The low bits of `shifted` are n: they move into the exponent.
  const auto scale = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
  return x > -87.0f ? p * scale : 0.0f;
}

/// Calls `visit(first, count)` for consecutive blocks of at most 64 elements.
template <typename Visit> void forBlocks(size_t size, Visit visit) {
  constexpr size_t block = 64;
  for (size_t first = 0; first < size; first += block)
    visit(first, std::min(block, size - first));
}

/// The greatest value; -infinity if there is none (all are not numbers).
float greatest(std::span<const float> x);

/// One position's logits with the greatest of each block of LLMC_LOGIT_BLOCK, which the kernels
/// that make the logits know: who looks for the greatest reads a sixteenth of them.
struct LogitRow {
  std::span<const float> values;
  std::span<const float> maxima; ///< of the whole blocks; or empty
  template <std::convertible_to<std::span<const float>> Values>
  LogitRow(const Values &values, std::span<const float> maxima = {})
      : values(values), maxima(maxima) {}
};

/// The greatest logit; -infinity if there is none.
float greatest(const LogitRow &logits);

/// The index of the greatest value, the lowest of equals; 0 if there is none.
int32_t greedyToken(const LogitRow &logits);

/// Calls `visit(first, count)` for consecutive blocks, in order, in which some logit is at least
/// `least()`, and perhaps for others.
template <typename Least, typename Visit>
void forLikelyBlocks(const LogitRow &logits, Least least, Visit visit) {
  constexpr size_t group = 64 / LLMC_LOGIT_BLOCK; // maxima that are looked at together
  const size_t groups = logits.maxima.size() / group;
  for (size_t i = 0; i < groups; ++i) {
    const float bar = least();
    bool any = false;
    for (size_t j = 0; j < group; ++j)
      any |= logits.maxima[i * group + j] >= bar;
    if (any)
      visit(i * 64, size_t(64));
  }
  const size_t done = groups * 64;
  forBlocks(logits.values.size() - done, [&](size_t first, size_t count) {
    const float bar = least();
    bool any = false;
    for (size_t i = 0; i < count; ++i)
      any |= logits.values[done + first + i] >= bar;
    if (any)
      visit(done + first, count);
  });
}

/// The sum of exp(x[i] - shift), where shift is at least the greatest.
double exponentialSum(std::span<const float> x, float shift);

/// log of the sum of exp(x[i]): subtracting it from a logit gives the log-probability.
double logPartition(std::span<const float> logits);

/// The Kullback-Leibler divergence KL(p || q) in nats of the distributions that two rows of logits
/// stand for.
double divergence(std::span<const float> p, std::span<const float> q);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_LOGITMATH_H
