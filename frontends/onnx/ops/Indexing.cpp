//===- Indexing.cpp - walking over tensors --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"
#include <algorithm>
#include <cstring>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

Dims onnx::stridesOf(llvm::ArrayRef<int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Odometer::Odometer(llvm::ArrayRef<int64_t> d, std::vector<Dims> s)
    : dims(d.begin(), d.end()), index(d.size(), 0), strides(std::move(s)),
      offsets(strides.size(), 0), left(elementCount(dims).value_or(0)) {}

void Odometer::next() {
  --left;
  for (size_t axis = dims.size(); axis-- > 0;) {
    ++index[axis];
    for (size_t i = 0; i < strides.size(); ++i)
      offsets[i] += strides[i][axis];
    if (index[axis] < dims[axis])
      return;
    for (size_t i = 0; i < strides.size(); ++i)
      offsets[i] -= strides[i][axis] * dims[axis];
    index[axis] = 0;
  }
}

Dims onnx::broadcastStrides(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> to) {
  Dims own = stridesOf(dims), result(to.size(), 0);
  size_t offset = to.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i)
    result[offset + i] = dims[i] == 1 ? 0 : own[i];
  return result;
}

Expected<Dims> onnx::broadcastDims(const FoldContext &context,
                                   llvm::ArrayRef<const Tensor *> tensors) {
  Dims result;
  for (const Tensor *tensor : tensors) {
    if (tensor->dims.size() > result.size())
      result.insert(result.begin(), tensor->dims.size() - result.size(), 1);
    size_t offset = result.size() - tensor->dims.size();
    for (size_t i = 0; i < tensor->dims.size(); ++i) {
      int64_t &have = result[offset + i], want = tensor->dims[i];
      if (have == 1)
        have = want;
      else if (want != 1 && want != have)
        return context.error("has inputs with " + Twine(have) + " and " + Twine(want) +
                             " elements along one dimension, which do not go together");
    }
  }
  if (Error error = checkFoldSize(context, result))
    return std::move(error);
  return result;
}

Error onnx::checkFoldSize(const FoldContext &context, llvm::ArrayRef<int64_t> dims) {
  std::optional<int64_t> elements = elementCount(dims);
  if (!elements)
    return context.error("gives a tensor with a negative dimension, or more elements than can be");
  if (*elements > kLargestFold)
    return context.error("gives a constant of " + Twine(*elements) + " elements; at most " +
                         Twine(kLargestFold) + " are computed while compiling");
  return Error::success();
}

Tensor onnx::gatherElements(const Tensor &from, llvm::ArrayRef<int64_t> dims,
                            llvm::ArrayRef<int64_t> source, const Tensor *padding) {
  if (from.type == ElementType::String) {
    std::vector<std::string> strings;
    for (int64_t i : source)
      strings.push_back(i >= 0    ? (*from.strings)[size_t(i)]
                        : padding ? padding->strings->front()
                                  : std::string());
    return Tensor::ofStrings(dims, std::move(strings));
  }
  unsigned bits = elementBits(from.type);
  if (bits < 8) {
    std::vector<double> values;
    for (int64_t i : source)
      values.push_back(i >= 0 ? from.number(i) : padding ? padding->number(0) : 0.0);
    return Tensor::ofDoubles(from.type, dims, values);
  }
  size_t size = bits / 8;
  std::vector<uint8_t> bytes(source.size() * size);
  for (size_t i = 0; i < source.size(); ++i) {
    const uint8_t *data = source[i] >= 0 ? from.bytes.data() + size_t(source[i]) * size
                          : padding      ? padding->bytes.data()
                                         : nullptr;
    if (data)
      std::memcpy(bytes.data() + i * size, data, size);
  }
  return Tensor::ofBytes(from.type, dims, std::move(bytes));
}

Tensor onnx::withDims(const Tensor &tensor, llvm::ArrayRef<int64_t> dims) {
  Tensor result = tensor;
  result.dims.assign(dims.begin(), dims.end());
  return result;
}

Error onnx::inferSame(InferContext &context) {
  context.set(0, context.type(0),
              context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  return Error::success();
}

Shape onnx::withDim(Shape shape, int64_t axis, Dim size) {
  shape[size_t(axis)] = std::move(size);
  return shape;
}

Dim onnx::product(llvm::ArrayRef<Dim> dims) {
  Dim result(1);
  for (const Dim &dim : dims)
    result = result * dim;
  return result;
}
