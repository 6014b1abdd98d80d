//===- Quantization.cpp - quantize, dequantize, products of codes ---------===//
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
// QuantizeLinear, DequantizeLinear
//===----------------------------------------------------------------------===//

/// For every element of x, which scale belongs to it: one for all, one per index of the axis, or
/// one per block of indices.
static Expected<std::vector<int64_t>> scaleOf(const FoldContext &context, const Tensor &x,
                                              const Tensor &scale) {
  std::vector<int64_t> which(size_t(x.elements()), 0);
  if (scale.elements() == 1)
    return which;
  Expected<int64_t> axis = context.axis(context.node().integer("axis", 1), int64_t(x.dims.size()));
  if (!axis)
    return axis.takeError();
  int64_t block = context.node().integer("block_size", 0);
  Dims strides(x.dims.size(), 0);
  if (scale.dims.size() == 1 && block == 0) {
    if (scale.dims[0] != x.dims[size_t(*axis)])
      return context.error("has " + Twine(scale.dims[0]) + " scales for an axis of " +
                           Twine(x.dims[size_t(*axis)]));
    strides[size_t(*axis)] = 1;
    size_t n = 0;
    for (Odometer at(x.dims, {strides}); !at.atEnd(); at.next())
      which[n++] = at.offset(0);
    return which;
  }
  if (block <= 0 || scale.dims.size() != x.dims.size())
    return context.error("has scales of a shape that does not fit its input");
  for (size_t i = 0; i < x.dims.size(); ++i) {
    int64_t want = int64_t(i) == *axis ? (x.dims[i] + block - 1) / block : x.dims[i];
    if (scale.dims[i] != want)
      return context.error("has scales of a shape that does not fit its input");
  }
  Dims own = stridesOf(scale.dims), other = own, along(x.dims.size(), 0);
  other[size_t(*axis)] = 0;
  along[size_t(*axis)] = 1;
  size_t n = 0;
  for (Odometer at(x.dims, {other, along}); !at.atEnd(); at.next())
    which[n++] = at.offset(0) + at.offset(1) / block * own[size_t(*axis)];
  return which;
}

