//===- Sampler.cpp - chooses the next token -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Sampler.h"

#include "runtime/llm/LogitMath.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace llmc::rt;

namespace {

uint64_t splitmix64(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

} // namespace

RandomSource::RandomSource(uint64_t seed) {
  for (uint64_t &word : state)
    word = splitmix64(seed);
}

uint64_t RandomSource::next() {
  const uint64_t result = std::rotl(state[1] * 5, 7) * 9;
  const uint64_t t = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= t;
  state[3] = std::rotl(state[3], 45);
  return result;
}

Status SamplerOptions::validate() const {
  const auto refuse = [](const char *name, const char *range) {
    return invalidArgument(std::string(name) + " must be " + range);
  };
  if (!(temperature >= 0 && std::isfinite(temperature)))
    return refuse("temperature", "0 or more");
  if (!(topP > 0 && topP <= 1))
    return refuse("top-p", "more than 0 and at most 1");
  if (!(minP >= 0 && minP <= 1))
    return refuse("min-p", "0 to 1");
  if (!(repeatPenalty > 0 && std::isfinite(repeatPenalty)))
    return refuse("repeat-penalty", "more than 0");
  return {};
}

Sampler::Sampler(const SamplerOptions &options, uint32_t vocabSize)
    : options(options), random(options.seed) {
  if (options.repeatPenalty != 1.0f)
    penalized.resize(vocabSize);
  if (options.temperature > 0) {
    candidates.reserve(vocabSize);
    weights.reserve(vocabSize);
  }
}

int32_t Sampler::sample(const LogitRow &given, std::span<const int32_t> history) {
  const LogitRow logits = penalize(given, history);
  if (options.temperature == 0)
    return greedyToken(logits);
  const float best = greatest(logits);
  const bool limited = options.topK && options.topK < logits.values.size();
  const double total = limited ? takeTopK(logits, best) : takeLikely(logits, best);
  if (options.topP < 1)
    keepTopP(total, best);
  if (options.minP > 0)
    keepMinP(best);
  return draw(best);
}

LogitRow Sampler::penalize(const LogitRow &row, std::span<const int32_t> history) {
  if (options.repeatPenalty == 1.0f)
    return row;
  const std::span<const float> logits = row.values;
  std::memcpy(penalized.data(), logits.data(), logits.size_bytes());
  // A token that occurs often is penalized once: from its original value each time.
  for (int32_t id : history.last(std::min<size_t>(options.repeatLast, history.size())))
    penalized[id] =
        logits[id] > 0 ? logits[id] / options.repeatPenalty : logits[id] * options.repeatPenalty;
  return penalized; // whose maxima may be others
}

/// Leaves the K most likely tokens as candidates, in a fixed order; gives the sum of their weights.
double Sampler::takeTopK(const LogitRow &row, float best) {
  // A heap with the least likely at the front; nearly all blocks hold nothing that beats it.
  const std::span<const float> logits = row.values;
  candidates.clear();
  const auto least = [&] {
    return candidates.size() == options.topK ? candidates.front().logit
                                             : -std::numeric_limits<float>::infinity();
  };
  forLikelyBlocks(row, least, [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      if (candidates.size() < options.topK) {
        if (std::isnan(logits[i]))
          continue;
      } else {
        if (!(logits[i] > candidates.front().logit))
          continue;
        std::pop_heap(candidates.begin(), candidates.end(), precedes);
        candidates.pop_back();
      }
      candidates.push_back({logits[i], static_cast<int32_t>(i)});
      std::push_heap(candidates.begin(), candidates.end(), precedes);
    }
  });
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += exponential(candidate.logit - best);
  return total;
}

/// Leaves as candidates, by id, all tokens that top-p and min-p can possibly keep; gives the sum of
/// the weights of all tokens (only where top-p needs it).
double Sampler::takeLikely(const LogitRow &row, float best) {
  const std::span<const float> logits = row.values;
  // Tokens less likely than (1 - P) / n have together less than 1 - P, so the others reach P.
  double total = 0, least = options.minP;
  if (options.topP < 1) {
    total = exponentialSum(logits, best);
    least = std::max(least, (1.0 - options.topP) * total / double(logits.size()));
  }
  // The margin makes up for the logarithm of another machine.
  constexpr float margin = 1e-3f;
  const float bar = least > 0 ? best + static_cast<float>(std::log(least)) - margin
                              : -std::numeric_limits<float>::infinity();
  candidates.clear();
  forLikelyBlocks(
      row, [bar] { return bar; },
      [&](size_t first, size_t count) {
        for (size_t i = first; i < first + count; ++i)
          if (logits[i] >= bar)
            candidates.push_back({logits[i], static_cast<int32_t>(i)});
      });
  return total;
}

/// Keeps the most likely candidates until they have the share P of `total`, most likely first.
void Sampler::keepTopP(double total, float best) {
  const auto last = [](const Candidate &a, const Candidate &b) { return precedes(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), last);
  const double wanted = options.topP * total;
  double sum = 0;
  auto end = candidates.end();
  while (end != candidates.begin()) {
    std::pop_heap(candidates.begin(), end, last);
    --end;
    sum += exponential(end->logit - best);
    if (sum >= wanted)
      break;
  }
  // What was taken off the heap lies behind it, the most likely at the very end.
  candidates.erase(candidates.begin(), end);
  std::reverse(candidates.begin(), candidates.end());
}

void Sampler::keepMinP(float best) {
  std::erase_if(candidates, [&](const Candidate &candidate) {
    return exponential(candidate.logit - best) < options.minP;
  });
}

int32_t Sampler::draw(float best) {
  weights.resize(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i)
    weights[i] = exponential((candidates[i].logit - best) / options.temperature);
  double total = 0;
  for (float weight : weights)
    total += weight;
  double left = random.uniform() * total;
  for (size_t i = 0; i < candidates.size(); ++i) {
    left -= weights[i];
    if (left < 0)
      return candidates[i].id;
  }
  // Rounding, or no candidate has any weight: the best of what there is.
  auto first = std::min_element(candidates.begin(), candidates.end(), precedes);
  return first == candidates.end() ? 0 : first->id;
}
