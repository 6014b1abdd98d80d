//===- RowMath.cpp - what the llm ops mean, in plain loops ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/RowMath.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llmc;
using namespace llmc::reference;

// Wide vectors where the machine has them; the sums are the same everywhere.
#if defined(__x86_64__) && defined(__linux__)
#define LLMC_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LLMC_WIDE
#endif

LLMC_WIDE double llmc::reference::dot(const float *a, const float *b, int64_t n) {
  // Independent partial sums, so that the loop vectorizes.
  constexpr int64_t kLanes = 32;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += double(a[i + lane]) * double(b[i + lane]);
  double sum = 0;
  for (; i < n; ++i)
    sum += double(a[i]) * double(b[i]);
  for (double partial : sums)
    sum += partial;
  return sum;
}

void llmc::reference::normalize(llm::NormKind kind, float *x, int64_t n, const float *weight,
                                const float *bias, double epsilon) {
  double mean = 0;
  if (kind == llm::NormKind::Layer) {
    for (int64_t i = 0; i < n; ++i)
      mean += x[i];
    mean /= double(n);
  }
  double squares = 0;
  for (int64_t i = 0; i < n; ++i)
    squares += (x[i] - mean) * (x[i] - mean);
  double scale = 1 / std::sqrt(squares / double(n) + epsilon);
  for (int64_t i = 0; i < n; ++i)
    x[i] = float((x[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0.0f));
}

float llmc::reference::activate(llm::Activation kind, float x) {
  double v = x;
  switch (kind) {
  case llm::Activation::None:
    return x;
  case llm::Activation::Silu:
    return float(v / (1 + std::exp(-v)));
  case llm::Activation::GeluTanh:
    return float(0.5 * v * (1 + std::tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v))));
  case llm::Activation::GeluErf:
    return float(0.5 * v * (1 + std::erf(v * 0.70710678118654752440)));
  case llm::Activation::Relu:
    return std::max(x, 0.0f);
  case llm::Activation::ReluSquared:
    return v > 0 ? float(v * v) : 0.0f;
  }
  llvm_unreachable("all kinds are handled");
}

void llmc::reference::rotate(float *head, int32_t position, llm::RopeTableOp table) {
  llvm::ArrayRef<float> frequencies = table.getInvFreq();
  double scale = table.getMscale().convertToFloat();
  bool halves = table.getKind() == llm::RopeKind::HalfSplit;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double angle = double(position) * double(frequencies[i]);
    double c = std::cos(angle) * scale, s = std::sin(angle) * scale;
    float &a = head[halves ? i : 2 * i];
    float &b = head[halves ? i + frequencies.size() : 2 * i + 1];
    double x = a, y = b;
    a = float(x * c - y * s);
    b = float(x * s + y * c);
  }
}

void KvState::append(int64_t position, const float *key, const float *value) {
  int64_t features = heads * headDim;
  if (position >= length) {
    length = position + 1;
    keys.resize(size_t(length * features));
    values.resize(size_t(length * features));
  }
  auto store = [&](float x) { return half ? float(_Float16(x)) : x; };
  std::transform(key, key + features, keys.begin() + position * features, store);
  std::transform(value, value + features, values.begin() + position * features, store);
}

void KvState::clear() {
  length = 0;
  keys.clear();
  values.clear();
}

void llmc::reference::attend(const KvState &kv, const float *query, int64_t heads, int64_t position,
                             float scale, float cap, float *out) {
  int64_t begin = kv.window ? std::max<int64_t>(0, position - kv.window + 1) : 0;
  int64_t features = kv.heads * kv.headDim;
  std::vector<double> weights(size_t(position + 1 - begin));
  std::vector<double> sums(size_t(kv.headDim));
  for (int64_t head = 0; head < heads; ++head) {
    int64_t offset = head / (heads / kv.heads) * kv.headDim;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t p = begin; p <= position; ++p) {
      double score =
          dot(query + head * kv.headDim, kv.keys.data() + p * features + offset, kv.headDim) *
          double(scale);
      if (cap != 0)
        score = double(cap) * std::tanh(score / double(cap));
      weights[size_t(p - begin)] = score;
      largest = std::max(largest, score);
    }
    double total = 0;
    for (double &weight : weights)
      total += weight = std::exp(weight - largest);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t p = begin; p <= position; ++p) {
      const float *value = kv.values.data() + p * features + offset;
      for (int64_t d = 0; d < kv.headDim; ++d)
        sums[size_t(d)] += weights[size_t(p - begin)] * double(value[d]);
    }
    for (int64_t d = 0; d < kv.headDim; ++d)
      out[head * kv.headDim + d] = float(sums[size_t(d)] / total);
  }
}
