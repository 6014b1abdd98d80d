//===- Parts.h - codes and scales that lie apart ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX keeps the codes, scales and zero points of a quantized weight in three
// tensors (`#llm.parts`). This gathers rows of them into the rows of a group
// encoding (Format.h). Nothing is rounded: what would lose bits is refused.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_WEIGHTS_PARTS_H
#define LLMC_COMPILER_WEIGHTS_PARTS_H

#include "compiler/ir/Llm.h"
#include "compiler/support/ModelSource.h"
#include "compiler/weights/Format.h"
#include "llvm/Support/Error.h"

namespace llmc {

class SourceParts {
public:
  /// Checks the weight's parts against its shape and encoding and that their bytes are in the
  /// files. The error lacks the weight's name.
  static llvm::Expected<SourceParts> create(llm::WeightOp weight, llvm::ArrayRef<SourceFile> files);

  /// Writes the rows [begin, end) as the encoding lays them out to `out`.
  void gather(uint64_t begin, uint64_t end, uint8_t *out) const;
  /// The bytes of all codes.
  llvm::ArrayRef<uint8_t> codeBytes() const { return {codes.data, codes.bytes}; }

private:
  enum class Kind : uint8_t { U4, I4, U8, I8, F32, F16, BF16 };
  /// A tensor of elements in row-major order, one row of `stride` elements after the other.
  struct Part {
    Kind kind = Kind::U8;
    const uint8_t *data = nullptr;
    uint64_t bytes = 0, stride = 0;

    unsigned bits() const;
    bool isFloat() const { return kind >= Kind::F32; }
    bool isSigned() const { return kind == Kind::I4 || kind == Kind::I8; }
    uint8_t code(uint64_t index) const;
    float value(uint64_t index) const;
  };
  static llvm::Expected<Part> makePart(llvm::StringRef kind, int64_t file, int64_t offset,
                                       int64_t stride, uint64_t rows, uint64_t columns,
                                       llvm::ArrayRef<SourceFile> files);
  /// The index of element i of row n.
  uint64_t indexOf(const Part &part, uint64_t n, uint64_t i) const {
    return transposed ? i * part.stride + n : n * part.stride + i;
  }
  void gatherCodes(uint64_t begin, uint64_t end, uint8_t *rows, uint64_t rowBytes) const;
  void gatherFloats(const Part *part, float shift, uint64_t row, uint8_t *out) const;

  const Encoding *encoding = nullptr;
  uint64_t columns = 0;
  bool transposed = false;
  Part codes, scales, offsets;
  bool hasOffsets = false;
};

} // namespace llmc

#endif // LLMC_COMPILER_WEIGHTS_PARTS_H
