//===- Specialize.h - kernels with constants, as generated code has them --===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_UKERNELS_SPECIALIZE_H
#define LLMC_TESTS_UNIT_UKERNELS_SPECIALIZE_H

#include "compiler/codegen/kernels/Ukernels.h"
#include "llvm/IR/Module.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace llmc::test {

/// An argument of a kernel: a constant, or (nullopt) an argument of the specialized function.
struct UkArg {
  enum Type { Pointer, I32, I64 } type;
  std::optional<int64_t> value;
};

/// A module with one function `run`, which calls `kernel` with the constants of `args` and its own
/// arguments for the rest, optimized at O3.
std::unique_ptr<llvm::Module> specialize(const UkernelIsa &isa, llvm::LLVMContext &context,
                                         llvm::StringRef kernel, const std::vector<UkArg> &args);

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_UKERNELS_SPECIALIZE_H
