//===- CodeObject.h - kernels become an ELF shared object -------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The way of a kernel: sched kernel op -> MLIR (Emitter.h) -> LLVM dialect ->
// LLVM IR -> linked with the micro-kernels' bitcode -> O3 -> object -> lld ->
// a shared object without dependencies that exports `llmc_query`.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CPU_CODEOBJECT_H
#define LLMC_COMPILER_CODEGEN_CPU_CODEOBJECT_H

#include "compiler/codegen/kernels/Ukernels.h"
#include "compiler/ir/Sched.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace llmc::cpu {

struct CodeObject {
  std::string elf;
  /// Names of the kernels in the order of the code object's table.
  std::vector<std::string> kernels;
  /// Bytes of worker scratch that each kernel needs.
  llvm::StringMap<int64_t> scratchBytes;
  /// Whether prefill computes in an arithmetic of its own.
  bool fast = false;
};

struct CodeOptions {
  /// Where kernels.mlir, kernels.ll and kernels.opt.ll are written; empty: nowhere.
  llvm::StringRef dumpDir = "";
  /// Whether prefill may give other bits than decode where the target is faster so.
  bool fast = false;
  /// Compile fast rather than make fast code.
  bool quick = false;
};

/// The MLIR of all kernels of `scheduled`, before lowering: for dumps and tests.
mlir::OwningOpRef<mlir::ModuleOp> emitKernels(mlir::ModuleOp scheduled, const UkernelIsa &isa,
                                              const CodeOptions &options, CodeObject &object);

/// Compiles all kernels of `scheduled` for `isa`.
llvm::Expected<CodeObject> buildCodeObject(mlir::ModuleOp scheduled, const UkernelIsa &isa,
                                           const CodeOptions &options = {});

/// Registers what buildCodeObject needs of MLIR; call once per context.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// The instruction set that `target` ("native", "x86-64-v3", ...) means on this machine.
llvm::Expected<const UkernelIsa *> resolveTarget(llvm::StringRef target);

} // namespace llmc::cpu

#endif // LLMC_COMPILER_CODEGEN_CPU_CODEOBJECT_H
