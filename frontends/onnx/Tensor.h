//===- Tensor.h - a tensor's bytes, in a file or in memory ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Initializers refer to mapped bytes and are never copied; what constant folding
// makes is owned. Elements are little endian, row-major.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_TENSOR_H
#define LLMC_FRONTENDS_ONNX_TENSOR_H

#include "frontends/onnx/ElementType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc::onnx {

using Dims = llvm::SmallVector<int64_t, 4>;

/// Product of the dimensions; nothing where it overflows or one is negative.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> dims);
/// Bytes of that many elements.
std::optional<uint64_t> tensorBytes(ElementType type, int64_t elements);

struct Tensor {
  ElementType type = ElementType::Undefined;
  Dims dims;
  llvm::ArrayRef<uint8_t> bytes;
  /// Where `bytes` are in the model's files; -1: in memory only.
  int file = -1;
  uint64_t offset = 0;
  /// Owner of `bytes`; null where they are mapped.
  std::shared_ptr<const std::vector<uint8_t>> storage;
  /// The elements of a tensor of strings.
  std::shared_ptr<const std::vector<std::string>> strings;

  int64_t elements() const { return elementCount(dims).value_or(0); }
  bool isMapped() const { return file >= 0; }

  /// All elements as doubles (floats, integers and bool).
  std::vector<double> doubles() const;
  /// All elements as integers; floats are truncated. uint64 keeps its bits.
  std::vector<int64_t> integers() const;
  double number(int64_t i) const;
  int64_t integer(int64_t i) const;

  /// Rounds to the element type; integers wrap as a C++ conversion does.
  static Tensor ofDoubles(ElementType type, llvm::ArrayRef<int64_t> dims,
                          llvm::ArrayRef<double> values);
  static Tensor ofIntegers(ElementType type, llvm::ArrayRef<int64_t> dims,
                           llvm::ArrayRef<int64_t> values);
  static Tensor ofStrings(llvm::ArrayRef<int64_t> dims, std::vector<std::string> values);
  static Tensor ofBytes(ElementType type, llvm::ArrayRef<int64_t> dims, std::vector<uint8_t> bytes);
};

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_TENSOR_H
