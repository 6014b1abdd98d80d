//===- Ukernels.h - embedded micro-kernel bitcode -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The micro-kernels of Uk.h as LLVM bitcode, one module per instruction set.
//
// To use one: parse `bitcode`, link it into the generated module with
// Linker::LinkOnlyNeeded, give every generated function `functionAttributes`
// (the same as the kernels carry, so that inlining is sound and 512-bit
// vectors stay whole) and where it calls kernels their target features,
// internalize all but the entry points, run O3. Every kernel is always_inline,
// so none survives.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_UKERNELS_H
#define LLMC_COMPILER_CODEGEN_KERNELS_UKERNELS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <utility>

namespace llmc {

struct UkernelIsa {
  llvm::StringRef name;     ///< the target's name: "x86-64-v3", "aarch64+i8mm"
  llvm::StringRef triple;   ///< of the module
  llvm::StringRef cpu;      ///< LLVM -mcpu
  llvm::StringRef features; ///< LLVM -mattr beyond the cpu's own
  /// What the machine must have, by LLVM feature names ("avx2", "bmi", "avx512vnni").
  llvm::ArrayRef<llvm::StringRef> cpuFeatures;
  /// Function attributes that generated code must carry.
  llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> functionAttributes;
  llvm::StringRef bitcode;
  /// Whether the kernels of Tiles.cpp in Uk.h are there: prefill may use them.
  bool bf16Tiles;
};

/// All instruction sets; of one architecture the weakest first.
llvm::ArrayRef<UkernelIsa> ukernelIsas();
/// The instruction set of that name; null where there is none.
const UkernelIsa *lookupUkernelIsa(llvm::StringRef name);

} // namespace llmc

#endif // LLMC_COMPILER_CODEGEN_KERNELS_UKERNELS_H
