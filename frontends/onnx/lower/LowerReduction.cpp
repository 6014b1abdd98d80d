//===- LowerReduction.cpp - operators that fold axes ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

namespace {
enum class Fold { Sum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare };
} // namespace

/// What is done to every element before the fold.
static Array prepare(LowerContext &c, Fold fold, Array x) {
  switch (fold) {
  case Fold::L1:
    return c.a.unary(x, [](ScalarBuilder &s, mlir::Value v) {
      return isa<FloatType>(v.getType()) ? s.call<math::AbsFOp>(v) : s.call<math::AbsIOp>(v);
    });
  case Fold::L2:
  case Fold::SumSquare:
    return c.a.mul(x, x);
  default:
    return x;
  }
}

static Array finish(LowerContext &c, Fold fold, Array x, int64_t count) {
  switch (fold) {
  case Fold::Mean:
    return c.a.div(x, c.a.scalar(x.type, double(count)));
  case Fold::L2:
    if (!isFloat(x.type))
      return c.a.cast(c.a.sqrt(c.a.cast(x, ElementType::Double)), x.type);
    return c.a.sqrt(x);
  case Fold::LogSum:
  case Fold::LogSumExp:
    if (!isFloat(x.type))
      return c.a.cast(c.a.call<math::LogOp>(c.a.cast(x, ElementType::Double)), x.type);
    return c.a.call<math::LogOp>(x);
  default:
    return x;
  }
}

static double startOf(Fold fold, ElementType type) {
  bool isUnsigned = isUnsignedType(type);
  int bits = int(elementBits(type));
  switch (fold) {
  case Fold::Max:
    return isFloat(type) ? -INFINITY : isUnsigned ? 0 : -std::ldexp(1, bits - 1);
  case Fold::Min: // all ones are the largest unsigned number
    return isFloat(type) ? INFINITY : isUnsigned ? -1 : std::ldexp(1, bits - 1) - 1;
  case Fold::Prod:
    return 1;
  default:
    return 0;
  }
}

static mlir::Value combine(ScalarBuilder &s, Fold fold, mlir::Value x, mlir::Value y,
                           bool isUnsigned) {
  Arith op = fold == Fold::Max    ? Arith::Max
             : fold == Fold::Min  ? Arith::Min
             : fold == Fold::Prod ? Arith::Mul
                                  : Arith::Add;
  return s.op(op, x, y, isUnsigned);
}

/// Axes that are known when the graph runs: a loop over all elements, each of which goes where
/// the axes put it. `outDims` is declared.
static Array foldDynamic(LowerContext &c, Fold fold, Array x, Array axes, ElementType accumulate,
                         const Dims &outDims) {
  int64_t count = elementCount(outDims).value_or(0);
  Array start = c.a.full(accumulate, {count}, startOf(fold, x.type));
  bool isUnsigned = isUnsignedType(x.type);
  Array result = c.a.loop(x.elements(), start, [&](ScalarBuilder &s, mlir::Value i, Array sum) {
    SmallVector<mlir::Value> at = s.unravel(i, x.shape());
    mlir::Value place = s.index(0), stride = s.index(1);
    for (int64_t d = x.rank(); d-- > 0;) {
      mlir::Value reduced = s.truth(false);
      for (int64_t j = 0; j < axes.dim(0); ++j) {
        mlir::Value axis = s.toIndex(s.load(axes, s.index(j)));
        reduced = s.logicalOr(reduced, s.test(Test::Equal, s.fromBack(axis, x.rank()), s.index(d)));
      }
      place = s.add(place, s.select(reduced, s.index(0), s.mul(at[d], stride)));
      stride = s.select(reduced, stride, s.mul(stride, s.index(x.dim(d))));
    }
    mlir::Value element = s.convert(s.loadWide(x, at), x.type, accumulate);
    mlir::Value next = combine(
        s, fold,
        s.loadWide({sum.value, accumulate}, s.builder().createOrFold<arith::MinSIOp>(
                                                place, s.index(std::max<int64_t>(count - 1, 0)))),
        element, isUnsigned);
    mlir::Value safe =
        arith::MinSIOp::create(s.builder(), place, s.index(std::max<int64_t>(count - 1, 0)));
    return s.store(next, sum, safe);
  });
  return c.a.reshape(result, outDims);
}

