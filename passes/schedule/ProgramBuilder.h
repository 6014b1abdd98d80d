//===- ProgramBuilder.h - makes one sched program ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks @forward once for a given number of rows. Every llm value becomes a
// buffer of `rows` float rows; every op one dispatch, or a few. What differs
// between few rows and many is decided here and nowhere else:
//
//   few   a linear's workers make its activation records themselves
//         (prologue); attention is split over KV chunks, and the linear that
//         reads it merges the partials
//   many  `prepare` makes the records once; attention is split over rows
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_SCHEDULE_PROGRAMBUILDER_H
#define LLMC_PASSES_SCHEDULE_PROGRAMBUILDER_H

#include "compiler/ir/Sched.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace llmc::schedule {

/// Kernels of a module; those that say the same are one.
class KernelSet {
public:
  explicit KernelSet(mlir::ModuleOp module) : module(module) {}

  /// Creates a kernel op of type Op with attributes `args` after the symbol name, or finds its
  /// equal.
  template <typename Op, typename... Args>
  mlir::FlatSymbolRefAttr get(mlir::Location loc, Args &&...args) {
    auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
    return intern(Op::create(builder, loc, builder.getStringAttr(""), std::forward<Args>(args)...));
  }

private:
  mlir::FlatSymbolRefAttr intern(mlir::Operation *kernel);

  mlir::ModuleOp module;
  llvm::DenseMap<std::pair<mlir::OperationName, mlir::Attribute>, mlir::FlatSymbolRefAttr> known;
  llvm::StringMap<unsigned> counts;
};

struct ProgramOptions {
  llvm::StringRef name;
  int64_t maxRows;
  /// Rows that kernels of this family have scratch for.
  int64_t familyRows;
  bool few;
  bool f32;
  /// What comes out of a norm stays float32.
  bool f32Norms = false;
};

/// Builds a program from `forward`; emits an error and fails on what it cannot schedule.
mlir::LogicalResult buildProgram(mlir::func::FuncOp forward, KernelSet &kernels,
                                 const ProgramOptions &options);

} // namespace llmc::schedule

#endif // LLMC_PASSES_SCHEDULE_PROGRAMBUILDER_H
