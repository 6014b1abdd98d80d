//===- Llm.h - the llm dialect ----------------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model computes. Ops and attributes are described in LlmOps.td and
// LlmDialect.td; the reference interpreter (compiler/reference) is the oracle
// for their meaning.
//
// A model module carries its metadata in discardable attributes of the module:
//   llm.name, llm.architecture, llm.source     StringAttr
//   llm.context_length                          i64, positions trained for
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_LLM_H
#define LLMC_COMPILER_IR_LLM_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/ir/LlmEnums.h.inc"

#include "compiler/ir/LlmDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/ir/LlmAttrs.h.inc"

#define GET_OP_CLASSES
#include "compiler/ir/LlmOps.h.inc"

namespace llmc::llm {

/// Name of the model's function.
inline constexpr llvm::StringLiteral kForwardName = "forward";

/// Number of features of a row: the last dimension of `[rows, features]`.
inline int64_t features(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getDimSize(1);
}

} // namespace llmc::llm

#endif // LLMC_COMPILER_IR_LLM_H
