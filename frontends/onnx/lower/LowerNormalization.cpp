//===- LowerNormalization.cpp - norms -------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;

/// Floats below 32 bits are normalized in 32.
static ElementType wideOf(ElementType type) {
  return type == ElementType::Double ? type : ElementType::Float;
}

static Array reciprocalRoot(ArrayBuilder &a, Array x, double epsilon) {
  return a.unary(x, [&](ScalarBuilder &s, mlir::Value v) {
    return s.div(s.like(v, 1), s.call<math::SqrtOp>(s.add(v, s.like(v, epsilon))));
  });
}

namespace {
struct Standardized {
  Array value, mean, inverse;
};
} // namespace

/// (x - mean) / sqrt(var + eps) over `axes`.
static Standardized standardize(ArrayBuilder &a, Array x, llvm::ArrayRef<int64_t> axes,
                                double epsilon) {
  Array mean = a.reduceMean(x, axes, true), centred = a.sub(x, mean);
  Array variance = a.reduceMean(a.mul(centred, centred), axes, true);
  Array inverse = reciprocalRoot(a, variance, epsilon);
  return {a.mul(centred, inverse), mean, inverse};
}

static Dims axesFrom(int64_t axis, int64_t rank) {
  Dims axes;
  for (int64_t i = axis; i < rank; ++i)
    axes.push_back(i);
  return axes;
}

static bool fits(Array part, llvm::ArrayRef<int64_t> shape) {
  return broadcastShape(part.shape(), shape) == Dims(shape.begin(), shape.end());
}

