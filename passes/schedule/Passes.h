//===- Passes.h - from llm to sched -----------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The llm function becomes sched programs; then barriers, then buffers. See
// Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_SCHEDULE_PASSES_H
#define LLMC_PASSES_SCHEDULE_PASSES_H

#include "compiler/ir/Sched.h"
#include "mlir/Pass/Pass.h"

namespace llmc::schedule {

#define GEN_PASS_DECL
#include "passes/schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/schedule/Passes.h.inc"

} // namespace llmc::schedule

#endif // LLMC_PASSES_SCHEDULE_PASSES_H
