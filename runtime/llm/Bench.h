//===- Bench.h - how fast a session is --------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_BENCH_H
#define LLMC_RUNTIME_LLM_BENCH_H

#include "runtime/llm/Session.h"

#include <cstdint>
#include <vector>

namespace llmc::rt {

struct BenchOptions {
  uint32_t promptTokens = 512;
  uint32_t newTokens = 128;
  uint32_t repeat = 3; ///< measured runs, after one that is not
};

/// Medians of all runs.
struct BenchResult {
  double prefillTokensPerSecond = 0;
  double decodeTokensPerSecond = 0;
  double firstTokenSeconds = 0;  ///< from the prompt to the first token
  double spread = 0;             ///< of the decode speed: (highest - lowest) / median
  double readBytesPerSecond = 0; ///< weights that decoding reads
  /// A plain read of as many bytes of weights by all workers; of a CUDA device, its data sheet's.
  double memoryBytesPerSecond = 0;
};

/// Measures greedy generation after a prompt of arbitrary tokens. OutOfRange where the context has
/// no room for both.
StatusOr<BenchResult> runBench(Session &session, const BenchOptions &options);

struct VerifyBenchOptions {
  uint32_t position = 64; ///< of the measured steps; less where the context is shorter
  uint32_t repeat = 3;    ///< rounds over all numbers of tokens, after one that is not measured
};

struct VerifyCosts {
  uint32_t position;
  std::vector<double> seconds; ///< [i]: median time of a step that verifies i + 1 tokens
};

/// Measures steps of 1 to Session::verifyRows() tokens. OutOfRange where the context has no room.
StatusOr<VerifyCosts> measureVerify(Session &session, const VerifyBenchOptions &options);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_BENCH_H
