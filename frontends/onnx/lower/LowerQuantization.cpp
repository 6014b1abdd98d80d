//===- LowerQuantization.cpp - quantize and dequantize --------------------===//
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

/// A scale or zero point as an array that goes with x: one number, one for each index of the axis,
/// or one for each block along it.
static Expected<Array> alongAxis(LowerContext &c, Array parameter, Array x) {
  if (parameter.elements() == 1)
    return c.a.reshape(parameter, {});
  int64_t block = c.node().integer("block_size", 0);
  auto axis = c.axis(c.node().integer("axis", 1), x.rank());
  if (!axis)
    return axis.takeError();
  if (parameter.rank() == 1 && block == 0) {
    if (parameter.dim(0) != x.dim(*axis))
      return c.error("has another number of scales than its axis has places");
    Dims dims(size_t(x.rank()), 1);
    dims[*axis] = parameter.dim(0);
    return c.a.reshape(parameter, dims);
  }
  if (parameter.rank() != x.rank() || block <= 0)
    return c.error("has scales of a shape that does not go with its input's");
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t wanted = i == *axis ? (x.dim(i) + block - 1) / block : x.dim(i);
    if (parameter.dim(i) != wanted)
      return c.error("has scales of a shape that does not go with its input's");
  }
  return c.a.generate(parameter.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    source[*axis] = s.quotient(at[*axis], block);
    return s.load(parameter, source);
  });
}

static double leastOf(ElementType type) {
  return isSignedInteger(type) ? -std::ldexp(1, int(elementBits(type)) - 1) : 0;
}
static double mostOf(ElementType type) {
  return std::ldexp(1, int(elementBits(type)) - isSignedInteger(type)) - 1;
}

static Error lowerQuantize(LowerContext &c) {
  Array x = c.input(0);
  Expected<Array> scale = alongAxis(c, c.input(1), x);
  if (!scale)
    return scale.takeError();
  Array zero;
  if (c.has(2)) {
    Expected<Array> given = alongAxis(c, c.input(2), x);
    if (!given)
      return given.takeError();
    zero = *given;
  }
  int64_t asked = c.node().integer("output_dtype", 0);
  ElementType type = zero                                           ? zero.type
                     : asked > 0 && uint64_t(asked) < kElementTypes ? ElementType(asked)
                                                                    : ElementType::UInt8;
  // The quotient is rounded to the type it is computed in before it is rounded to a number.
  int64_t precision = c.node().integer("precision", 0);
  ElementType in = precision > 0 && uint64_t(precision) < kElementTypes ? ElementType(precision)
                   : x.type == scale->type && isFloat(x.type)           ? x.type
                                                                        : ElementType::Float;
  if (!isFloat(in))
    return c.error("has a precision that is no float");
  Array quotient = c.a.div(c.a.cast(x, in), c.a.cast(*scale, in));
  if (isFloat(type))
    return c.done(c.a.cast(
        zero ? c.a.add(c.a.cast(quotient, ElementType::Float), c.a.cast(zero, ElementType::Float))
             : quotient,
        type, c.node().integer("saturate", 1) != 0));
  auto round = [&](ScalarBuilder &s, ValueRange v) {
    mlir::Value y = s.call<math::RoundEvenOp>(s.convert(v[0], in, ElementType::Float));
    if (zero)
      y = s.add(y, s.convert(v[1], type, ElementType::Float));
    y = s.clamp(y, s.like(y, leastOf(type)), s.like(y, mostOf(type)));
    return s.convert(y, ElementType::Float, type);
  };
  return c.done(zero ? c.a.map(type, {quotient, zero}, round) : c.a.map(type, quotient, round));
}

static Error lowerDequantize(LowerContext &c) {
  Array x = c.input(0);
  Expected<Array> scale = alongAxis(c, c.input(1), x);
  if (!scale)
    return scale.takeError();
  Array y = c.a.cast(x, ElementType::Float);
  if (c.has(2)) {
    Expected<Array> zero = alongAxis(c, c.input(2), x);
    if (!zero)
      return zero.takeError();
    y = c.a.sub(y, c.a.cast(*zero, ElementType::Float));
  }
  int64_t asked = c.node().integer("output_dtype", 0);
  ElementType type =
      asked > 0 && uint64_t(asked) < kElementTypes ? ElementType(asked) : scale->type;
  return c.done(c.a.cast(c.a.mul(y, c.a.cast(*scale, ElementType::Float)), type));
}

/// uint8 over the range of the data, zero included.
static Error lowerDynamicQuantize(LowerContext &c) {
  ArrayBuilder &a = c.a;
  Array x = c.input(0);
  Dims axes = allAxes(x.rank());
  Array low = a.unary(a.reduceMin(x, axes, false), [](ScalarBuilder &s, mlir::Value v) {
    return s.op(Arith::Min, v, s.like(v, 0));
  });
  Array high = a.unary(a.reduceMax(x, axes, false), [](ScalarBuilder &s, mlir::Value v) {
    return s.op(Arith::Max, v, s.like(v, 0));
  });
  Array scale = a.div(a.sub(high, low), a.scalar(x.type, 255));
  Array zero = a.map(ElementType::UInt8, {low, scale}, [](ScalarBuilder &s, ValueRange v) {
    mlir::Value none = s.test(Test::Equal, v[1], s.like(v[1], 0));
    mlir::Value y = s.div(s.neg(v[0]), s.select(none, s.like(v[1], 1), v[1]));
    y = s.call<math::RoundEvenOp>(s.clamp(y, s.like(y, 0), s.like(y, 255)));
    return s.convert(y, ElementType::Float, ElementType::UInt8);
  });
  Array y = a.map(ElementType::UInt8, {x, scale, zero}, [](ScalarBuilder &s, ValueRange v) {
    mlir::Value none = s.test(Test::Equal, v[1], s.like(v[1], 0));
    mlir::Value q = s.div(v[0], s.select(none, s.like(v[1], 1), v[1]));
    q = s.add(s.call<math::RoundEvenOp>(q),
              s.convert(v[2], ElementType::UInt8, ElementType::Float));
    return s.convert(s.clamp(q, s.like(q, 0), s.like(q, 255)), ElementType::Float,
                     ElementType::UInt8);
  });
  c.set(1, scale);
  c.set(2, zero);
  return c.done(y);
}

void onnx::addQuantizationLowerings(OpTable<LowerFn> &table) {
  table.add("", "DequantizeLinear", 10, lowerDequantize);
  table.add("", "DynamicQuantizeLinear", 11, lowerDynamicQuantize);
  table.add("", "QuantizeLinear", 10, lowerQuantize);
}
