//===- Target.h - the GPUs that are compiled for ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_TARGET_H
#define LLMC_COMPILER_CODEGEN_CUDA_TARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace llmc::cuda {

struct Target {
  llvm::StringRef name; ///< as in --target
  llvm::StringRef chip; ///< as LLVM and ptxas call it
  unsigned capability;  ///< 10 * major + minor
  int64_t sharedBytes;  ///< dynamic shared memory that a block may have
};

/// In ascending order.
llvm::ArrayRef<Target> targets();
/// The target of that name ("sm90"; "sm_90" too); null where there is none.
const Target *lookupTarget(llvm::StringRef name);

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_TARGET_H
