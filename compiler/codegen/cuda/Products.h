//===- Products.h - activation rows times packed weights --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ways to the same bits. K is cut into chunks of 256 and these into up to
// eight *slices*. The result is the sum of the slices' sums, in order; a slice's
// sum adds its groups in order, each made of exact integer products of its halves
// (WeightReader::accumulate).
//
//   few rows    a warp per slice and tile: lane r has row r of the tile, all lanes
//               read the same activations from shared memory; the slices meet in
//               shared memory
//   many rows   mma.m16n8k16 over int8: a warp has 16 weight rows (operand A,
//               unpacked in registers) and 8 n activation rows, which come through
//               shared memory, chunk by chunk, two in flight
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_PRODUCTS_H
#define LLMC_COMPILER_CODEGEN_CUDA_PRODUCTS_H

#include "compiler/codegen/cuda/RowInput.h"
#include "compiler/codegen/cuda/WeightReader.h"

namespace llmc::cuda {

/// Blocks of few rows that fit a multiprocessor.
inline constexpr int64_t kFewBlocks = 2;

/// A power of two; all matrices with rows of K elements have the same.
int64_t sliceCount(const Matrix &matrix);

/// A matrix of a product and where its packed weight is.
struct Operand {
  const Matrix *matrix;
  Val weight;
};

/// Says what a linear or qkv kernel's input is.
struct InputSpec {
  int64_t features;
  sched::ActKind act;
  sched::Prologue prologue;
  sched::NormSpecAttr norm;
  bool outRows = false;
  int64_t mergeHeads = 0, mergeChunks = 0;
  sched::NormSpecAttr addNorm = {}; ///< see sched.linear_kernel
  bool keepSum = false;
};

/// The input's bindings.
struct Input {
  InputSpec spec;
  Val source, normWeight, normBias;
  Val other, addWeight, addBias, kept;
  Val sum; ///< a row in shared memory, where the input is a sum

  /// Takes them, and the shared memory.
  Input(Emitter &e, const InputSpec &spec);
  RecordLayout record() const { return {spec.act, spec.features}; }
  /// Rows of the step that the kernel computes.
  Val rows(Emitter &e) const { return spec.outRows ? e.outRows() : e.rows(); }
  void makeSum(Emitter &e, Val index) const;
  /// Makes records [first, first + count) in shared memory at `records`; has barriers.
  void makeRecords(Emitter &e, Val first, Val count, Val records) const;
};

/// Rows that the blocks of a few-rows kernel compute together, for records of that size.
int64_t fewRowsBlock(const RecordLayout &record);

//===----------------------------------------------------------------------===//
// Few rows
//===----------------------------------------------------------------------===//

/// The products of a block with up to `rows` records, for tilesPerBlock() tiles at a time.
class FewRows {
public:
  /// `operands`: one, or a gated pair. Reserves shared memory for the slices' sums.
  FewRows(Emitter &e, llvm::ArrayRef<Operand> operands, const RecordLayout &record, int64_t rows);

  /// The same block at work on other matrices with rows of that length, not more of them.
  FewRows with(llvm::ArrayRef<Operand> others) const {
    FewRows result = *this;
    result.operands.assign(others.begin(), others.end());
    return result;
  }

  int64_t tilesPerBlock() const { return kBlockThreads / kWarp / slices; }
  /// Asks for this warp's weights of the tiles from `firstTile` on; before dependencies().
  void prefetch(Val firstTile);
  /// `count` (1..rows) records at `records`; `result(slot, m, sums)` is called by whole warps for
  /// every tile firstTile + slot and record m: lane r has the sums of row r of the tile, one per
  /// operand. Has barriers.
  void run(Val firstTile, Val records, Val count,
           llvm::function_ref<void(Val slot, Val m, llvm::ArrayRef<Val> sums)> result);

private:
  Val clampedTile(Val tile);
  /// The sums of this warp's slice for `count` records, [operand][record].
  Vals slice(Val tile, Val records, int64_t count, Val lastRecord);
  Vals chunk(llvm::MutableArrayRef<WeightReader> readers, Val index, int64_t groups, Val records,
             int64_t count, Val lastRecord, llvm::ArrayRef<Val> sums);
  void multiply(Val firstTile, Val records, Val count, int64_t most,
                llvm::function_ref<void(Val, Val, llvm::ArrayRef<Val>)> result);

  Emitter &e;
  llvm::SmallVector<Operand, 2> operands;
  RecordLayout record;
  int64_t rows, slices;
  Val partials;
};

//===----------------------------------------------------------------------===//
// Many rows
//===----------------------------------------------------------------------===//

inline constexpr int64_t kMmaWarps = 4, kMmaRows = 16;

/// The products of a block of kMmaWarps warps: 16 weight rows per warp, `columns` (a multiple of 8)
/// int8 records.
class ManyRows {
public:
  /// Reserves shared memory for two chunks of records.
  ManyRows(Emitter &e, llvm::ArrayRef<Operand> operands, const RecordLayout &record,
           int64_t columns);

  /// The same block at work on other matrices with rows of that length, as many.
  ManyRows with(llvm::ArrayRef<Operand> others) const {
    ManyRows result = *this;
    result.operands.assign(others.begin(), others.end());
    return result;
  }

  /// The sums of a thread's two weight rows `row` and `row` + 8 and two records `column` and
  /// `column` + 1: of (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1).
  using Fragment = std::array<Val, 4>;
  /// Weight rows from `firstRow` (of this warp, a multiple of 16) on, records [firstRecord,
  /// firstRecord + columns) of `records`, `total` in all. `result` is called by all lanes for each
  /// eight records, with row 0..7 and column counted from firstRow and firstRecord, a fragment per
  /// operand. Has barriers.
  void run(Val firstRow, Val records, Val firstRecord, Val total,
           llvm::function_ref<void(Val row, Val column, llvm::ArrayRef<Fragment> sums)> result);

private:
  void fetch(Val chunk, Val records, Val firstRecord, Val total);
  Vals chunk(llvm::MutableArrayRef<WeightReader> readers, Val index, int64_t groups, Val stage,
             llvm::ArrayRef<Val> sums);

  Emitter &e;
  llvm::SmallVector<Operand, 2> operands;
  RecordLayout record;
  int64_t columns, slices, chunks;
  Val stages;
};

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_PRODUCTS_H