template <Fold fold> static Error lowerReduce(LowerContext &c) {
  Array x = c.input(0);
  bool keepDims = c.node().integer("keepdims", 1);
  ElementType accumulate =
      isFloat(x.type) && x.type != ElementType::Double ? ElementType::Float : x.type;
  ElementType type = x.type;
  Array input = x;
  bool dynamic = !c.node().find("axes") && c.has(1) && !c.constant(1) && c.input(1).elements() > 0;
  Dims axes, outDims;
  if (dynamic) {
    std::optional<Dims> declared = c.outputShape(0);
    if (!declared)
      return c.needsConstant(1);
    if (c.input(1).elements() > x.rank())
      return c.error("has more axes than its input");
    outDims = *declared;
  } else {
    bool isGiven = false;
    std::vector<int64_t> given;
    if (c.has(1) && !c.constant(1)) {
      isGiven = true; // an empty list
    } else {
      auto known = c.integersOf("axes", 1, isGiven);
      if (!known)
        return known.takeError();
      given = *known;
    }
    if (given.empty() && c.node().integer("noop_with_empty_axes", 0))
      return c.done(finish(c, fold, prepare(c, fold, fold == Fold::LogSumExp ? c.a.exp(x) : x), 1));
    auto checked = given.empty() ? Expected<Dims>(allAxes(x.rank())) : c.axes(given, x.rank());
    if (!checked)
      return checked.takeError();
    axes = *checked;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (!llvm::is_contained(axes, i))
        outDims.push_back(x.dim(i));
      else if (keepDims)
        outDims.push_back(1);
  }
  auto run = [&](Fold kind, Array from) -> Array {
    if (dynamic)
      return foldDynamic(c, kind, from, c.input(1), accumulate, outDims);
    bool isUnsigned = isUnsignedType(from.type);
    return c.a.reduce(
        from, axes, keepDims, startOf(kind, from.type),
        [&](ScalarBuilder &s, ValueRange v) { return combine(s, kind, v[0], v[1], isUnsigned); },
        accumulate, accumulate);
  };
  if (isFloat(type))
    input = c.a.cast(input, accumulate);
  if (fold == Fold::LogSumExp) {
    // log sum e^(x - m) + m, m being finite.
    if (!isFloat(type)) {
      accumulate = ElementType::Double;
      input = c.a.cast(input, accumulate);
    }
    if (dynamic) {
      Array sum = run(Fold::Sum, c.a.exp(input));
      return c.done(c.a.cast(c.a.call<math::LogOp>(sum), type));
    }
    Array most = c.a.reduceMax(input, axes, true);
    most = c.a.unary(most, [](ScalarBuilder &s, mlir::Value v) {
      mlir::Value finite = s.less(s.call<math::AbsFOp>(v), s.like(v, INFINITY));
      return s.select(finite, v, s.like(v, 0));
    });
    Array sum = c.a.call<math::LogOp>(run(Fold::Sum, c.a.exp(c.a.sub(input, most))));
    return c.done(c.a.cast(c.a.add(sum, c.a.reshape(most, outDims)), type));
  }
  Array result = run(fold, prepare(c, fold, input));
  int64_t count = x.elements() / std::max<int64_t>(result.elements(), 1);
  return c.done(c.a.cast(finish(c, fold, result, count), type));
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

template <bool largest> static Error lowerArg(LowerContext &c) {
  Array x = c.input(0);
  auto axis = c.axis(c.node().integer("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  if (x.dim(*axis) == 0)
    return c.error("looks for the place of an element in none");
  bool last = c.node().integer("select_last_index", 0);
  bool isUnsigned = isUnsignedType(x.type);
  // The best of a line is found first, then the first (or last) place that holds it.
  Array best = largest ? c.a.reduceMax(x, {*axis}, true) : c.a.reduceMin(x, {*axis}, true);
  Array place = c.a.generate(ElementType::Int64, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> line(at);
    line[*axis] = s.index(0);
    mlir::Value v = s.loadWide(x, at), b = s.loadWide(best, line);
    mlir::Value same = s.test(Test::Equal, v, b, isUnsigned);
    if (isa<FloatType>(v.getType())) {
      mlir::Value isNan =
          arith::CmpFOp::create(s.builder(), arith::CmpFPredicate::UNO, v, v).getResult();
      same = s.logicalOr(same, isNan);
    }
    mlir::Value here = s.fromIndex(at[*axis], ElementType::Int64);
    return s.select(same, here, s.like(here, last ? -1.0 : double(x.dim(*axis) - 1)));
  });
  bool keepDims = c.node().integer("keepdims", 1);
  return c.done(last ? c.a.reduceMax(place, {*axis}, keepDims)
                     : c.a.reduceMin(place, {*axis}, keepDims));
}

template <Arith op> static Error lowerCumulate(LowerContext &c) {
  Array x = c.input(0);
  const Tensor *axisTensor = c.constant(1);
  bool exclusive = c.node().integer("exclusive", 0), reverse = c.node().integer("reverse", 0);
  if (axisTensor) {
    if (axisTensor->elements() != 1)
      return c.error("has an axis that is not a single number");
    auto axis = c.axis(axisTensor->integer(0), x.rank());
    if (!axis)
      return axis.takeError();
    return c.done(c.a.cumulate(x, *axis, op, exclusive, reverse));
  }
  if (x.rank() == 1)
    return c.done(c.a.cumulate(x, 0, op, exclusive, reverse));
  // An axis that is known only when the graph runs: the result of every axis, and a choice.
  Array axis = c.a.reshape(c.input(1), {}), result;
  for (int64_t d = 0; d < x.rank(); ++d) {
    Array along = c.a.cumulate(x, d, op, exclusive, reverse);
    result = !result ? along
                     : c.a.map(x.type, {axis, along, result}, [&](ScalarBuilder &s, ValueRange v) {
                         mlir::Value chosen = s.fromBack(v[0], x.rank());
                         return s.select(s.test(Test::Equal, chosen, s.like(v[0], double(d))), v[1],
                                         v[2]);
                       });
  }
  return c.done(result);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

namespace {
enum class Norm { Softmax, LogSoftmax, Hardmax };
} // namespace

static Array normalize(LowerContext &c, Norm norm, Array x, int64_t axis) {
  if (norm == Norm::Softmax)
    return c.a.softmax(x, axis);
  Array most = c.a.reduceMax(x, {axis}, true);
  if (norm == Norm::LogSoftmax) {
    Array moved = c.a.sub(x, most);
    return c.a.sub(moved, c.a.call<math::LogOp>(c.a.reduceSum(c.a.exp(moved), {axis}, true)));
  }
  // One at the first place of the largest.
  Array place = c.a.generate(ElementType::Int64, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> line(at);
    line[axis] = s.index(0);
    mlir::Value same = s.test(Test::Equal, s.loadWide(x, at), s.loadWide(most, line));
    mlir::Value here = s.fromIndex(at[axis], ElementType::Int64);
    return s.select(same, here, s.like(here, double(x.dim(axis))));
  });
  Array first = c.a.reduceMin(place, {axis}, true);
  return c.a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> line(at);
    line[axis] = s.index(0);
    mlir::Value here = s.fromIndex(at[axis], ElementType::Int64);
    mlir::Value is = s.test(Test::Equal, here, s.load(first, line));
    return s.narrow(s.convert(is, ElementType::Bool, x.type), x.type);
  });
}

