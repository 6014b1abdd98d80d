//===- Recipe.h - evaluating the recipe of a weight -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight's final bytes are a function of its source bytes and its recipe. The
// rows of a weight are independent, so evaluation is cut into *pieces* of a few
// panels (or rows) that run in parallel and need memory for themselves only.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_RECIPE_H
#define LLMC_COMPILER_WEIGHTS_RECIPE_H

#include "compiler/ir/Llm.h"
#include "compiler/support/ModelSource.h"
#include "compiler/weights/Format.h"
#include "compiler/weights/Parts.h"
#include "compiler/weights/Quantize.h"
#include "compiler/weights/WarpLayout.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace llmc {

class Recipe {
public:
  /// Checks the recipe and that the source bytes are in the file. `layout`: which one of its pack
  /// step; empty: the first.
  static llvm::Expected<Recipe> create(llm::WeightOp weight, llvm::ArrayRef<SourceFile> files,
                                       llvm::StringRef layout = "");

  uint64_t bytes() const { return finalBytes; }
  /// The bytes of the source in its mapped file that the recipe reads; none where the source is not
  /// mapped.
  llvm::ArrayRef<uint8_t> sourceBytes() const {
    if (!sourceIsMapped)
      return {};
    return parts ? parts->codeBytes()
                 : llvm::ArrayRef(source, rows * sourceEncoding->rowBytes(columns));
  }
  uint64_t pieces() const;
  /// Writes piece `i` to its place in the weight's final bytes, which start at `out`. Gives the
  /// error that quantizing it made.
  QuantizeError evaluate(uint64_t piece, uint8_t *out) const;
  /// True where bits are lost: a quantize step.
  bool isLossy() const { return finalEncoding->grouped && finalEncoding != sourceEncoding; }
  /// Dequantizes final row `row` (before packing) to out[columns].
  void dequantizeRow(uint64_t row, float *out) const;

private:
  /// Reads a quantize step; the error lacks the weight's name.
  llvm::Error readQuantize(llm::QuantizeAttr step, llvm::ArrayRef<SourceFile> files);
  /// Says where the source rows are; the error lacks the weight's name.
  llvm::Error findSource(llm::WeightOp weight, llvm::ArrayRef<SourceFile> files);
  /// The source rows [begin, end); `storage` holds them where they must be gathered.
  const uint8_t *sourceRows(uint64_t begin, uint64_t end, std::vector<uint8_t> &storage) const;
  /// The steps between the source and the layout, for one source row.
  void floatRow(const uint8_t *row, float *out) const;

  const uint8_t *source = nullptr;  // of row 0, after slices; or
  std::optional<SourceParts> parts; // what rows are gathered from,
  uint64_t firstRow = 0;            // from this row on
  bool sourceIsMapped = false;
  uint64_t transposedRows = 0; // of a source [columns][rows]: its rows; 0: it is [rows][columns]
  const Encoding *sourceEncoding = nullptr, *finalEncoding = nullptr;
  uint64_t rows = 0, columns = 0;
  float scale = 1;
  const float *importance = nullptr; // of columns, or null
  enum class Layout { Rows, Panels, Tiles } layout = Layout::Rows;
  uint64_t unitBytes = 0; // of a panel or tile
  uint64_t finalBytes = 0;
};

} // namespace llmc

#endif // LLMC_COMPILER_WEIGHTS_RECIPE_H
