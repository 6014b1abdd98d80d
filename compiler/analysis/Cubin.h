//===- Cubin.h - what a cubin says of its kernels ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_ANALYSIS_CUBIN_H
#define LLMC_COMPILER_ANALYSIS_CUBIN_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace llmc {

struct CubinKernel {
  uint32_t registers = 0;  ///< of a thread
  uint32_t stackBytes = 0; ///< of a thread
};

/// By the names of kernels.
llvm::Expected<llvm::StringMap<CubinKernel>> readCubin(llvm::StringRef bytes);

} // namespace llmc

#endif // LLMC_COMPILER_ANALYSIS_CUBIN_H
