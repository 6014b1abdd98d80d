//===- CodeObject.h - kernels become PTX and a cubin ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The way of a kernel: sched kernel op -> gpu.module (Emitter.h) -> LLVM dialect
// -> LLVM IR -> O3 -> NVPTX -> PTX -> ptxas -> cubin. The artifact carries both:
// the cubin runs on the GPU that it was made for, the driver compiles the PTX for
// later ones.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_CODEOBJECT_H
#define LLMC_COMPILER_CODEGEN_CUDA_CODEOBJECT_H

#include "compiler/codegen/cuda/Emitter.h"
#include "compiler/codegen/cuda/Target.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace llmc::cuda {

struct CodeObject {
  std::string ptx;
  /// Empty where there is no ptxas on this machine.
  std::string cubin;
  /// Entries of the module in the order of their op; then the pick kernel.
  std::vector<std::string> kernels;
  llvm::StringMap<LaunchSpec> launches;
  int64_t counterBytes = 0;
};

struct CodeOptions {
  /// Where kernels.mlir, kernels.ll, kernels.opt.ll, kernels.ptx and ptxas.txt are written; empty:
  /// nowhere.
  llvm::StringRef dumpDir = "";
  /// Whether a cubin is made, where there is a ptxas.
  bool assemble = true;
};

/// A launch as the artifact has it.
struct Launch {
  std::array<int64_t, 3> grid;
  int64_t block, sharedBytes;
};
/// That of a kernel in a program of `maxRows` rows.
Launch launchFor(const LaunchSpec &spec, int64_t maxRows);

inline constexpr llvm::StringLiteral kPickKernel = "pick";

/// The MLIR of all kernels of `scheduled`, before lowering: for dumps and tests. Fails, with a
/// diagnostic, on what GPUs are not compiled for.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
emitKernels(mlir::ModuleOp scheduled, const Target &target, CodeObject &object);

/// Compiles all kernels of `scheduled` for `target`.
llvm::Expected<CodeObject> buildCodeObject(mlir::ModuleOp scheduled, const Target &target,
                                           const CodeOptions &options = {});

/// Registers what buildCodeObject needs of MLIR; call once per context.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// The ptxas of this machine: $LLMC_PTXAS, on the PATH, or in $CUDA_HOME or /usr/local/cuda; empty
/// where there is none.
std::string findPtxas();
/// The level of register usage that ptxas has by itself, of 0 to 10.
inline constexpr unsigned kUsageLevel = 5;
/// Assembles `ptx` for `target`; `log` gets what ptxas -v says.
llvm::Expected<std::string> assemble(llvm::StringRef ptxas, llvm::StringRef ptx,
                                     const Target &target, std::string &log,
                                     unsigned usageLevel = kUsageLevel);
/// The same; where kernels spill, tries bounds of their registers that avoid it, and changes `ptx`
/// to what was assembled.
llvm::Expected<std::string> assembleWithoutSpills(llvm::StringRef ptxas, std::string &ptx,
                                                  const Target &target, std::string &log);

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_CODEOBJECT_H
