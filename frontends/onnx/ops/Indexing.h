//===- Indexing.h - walking over tensors ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the folds of ops/ share: strides, NumPy's broadcasting, moving elements of any
// type.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_OPS_INDEXING_H
#define LLMC_FRONTENDS_ONNX_OPS_INDEXING_H

#include "frontends/onnx/OpRegistry.h"

namespace llmc::onnx {

/// Elements that a fold may make at most, whatever a shape input says.
inline constexpr int64_t kLargestFold = int64_t(1) << 24;

/// Row-major strides in elements.
Dims stridesOf(llvm::ArrayRef<int64_t> dims);

/// Walks over all indices of `dims` in row-major order; for each, `offsets[i]` is the sum of index
/// times `strides[i]`.
class Odometer {
public:
  Odometer(llvm::ArrayRef<int64_t> dims, std::vector<Dims> strides);
  bool atEnd() const { return left == 0; }
  void next();
  int64_t offset(size_t i) const { return offsets[i]; }

private:
  Dims dims, index;
  std::vector<Dims> strides;
  std::vector<int64_t> offsets;
  int64_t left;
};

/// Strides of a tensor within a larger shape that it is broadcast to: 0 where it repeats.
Dims broadcastStrides(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> to);

/// The common shape of all inputs.
llvm::Expected<Dims> broadcastDims(const FoldContext &context,
                                   llvm::ArrayRef<const Tensor *> tensors);

/// A tensor of `dims` whose element i is element source[i] of `from` (any type); -1: `padding`'s
/// only element, or zero.
Tensor gatherElements(const Tensor &from, llvm::ArrayRef<int64_t> dims,
                      llvm::ArrayRef<int64_t> source, const Tensor *padding = nullptr);

/// The same elements with other dims.
Tensor withDims(const Tensor &tensor, llvm::ArrayRef<int64_t> dims);

/// An error where a result of `dims` would be larger than folding makes.
llvm::Error checkFoldSize(const FoldContext &context, llvm::ArrayRef<int64_t> dims);

/// One result.
inline FoldResult one(Tensor tensor) {
  std::vector<Tensor> results;
  results.push_back(std::move(tensor));
  return results;
}

/// infer: output 0 has the type and shape of input 0.
llvm::Error inferSame(InferContext &context);

/// `shape` with dimension `axis` set to `size`.
Shape withDim(Shape shape, int64_t axis, Dim size);

/// Product of a range of dimensions.
Dim product(llvm::ArrayRef<Dim> dims);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_OPS_INDEXING_H
