//===- Passes.h - weights of fewer bits -------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_QUANTIZE_PASSES_H
#define LLMC_PASSES_QUANTIZE_PASSES_H

#include "compiler/ir/Llm.h"
#include "mlir/Pass/Pass.h"

namespace llmc::quantize {

#define GEN_PASS_DECL
#include "passes/quantize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/quantize/Passes.h.inc"

} // namespace llmc::quantize

#endif // LLMC_PASSES_QUANTIZE_PASSES_H
