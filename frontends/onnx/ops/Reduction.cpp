//===- Reduction.cpp - operators along axes -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Reduce*
//===----------------------------------------------------------------------===//

/// Which axes are reduced; nothing where that is not known.
template <typename Context>
static Expected<std::vector<bool>> reducedAxes(Context &context, std::vector<int64_t> axes,
                                               size_t rank) {
  std::vector<bool> reduced(rank, false);
  if (axes.empty())
    reduced.assign(rank, context.node().integer("noop_with_empty_axes", 0) == 0);
  for (int64_t axis : axes) {
    Expected<int64_t> at = context.axis(axis, int64_t(rank));
    if (!at)
      return at.takeError();
    reduced[size_t(*at)] = true;
  }
  return reduced;
}

static Error inferReduce(InferContext &context) {
  const Shape *from = context.shape(0);
  bool isGiven, keep = context.node().integer("keepdims", 1) != 0;
  std::optional<std::vector<int64_t>> axes = context.integersOf("axes", 1, isGiven);
  std::optional<Shape> result;
  if (from && axes) {
    Expected<std::vector<bool>> reduced = reducedAxes(context, *axes, from->size());
    if (!reduced)
      return reduced.takeError();
    result.emplace();
    for (auto [i, dim] : llvm::enumerate(*from))
      if (!(*reduced)[i])
        result->push_back(dim);
      else if (keep)
        result->push_back(Dim(1));
  } else if (from && keep) {
    result.emplace();
    for (size_t i = 0; i < from->size(); ++i)
      result->push_back(context.symbols().fresh("reduced"));
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

namespace {
/// A reduction: what each element adds to, and what is made of it at the end.
struct Reduction {
  double start;
  double (*step)(double sum, double x);
  double (*end)(double sum, double count);
};
} // namespace

static double same(double sum, double) { return sum; }
static double plus(double sum, double x) { return sum + x; }
static constexpr double kInf = std::numeric_limits<double>::infinity();

static constexpr Reduction kSum = {0, plus, same};
static constexpr Reduction kMean = {0, plus, [](double s, double n) { return s / n; }};
static constexpr Reduction kProd = {1, [](double s, double x) { return s * x; }, same};
static constexpr Reduction kMax = {
    -kInf, [](double s, double x) { return x > s || x != x ? x : s; }, same};
static constexpr Reduction kMin = {kInf, [](double s, double x) { return x < s || x != x ? x : s; },
                                   same};
static constexpr Reduction kL1 = {0, [](double s, double x) { return s + std::fabs(x); }, same};
static constexpr Reduction kL2 = {0, [](double s, double x) { return s + x * x; },
                                  [](double s, double) { return std::sqrt(s); }};
static constexpr Reduction kSquare = {0, [](double s, double x) { return s + x * x; }, same};
static constexpr Reduction kLogSum = {0, plus, [](double s, double) { return std::log(s); }};

/// Sums over the reduced axes; `values` has one number per element.
static FoldResult reduce(const FoldContext &context, const Tensor &input,
                         llvm::ArrayRef<double> values, const Reduction &op) {
  bool isGiven, keep = context.node().integer("keepdims", 1) != 0;
  Expected<std::vector<bool>> reduced =
      reducedAxes(context, context.integersOf("axes", 1, isGiven), input.dims.size());
  if (!reduced)
    return reduced.takeError();
  Dims kept, result;
  for (auto [i, dim] : llvm::enumerate(input.dims)) {
    kept.push_back((*reduced)[i] ? 1 : dim);
    if (!(*reduced)[i] || keep)
      result.push_back(kept.back());
  }
  int64_t outputs = elementCount(kept).value_or(0);
  std::vector<double> sums(size_t(outputs), op.start);
  size_t n = 0;
  for (Odometer at(input.dims, {broadcastStrides(kept, input.dims)}); !at.atEnd(); at.next()) {
    double &sum = sums[size_t(at.offset(0))];
    sum = op.step(sum, values[n++]);
  }
  double count = outputs ? double(input.elements()) / double(outputs) : 0;
  for (double &sum : sums) {
    sum = op.end(sum, count);
    if (input.type == ElementType::Bool)
      sum = sum > 0; // the largest of nothing is false
  }
  return one(Tensor::ofDoubles(input.type, result, sums));
}

template <const Reduction *op> static FoldResult foldReduce(const FoldContext &context) {
  const Tensor &input = context.input(0);
  return reduce(context, input, input.doubles(), *op);
}

static FoldResult foldLogSumExp(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<double> values = input.doubles();
  double largest = -kInf;
  for (double x : values)
    largest = std::max(largest, x);
  if (std::isinf(largest))
    largest = 0;
  for (double &x : values)
    x = std::exp(x - largest);
  FoldResult sum = reduce(context, input, values, kLogSum);
  if (!sum)
    return sum;
  std::vector<double> result = sum->front().doubles();
  for (double &x : result)
    x += largest;
  return one(Tensor::ofDoubles(input.type, sum->front().dims, result));
}

/// Sums and products of sizes stay known.
static Error symbolicReduce(InferContext &context) {
  std::optional<Contents> known = context.contents(0);
  const Node &node = context.node();
  bool isGiven;
  std::optional<std::vector<int64_t>> axes = context.integersOf("axes", 1, isGiven);
  if (!known || !node.inputs[0]->contents || known->dims.size() != 1 || !axes ||
      (axes->empty() && node.integer("noop_with_empty_axes", 0)))
    return Error::success();
  Dim result = node.op == "ReduceProd" ? Dim(1) : Dim(0);
  for (const Dim &value : known->values)
    result = node.op == "ReduceProd" ? result * value : result + value;
  Contents contents;
  if (node.integer("keepdims", 1))
    contents.dims = {1};
  contents.values = {result};
  context.setContents(0, std::move(contents));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// ArgMax, ArgMin, CumSum, TopK
//===----------------------------------------------------------------------===//

namespace {
/// A tensor as [outer, size, inner] around one axis.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
  AxisView(llvm::ArrayRef<int64_t> dims, int64_t axis)
      : outer(elementCount(dims.take_front(axis)).value_or(0)), size(dims[axis]),
        inner(elementCount(dims.drop_front(axis + 1)).value_or(0)) {}
  size_t at(int64_t o, int64_t k, int64_t i) const { return size_t((o * size + k) * inner + i); }
};
} // namespace

static Error inferArg(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Shape> result;
  if (from) {
    Expected<int64_t> axis = context.axis(context.node().integer("axis", 0), int64_t(from->size()));
    if (!axis)
      return axis.takeError();
    result = *from;
    if (context.node().integer("keepdims", 1))
      (*result)[size_t(*axis)] = Dim(1);
    else
      result->erase(result->begin() + *axis);
  }
  context.set(0, ElementType::Int64, std::move(result));
  return Error::success();
}

template <bool largest> static FoldResult foldArg(const FoldContext &context) {
  const Tensor &input = context.input(0);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", 0), int64_t(input.dims.size()));
  if (!axis)
    return axis.takeError();
  AxisView view(input.dims, *axis);
  if (view.size == 0)
    return context.error("looks for the best of no elements");
  bool last = context.node().integer("select_last_index", 0) != 0;
  std::vector<double> values = input.doubles();
  std::vector<int64_t> result;
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      int64_t best = 0;
      for (int64_t k = 1; k < view.size; ++k) {
        double x = values[view.at(o, k, i)], y = values[view.at(o, best, i)];
        if (largest ? x > y || (last && x == y) : x < y || (last && x == y))
          best = k;
      }
      result.push_back(best);
    }
  Dims dims = input.dims;
  if (context.node().integer("keepdims", 1))
    dims[size_t(*axis)] = 1;
  else
    dims.erase(dims.begin() + *axis);
  return one(Tensor::ofIntegers(ElementType::Int64, dims, result));
}

static FoldResult foldCumSum(const FoldContext &context) {
  const Tensor &input = context.input(0);
  if (context.input(1).elements() != 1)
    return context.error("needs one axis");
  Expected<int64_t> axis = context.axis(context.input(1).integer(0), int64_t(input.dims.size()));
  if (!axis)
    return axis.takeError();
  AxisView view(input.dims, *axis);
  bool exclusive = context.node().integer("exclusive", 0) != 0,
       reverse = context.node().integer("reverse", 0) != 0;
  std::vector<double> values = input.doubles(), result(values.size());
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      double sum = 0;
      for (int64_t n = 0; n < view.size; ++n) {
        size_t at = view.at(o, reverse ? view.size - 1 - n : n, i);
        result[at] = exclusive ? sum : sum + values[at];
        sum += values[at];
      }
    }
  return one(Tensor::ofDoubles(input.type, input.dims, result));
}

