//===- Passes.h - from tensors to sched -------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What no llm op says is computed by generated loops: @graph on tensors is
// bufferized and cut into dispatches. See Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_TENSOR_PASSES_H
#define LLMC_PASSES_TENSOR_PASSES_H

#include "compiler/ir/Sched.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace llmc::tensors {

#define GEN_PASS_DECL
#include "passes/tensor/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/tensor/Passes.h.inc"

/// Registers the dialects of tensor programs, and how they are bufferized.
void registerTensorDialects(mlir::DialectRegistry &registry);

/// From @graph on tensors to @main: fusion, bufferization, loops, dispatches.
void buildTensorPipeline(mlir::OpPassManager &pm);

} // namespace llmc::tensors

#endif // LLMC_PASSES_TENSOR_PASSES_H
