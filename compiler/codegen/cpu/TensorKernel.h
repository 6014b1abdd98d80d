//===- TensorKernel.h - loops over buffers as a CPU kernel ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CPU_TENSORKERNEL_H
#define LLMC_COMPILER_CODEGEN_CPU_TENSORKERNEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace llmc::cpu {

/// Gives `kernels` the constants of `scheduled`.
void copyGlobals(mlir::ModuleOp scheduled, mlir::ModuleOp kernels);

/// Adds the passes that bring the bodies of tensor kernels down to arith, cf and llvm.
void addTensorLowering(mlir::PassManager &pm);

} // namespace llmc::cpu

#endif // LLMC_COMPILER_CODEGEN_CPU_TENSORKERNEL_H
