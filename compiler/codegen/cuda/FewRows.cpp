//===- FewRows.cpp - a warp per slice of K --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Products.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// Shared memory that the records of a block may take.
static constexpr int64_t kRecordsBytes = 64 << 10;
static constexpr int64_t kLineBytes = 128;

int64_t cuda::sliceCount(const Matrix &matrix) {
  int64_t chunks = matrix.chunks() + (matrix.tailGroups() != 0);
  int64_t most = std::min<int64_t>(chunks, kBlockThreads / kWarp);
  return int64_t(llvm::bit_floor(uint64_t(most)));
}

int64_t cuda::fewRowsBlock(const RecordLayout &record) {
  for (int64_t rows : {4, 2})
    if (rows * record.bytes() <= kRecordsBytes)
      return rows;
  return 1;
}

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

Input::Input(Emitter &e, const InputSpec &spec) : spec(spec), source(e.nextBinding()) {
  auto take = [&](sched::NormSpecAttr norm, Val &weight, Val &bias) {
    if (!norm)
      return;
    weight = e.nextBinding();
    if (norm.getBias())
      bias = e.nextBinding();
  };
  if (spec.addNorm) {
    other = e.nextBinding();
    sum = e.shared(4 * spec.features);
  }
  take(spec.addNorm, addWeight, addBias);
  if (spec.keepSum)
    kept = e.nextBinding();
  take(spec.norm, normWeight, normBias);
}

/// source + norm(other) goes to shared memory, and from one block to where it is kept.
void Input::makeSum(Emitter &e, Val index) const {
  Val at = e.toI64(index) * (4 * spec.features), isWriter = e.block(0) == 0;
  auto readOther = [&](Val k) { return readRow(e, e.at(other, at), k); };
  normalizeRow(e, spec.features, readOther, {spec.addNorm, addWeight, addBias},
               [&](Val k, ArrayRef<Val> y) {
                 e.when(k < spec.features, [&] {
                   Vals x = readRow(e, e.at(source, at), k);
                   for (int i = 0; i < 4; ++i)
                     x[i] = x[i] + y[i];
                   e.storeVector(x, e.at(sum, k * 4));
                   if (kept)
                     e.when(isWriter, [&] { e.storeVector(x, e.at(e.at(kept, at), k * 4)); });
                 });
               });
}

