//===- Passes.h - the KV cache's layout -------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_KV_PASSES_H
#define LLMC_PASSES_KV_PASSES_H

#include "compiler/ir/Llm.h"
#include "mlir/Pass/Pass.h"

namespace llmc::kv {

#define GEN_PASS_DECL
#include "passes/kv/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/kv/Passes.h.inc"

} // namespace llmc::kv

#endif // LLMC_PASSES_KV_PASSES_H
