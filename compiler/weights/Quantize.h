//===- Quantize.h - floats into group encodings ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each group is a problem of its own: codes q and a scale s (and min m) that make
//
//   sum over k of w[k] (x[k] - s v(q[k]) - m)^2
//
// small, v the code's value and w[k] the importance of column k: the mean square
// of what it is multiplied with, where that is known, else 1. For fixed codes the
// best s and m follow from linear equations, and the error from the same sums.
// So some twenty clipping points are tried with one pass over the group each, the
// best is refined by rounding and solving in turn, and what is stored (s rounded
// to f16) is rounded against once more.
//
// The same bytes come out on every machine: vectors of 16 lanes, sums in one
// fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_QUANTIZE_H
#define LLMC_COMPILER_WEIGHTS_QUANTIZE_H

#include "compiler/weights/Format.h"

namespace llmc {

/// Sums over the elements of a weight, weighted by importance.
struct QuantizeError {
  double error = 0, norm = 0; ///< of (x - x')^2 and of x^2
  double rest = 0;            ///< of x^2 without the largest of each group

  QuantizeError &operator+=(const QuantizeError &other) {
    error += other.error;
    norm += other.norm;
    rest += other.rest;
    return *this;
  }
  /// Root of the mean square error, relative to that of the weight.
  double relative() const;
  /// The same relative to the rest: 1 where one outlier in every group makes all else 0.
  double relativeToRest() const;
};

/// The group encoding with the numbers of `encoding` ("q4_1": int4_g32_min); null where there is
/// none or nothing can be quantized into it.
const Encoding *quantizationTarget(const Encoding &encoding);
/// True where both stand for the same numbers: rows of one can be kept for the other.
bool sameGrid(const Encoding &a, const Encoding &b);

/// Quantizes x[K] into a row of `encoding`, a quantizationTarget(). `importance` is K weights >= 0
/// or null. Values that are not finite count as 0.
QuantizeError quantizeRow(const Encoding &encoding, const float *x, uint64_t K,
                          const float *importance, uint8_t *row);

} // namespace llmc

#endif // LLMC_COMPILER_WEIGHTS_QUANTIZE_H