template <Norm norm> static Error lowerNorm(LowerContext &c) {
  Array x = c.input(0);
  bool old = c.node().version < 13;
  auto axis = c.axis(c.node().integer("axis", old ? 1 : -1), std::max<int64_t>(x.rank(), 1));
  if (!axis)
    return axis.takeError();
  if (x.rank() == 0)
    return c.done(c.a.reshape(normalize(c, norm, c.a.reshape(x, {1}), 0), {}));
  if (!old)
    return c.done(normalize(c, norm, x, *axis));
  // Before opset 13 all dimensions from the axis on are one.
  int64_t rows = 1;
  for (int64_t i = 0; i < *axis; ++i)
    rows *= x.dim(i);
  Array flat = c.a.reshape(x, {rows, rows ? x.elements() / rows : 0});
  return c.done(c.a.reshape(normalize(c, norm, flat, 1), x.shape()));
}

void onnx::addReductionLowerings(OpTable<LowerFn> &table) {
  table.add("", "ArgMax", 1, lowerArg<true>);
  table.add("", "ArgMin", 1, lowerArg<false>);
  table.add("", "CumProd", 1, lowerCumulate<Arith::Mul>);
  table.add("", "CumSum", 1, lowerCumulate<Arith::Add>);
  table.add("", "Hardmax", 1, lowerNorm<Norm::Hardmax>);
  table.add("", "LogSoftmax", 1, lowerNorm<Norm::LogSoftmax>);
  table.add("", "Softmax", 1, lowerNorm<Norm::Softmax>);
  table.add("", "ReduceL1", 1, lowerReduce<Fold::L1>);
  table.add("", "ReduceL2", 1, lowerReduce<Fold::L2>);
  table.add("", "ReduceLogSum", 1, lowerReduce<Fold::LogSum>);
  table.add("", "ReduceLogSumExp", 1, lowerReduce<Fold::LogSumExp>);
  table.add("", "ReduceMax", 1, lowerReduce<Fold::Max>);
  table.add("", "ReduceMean", 1, lowerReduce<Fold::Mean>);
  table.add("", "ReduceMin", 1, lowerReduce<Fold::Min>);
  table.add("", "ReduceProd", 1, lowerReduce<Fold::Prod>);
  table.add("", "ReduceSum", 1, lowerReduce<Fold::Sum>);
  table.add("", "ReduceSumSquare", 1, lowerReduce<Fold::SumSquare>);
}