static Error lowerLayerNorm(LowerContext &c) {
  Array x = c.input(0), scale = c.input(1), bias = c.input(2);
  auto axis = c.axis(c.node().integer("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  if ((scale && !fits(scale, x.shape())) || (bias && !fits(bias, x.shape())))
    return c.error("has a scale or bias of a shape that does not go with its input's");
  ElementType wide = wideOf(x.type);
  Standardized norm = standardize(c.a, c.a.cast(x, wide), axesFrom(*axis, x.rank()),
                                  c.node().number("epsilon", 1e-5f));
  Array y = norm.value;
  if (scale)
    y = c.a.mul(y, c.a.cast(scale, wide));
  if (bias)
    y = c.a.add(y, c.a.cast(bias, wide));
  if (c.wants(1))
    c.set(1, norm.mean);
  if (c.wants(2))
    c.set(2, norm.inverse);
  return c.done(c.a.cast(y, x.type));
}

static Array rmsNorm(LowerContext &c, Array x, Array scale, int64_t axis, Array *inverseOut) {
  ElementType wide = wideOf(x.type);
  Array v = c.a.cast(x, wide);
  Array mean = c.a.reduceMean(c.a.mul(v, v), axesFrom(axis, x.rank()), true);
  Array inverse = reciprocalRoot(c.a, mean, c.node().number("epsilon", 1e-5f));
  if (inverseOut)
    *inverseOut = inverse;
  Array y = c.a.mul(v, inverse);
  return c.a.cast(scale ? c.a.mul(y, c.a.cast(scale, wide)) : y, x.type);
}

static Error lowerRmsNorm(LowerContext &c) {
  Array x = c.input(0), scale = c.input(1), inverse;
  auto axis = c.axis(c.node().integer("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  if (scale && !fits(scale, x.shape()))
    return c.error("has a scale of a shape that does not go with its input's");
  Array y = rmsNorm(c, x, scale, *axis, &inverse);
  if (c.wants(1)) // com.microsoft's
    c.set(1, inverse);
  return c.done(y);
}

/// The residual is added first: y = norm(x + skip + bias).
template <bool rms> static Error lowerSkipNorm(LowerContext &c) {
  Array x = c.input(0), skip = c.input(1), scale = c.input(2), beta = rms ? Array() : c.input(3),
        bias = c.input(rms ? 3 : 4);
  for (const Array &part : {skip, scale, beta, bias})
    if (part && !fits(part, x.shape()))
      return c.error("has an input of a shape that does not go with the first's");
  Array sum = c.a.add(x, skip);
  if (bias)
    sum = c.a.add(sum, bias);
  if (c.wants(3))
    c.set(3, sum);
  int64_t axis = x.rank() - 1;
  if (rms)
    return c.done(rmsNorm(c, sum, scale, axis, nullptr));
  ElementType wide = wideOf(x.type);
  Array y = standardize(c.a, c.a.cast(sum, wide), {axis}, c.node().number("epsilon", 1e-12f)).value;
  if (scale)
    y = c.a.mul(y, c.a.cast(scale, wide));
  if (beta)
    y = c.a.add(y, c.a.cast(beta, wide));
  return c.done(c.a.cast(y, x.type));
}

/// A vector of channels as an array that stands along dimension 1.
static Array alongChannels(ArrayBuilder &a, Array vector, int64_t rank) {
  Dims dims(size_t(rank), 1);
  dims[1] = vector.elements();
  return a.reshape(vector, dims);
}

static Error checkChannels(LowerContext &c, Array x, std::initializer_list<size_t> inputs) {
  if (x.rank() < 2)
    return c.error("normalizes what has no channels");
  for (size_t input : inputs)
    if (c.has(input) && c.input(input).elements() != x.dim(1))
      return c.error("has a parameter that is not one number for each channel");
  return Error::success();
}

static Error lowerBatchNorm(LowerContext &c) {
  Array x = c.input(0);
  if (Error error = checkChannels(c, x, {1, 2, 3, 4}))
    return error;
  ElementType wide = wideOf(x.type);
  auto parameter = [&](size_t i) {
    return alongChannels(c.a, c.a.cast(c.input(i), wide), x.rank());
  };
  Array v = c.a.cast(x, wide), mean = parameter(3), variance = parameter(4);
  if (c.node().integer("training_mode", 0)) {
    Dims axes = allAxes(x.rank());
    axes.erase(axes.begin() + 1);
    Array now = c.a.reduceMean(v, axes, true), centred = c.a.sub(v, now);
    Array nowVariance = c.a.reduceMean(c.a.mul(centred, centred), axes, true);
    double momentum = c.node().number("momentum", 0.9f);
    auto running = [&](size_t output, Array old, Array fresh, ElementType type) {
      Array mixed = c.a.add(c.a.mulScalar(old, momentum), c.a.mulScalar(fresh, 1 - momentum));
      c.set(output, c.a.cast(c.a.reshape(mixed, {x.dim(1)}), type));
    };
    running(1, mean, now, c.type(3));
    running(2, variance, nowVariance, c.type(4));
    mean = now;
    variance = nowVariance;
  }
  Array inverse = reciprocalRoot(c.a, variance, c.node().number("epsilon", 1e-5f));
  Array y = c.a.mul(c.a.sub(v, mean), c.a.mul(inverse, parameter(1)));
  return c.done(c.a.cast(c.a.add(y, parameter(2)), x.type));
}

static Error lowerInstanceNorm(LowerContext &c) {
  Array x = c.input(0);
  if (Error error = checkChannels(c, x, {1, 2}))
    return error;
  ElementType wide = wideOf(x.type);
  Array y =
      standardize(c.a, c.a.cast(x, wide), axesFrom(2, x.rank()), c.node().number("epsilon", 1e-5f))
          .value;
  y = c.a.mul(y, alongChannels(c.a, c.a.cast(c.input(1), wide), x.rank()));
  y = c.a.add(y, alongChannels(c.a, c.a.cast(c.input(2), wide), x.rank()));
  return c.done(c.a.cast(y, x.type));
}

static Error lowerGroupNorm(LowerContext &c) {
  Array x = c.input(0);
  int64_t groups = c.node().integer("num_groups", 0);
  if (x.rank() < 2 || groups <= 0 || x.dim(1) % groups)
    return c.error("has groups that do not divide its channels");
  ElementType wide = wideOf(x.type);
  Dims shape{x.dim(0), groups, x.elements() / std::max<int64_t>(x.dim(0) * groups, 1)};
  Array y = standardize(c.a, c.a.reshape(c.a.cast(x, wide), shape), {2},
                        c.node().number("epsilon", 1e-5f))
                .value;
  // Before opset 21 there was one parameter for a group.
  auto apply = [&](size_t input, Arith op) {
    Array parameter = c.a.cast(c.input(input), wide);
    if (parameter.elements() == groups)
      y = c.a.binary(op, c.a.reshape(y, shape), c.a.reshape(parameter, {1, groups, 1}));
    else
      y = c.a.binary(op, c.a.reshape(y, x.shape()), alongChannels(c.a, parameter, x.rank()));
  };
  for (size_t input : {1, 2})
    if (c.input(input).elements() != groups && c.input(input).elements() != x.dim(1))
      return c.error("has a parameter that is not one number for each channel");
  apply(1, Arith::Mul);
  apply(2, Arith::Add);
  return c.done(c.a.cast(c.a.reshape(y, x.shape()), x.type));
}

static Error lowerLpNorm(LowerContext &c) {
  Array x = c.input(0);
  auto axis = c.axis(c.node().integer("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  int64_t p = c.node().integer("p", 2);
  if (p != 1 && p != 2)
    return c.error("has a norm other than 1 and 2");
  ElementType wide = wideOf(x.type);
  Array v = c.a.cast(x, wide);
  Array power = p == 2 ? c.a.mul(v, v) : c.a.call<math::AbsFOp>(v);
  Array norm = c.a.reduceSum(power, {*axis}, true);
  if (p == 2)
    norm = c.a.sqrt(norm);
  Array y = c.a.map(wide, {v, norm}, [](ScalarBuilder &s, ValueRange e) {
    mlir::Value zero = s.like(e[1], 0);
    return s.select(s.test(Test::Equal, e[1], zero), zero, s.div(e[0], e[1]));
  });
  return c.done(c.a.cast(y, x.type));
}

static Error lowerMeanVariance(LowerContext &c) {
  Array x = c.input(0);
  llvm::ArrayRef<int64_t> given = c.node().integers("axes");
  Dims standard{0, 2, 3};
  auto axes = c.axes(given.empty() ? llvm::ArrayRef<int64_t>(standard) : given, x.rank());
  if (!axes)
    return axes.takeError();
  ElementType wide = wideOf(x.type);
  Array v = c.a.cast(x, wide), mean = c.a.reduceMean(v, *axes, true);
  Array centred = c.a.sub(v, mean);
  Array deviation = c.a.sqrt(c.a.reduceMean(c.a.mul(centred, centred), *axes, true));
  return c.done(c.a.cast(c.a.div(centred, c.a.addScalar(deviation, 1e-9)), x.type));
}

static Error lowerLrn(LowerContext &c) {
  Array x = c.input(0);
  int64_t size = c.node().integer("size", 0);
  constexpr int64_t kWidest = 1024;
  if (x.rank() < 2 || size <= 0 || size > kWidest)
    return c.error("has no channels, or a size that makes no sense");
  double alpha = c.node().number("alpha", 1e-4f), beta = c.node().number("beta", 0.75f),
         bias = c.node().number("bias", 1);
  Array square = c.a.mul(x, x), sum;
  int64_t before = (size - 1) / 2;
  for (int64_t i = 0; i < size; ++i) {
    Array moved = c.a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
      SmallVector<mlir::Value> source(at);
      source[1] = s.add(at[1], s.index(i - before));
      mlir::Value inside = s.logicalAnd(s.test(Test::GreaterOrEqual, source[1], s.index(0)),
                                        s.less(source[1], s.index(x.dim(1))));
      mlir::Value zero = s.narrow(s.constant(s.computedType(x.type), 0), x.type);
      return s.select(inside, s.loadClamped(square, source), zero);
    });
    sum = sum ? c.a.add(sum, moved) : moved;
  }
  return c.done(c.a.map(x.type, {x, sum}, [&](ScalarBuilder &s, ValueRange v) {
    mlir::Value base = s.add(s.like(v[1], bias), s.mul(s.like(v[1], alpha / double(size)), v[1]));
    return s.div(v[0], s.op(Arith::Pow, base, s.like(v[1], beta)));
  }));
}

void onnx::addNormalizationLowerings(OpTable<LowerFn> &table) {
  table.add("", "BatchNormalization", 1, lowerBatchNorm);
  table.add("", "GroupNormalization", 1, lowerGroupNorm);
  table.add("", "InstanceNormalization", 1, lowerInstanceNorm);
  table.add("", "LRN", 1, lowerLrn);
  table.add("", "LayerNormalization", 1, lowerLayerNorm);
  table.add("", "LpNormalization", 1, lowerLpNorm);
  table.add("", "MeanVarianceNormalization", 1, lowerMeanVariance);
  table.add("", "RMSNormalization", 1, lowerRmsNorm);
  table.add("", "SimplifiedLayerNormalization", 1, lowerRmsNorm);
  table.add("com.microsoft", "LayerNormalization", 1, lowerLayerNorm);
  table.add("com.microsoft", "SimplifiedLayerNormalization", 1, lowerRmsNorm);
  table.add("com.microsoft", "SkipLayerNormalization", 1, lowerSkipNorm<false>);
  table.add("com.microsoft", "SkipSimplifiedLayerNormalization", 1, lowerSkipNorm<true>);
}
