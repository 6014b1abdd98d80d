//===- WeightRefs.h - constants -> llm.weight -------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight in a graph is an initializer, perhaps behind a transpose, a cast or a
// reshape. It becomes a symbol that refers to the initializer's bytes, and the rest
// becomes steps of its recipe: nothing is read while importing. What no recipe can
// express, and constants that are in no file, are put into a file in memory.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_RAISE_WEIGHTREFS_H
#define LLMC_FRONTENDS_ONNX_RAISE_WEIGHTREFS_H

#include "compiler/ir/Llm.h"
#include "frontends/onnx/Graph.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace llmc::onnx {

/// A matrix [rows, columns], or a vector of `columns`, before it has a symbol.
struct WeightRef {
  const Value *value = nullptr; ///< the initializer, or a computed constant
  bool isVector = false;
  bool transposed = false; ///< the bytes are [columns, rows]
  int64_t rows = 1, columns = 0;
  int64_t begin = 0; ///< first row that is used, of `allRows`
  int64_t allRows = 1;
  double scale = 1;

  // Block-quantized: codes in `value`, one scale per group of a row, and zero points.
  const Value *scales = nullptr, *zeros = nullptr;
  int64_t group = 0, bits = 0;
  /// Laid out as for DequantizeLinear, not as for MatMulNBits; group 0: one scale for each row.
  bool isDequantized = false;
  bool hasZeros = false; ///< of isDequantized; without `zeros`, all are 0

  explicit operator bool() const { return value != nullptr; }
  WeightRef slice(int64_t first, int64_t count) const {
    WeightRef part = *this;
    part.begin += first;
    (isVector ? part.columns : part.rows) = count;
    return part;
  }
};

/// A transpose of the two axes of a matrix.
bool isMatrixTranspose(const Node &node);

class WeightRefs {
public:
  WeightRefs(Model &model, mlir::MLIRContext &context) : model(model), context(context) {}

  /// The operand of a MatMul, [K, N] (or [N, K] where `isTransposed`): a matrix of N rows.
  WeightRef matrix(const Value *value, bool isTransposed);
  /// A table [rows, features].
  WeightRef table(const Value *value) { return matrix(value, true); }
  /// A vector, whatever axes of 1 it has.
  WeightRef vector(const Value *value);
  /// Rows of codes with a scale per group: MatMulNBits, GatherBlockQuantized.
  WeightRef grouped(const Value *codes, const Value *scales, const Value *zeros, int64_t rows,
                    int64_t columns, int64_t group, int64_t bits);
  /// (codes - zeros) * scales, 8 bits with a scale (and zero point) per row, or one for all, that
  /// broadcast: the operand of a product, [K, N] (or [N, K] where `isTransposed`). `zeros` may be
  /// null.
  WeightRef scaledCodes(const Value *codes, const Value *scales, const Value *zeros,
                        bool isTransposed);
  /// A vector of ones.
  WeightRef ones(int64_t size);
  /// A matrix of float32 that is in no file.
  WeightRef computed(llvm::StringRef name, int64_t rows, int64_t columns,
                     llvm::ArrayRef<double> values);

  /// The symbol of a weight, declared with `symbols` when first asked for. Null: its element type
  /// or form cannot be a weight; `why` says so.
  mlir::FlatSymbolRefAttr symbol(const WeightRef &ref, mlir::OpBuilder &symbols, std::string &why);

  std::vector<SourceFile> takeFiles();
  /// The values that symbols stand for, by symbol.
  llvm::StringMap<const Value *> origins;

private:
  std::pair<int64_t, int64_t> place(const Tensor &tensor);
  int64_t remember(llvm::ArrayRef<uint8_t> bytes);
  const Value *baseOf(const Value *value, bool &transposed);
  WeightRef scaledRows(const Value *value, bool isTransposed);
  // DequantizedWeights.cpp
  const Value *constantOf(const Value *value);
  /// The matrix behind a DequantizeLinear, its codes taken as they are; none where they cannot be.
  WeightRef dequantized(const Value *value, bool isTransposed);
  std::string describeDequantized(const WeightRef &ref, llm::PartsAttr &parts, std::string &why);

  Model &model;
  mlir::MLIRContext &context;
  std::vector<uint8_t> memory; ///< of the file in memory
  std::map<std::string, mlir::FlatSymbolRefAttr> known;
  std::deque<Value> made;
  llvm::DenseMap<const uint8_t *, int64_t> remembered;
};

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_RAISE_WEIGHTREFS_H
