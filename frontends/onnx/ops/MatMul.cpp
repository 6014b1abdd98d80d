//===- MatMul.cpp - matrix products ---------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

/// The result's shape: NumPy's rules, vectors included.
static Expected<std::optional<Shape>> matMulShape(InferContext &context, const Shape *a,
                                                  const Shape *b) {
  if (!a || !b)
    return std::nullopt;
  if (a->empty() || b->empty())
    return context.error("multiplies a number; matrices expected");
  llvm::ArrayRef<Dim> left = *a, right = *b;
  Dim k = left.back(), l = right.size() == 1 ? right[0] : right[right.size() - 2];
  if (k.isConstant() && l.isConstant() && k != l)
    return context.error("multiplies shapes " + shapeText(*a, context.symbols()) + " and " +
                         shapeText(*b, context.symbols()));
  Expected<Shape> batch = context.broadcast(left.drop_back(std::min<size_t>(2, left.size())),
                                            right.drop_back(std::min<size_t>(2, right.size())));
  if (!batch)
    return batch.takeError();
  Shape result = std::move(*batch);
  if (left.size() > 1)
    result.push_back(left[left.size() - 2]);
  if (right.size() > 1)
    result.push_back(right.back());
  return result;
}

static Error inferMatMul(InferContext &context) {
  Expected<std::optional<Shape>> shape = matMulShape(context, context.shape(0), context.shape(1));
  if (!shape)
    return shape.takeError();
  context.set(0, context.type(0), std::move(*shape));
  return Error::success();
}

static Error inferMatMulInteger(InferContext &context) {
  if (Error error = inferMatMul(context))
    return error;
  context.set(0, ElementType::Int32,
              context.node().outputs.empty() ? std::nullopt : context.node().outputs[0]->shape);
  return Error::success();
}

/// Products of doubles; integers up to 2^53 are exact.
static Expected<Tensor> multiply(const FoldContext &context, const Tensor &a, const Tensor &b,
                                 llvm::ArrayRef<double> x, llvm::ArrayRef<double> y,
                                 ElementType type) {
  if (a.dims.empty() || b.dims.empty())
    return context.error("multiplies a number; matrices expected");
  Dims left = a.dims, right = b.dims;
  bool dropRow = left.size() == 1, dropColumn = right.size() == 1;
  if (dropRow)
    left.insert(left.begin(), 1);
  if (dropColumn)
    right.push_back(1);
  int64_t m = left[left.size() - 2], k = left.back(), n = right.back();
  if (right[right.size() - 2] != k)
    return context.error("multiplies matrices that do not go together");
  Tensor leftBatch, rightBatch;
  leftBatch.dims.assign(left.begin(), left.end() - 2);
  rightBatch.dims.assign(right.begin(), right.end() - 2);
  Expected<Dims> batch = broadcastDims(context, {&leftBatch, &rightBatch});
  if (!batch)
    return batch.takeError();
  Dims dims = *batch;
  dims.push_back(m);
  dims.push_back(n);
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  int64_t outputs = *elementCount(dims), work;
  if (__builtin_mul_overflow(outputs, std::max<int64_t>(k, 1), &work) || work > (int64_t(1) << 32))
    return context.error("is too large to be computed while compiling");
  std::vector<double> result(size_t(outputs), 0.0);
  size_t at = 0;
  for (Odometer o(*batch, {broadcastStrides(leftBatch.dims, *batch),
                           broadcastStrides(rightBatch.dims, *batch)});
       !o.atEnd(); o.next()) {
    const double *l = x.data() + o.offset(0) * m * k, *r = y.data() + o.offset(1) * k * n;
    for (int64_t i = 0; i < m; ++i, at += size_t(n))
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j)
          result[at + size_t(j)] += l[i * k + p] * r[p * n + j];
  }
  if (dropRow)
    dims.erase(dims.end() - 2);
  if (dropColumn)
    dims.pop_back();
  return Tensor::ofDoubles(type, dims, result);
}

