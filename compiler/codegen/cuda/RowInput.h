//===- RowInput.h - a block reads, normalizes and quantizes a row -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All kBlockThreads threads of a block take part, thread i with the elements
// 4 i .. 4 i + 3 of every 1024. The prologue of a linear kernel and the prepare
// kernel go through here, so that their records have the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_ROWINPUT_H
#define LLMC_COMPILER_CODEGEN_CUDA_ROWINPUT_H

#include "compiler/codegen/cuda/Emitter.h"

namespace llmc::cuda {

/// An activation record (Kernels.h) of K elements.
struct RecordLayout {
  sched::ActKind act;
  int64_t paddedK;

  RecordLayout(sched::ActKind act, int64_t k)
      : act(act), paddedK(llvm::alignTo(k, act == sched::ActKind::Int8 ? 32 : 16)) {}
  int64_t codeBytes() const { return act == sched::ActKind::Int8 ? paddedK : 4 * paddedK; }
  int64_t bytes() const { return codeBytes() + (act == sched::ActKind::Int8 ? paddedK / 2 : 0); }
};

/// Gives the four elements from element k (i32, a multiple of 4, below the row's length) on.
using RowReader = llvm::function_ref<Vals(Val k)>;

/// The four floats from `address` + 4 k on.
Vals readRow(Emitter &e, Val address, Val k);

/// A norm of a row; weight and bias are addresses or null.
struct RowNorm {
  sched::NormSpecAttr spec; ///< null: none
  Val weight, bias;
};

/// Calls `write(k, x)` with every four elements of the normalized row; where k + 4 > n it is called
/// for nothing. n is a multiple of 4.
void normalizeRow(Emitter &e, int64_t n, RowReader read, const RowNorm &norm,
                  llvm::function_ref<void(Val k, llvm::ArrayRef<Val> x)> write);

/// Makes a record of the normalized row at `record`, in shared or global memory. No barrier at the
/// end.
void makeRecord(Emitter &e, sched::ActKind act, int64_t n, RowReader read, const RowNorm &norm,
                Val record);

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_ROWINPUT_H
