//===- Sched.h - the sched dialect ------------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who computes it, when and where: programs of dispatches over planned
// buffers. See SchedOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_SCHED_H
#define LLMC_COMPILER_IR_SCHED_H

#include "compiler/ir/Llm.h"
#include "mlir/IR/RegionKindInterface.h"

#include "compiler/ir/SchedDialect.h.inc"

#include "compiler/ir/SchedEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/ir/SchedAttrs.h.inc"

#define GET_OP_CLASSES
#include "compiler/ir/SchedOps.h.inc"

namespace llmc::sched {

/// Rows of a weight panel, the unit of tiles over output features.
inline constexpr int64_t kPanelRows = 16;
/// Positions of a KV chunk: attention merges chunks in order, everywhere.
inline constexpr int64_t kKvChunk = 256;

} // namespace llmc::sched

#endif // LLMC_COMPILER_IR_SCHED_H
