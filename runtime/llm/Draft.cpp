//===- Draft.cpp - how many guesses are worth verifying -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Draft.h"

#include <algorithm>

using namespace llmc::rt;

namespace {

/// What drafts must promise to be tried, against plain decoding.
constexpr double kLeastGain = 1.03;
/// The part of all time that drafts may lose.
constexpr double kLossShare = 0.02;
/// Acceptance before anything is known, as so many trials.
constexpr float kPriorRight = 2, kPriorTrials = 4;
/// Acceptance looks back over about so many tokens.
constexpr float kMostTrials = 32;
/// What a row adds to a step as long as it has not been measured. Optimistic: trying shows better.
constexpr double kRowCost = 0.05;
/// What a row can add at most: more than a plain step would make no sense.
constexpr double kMostRowCost = 1;
/// How fast the time of a step follows a measurement, and those of other sizes with it: most of
/// what changes is the machine's speed, which all have in common.
constexpr double kOwnRate = 0.25, kCommonRate = 0.1;
/// A step that was interrupted counts as so many times its usual time at most.
constexpr double kMostRatio = 1.5;
/// How fast times of sizes that are not used turn optimistic again.
constexpr double kForgetRate = 1.0 / 256;

} // namespace

DraftLength::DraftLength(const DraftOptions &options)
    : options(options), measured(size_t(options.most) + 2) {
  acceptance.fill({kPriorRight, kPriorTrials});
}

/// Of a size that has not been measured: from the next smaller one that has, where every further
/// row costs the part `rowCost` of a plain step.
double DraftLength::stepSeconds(uint32_t rows, double rowCost) const {
  uint32_t known = rows;
  while (known > 1 && measured[known] == 0)
    --known;
  return measured[known] + rowCost * (rows - known) * measured[1];
}

double DraftLength::budget() const { return saved + kLossShare * elapsed + measured[1]; }

uint32_t DraftLength::choose(const DraftSource::Proposal &proposal) const {
  const auto size = static_cast<uint32_t>(std::min<size_t>(proposal.size, options.most));
  if (!options.adaptive)
    return size;
  // Without the time of a plain step there is nothing to compare with.
  const double plain = measured[1];
  if (plain == 0)
    return 0;
  const Acceptance &seen = acceptance[proposal.confidence];
  const double rate = seen.right / seen.of;
  double best = kLeastGain / plain, reach = 1, yield = 1;
  uint32_t choice = 0;
  for (uint32_t drafts = 1; drafts <= size; ++drafts) {
    reach *= rate;
    yield += reach;
    if (stepSeconds(drafts + 1, kMostRowCost) - plain > budget())
      break;
    const double seconds = stepSeconds(drafts + 1, kRowCost);
    if (yield / seconds > best) {
      best = yield / seconds;
      choice = drafts;
    }
  }
  return choice;
}

void DraftLength::observeTime(uint32_t rows, double seconds) {
  elapsed += seconds;
  if (measured[rows] == 0) {
    measured[rows] = seconds;
    return;
  }
  const double change = std::min(seconds / measured[rows], kMostRatio) - 1;
  for (uint32_t other = 1; other < measured.size(); ++other)
    measured[other] *= 1 + (other == rows ? kOwnRate : kCommonRate) * change;
}

void DraftLength::observe(const DraftSource::Proposal &proposal, uint32_t rows, double seconds,
                          uint32_t drawn, uint32_t matched) {
  observeTime(rows, seconds);
  if (rows > 1) {
    // An interruption says nothing about drafts.
    saved += drawn * measured[1] - std::min(seconds, kMostRowCost * rows * measured[1]);
  } else {
    for (uint32_t other = 2; other < measured.size(); ++other) {
      const double least = measured[1] * (1 + kRowCost * (other - 1));
      if (measured[other] > least)
        measured[other] += kForgetRate * (least - measured[other]);
    }
  }
  Acceptance &seen = acceptance[proposal.confidence];
  seen.right += static_cast<float>(matched);
  seen.of += static_cast<float>(std::min<size_t>(proposal.size, drawn));
  if (seen.of > kMostTrials) {
    seen.right *= kMostTrials / seen.of;
    seen.of = kMostTrials;
  }
}
