//===- RotaryFit.cpp - frequencies from cosines and sines -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/RotaryFit.h"
#include <cmath>
#include <numbers>

using namespace llmc;
using namespace llmc::onnx;

void RotarySamples::append(const RotarySamples &more) {
  positions.insert(positions.end(), more.positions.begin(), more.positions.end());
  cosines.insert(cosines.end(), more.cosines.begin(), more.cosines.end());
  sines.insert(sines.end(), more.sines.begin(), more.sines.end());
}

std::optional<RopeTable> onnx::fitRotary(const RotarySamples &s, llm::RopeKind kind, double limit) {
  if (s.pairs <= 0 || s.positions.empty())
    return std::nullopt;
  RopeTable table{kind, {}, 1.0f};
  double scale = std::hypot(s.cosines[0], s.sines[0]);
  if (!(scale > 0) || !std::isfinite(scale))
    return std::nullopt;
  table.mscale = std::fabs(scale - 1) <= limit / 10 ? 1.0f : float(scale);
  for (int64_t pair = 0; pair < s.pairs; ++pair) {
    auto at = [&](size_t i) { return i * size_t(s.pairs) + size_t(pair); };
    double frequency = 0;
    for (int64_t power = 1; power <= kFarthestPosition; power *= 2)
      for (size_t i = 0; i < s.positions.size(); ++i) {
        if (s.positions[i] != power)
          continue;
        double angle = std::atan2(s.sines[at(i)], s.cosines[at(i)]);
        double off = std::remainder(angle - double(power) * frequency, 2 * std::numbers::pi);
        frequency += off / double(power);
        break;
      }
    for (size_t i = 0; i < s.positions.size(); ++i) {
      double angle = double(s.positions[i]) * frequency;
      // Angles are floats: far positions are rounded.
      double allowed = scale * (limit + std::fabs(angle) * 2e-7);
      if (!(std::fabs(s.cosines[at(i)] - scale * std::cos(angle)) <= allowed &&
            std::fabs(s.sines[at(i)] - scale * std::sin(angle)) <= allowed))
        return std::nullopt;
    }
    table.invFreq.push_back(float(frequency));
  }
  return table;
}
