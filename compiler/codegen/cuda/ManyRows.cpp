//===- ManyRows.cpp - products on tensor cores ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments of mma.m16n8k16 with s8 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"), lane = 4 g + t: A has rows g and g + 8, k = 4 t .. 4 t + 3; B
// has column g, the same k; C has rows g and g + 8, columns 2 t and 2 t + 1.
//
// In shared memory a record's chunk is 256 codes, 8 scale quadruples and 16 bytes
// that keep columns in different banks.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Products.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kThreads = kMmaWarps * kWarp;
static constexpr int64_t kScalesAt = kChunk, kStride = kChunk + kChunk / 2 + 16;

ManyRows::ManyRows(Emitter &e, ArrayRef<Operand> operands, const RecordLayout &record,
                   int64_t columns)
    : e(e), operands(operands), record(record), columns(columns),
      slices(sliceCount(*operands[0].matrix)),
      chunks(operands[0].matrix->chunks() + (operands[0].matrix->tailGroups() != 0)) {
  stages = e.shared(2 * columns * kStride);
}

/// Copies a chunk of the records to its stage; threads share a record.
void ManyRows::fetch(Val index, Val records, Val firstRecord, Val total) {
  int64_t threads = kThreads / columns, codes = kChunk / 16, pieces = codes + kChunkGroups;
  Val mine = e.thread() / threads, part = e.thread() % threads;
  // Records behind the last one are copies of it.
  Val row = e.minOf(firstRecord + mine, total - 1);
  Val from = e.at(records, e.toI64(row) * record.bytes());
  Val to = e.at(stages, (index % 2) * (columns * kStride) + mine * kStride);
  int64_t whole = operands[0].matrix->chunks(), tail = operands[0].matrix->tailGroups();
  Val groups = tail ? e.select(index < whole, e.i32(kChunkGroups), e.i32(tail)) : Val();
  e.when(index < chunks, [&] {
    e.loop(part, e.i32(pieces), threads, [&](Val piece) {
      Val isCode = piece < codes;
      Val source = e.select(isCode, index * kChunk + piece * 16,
                            index * (kChunk / 2) + piece * 16 + (record.codeBytes() - kChunk));
      auto copy = [&] { e.copyAsync(e.at(to, piece * 16), e.at(from, source)); };
      if (!tail)
        copy();
      else
        e.when(e.select(isCode, piece / 2, piece - codes) < groups, copy);
    });
  });
  e.commitCopies();
}

/// Sums are [operand][eight columns][fragment of C].
Vals ManyRows::chunk(MutableArrayRef<WeightReader> readers, Val index, int64_t groups, Val stage,
                     ArrayRef<Val> sums) {
  Vals result(sums);
  Val lane = e.lane(), g = lane / 4, t = lane % 4;
  int64_t tiles = columns / 8;
  Type i32 = e.i32Type();
  Type fragment = LLVM::LLVMStructType::getLiteral(i32.getContext(), {i32, i32, i32, i32});
  ImplicitLocOpBuilder &builder = e.getBuilder();
  for (WeightReader &reader : readers)
    reader.seek(index);
  for (int64_t group = 0; group < groups; ++group) {
    // Readers 2 o and 2 o + 1 have rows g and g + 8 of operand o.
    SmallVector<std::array<Val, 2>, 4> codes;
    SmallVector<GroupScales, 4> scales;
    for (WeightReader &reader : readers) {
      codes.push_back(reader.codePair(group, t));
      scales.push_back(reader.scales(group));
    }
    for (int64_t n = 0; n < tiles; ++n) {
      Val b = e.at(stage, (g + 8 * n) * kStride + t * 4);
      Val q[2] = {e.load(i32, e.at(b, group * kGroup)),
                  e.load(i32, e.at(b, group * kGroup + kGroup / 2))};
      ActScales act[2];
      for (int64_t j = 0; j < 2; ++j) {
        Val at = e.at(stage, (t * 2 + (8 * n + j)) * kStride);
        Vals s = e.loadVector(e.f32Type(), 4, e.at(at, kScalesAt + group * 16));
        act[j] = {{s[0], s[1]}, {s[2], s[3]}};
      }
      for (size_t o = 0; o < operands.size(); ++o) {
        Val products[2][4];
        for (int64_t half = 0; half < 2; ++half) {
          Value zero = e.i32(0).value;
          Value made =
              LLVM::CallIntrinsicOp::create(
                  builder, fragment, builder.getStringAttr("llvm.nvvm.mma.m16n8k16.row.col.s8"),
                  ValueRange{codes[2 * o][half].value, codes[2 * o + 1][half].value, q[half].value,
                             zero, zero, zero, zero})
                  .getResult(0);
          for (int64_t i = 0; i < 4; ++i)
            products[half][i] = e.wrap(LLVM::ExtractValueOp::create(builder, made, i));
        }
        for (int64_t i = 0; i < 4; ++i) {
          Val &sum = result[(o * tiles + n) * 4 + i];
          sum = readers[2 * o + i / 2].accumulate(sum, scales[2 * o + i / 2],
                                                  {products[0][i], products[1][i]}, act[i % 2]);
        }
      }
    }
  }
  return result;
}