static FoldResult foldMatMul(const FoldContext &context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  Expected<Tensor> result = multiply(context, a, b, a.doubles(), b.doubles(), a.type);
  if (!result)
    return result.takeError();
  return one(std::move(*result));
}

static Error inferGemm(InferContext &context) {
  const Shape *a = context.shape(0), *b = context.shape(1);
  std::optional<Shape> result;
  if (a && b) {
    if (a->size() != 2 || b->size() != 2)
      return context.error("needs two matrices");
    result = Shape{(*a)[context.node().integer("transA", 0) ? 1 : 0],
                   (*b)[context.node().integer("transB", 0) ? 0 : 1]};
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static std::vector<double> transposed(const Tensor &t, std::vector<double> values, Dims &dims) {
  int64_t rows = t.dims[0], columns = t.dims[1];
  std::vector<double> result(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[size_t(j * rows + i)] = values[size_t(i * columns + j)];
  dims = {columns, rows};
  return result;
}

static FoldResult foldGemm(const FoldContext &context) {
  const Node &node = context.node();
  Tensor a = context.input(0), b = context.input(1);
  if (a.dims.size() != 2 || b.dims.size() != 2)
    return context.error("needs two matrices");
  std::vector<double> x = a.doubles(), y = b.doubles();
  Dims dims;
  if (node.integer("transA", 0)) {
    x = transposed(a, x, dims);
    a.dims = dims;
  }
  if (node.integer("transB", 0)) {
    y = transposed(b, y, dims);
    b.dims = dims;
  }
  Expected<Tensor> product = multiply(context, a, b, x, y, ElementType::Double);
  if (!product)
    return product.takeError();
  std::vector<double> values = product->doubles();
  double alpha = node.number("alpha", 1), beta = node.number("beta", 1);
  for (double &value : values)
    value *= alpha;
  if (context.has(2)) {
    const Tensor &c = context.input(2);
    Expected<Dims> all = broadcastDims(context, {&*product, &c});
    if (!all)
      return all.takeError();
    if (*all != product->dims)
      return context.error("adds a matrix that does not fit its product");
    std::vector<double> added = c.doubles();
    size_t n = 0;
    for (Odometer at(product->dims, {broadcastStrides(c.dims, product->dims)}); !at.atEnd();
         at.next())
      values[n++] += beta * added[size_t(at.offset(0))];
  }
  return one(Tensor::ofDoubles(context.input(0).type, product->dims, values));
}

/// A zero point: one number, one per row of the left or per column of the right matrix.
static std::vector<double> withoutZero(const FoldContext &context, const Tensor &t, size_t zero,
                                       bool perRow) {
  std::vector<double> values = t.doubles();
  if (!context.has(zero) || t.dims.empty())
    return values;
  std::vector<double> zeros = context.input(zero).doubles();
  if (zeros.empty())
    return values;
  size_t columns = size_t(std::max<int64_t>(t.dims.back(), 1));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] -= zeros[(perRow ? i / columns : i % columns) % zeros.size()];
  return values;
}

static FoldResult foldMatMulInteger(const FoldContext &context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  Expected<Tensor> result = multiply(context, a, b, withoutZero(context, a, 2, true),
                                     withoutZero(context, b, 3, false), ElementType::Int32);
  if (!result)
    return result.takeError();
  return one(std::move(*result));
}

void onnx::addMatMulOps(OpRegistry &r) {
  r.infer.add("", "MatMul", 1, inferMatMul);
  r.fold.add("", "MatMul", 1, foldMatMul);
  r.infer.add("", "Gemm", 1, inferGemm);
  r.fold.add("", "Gemm", 1, foldGemm);
  r.infer.add("", "MatMulInteger", 10, inferMatMulInteger);
  r.fold.add("", "MatMulInteger", 10, foldMatMulInteger);
}
