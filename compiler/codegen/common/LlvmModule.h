//===- LlvmModule.h - what every code generator does with LLVM --*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_COMMON_LLVMMODULE_H
#define LLMC_COMPILER_CODEGEN_COMMON_LLVMMODULE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
class raw_ostream;
class TargetMachine;
} // namespace llvm

namespace llmc {

/// Runs LLVM's pipeline of O3, or of O1 where `quick`.
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine, bool quick = false);

/// Writes what `print` prints to DIR/NAME; nothing where `dir` is empty.
void dumpText(llvm::StringRef dir, llvm::StringRef name,
              llvm::function_ref<void(llvm::raw_ostream &)> print);

} // namespace llmc

#endif // LLMC_COMPILER_CODEGEN_COMMON_LLVMMODULE_H