void ManyRows::run(Val firstRow, Val records, Val firstRecord, Val total,
                   function_ref<void(Val, Val, ArrayRef<Fragment>)> result) {
  const Matrix &matrix = *operands[0].matrix;
  Val lane = e.lane(), g = lane / 4, t = lane % 4;
  // A warp may have rows behind the last tile; what it computes there is not used.
  Val row = e.minOf(firstRow, e.i32(int64_t(matrix.layout.tiles * kWarpRows) - kMmaRows));
  SmallVector<WeightReader, 4> readers;
  for (const Operand &operand : operands)
    for (int64_t half = 0; half < 2; ++half)
      readers.emplace_back(e, *operand.matrix,
                           e.at(operand.weight, e.toI64(row / int64_t(kWarpRows)) *
                                                    int64_t(operand.matrix->layout.tileBytes)),
                           row % int64_t(kWarpRows) + g + 8 * half);
  Vals totals(operands.size() * columns / 8 * 4, e.f32(0));
  int64_t whole = matrix.chunks(), tail = matrix.tailGroups();
  fetch(e.i32(0), records, firstRecord, total);
  totals = e.loop(e.i32(0), e.i32(slices), 1, totals, [&](Val s, ArrayRef<Val> before) {
    Vals zero(before.size(), e.f32(0));
    Vals sums = e.loop(
        s * chunks / slices, (s + 1) * chunks / slices, 1, zero, [&](Val c, ArrayRef<Val> carried) {
          fetch(c + 1, records, firstRecord, total);
          e.waitCopies(1);
          e.barrier();
          Val stage = e.at(stages, (c % 2) * (columns * kStride));
          Vals made;
          if (!tail)
            made = chunk(readers, c, kChunkGroups, stage, carried);
          else if (!whole)
            made = chunk(readers, c, tail, stage, carried);
          else
            made = e.choose(
                c < whole, [&] { return chunk(readers, c, kChunkGroups, stage, carried); },
                [&] { return chunk(readers, c, tail, stage, carried); });
          e.barrier();
          return made;
        });
    Vals after;
    for (auto [a, b] : llvm::zip(before, sums))
      after.push_back(a + b);
    return after;
  });
  e.waitCopies(0);
  int64_t tiles = columns / 8;
  for (int64_t n = 0; n < tiles; ++n) {
    SmallVector<Fragment, 2> sums(operands.size());
    for (size_t o = 0; o < operands.size(); ++o)
      for (int64_t i = 0; i < 4; ++i)
        sums[o][i] = totals[(o * tiles + n) * 4 + i];
    result(g, t * 2 + 8 * n, sums);
  }
}
