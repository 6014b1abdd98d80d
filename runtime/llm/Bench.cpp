//===- Bench.cpp - how fast a session is ----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Bench.h"

#include "runtime/llm/Sampler.h"

#include <algorithm>
#include <chrono>
#include <vector>

using namespace llmc::rt;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Reads all bytes, a multiple of the page size; the result keeps the compiler from leaving that
/// out. Several places at once: one alone stops at the end of every page, where prefetching does.
uint64_t readThrough(std::span<const uint8_t> bytes) {
  constexpr size_t words = 8, streams = 8;
  const auto *data = reinterpret_cast<const uint64_t *>(bytes.data());
  const size_t part = bytes.size() / sizeof(uint64_t) / streams;
  uint64_t sums[streams * words] = {};
  for (size_t i = 0; i + words <= part; i += words)
    for (size_t stream = 0; stream < streams; ++stream)
      for (size_t word = 0; word < words; ++word)
        sums[stream * words + word] ^= data[stream * part + i + word];
  uint64_t sum = 0;
  for (uint64_t lane : sums)
    sum ^= lane;
  return sum;
}

double measureMemory(WorkerPool &pool, std::span<const uint8_t> bytes, uint32_t repeat) {
  constexpr size_t piece = 4096;
  repeat = std::max(repeat, 5u); // it is short
  std::vector<double> rates;
  std::atomic<uint64_t> sink{0};
  for (uint32_t run = 0; run <= repeat; ++run) {
    const auto start = Clock::now();
    pool.run([&](unsigned worker) {
      const size_t pieces = bytes.size() / piece;
      const size_t begin = pieces * worker / pool.size() * piece;
      const size_t end = pieces * (worker + 1) / pool.size() * piece;
      sink ^= readThrough(bytes.subspan(begin, end - begin));
    });
    if (run != 0)
      rates.push_back(double(bytes.size()) / secondsSince(start));
  }
  return median(std::move(rates));
}

/// Any ids will do; these are the same each time.
std::vector<int32_t> arbitraryTokens(uint32_t count, uint32_t vocab) {
  RandomSource random(0);
  std::vector<int32_t> tokens(count);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random.next() % vocab);
  return tokens;
}

} // namespace

StatusOr<BenchResult> llmc::rt::runBench(Session &session, const BenchOptions &options) {
  const std::vector<int32_t> prompt =
      arbitraryTokens(options.promptTokens, session.getModel().vocabSize());
  std::vector<double> firstToken, decode;
  for (uint32_t run = 0; run <= options.repeat; ++run) {
    session.reset();
    auto start = Clock::now();
    LLMC_RETURN_IF_ERROR(session.prefill(prompt));
    int32_t token = session.mostLikely();
    const double prefillSeconds = secondsSince(start);
    start = Clock::now();
    for (uint32_t i = 0; i < options.newTokens; ++i) {
      LLMC_RETURN_IF_ERROR(session.decode(token));
      token = session.mostLikely();
    }
    const double decodeSeconds = secondsSince(start);
    if (run == 0)
      continue;
    firstToken.push_back(prefillSeconds);
    decode.push_back(options.newTokens / decodeSeconds);
  }

  BenchResult result;
  const auto [lowest, highest] = std::minmax_element(decode.begin(), decode.end());
  result.spread = (*highest - *lowest) / median(decode);
  result.decodeTokensPerSecond = median(decode);
  result.firstTokenSeconds = median(firstToken);
  result.prefillTokensPerSecond = options.promptTokens / result.firstTokenSeconds;
  const uint64_t bytes = session.decodeWeightBytes();
  result.readBytesPerSecond = double(bytes) * result.decodeTokensPerSecond;
  result.memoryBytesPerSecond = session.memoryBandwidth();
  if (session.getModel().cpuVariant()) {
    const auto weights = session.getModel().cpuWeights();
    result.memoryBytesPerSecond = measureMemory(
        session.workers(), weights.first(std::min<size_t>(weights.size(), bytes)), options.repeat);
  }
  return result;
}

StatusOr<VerifyCosts> llmc::rt::measureVerify(Session &session, const VerifyBenchOptions &options) {
  constexpr uint32_t stepsPerRound = 5;
  const uint32_t rows = session.verifyRows();
  const uint32_t position =
      std::min(options.position, session.contextLimit() - std::min(session.contextLimit(), rows));
  const std::vector<int32_t> tokens =
      arbitraryTokens(position + rows, session.getModel().vocabSize());
  const std::span<const int32_t> drafted = std::span(tokens).subspan(position);
  session.reset();
  LLMC_RETURN_IF_ERROR(session.prefill(std::span(tokens).first(position)));
  std::vector<std::vector<double>> times(rows);
  // All of them in each round: what disturbs the machine disturbs all alike.
  for (uint32_t round = 0; round <= options.repeat; ++round)
    for (uint32_t count = 1; count <= rows; ++count)
      for (uint32_t i = 0; i < stepsPerRound; ++i) {
        const auto start = Clock::now();
        LLMC_RETURN_IF_ERROR(session.verify(drafted.first(count)));
        if (round != 0)
          times[count - 1].push_back(secondsSince(start));
        LLMC_RETURN_IF_ERROR(session.rollback(position));
      }
  VerifyCosts costs{position, {}};
  for (std::vector<double> &measured : times)
    costs.seconds.push_back(median(std::move(measured)));
  return costs;
}
