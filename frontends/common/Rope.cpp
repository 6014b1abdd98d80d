//===- Rope.cpp - frequencies of rotary position embeddings ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Rope.h"
#include <algorithm>
#include <cmath>
#include <numbers>

using namespace llmc;

/// The (fractional) pair that turns `turns` times within the original context.
static double pairOfTurns(const RopeParameters &p, double turns) {
  return double(p.dims) * std::log(p.scaling.originalContext / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(p.base));
}

static double yarnAttentionFactor(const RopeScaling &scaling) {
  auto growth = [&](double weight) {
    return scaling.factor <= 1 ? 1.0 : 0.1 * weight * std::log(scaling.factor) + 1;
  };
  return growth(1) / (scaling.logMultiplier == 0 ? 1 : growth(scaling.logMultiplier));
}

RopeTable llmc::computeRope(const RopeParameters &p) {
  using Kind = RopeScaling::Kind;
  const RopeScaling &scaling = p.scaling;
  bool yarn = scaling.kind == Kind::Yarn;
  RopeTable table{p.kind, {}, 1.0f};
  double low = 0, high = 0;
  if (yarn) {
    low = std::max(0.0, std::floor(pairOfTurns(p, scaling.betaFast)));
    high = std::min(double(p.dims - 1), std::ceil(pairOfTurns(p, scaling.betaSlow)));
  }
  for (int64_t i = 0; i < p.dims / 2; ++i) {
    double frequency = std::pow(p.base, -2.0 * double(i) / double(p.dims));
    if (!p.factors.empty())
      frequency /= p.factors[i];
    double slow = scaling.kind == Kind::None ? frequency : frequency / scaling.factor;
    // 1 where the pair is fast enough to stay as it is.
    double keep =
        yarn ? 1 - std::clamp((double(i) - low) / std::max(0.001, high - low), 0.0, 1.0) : 0;
    table.invFreq.push_back(float(slow * (1 - keep) + frequency * keep));
  }
  table.mscale = float(scaling.attentionFactor.value_or(yarn ? yarnAttentionFactor(scaling) : 1.0));
  return table;
}

std::vector<RopeSummary> llmc::summarizeRope(mlir::ModuleOp module) {
  std::vector<RopeSummary> summaries;
  for (auto table : module.getOps<llm::RopeTableOp>()) {
    llvm::ArrayRef<float> f = table.getInvFreq();
    summaries.push_back({table.getSymName().str(), llm::stringifyRopeKind(table.getKind()).str(),
                         2 * f.size(), table.getMscale().convertToFloat(), f.front(), f.back()});
  }
  return summaries;
}