static Error inferTopK(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Shape> result;
  if (from) {
    Expected<int64_t> axis =
        context.axis(context.node().integer("axis", -1), int64_t(from->size()));
    if (!axis)
      return axis.takeError();
    std::optional<Contents> k = context.contents(1);
    Dim size = context.node().find("k")     ? Dim(context.node().integer("k", 0))
               : k && k->values.size() == 1 ? k->values[0]
                                            : context.symbols().fresh("k");
    result = withDim(*from, *axis, size);
  }
  context.set(0, context.type(0), result);
  context.set(1, ElementType::Int64, std::move(result));
  return Error::success();
}

static FoldResult foldTopK(const FoldContext &context) {
  const Tensor &input = context.input(0);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", -1), int64_t(input.dims.size()));
  if (!axis)
    return axis.takeError();
  AxisView view(input.dims, *axis);
  int64_t k = context.node().integer(
      "k", context.input(1).elements() == 1 ? context.input(1).integer(0) : -1);
  if (k < 0 || k > view.size)
    return context.error("wants " + Twine(k) + " of " + Twine(view.size) + " elements");
  bool largest = context.node().integer("largest", 1) != 0;
  std::vector<double> values = input.doubles();
  std::vector<int64_t> source(size_t(view.outer * k * view.inner)), indices(source.size());
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      std::vector<int64_t> order(size_t(view.size));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        double x = values[view.at(o, a, i)], y = values[view.at(o, b, i)];
        return largest ? x > y : x < y;
      });
      for (int64_t n = 0; n < k; ++n) {
        size_t at = size_t((o * k + n) * view.inner + i);
        indices[at] = order[size_t(n)];
        source[at] = int64_t(view.at(o, order[size_t(n)], i));
      }
    }
  Dims dims = input.dims;
  dims[size_t(*axis)] = k;
  std::vector<Tensor> results;
  results.push_back(gatherElements(input, dims, source));
  results.push_back(Tensor::ofIntegers(ElementType::Int64, dims, indices));
  return results;
}

