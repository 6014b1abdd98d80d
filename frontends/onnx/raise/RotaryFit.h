//===- RotaryFit.h - frequencies from cosines and sines ---------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rotary embedding turns pair i by position * f_i, and exporters give only cosines
// and sines. The angle at position 1 gives f_i roughly; every further power of two
// halves the error, since a multiple by a power of two is exact in floats, until f_i
// is known to the last bit of a float32. Tables that end early leave some error in slow
// frequencies.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_RAISE_ROTARYFIT_H
#define LLMC_FRONTENDS_ONNX_RAISE_ROTARYFIT_H

#include "frontends/common/Rope.h"

namespace llmc::onnx {

/// Angles are exact so far: a float times a power of two.
inline constexpr int64_t kFarthestPosition = int64_t(1) << 20;

struct RotarySamples {
  int64_t pairs = 0;
  std::vector<int64_t> positions;
  std::vector<double> cosines, sines; ///< [positions, pairs]

  void append(const RotarySamples &more);
};

/// The table of which all samples are; nothing where there is none. Positions 0, 1 and powers of
/// two should be among the samples.
std::optional<RopeTable> fitRotary(const RotarySamples &samples, llm::RopeKind kind, double limit);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_RAISE_ROTARYFIT_H
