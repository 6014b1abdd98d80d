//===- Sampler.h - chooses the next token -----------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the filters is llama.cpp's: repetition penalty, top-k, top-p,
// min-p, temperature, draw. Top-p and min-p look at the probabilities before
// the temperature. The random numbers, the exponential and the order of every
// sum are this file's own, so a seed gives the same tokens on every machine
// whose logits are the same.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_SAMPLER_H
#define LLMC_RUNTIME_LLM_SAMPLER_H

#include "runtime/base/Status.h"
#include "runtime/llm/LogitMath.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc::rt {

struct SamplerOptions {
  float temperature = 0.0f; ///< 0: greedy, the most likely token (of equals the lowest id)
  uint32_t topK = 0;        ///< keep the K most likely tokens; 0: all
  float topP = 1.0f;        ///< keep the fewest tokens that together have probability P; 1: all
  float minP = 0.0f;        ///< keep tokens with at least P times the best's probability
  float repeatPenalty =
      1.0f;                 ///< divides positive logits of recent tokens, multiplies negative ones
  uint32_t repeatLast = 64; ///< how many tokens are recent
  uint64_t seed = 0;

  /// InvalidArgument where a value is outside its range.
  Status validate() const;
};

/// xoshiro256** 1.0 (Blackman and Vigna), seeded through splitmix64.
class RandomSource {
public:
  explicit RandomSource(uint64_t seed);
  uint64_t next();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return double(next() >> 11) * 0x1.0p-53; }

private:
  uint64_t state[4];
};

class Sampler {
public:
  /// `options` have been validated. All memory is allocated here.
  Sampler(const SamplerOptions &options, uint32_t vocabSize);

  /// Whether sample() is greedyToken(), whatever the history.
  bool isGreedy() const { return options.temperature == 0 && options.repeatPenalty == 1.0f; }

  /// The next token, given the logits [vocab_size] and the tokens so far. Not a number counts as
  /// impossible.
  int32_t sample(const LogitRow &logits, std::span<const int32_t> history);

private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  /// More likely first; of equals the lower id.
  static bool precedes(const Candidate &a, const Candidate &b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }

  LogitRow penalize(const LogitRow &logits, std::span<const int32_t> history);
  double takeTopK(const LogitRow &logits, float best);
  double takeLikely(const LogitRow &logits, float best);
  void keepTopP(double total, float best);
  void keepMinP(float best);
  int32_t draw(float best);

  SamplerOptions options;
  RandomSource random;
  std::vector<float> penalized;      ///< a copy of the logits, where a penalty applies
  std::vector<Candidate> candidates; ///< the tokens that are still possible
  std::vector<float> weights;        ///< of the candidates, after the temperature
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_SAMPLER_H
