//===- LinearKernel.cpp - products and what follows them ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Products.h"
#include "llmc/kernel_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;
using namespace llmc::sched;

/// Records of a block on tensor cores. Before 9.0 64 of them take too much shared memory for two
/// blocks (8.9) or too many registers (8.0).
static constexpr int64_t kColumns = 64, kFewerColumns = 32;

namespace {
/// Everything that happens to a product before it is stored.
struct Epilogue {
  Emitter &e;
  LinearKernelOp op;
  int64_t features; // of out and residual
  Val bias, upBias, residual, out;
  Val maxima; // of blocks of logits, or null

  Val finish(Val y, Val up, Val row, Val feature) {
    float scale = op.getScale().convertToFloat(), softcap = op.getSoftcap().convertToFloat();
    auto vectorAt = [&](Val base) { return e.load(e.f32Type(), e.at(base, feature * 4), true); };
    if (bias)
      y = y + vectorAt(bias);
    if (op.getGated()) {
      if (upBias)
        up = up + vectorAt(upBias);
      y = e.activate(op.getActivation(), y) * up;
    } else if (op.getActivation() != llm::Activation::None) {
      y = e.activate(op.getActivation(), y);
    }
    Val old = residual ? e.load(e.f32Type(), e.at(residual, place(row, feature))) : Val();
    if (residual && softcap == 0.0f)
      return e.fma(y, e.f32(scale), old);
    if (scale != 1.0f)
      y = y * e.f32(scale);
    if (softcap != 0.0f)
      y = e.softcapOf(y, softcap);
    return residual ? old + y : y;
  }

  Val place(Val row, Val feature) { return e.toI64(row) * (4 * features) + e.toI64(feature * 4); }

  /// Stores where `valid`; gives the result, or -inf.
  Val store(Val y, Val up, Val row, Val feature, Val valid) {
    Val least = e.f32(-std::numeric_limits<float>::infinity());
    return e.choose(
        valid,
        [&] {
          Val result = finish(y, up, row, feature);
          e.store(result, e.at(out, place(row, feature)));
          return Vals{result};
        },
        [&] { return Vals{least}; })[0];
  }

  void storeMaximum(Val value, Val row, Val block) {
    int64_t blocks = llvm::divideCeil(features, LLMC_LOGIT_BLOCK);
    e.store(value, e.at(maxima, e.toI64(row) * (4 * blocks) + e.toI64(block * 4)));
  }
};

/// One matrix (or a gated pair) of the kernel and its results.
struct Segment {
  SmallVector<Operand, 2> operands;
  Val bias, upBias, out;
  int64_t features() const { return operands[0].matrix->rows; }
};
} // namespace

/// Blocks of a segment with `perBlock` weight rows each.
static int64_t blocksOf(const Segment &segment, int64_t perBlock) {
  return llvm::divideCeil(segment.features(), perBlock);
}

/// Calls `body(i, block)` for the segment that this block belongs to.
static void dispatchSegments(Emitter &e, ArrayRef<Segment> segments, int64_t perBlock,
                             function_ref<void(size_t, Val)> body) {
  if (segments.size() == 1)
    return body(0, e.block(0));
  int64_t first = 0;
  for (auto [i, segment] : llvm::enumerate(segments)) {
    int64_t count = blocksOf(segment, perBlock);
    Val block = e.block(0) - first;
    e.when((block >= 0) & (block < count), [&, i = i] { body(i, block); });
    first += count;
  }
}

static LaunchSpec emitFew(Emitter &e, LinearKernelOp op, const Input &input,
                          ArrayRef<Segment> segments,
                          function_ref<Epilogue(const Segment &)> epilogueOf) {
  RecordLayout record = input.record();
  int64_t rows = fewRowsBlock(record);
  FewRows all(e, segments[0].operands, record, rows);
  Val records = e.shared(0);
  int64_t fixed = e.sharedBytes(), perBlock = all.tilesPerBlock() * int64_t(kWarpRows);
  LaunchSpec launch;
  launch.minBlocks = kFewBlocks;
  launch.grid[0] = 0;
  for (const Segment &segment : segments)
    launch.grid[0] += blocksOf(segment, perBlock);
  launch.rowsPerBlock[1] = rows;
  launch.sharedBytes = fixed;
  launch.sharedBytesPerRow = record.bytes();
  launch.sharedRows = rows;

  dispatchSegments(e, segments, perBlock, [&](size_t i, Val block) {
    FewRows products = all.with(segments[i].operands);
    products.prefetch(block * all.tilesPerBlock());
  });
  e.dependencies();
  Val first = e.block(1) * rows, total = input.rows(e);
  e.when(first < total, [&] {
    Val count = e.minOf(total - first, e.i32(rows));
    input.makeRecords(e, first, count, records);
    dispatchSegments(e, segments, perBlock, [&](size_t i, Val block) {
      const Segment &segment = segments[i];
      FewRows products = all.with(segment.operands);
      Epilogue epilogue = epilogueOf(segment);
      Val firstTile = block * all.tilesPerBlock();
      products.run(firstTile, records, count, [&](Val slot, Val m, ArrayRef<Val> sums) {
        Val feature = (firstTile + slot) * int64_t(kWarpRows) + e.lane();
        Val row = first + m;
        Val y = epilogue.store(sums[0], sums.size() > 1 ? sums[1] : Val(), row, feature,
                               feature < segment.features());
        if (!epilogue.maxima)
          return;
        Val most = e.warpMax(y, LLMC_LOGIT_BLOCK);
        e.when((feature % LLMC_LOGIT_BLOCK == 0) & (feature < segment.features()),
               [&] { epilogue.storeMaximum(most, row, feature / LLMC_LOGIT_BLOCK); });
      });
    });
  });
  return launch;
}

