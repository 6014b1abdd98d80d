//===- Layout.h - how rows lie in an ONNX tensor ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The llm dialect has one shape, [rows, features]. An exporter reshapes and
// transposes the same numbers: [1, S, 576], [1, S, 9, 64], [1, 9, S, 64], ... A
// layout says, for every axis of the tensor, what its index runs over: a product of
// factors, the outermost first.
//
//   Row       the rows of the step (S of them)
//   Time      the positions in a KV cache, the step's rows included
//   Feature   `size` groups of features, `stride` features apart
//   Repeat    the same numbers again, `size` times (grouped queries)
//
// [1, 9, S, 64] of 576 features is {}, {Feature 9 x 64}, {Row}, {Feature 64 x 1}.
// Reshapes regroup the sequence of factors, and split one where sizes ask for it;
// transposes permute axes. Axes of size 1 have no factors.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_RAISE_LAYOUT_H
#define LLMC_FRONTENDS_ONNX_RAISE_LAYOUT_H

#include "frontends/onnx/Dim.h"
#include <optional>

namespace llmc::onnx {

struct Factor {
  enum class Kind : uint8_t { Row, Time, Feature, Repeat };
  Kind kind;
  int64_t size = 0;   ///< Feature, Repeat
  int64_t stride = 0; ///< Feature
  bool operator==(const Factor &) const = default;
};

struct Layout {
  llvm::SmallVector<llvm::SmallVector<Factor, 2>, 5> axes;

  bool operator==(const Layout &) const = default;
  /// All factors, from the outermost axis inwards.
  llvm::SmallVector<Factor, 6> factors() const;
  /// Without factors of one, neighbours of one axis joined where they are one range of features.
  Layout normalized() const;
  /// Features of every row that the tensor has.
  int64_t features() const;
  /// True where all features are in order, with no axis between them, and the last axis has them
  /// all: what a matrix can be multiplied with.
  bool isRowMajor() const;
  /// True where the features of one row, read in the tensor's order, are in order.
  bool featuresInOrder() const;
};

/// [.., rows, features]: batch axes of 1, then rows, then features in order.
Layout rowMajorLayout(size_t rank, int64_t features);

struct LayoutSizes {
  Dim rows, time;
  Dim of(const Factor &factor) const;
};

/// The layout after a reshape (also a squeeze, unsqueeze, flatten) to `shape`; nothing where an
/// axis of the result does not consist of whole factors.
std::optional<Layout> reshaped(const Layout &layout, llvm::ArrayRef<Dim> shape,
                               const LayoutSizes &sizes);
Layout transposed(const Layout &layout, llvm::ArrayRef<int64_t> perm);

/// For every element of a tensor with that layout and `dims`: row * features + feature. Time counts
/// as row. Nothing where the dims are not what the layout says.
std::vector<int64_t> elementPlaces(const Layout &layout, llvm::ArrayRef<int64_t> dims,
                                   int64_t features, int64_t rows);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_RAISE_LAYOUT_H