static Error inferDequantize(InferContext &context) {
  ElementType type = ElementType(context.node().integer("output_dtype", 0));
  if (uint64_t(type) >= kElementTypes || !isFloat(type))
    type = context.type(1);
  context.set(0, type, context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  return Error::success();
}

static FoldResult foldDequantize(const FoldContext &context) {
  const Tensor &x = context.input(0), &scale = context.input(1);
  Expected<std::vector<int64_t>> which = scaleOf(context, x, scale);
  if (!which)
    return which.takeError();
  if (context.has(2) && context.input(2).elements() != scale.elements())
    return context.error("has another number of zero points than of scales");
  std::vector<double> values = x.doubles(), scales = scale.doubles(),
                      zeros = context.input(2).doubles();
  for (size_t i = 0; i < values.size(); ++i) {
    size_t s = size_t((*which)[i]);
    values[i] = (values[i] - (context.has(2) ? zeros[s] : 0)) * scales[s];
  }
  ElementType type = ElementType(context.node().integer("output_dtype", 0));
  if (uint64_t(type) >= kElementTypes || !isFloat(type))
    type = scale.type;
  return one(Tensor::ofDoubles(type, x.dims, values));
}

/// The type of quantized values: that of the zero point, or as the node says, or uint8.
static ElementType quantizedType(const Node &node, ElementType zero) {
  if (zero != ElementType::Undefined)
    return zero;
  int64_t type = node.integer("output_dtype", 0);
  return type > 0 && uint64_t(type) < kElementTypes ? ElementType(type) : ElementType::UInt8;
}

static Error inferQuantize(InferContext &context) {
  context.set(0, quantizedType(context.node(), context.type(2)),
              context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  return Error::success();
}

/// The range of an integer type.
static std::pair<double, double> rangeOf(ElementType type) {
  int bits = int(elementBits(type));
  return isSignedInteger(type)
             ? std::pair(-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1)
             : std::pair(0.0, std::ldexp(1.0, bits) - 1);
}

static FoldResult foldQuantize(const FoldContext &context) {
  const Tensor &x = context.input(0), &scale = context.input(1);
  Expected<std::vector<int64_t>> which = scaleOf(context, x, scale);
  if (!which)
    return which.takeError();
  if (context.has(2) && context.input(2).elements() != scale.elements())
    return context.error("has another number of zero points than of scales");
  ElementType type = quantizedType(context.node(),
                                   context.has(2) ? context.input(2).type : ElementType::Undefined);
  std::vector<double> values = x.doubles(), scales = scale.doubles(),
                      zeros = context.input(2).doubles();
  auto [low, high] = rangeOf(type);
  for (size_t i = 0; i < values.size(); ++i) {
    size_t s = size_t((*which)[i]);
    // As in float32: the quotient decides ties.
    double q = double(float(values[i]) / float(scales[s]));
    if (isFloat(type))
      values[i] = q;
    else
      values[i] =
          std::min(std::max(std::nearbyint(q) + (context.has(2) ? zeros[s] : 0), low), high);
  }
  return one(Tensor::ofDoubles(type, x.dims, values));
}

static Error inferDynamicQuantize(InferContext &context) {
  context.set(0, ElementType::UInt8,
              context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  context.set(1, ElementType::Float, Shape());
  context.set(2, ElementType::UInt8, Shape());
  return Error::success();
}

static FoldResult foldDynamicQuantize(const FoldContext &context) {
  const Tensor &x = context.input(0);
  std::vector<double> values = x.doubles();
  float low = 0, high = 0;
  for (double value : values) {
    low = std::min(low, float(value));
    high = std::max(high, float(value));
  }
  float scale = (high - low) / 255;
  float zero = scale == 0 ? 0 : std::nearbyint(std::min(std::max(-low / scale, 0.0f), 255.0f));
  for (double &value : values)
    value =
        scale == 0
            ? 0
            : std::min(std::max(std::nearbyint(double(float(value) / scale)) + double(zero), 0.0),
                       255.0);
  std::vector<Tensor> results;
  results.push_back(Tensor::ofDoubles(ElementType::UInt8, x.dims, values));
  results.push_back(Tensor::ofDoubles(ElementType::Float, {}, {double(scale)}));
  results.push_back(Tensor::ofDoubles(ElementType::UInt8, {}, {double(zero)}));
  return results;
}

//===----------------------------------------------------------------------===//
// MatMulNBits, GatherBlockQuantized
//===----------------------------------------------------------------------===//

static Error inferMatMulNBits(InferContext &context) {
  int64_t k = context.node().integer("K", 0), n = context.node().integer("N", 0);
  if (k <= 0 || n <= 0)
    return context.error("needs K and N");
  std::optional<Shape> result;
  if (const Shape *a = context.shape(0)) {
    if (a->empty() || (a->back().isConstant() && a->back() != Dim(k)))
      return context.error("multiplies " + shapeText(*a, context.symbols()) + " with a matrix of " +
                           Twine(k) + " columns");
    result = withDim(*a, int64_t(a->size()) - 1, Dim(n));
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static Error inferGatherBlockQuantized(InferContext &context) {
  const Shape *data = context.shape(0), *indices = context.shape(1);
  const Node &node = context.node();
  std::optional<Shape> result;
  if (data && indices && !data->empty()) {
    Expected<int64_t> axis = context.axis(node.integer("gather_axis", 0), int64_t(data->size()));
    if (!axis)
      return axis.takeError();
    result.emplace(data->begin(), data->begin() + *axis);
    result->append(indices->begin(), indices->end());
    result->append(data->begin() + *axis + 1, data->end());
    // Codes of fewer bits than a byte are packed along the last axis of uint8.
    int64_t bits = node.integer("bits", 4);
    if (context.type(0) == ElementType::UInt8 && bits > 0 && bits < 8)
      result->back() = result->back() * Dim(8 / bits);
  }
  context.set(0, context.type(2), std::move(result));
  return Error::success();
}

void onnx::addQuantizationOps(OpRegistry &r) {
  for (llvm::StringRef domain : {"", "com.microsoft"}) {
    r.infer.add(domain, "DequantizeLinear", 1, inferDequantize);
    r.fold.add(domain, "DequantizeLinear", 1, foldDequantize);
    r.infer.add(domain, "QuantizeLinear", 1, inferQuantize);
    r.fold.add(domain, "QuantizeLinear", 1, foldQuantize);
  }
  r.infer.add("", "DynamicQuantizeLinear", 11, inferDynamicQuantize);
  r.fold.add("", "DynamicQuantizeLinear", 11, foldDynamicQuantize);
  r.infer.add("com.microsoft", "MatMulNBits", 1, inferMatMulNBits);
  r.infer.add("com.microsoft", "GatherBlockQuantized", 1, inferGatherBlockQuantized);
}