static LaunchSpec emitMany(Emitter &e, LinearKernelOp op, const Input &input,
                           ArrayRef<Segment> segments,
                           function_ref<Epilogue(const Segment &)> epilogueOf) {
  bool fewer = op.getGated() || e.computeCapability() < 90;
  int64_t columns = fewer ? kFewerColumns : kColumns, perBlock = kMmaWarps * kMmaRows;
  ManyRows products(e, segments[0].operands, input.record(), columns);
  LaunchSpec launch;
  launch.block = kMmaWarps * kWarp;
  launch.grid[0] = 0;
  for (const Segment &segment : segments)
    launch.grid[0] += blocksOf(segment, perBlock);
  launch.rowsPerBlock[1] = columns;
  launch.sharedBytes = e.sharedBytes();
  e.dependencies();
  Val first = e.block(1) * columns, total = input.rows(e);
  e.when(first < total, [&] {
    dispatchSegments(e, segments, perBlock, [&](size_t i, Val block) {
      const Segment &segment = segments[i];
      Epilogue epilogue = epilogueOf(segment);
      Val firstRow = block * perBlock + e.warp() * kMmaRows;
      products.with(segment.operands)
          .run(firstRow, input.source, first, total,
               [&](Val r, Val c, ArrayRef<ManyRows::Fragment> sums) {
                 Val results[4];
                 for (int64_t i = 0; i < 4; ++i) {
                   Val feature = firstRow + r + 8 * (i / 2), row = first + c + i % 2;
                   Val valid = (feature < segment.features()) & (row < total);
                   Val up = sums.size() > 1 ? sums[1][i] : Val();
                   results[i] = epilogue.store(sums[0][i], up, row, feature, valid);
                 }
                 if (!epilogue.maxima)
                   return;
                 for (int64_t j = 0; j < 2; ++j) {
                   // Over the lanes of a column: the sixteen rows are a block of logits.
                   Val most = e.maxOf(results[j], results[2 + j]);
                   for (int64_t mask : {4, 8, 16})
                     most = e.maxOf(most, e.shuffleXor(most, mask));
                   Val row = first + c + j;
                   e.when((r == 0) & (firstRow < segment.features()) & (row < total),
                          [&] { epilogue.storeMaximum(most, row, firstRow / LLMC_LOGIT_BLOCK); });
                 }
               });
    });
  });
  return launch;
}

LaunchSpec cuda::emitKernel(Emitter &e, LinearKernelOp op) {
  Input input(e, {int64_t(op.getFeatures()), op.getAct(), op.getPrologue(), op.getNormAttr(),
                  op.getOutRows(), int64_t(op.getMergeHeads()), int64_t(op.getMergeChunks()),
                  op.getAddNormAttr(), op.getKeepSum()});
  SmallVector<Matrix, 4> matrices;
  SmallVector<Val, 4> weights, biases;
  for (Attribute attr : op.getSegments()) {
    auto spec = cast<SegmentAttr>(attr);
    matrices.emplace_back(spec, int64_t(op.getFeatures()));
    weights.push_back(e.nextBinding());
    biases.push_back(spec.getBias() ? e.nextBinding() : Val());
  }
  Val residual = op.getResidual() ? e.nextBinding() : Val();
  SmallVector<Segment, 4> segments;
  for (size_t i = 0; i < (op.getGated() ? 1 : matrices.size()); ++i) {
    Segment segment{{{&matrices[i], weights[i]}}, biases[i], Val(), Val()};
    if (op.getGated()) {
      segment.operands.push_back({&matrices[1], weights[1]});
      segment.upBias = biases[1];
    }
    if (!op.getLogits())
      segment.out = e.nextBinding();
    segments.push_back(segment);
  }
  // The step is read where its addresses are wanted: behind dependencies().
  auto epilogueOf = [&](const Segment &segment) {
    return Epilogue{e,
                    op,
                    segment.features(),
                    segment.bias,
                    segment.upBias,
                    residual,
                    op.getLogits() ? e.logits() : segment.out,
                    op.getLogits() ? e.logitMaxima() : Val()};
  };
  bool integers = llvm::all_of(matrices, [](const Matrix &m) { return !m.encoding->isFloat(); });
  if (op.getPrologue() == Prologue::Packed && op.getAct() == ActKind::Int8 && integers)
    return emitMany(e, op, input, segments, epilogueOf);
  return emitFew(e, op, input, segments, epilogueOf);
}