void Input::makeRecords(Emitter &e, Val first, Val count, Val records) const {
  RecordLayout layout = record();
  Val begin =
      spec.outRows && spec.prologue != sched::Prologue::Packed ? e.outBegin() + first : first;
  bool merge = spec.prologue == sched::Prologue::Merge;
  bool packed = spec.prologue == sched::Prologue::Packed;
  int64_t rowBytes = packed ? layout.bytes() : 4 * spec.features;
  e.loop(e.i32(0), count, 1, [&](Val m) {
    Val index = begin + m;
    if (sum)
      makeSum(e, index);
    auto read = [&](Val k) -> Vals {
      // A thread reads what it wrote itself.
      if (sum)
        return readRow(e, sum, k);
      if (!merge)
        return readRow(e, e.at(source, e.toI64(index) * rowBytes), k);
      // The merged output of a head is in its first partial.
      int64_t headDim = spec.features / spec.mergeHeads;
      Val slot = (index * spec.mergeHeads + k / headDim) * spec.mergeChunks;
      Val partial = e.at(source, e.toI64(slot) * partialBytes(headDim));
      return readRow(e, e.at(partial, kPartialOutput), k % headDim);
    };
    makeRecord(e, spec.act, spec.features, read, {spec.norm, normWeight, normBias},
               e.at(records, m * layout.bytes()));
  });
  e.barrier();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

FewRows::FewRows(Emitter &e, ArrayRef<Operand> operands, const RecordLayout &record, int64_t rows)
    : e(e), operands(operands), record(record), rows(rows),
      slices(sliceCount(*operands[0].matrix)) {
  partials = e.shared(4 * kBlockThreads * rows * int64_t(operands.size()));
}

/// Blocks may have tiles behind the last one; what they compute there is not used.
Val FewRows::clampedTile(Val tile) {
  return e.minOf(tile, e.i32(int64_t(operands[0].matrix->layout.tiles) - 1));
}

/// First chunk of a slice.
static Val sliceBegin(Val slice, const Matrix &matrix, int64_t slices) {
  return slice * (matrix.chunks() + (matrix.tailGroups() != 0)) / slices;
}

void FewRows::prefetch(Val firstTile) {
  Val warp = e.warp(), slice = warp % slices;
  Val tile = clampedTile(firstTile + warp / slices);
  for (const Operand &operand : operands) {
    const Matrix &matrix = *operand.matrix;
    Val begin = sliceBegin(slice, matrix, slices), end = sliceBegin(slice + 1, matrix, slices);
    Val base = e.at(operand.weight, e.toI64(tile) * int64_t(matrix.layout.tileBytes));
    const WarpLayout &layout = matrix.layout;
    for (const WarpStream &stream : {layout.low, layout.high}) {
      // The bytes of a whole chunk; the last one may have fewer.
      int64_t chunkBytes = int64_t(stream.rowBytes * kWarpRows * kChunk / uint64_t(layout.paddedK));
      int64_t total = int64_t(stream.rowBytes * kWarpRows);
      if (total == 0)
        continue;
      Val last = e.minOf(end * chunkBytes, e.i32(total));
      e.loop(begin * chunkBytes + e.lane() * kLineBytes, last, kWarp * kLineBytes,
             [&](Val at) { e.prefetch(e.at(base, at + int64_t(stream.offset))); });
    }
  }
}

Vals FewRows::chunk(MutableArrayRef<WeightReader> readers, Val index, int64_t groups, Val records,
                    int64_t count, Val lastRecord, ArrayRef<Val> sums) {
  Vals result(sums);
  bool integers = record.act == sched::ActKind::Int8;
  SmallVector<Val> of;
  for (int64_t m = 0; m < count; ++m)
    of.push_back(e.at(records, e.minOf(e.i32(m), lastRecord) * record.bytes()));
  for (WeightReader &reader : readers)
    reader.seek(index);
  for (int64_t g = 0; g < groups; ++g) {
    SmallVector<Vals, 2> weights;
    SmallVector<GroupScales, 2> scales;
    for (WeightReader &reader : readers) {
      weights.push_back(integers ? reader.codes(g) : reader.values(g));
      if (integers)
        scales.push_back(reader.scales(g));
    }
    for (int64_t m = 0; m < count; ++m) {
      Val at = index * (integers ? kChunk : 4 * kChunk);
      Val x = e.at(e.at(of[m], at), integers ? g * kGroup : 4 * g * kGroup);
      if (!integers) {
        // Activations end at a half group; there are no weights behind it either.
        int64_t k = kGroup;
        if (groups < kChunkGroups && g == groups - 1)
          k = kGroup - int64_t(operands[0].matrix->layout.paddedK - record.paddedK);
        for (int64_t i = 0; i < k; i += 4) {
          Vals four = e.loadVector(e.f32Type(), 4, e.at(x, 4 * i));
          for (size_t o = 0; o < readers.size(); ++o)
            for (int64_t j = 0; j < 4; ++j) {
              Val &sum = result[o * count + m];
              sum = e.fma(weights[o][i + j], four[j], sum);
            }
        }
        continue;
      }
      Vals q = e.loadVector(e.i32Type(), 4, x);
      llvm::append_range(q, e.loadVector(e.i32Type(), 4, e.at(x, 16)));
      Val scaleAt = e.at(e.at(of[m], index * (kChunk / 2)), record.codeBytes() + g * 16);
      Vals s = e.loadVector(e.f32Type(), 4, scaleAt);
      ActScales act{{s[0], s[1]}, {s[2], s[3]}};
      for (size_t o = 0; o < readers.size(); ++o) {
        std::array<Val, 2> products = {e.i32(0), e.i32(0)};
        for (unsigned v = 0; v < 8; ++v)
          products[v / 4] = e.dp4a(weights[o][v], q[v], products[v / 4]);
        Val &sum = result[o * count + m];
        sum = readers[o].accumulate(sum, scales[o], products, act);
      }
    }
  }
  return result;
}

Vals FewRows::slice(Val tile, Val records, int64_t count, Val lastRecord) {
  const Matrix &matrix = *operands[0].matrix;
  SmallVector<WeightReader, 2> readers;
  for (const Operand &operand : operands)
    readers.emplace_back(
        e, *operand.matrix,
        e.at(operand.weight, e.toI64(tile) * int64_t(operand.matrix->layout.tileBytes)), e.lane());
  Val index = e.warp() % slices;
  Val begin = sliceBegin(index, matrix, slices), end = sliceBegin(index + 1, matrix, slices);
  Vals sums(operands.size() * count, e.f32(0));
  int64_t whole = matrix.chunks(), tail = matrix.tailGroups();
  if (whole)
    sums = e.loop(begin, e.minOf(end, e.i32(whole)), 1, sums, [&](Val c, ArrayRef<Val> carried) {
      return chunk(readers, c, kChunkGroups, records, count, lastRecord, carried);
    });
  if (tail)
    sums = e.choose(
        e.i32(whole) < end,
        [&] { return chunk(readers, e.i32(whole), tail, records, count, lastRecord, sums); },
        [&] { return sums; });
  return sums;
}

void FewRows::multiply(Val firstTile, Val records, Val count, int64_t most,
                       function_ref<void(Val, Val, ArrayRef<Val>)> result) {
  int64_t n = operands.size(), warps = kBlockThreads / kWarp, tiles = tilesPerBlock();
  Val warp = e.warp(), lane = e.lane();
  Val tile = clampedTile(firstTile + warp / slices);
  Vals sums = slice(tile, records, most, count - 1);
  // partials[record][operand][warp][lane]: a tile's slices are neighbours.
  for (int64_t m = 0; m < most; ++m)
    for (int64_t o = 0; o < n; ++o)
      e.store(sums[o * most + m],
              e.at(partials, (warp + (m * n + o) * warps) * (4 * kWarp) + lane * 4));
  e.barrier();
  e.loop(warp, count * tiles, warps, [&](Val i) {
    Val slot = i % tiles, m = i / tiles;
    Vals total;
    for (int64_t o = 0; o < n; ++o) {
      Val sum = e.f32(0);
      Val from = e.at(partials, (slot * slices + (m * n + o) * warps) * (4 * kWarp) + lane * 4);
      for (int64_t s = 0; s < slices; ++s)
        sum = sum + e.load(e.f32Type(), e.at(from, s * 4 * kWarp));
      total.push_back(sum);
    }
    result(slot, m, total);
  });
  e.barrier();
}

void FewRows::run(Val firstTile, Val records, Val count,
                  function_ref<void(Val, Val, ArrayRef<Val>)> result) {
  if (rows == 1)
    return multiply(firstTile, records, count, 1, result);
  e.when(
      count == 1, [&] { multiply(firstTile, records, count, 1, result); },
      [&] { multiply(firstTile, records, count, rows, result); });
}
