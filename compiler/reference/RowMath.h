//===- RowMath.h - what the llm ops mean, in plain loops --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of the reference interpreter. Sums, exponentials and roots are
// taken in double, every result is rounded to float32 once: what is left is
// the rounding of values between ops, which any float32 program has.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_REFERENCE_ROWMATH_H
#define LLMC_COMPILER_REFERENCE_ROWMATH_H

#include "compiler/ir/Llm.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace llmc::reference {

/// A value of the llm dialect: `count` rows of `features` float32.
struct Rows {
  int64_t count = 0, features = 0;
  std::vector<float> data;

  Rows() = default;
  Rows(int64_t count, int64_t features)
      : count(count), features(features), data(size_t(count * features)) {}
  float *row(int64_t i) { return data.data() + i * features; }
  const float *row(int64_t i) const { return data.data() + i * features; }
};

double dot(const float *a, const float *b, int64_t n);

/// Normalizes the n features at x in place; `bias` may be null.
void normalize(llm::NormKind kind, float *x, int64_t n, const float *weight, const float *bias,
               double epsilon);

float activate(llm::Activation kind, float x);
inline float softcap(float x, float cap) {
  return float(double(cap) * std::tanh(double(x) / double(cap)));
}

/// Rotates the first 2 * |inv_freq| features of one head.
void rotate(float *head, int32_t position, llm::RopeTableOp table);

/// The keys and values that a cache has seen, by position.
struct KvState {
  int64_t heads = 0, headDim = 0, window = 0;
  bool half = false; ///< values are rounded to float16
  int64_t length = 0;
  std::vector<float> keys, values; ///< [position][heads * headDim]

  void append(int64_t position, const float *key, const float *value);
  void clear();
};

/// One query row of `heads` heads at `position` over what it may see; out[heads * headDim].
void attend(const KvState &kv, const float *query, int64_t heads, int64_t position, float scale,
            float cap, float *out);

} // namespace llmc::reference

#endif // LLMC_COMPILER_REFERENCE_ROWMATH_H
