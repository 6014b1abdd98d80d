//===- Normalization.cpp - softmax and norms ------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

namespace {
enum class Soft { Max, LogMax, HardMax };
} // namespace

/// Before opset 13 the axis and all behind it are one vector; since then it is the axis alone.
template <Soft kind, bool flat> static FoldResult foldSoftmax(const FoldContext &context) {
  const Tensor &input = context.input(0);
  if (input.dims.empty())
    return context.error("needs an axis");
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", flat ? 1 : -1), int64_t(input.dims.size()));
  if (!axis)
    return axis.takeError();
  llvm::ArrayRef<int64_t> dims = input.dims;
  int64_t outer = elementCount(dims.take_front(*axis)).value_or(0);
  int64_t size = flat ? elementCount(dims.drop_front(*axis)).value_or(0) : dims[*axis];
  int64_t inner = flat ? 1 : elementCount(dims.drop_front(*axis + 1)).value_or(0);
  std::vector<double> values = input.doubles();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      auto at = [&](int64_t k) -> double & { return values[size_t((o * size + k) * inner + i)]; };
      double largest = -INFINITY, sum = 0;
      int64_t best = 0;
      for (int64_t k = 0; k < size; ++k)
        if (at(k) > largest) {
          largest = at(k);
          best = k;
        }
      for (int64_t k = 0; k < size; ++k)
        sum += std::exp(at(k) - largest);
      for (int64_t k = 0; k < size; ++k)
        at(k) = kind == Soft::Max      ? std::exp(at(k) - largest) / sum
                : kind == Soft::LogMax ? at(k) - largest - std::log(sum)
                                       : double(k == best);
    }
  return one(Tensor::ofDoubles(input.type, dims, values));
}

//===----------------------------------------------------------------------===//
// LayerNormalization, RMSNormalization and the contrib operators before them
//===----------------------------------------------------------------------===//

namespace {
/// What a norm operator takes: inputs x [, skip], scale [, bias [, bias of the sum]].
struct NormLayout {
  bool centered;
  int skip; ///< input that is added first; -1: none
  int scale;
  int bias;      ///< -1: none
  int sumBias;   ///< -1: none
  int sumOutput; ///< output that gives the sum; -1: none
};
} // namespace

static constexpr NormLayout kLayerNorm = {true, -1, 1, 2, -1, -1};
static constexpr NormLayout kRmsNorm = {false, -1, 1, -1, -1, -1};
static constexpr NormLayout kSkipLayerNorm = {true, 1, 2, 3, 4, 3};
static constexpr NormLayout kSkipRmsNorm = {false, 1, 2, -1, 3, 3};

/// Outputs after the first are statistics, [..., 1], or the sum.
template <const NormLayout *layout> static Error inferNorm(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Shape> statistics, same;
  if (from) {
    same = statistics = *from;
    Expected<int64_t> axis =
        context.axis(context.node().integer("axis", -1), int64_t(from->size()));
    if (!axis)
      return axis.takeError();
    for (size_t i = size_t(*axis); i < from->size(); ++i)
      (*statistics)[i] = Dim(1);
  }
  context.set(0, context.type(0), same);
  for (size_t i = 1; i < context.outputCount(); ++i)
    if (int(i) == layout->sumOutput)
      context.set(i, context.type(0), same);
    else
      context.set(i, ElementType::Float, statistics);
  return Error::success();
}

/// Adds a tensor that is broadcast to the dims of the other.
static bool addBroadcast(std::vector<double> &values, llvm::ArrayRef<int64_t> dims,
                         const Tensor &added, bool multiply = false) {
  if (added.dims.size() > dims.size())
    return false;
  for (size_t i = 0; i < added.dims.size(); ++i) {
    int64_t want = dims[dims.size() - added.dims.size() + i];
    if (added.dims[i] != 1 && added.dims[i] != want)
      return false;
  }
  std::vector<double> more = added.doubles();
  size_t n = 0;
  for (Odometer at(dims, {broadcastStrides(added.dims, dims)}); !at.atEnd(); at.next(), ++n)
    values[n] =
        multiply ? values[n] * more[size_t(at.offset(0))] : values[n] + more[size_t(at.offset(0))];
  return true;
}