void onnx::addReductionOps(OpRegistry &r) {
  struct Row {
    llvm::StringLiteral name;
    InferFn infer;
    FoldFn fold;
  };
  static constexpr Row rows[] = {
      {"ReduceSum", inferReduce, foldReduce<&kSum>},
      {"ReduceMean", inferReduce, foldReduce<&kMean>},
      {"ReduceProd", inferReduce, foldReduce<&kProd>},
      {"ReduceMax", inferReduce, foldReduce<&kMax>},
      {"ReduceMin", inferReduce, foldReduce<&kMin>},
      {"ReduceL1", inferReduce, foldReduce<&kL1>},
      {"ReduceL2", inferReduce, foldReduce<&kL2>},
      {"ReduceSumSquare", inferReduce, foldReduce<&kSquare>},
      {"ReduceLogSum", inferReduce, foldReduce<&kLogSum>},
      {"ReduceLogSumExp", inferReduce, foldLogSumExp},
      {"ArgMax", inferArg, foldArg<true>},
      {"ArgMin", inferArg, foldArg<false>},
      {"CumSum", inferSame, foldCumSum},
      {"TopK", inferTopK, foldTopK},
  };
  for (const Row &row : rows) {
    r.infer.add("", row.name, 1, row.infer);
    r.fold.add("", row.name, 1, row.fold);
  }
  r.symbolic.add("", "ReduceProd", 1, symbolicReduce);
  r.symbolic.add("", "ReduceSum", 1, symbolicReduce);
}
