//===- ElementType.h - element types of ONNX tensors ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers are those of TensorProto.DataType in onnx.proto. Elements of four
// and two bits are packed, the first in the low bits of a byte.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_ELEMENTTYPE_H
#define LLMC_FRONTENDS_ONNX_ELEMENTTYPE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace llmc::onnx {

enum class ElementType : uint8_t {
  Undefined = 0,
  Float = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
};
inline constexpr uint64_t kElementTypes = 27;

/// "float", "int64", ...; as ONNX's documents write it.
llvm::StringRef elementTypeName(ElementType type);
/// Bits of one element; 0 for strings and the undefined type.
unsigned elementBits(ElementType type);
bool isFloat(ElementType type);
/// Integers; not bool.
bool isInteger(ElementType type);
bool isSignedInteger(ElementType type);

/// One element as a double, from bytes that hold it in the low bits of `bits`. Float types only.
double floatFromBits(ElementType type, uint64_t bits);
/// The bits of the value nearest to `value`, ties to even. Float8 saturates to its largest finite
/// value where `saturate`, else overflow is infinity, or NaN in types without it.
uint64_t floatToBits(ElementType type, double value, bool saturate = true);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_ELEMENTTYPE_H