template <const NormLayout *layout> static FoldResult foldNorm(const FoldContext &context) {
  const Tensor &x = context.input(0);
  const Node &node = context.node();
  if (x.dims.empty())
    return context.error("needs an axis");
  Expected<int64_t> axis = context.axis(node.integer("axis", -1), int64_t(x.dims.size()));
  if (!axis)
    return axis.takeError();
  std::vector<double> values = x.doubles();
  auto apply = [&](int input, bool multiply) {
    return input < 0 || !context.has(size_t(input)) ||
           addBroadcast(values, x.dims, context.input(size_t(input)), multiply);
  };
  if (!apply(layout->skip, false) || !apply(layout->sumBias, false))
    return context.error("adds tensors that do not go together");
  std::vector<double> sum = values;
  llvm::ArrayRef<int64_t> dims = x.dims;
  size_t size = size_t(elementCount(dims.drop_front(*axis)).value_or(0));
  double epsilon = double(node.number("epsilon", layout->skip >= 0 ? 1e-12f : 1e-5f));
  // Statistics are in float32 or better, whatever the type: half precision would overflow.
  std::vector<double> means, factors;
  for (size_t begin = 0; size && begin < values.size(); begin += size) {
    double mean = 0, square = 0;
    for (size_t i = begin; layout->centered && i < begin + size; ++i)
      mean += values[i];
    mean /= double(size);
    for (size_t i = begin; i < begin + size; ++i)
      square += (values[i] - mean) * (values[i] - mean);
    double factor = 1 / std::sqrt(square / double(size) + epsilon);
    for (size_t i = begin; i < begin + size; ++i)
      values[i] = (values[i] - mean) * factor;
    means.push_back(mean);
    factors.push_back(factor);
  }
  if (!apply(layout->scale, true) || !apply(layout->bias, false))
    return context.error("has a scale or bias that does not fit its input");
  Dims statistics = x.dims;
  for (size_t i = size_t(*axis); i < statistics.size(); ++i)
    statistics[i] = 1;
  std::vector<Tensor> results;
  results.push_back(Tensor::ofDoubles(x.type, x.dims, values));
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (int(i) == layout->sumOutput)
      results.push_back(Tensor::ofDoubles(x.type, x.dims, sum));
    else if (size_t(elementCount(statistics).value_or(0)) == factors.size())
      results.push_back(Tensor::ofDoubles(ElementType::Float, statistics,
                                          layout->centered && i == 1 ? means : factors));
  }
  return results;
}

void onnx::addNormalizationOps(OpRegistry &r) {
  r.infer.add("", "Softmax", 1, inferSame);
  r.fold.add("", "Softmax", 1, foldSoftmax<Soft::Max, true>);
  r.fold.add("", "Softmax", 13, foldSoftmax<Soft::Max, false>);
  r.infer.add("", "LogSoftmax", 1, inferSame);
  r.fold.add("", "LogSoftmax", 1, foldSoftmax<Soft::LogMax, true>);
  r.fold.add("", "LogSoftmax", 13, foldSoftmax<Soft::LogMax, false>);
  r.infer.add("", "Hardmax", 1, inferSame);
  r.fold.add("", "Hardmax", 1, foldSoftmax<Soft::HardMax, true>);
  r.fold.add("", "Hardmax", 13, foldSoftmax<Soft::HardMax, false>);

  r.infer.add("", "LayerNormalization", 1, inferNorm<&kLayerNorm>);
  r.fold.add("", "LayerNormalization", 1, foldNorm<&kLayerNorm>);
  // ONNX Runtime's exporters write these two in the default domain, where no opset defines the
  // first.
  r.infer.add("", "SimplifiedLayerNormalization", 1, inferNorm<&kRmsNorm>);
  r.fold.add("", "SimplifiedLayerNormalization", 1, foldNorm<&kRmsNorm>);
  r.infer.add("", "RMSNormalization", 23, inferNorm<&kRmsNorm>);
  r.fold.add("", "RMSNormalization", 23, foldNorm<&kRmsNorm>);
  llvm::StringRef contrib = "com.microsoft";
  r.infer.add(contrib, "SimplifiedLayerNormalization", 1, inferNorm<&kRmsNorm>);
  r.fold.add(contrib, "SimplifiedLayerNormalization", 1, foldNorm<&kRmsNorm>);
  r.infer.add(contrib, "LayerNormalization", 1, inferNorm<&kLayerNorm>);
  r.fold.add(contrib, "LayerNormalization", 1, foldNorm<&kLayerNorm>);
  r.infer.add(contrib, "SkipLayerNormalization", 1, inferNorm<&kSkipLayerNorm>);
  r.fold.add(contrib, "SkipLayerNormalization", 1, foldNorm<&kSkipLayerNorm>);
  r.infer.add(contrib, "SkipSimplifiedLayerNormalization", 1, inferNorm<&kSkipRmsNorm>);
  r.fold.add(contrib, "SkipSimplifiedLayerNormalization", 1, foldNorm<&kSkipRmsNorm>);
}
