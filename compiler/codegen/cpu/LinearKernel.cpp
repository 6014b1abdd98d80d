//===- LinearKernel.cpp - products with packed weights --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Emitter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;
using namespace llmc::sched;

/// Rows that are multiplied before their epilogue runs: the tile stays in the first cache.
static constexpr int64_t kRowBlock = 64;
/// Panels of one row that are multiplied before their epilogue runs.
static constexpr int64_t kPanelBlock = 16;

//===----------------------------------------------------------------------===//
// Prologue
//===----------------------------------------------------------------------===//

std::pair<Value, Value> cpu::visibleChunks(Emitter &e, Value position, int64_t window) {
  Value first = window ? e.div(e.max(e.add(position, 1 - window), e.i64(0)), kKvChunk) : e.i64(0);
  return {first, e.add(e.div(position, kKvChunk), 1)};
}

/// Merges a row's attention partials, chunk by chunk, into out[features].
static void mergePartials(Emitter &e, const InputSpec &input, Value partials, Value row,
                          Value state, Value out) {
  int64_t headDim = input.features / input.mergeHeads, bytes = partialBytes(headDim);
  Value position = e.stepPosition();
  Value base = visibleChunks(e, position, input.mergeWindow).first;
  auto [first, last] = visibleChunks(e, e.add(position, row), input.mergeWindow);
  e.loop(e.i64(0), e.i64(input.mergeHeads), 1, [&](Value head) {
    Value slots =
        e.at(partials, e.mul(e.add(e.mul(row, input.mergeHeads), head), input.mergeChunks * bytes));
    Value l = e.at(state, 4), o = e.at(state, kPartialOutput);
    Value negInf = e.f32(-std::numeric_limits<float>::infinity()), zero = e.f32(0);
    e.store(negInf, state);
    e.store(zero, l);
    e.loop(first, last, 1, [&](Value chunk) {
      Value partial = e.at(slots, e.mul(e.sub(chunk, base), bytes));
      e.call("uk_attend_merge", {state, l, o, partial, e.at(partial, 4),
                                 e.at(partial, kPartialOutput), e.i64(headDim)});
    });
    e.call("uk_attend_finish", {o, l, e.i64(headDim), e.at(out, e.mul(head, 4 * headDim))});
  });
}

Records cpu::emitPrologue(Emitter &e, const InputSpec &input) {
  Value source = e.nextBinding();
  Records records{source, input.outRows ? e.stepOutRows() : e.stepRows(),
                  recordBytes(input.act, input.features)};
  auto takeNorm = [&](NormSpecAttr norm) -> std::pair<Value, Value> {
    Value weight = norm ? e.nextBinding() : Value();
    return {weight, norm && norm.getBias() ? e.nextBinding() : Value()};
  };
  Value other = input.addNorm ? e.nextBinding() : Value();
  auto [addWeight, addBias] = takeNorm(input.addNorm);
  Value kept = input.keepSum ? e.nextBinding() : Value();
  auto [weight, bias] = takeNorm(input.norm);
  if (input.prologue == Prologue::Packed)
    return records;

  int64_t rowBytes = 4 * input.features;
  records.base = e.reserve(input.maxRows * records.stride);
  Value row = e.reserve(rowBytes), sum = input.addNorm ? e.reserve(rowBytes) : Value();
  Value state;
  if (input.prologue == Prologue::Merge)
    state = e.reserve(partialBytes(input.features / input.mergeHeads));
  // A worker without tiles has no use for records.
  e.branch(e.less(e.tileBegin(), e.tileEnd()), [&] {
    Value begin = input.outRows ? e.stepOutBegin() : e.i64(0);
    e.loop(e.i64(0), records.rows, 1, [&](Value m) {
      Value record = e.at(records.base, e.mul(m, records.stride));
      Value index = e.add(begin, m);
      Value x = row;
      if (input.prologue == Prologue::Merge)
        mergePartials(e, input, source, index, state, row);
      else
        x = e.at(source, e.mul(index, rowBytes));
      if (input.addNorm) {
        Value n = e.i64(input.features);
        e.normalize(input.addNorm, addWeight, addBias, e.at(other, e.mul(index, rowBytes)),
                    input.features, row);
        e.call("uk_add", {x, row, e.f32(1), n, sum});
        x = sum;
        // Every worker has the sum; one of them writes it.
        if (kept)
          e.branch(e.equal(e.tileBegin(), e.i64(0)), [&] {
            e.call("uk_scale", {sum, e.f32(1), n, e.at(kept, e.mul(index, rowBytes))});
          });
      }
      if (input.prologue == Prologue::Norm) {
        e.normalize(input.norm, weight, bias, x, input.features, row);
        x = row;
      }
      e.makeRecord(input.act, x, input.features, record);
    });
  });
  return records;
}

//===----------------------------------------------------------------------===//
// Epilogue
//===----------------------------------------------------------------------===//

namespace {
/// Everything that happens to a product before it is stored.
struct Epilogue {
  LinearKernelOp op;
  Value bias, upBias; // or null
  Value residual;     // or null
  Value out;
  int64_t rowBytes; // of out and residual
  Value maxima;     // of blocks of logits, or null
  int64_t maximaRowBytes;

  /// y (and `up` where gated) hold `count` features from `column` on, of output row `row`.
  void emit(Emitter &e, Value y, Value up, Value row, Value column, Value count) {
    Value offset = e.mul(column, 4);
    Value to = e.at(out, e.add(e.mul(row, rowBytes), offset));
    float scale = op.getScale().convertToFloat(), softcap = op.getSoftcap().convertToFloat();
    Value kind = e.i32(int64_t(op.getActivation()));
    if (bias)
      e.call("uk_add", {y, e.at(bias, offset), e.f32(1), count, y});
    if (op.getGated()) {
      if (upBias)
        e.call("uk_add", {up, e.at(upBias, offset), e.f32(1), count, up});
      e.call("uk_glu", {kind, y, up, count, y});
    } else if (op.getActivation() != llm::Activation::None) {
      e.call("uk_act", {kind, y, count});
    }
    if (residual && softcap == 0.0f) {
      Value from = e.at(residual, e.add(e.mul(row, rowBytes), offset));
      e.call("uk_add", {from, y, e.f32(scale), count, to});
      return;
    }
    if (residual) {
      e.call("uk_scale", {y, e.f32(scale), count, y});
      e.call("uk_softcap", {y, e.f32(softcap), count});
      Value from = e.at(residual, e.add(e.mul(row, rowBytes), offset));
      e.call("uk_add", {from, y, e.f32(1), count, to});
      return;
    }
    e.call("uk_scale", {y, e.f32(scale), count, to});
    if (softcap != 0.0f)
      e.call("uk_softcap", {to, e.f32(softcap), count});
    if (maxima) {
      Value block = e.mul(e.div(column, LLMC_LOGIT_BLOCK), 4);
      e.call("uk_block_max", {to, count, e.at(maxima, e.add(e.mul(row, maximaRowBytes), block))});
    }
  }
};
} // namespace

/// Emits the tiles [first, first + panels) of the kernel: one matrix, or a gated pair.
static void emitSegment(Emitter &e, const Records &records, ActKind act, const PackedMatrix &matrix,
                        Value weight, std::optional<PackedMatrix> upMatrix, Value upWeight,
                        int64_t first, int64_t panels, Epilogue &epilogue, Value tile,
                        Value upTile) {
  bool ragged = matrix.rows % kPanelRows;
  Value begin = e.max(e.tileBegin(), e.i64(first));
  Value end = e.min(e.tileEnd(), e.i64(first + panels));
  auto panelAt = [&](Value base, const PackedMatrix &m, Value t) {
    return e.at(base, e.mul(e.sub(t, e.i64(first)), m.panelBytes));
  };
  auto columnOf = [&](Value t) { return e.mul(e.sub(t, e.i64(first)), kPanelRows); };

  e.branch(
      e.equal(records.rows, e.i64(1)),
      [&] {
        e.loop(begin, end, kPanelBlock, [&](Value t) {
          Value count = e.min(e.sub(end, t), e.i64(kPanelBlock));
          e.gemv(matrix, act, panelAt(weight, matrix, t), count, records.base, tile);
          if (upMatrix)
            e.gemv(*upMatrix, act, panelAt(upWeight, *upMatrix, t), count, records.base, upTile);
          Value column = columnOf(t), features = e.mul(count, kPanelRows);
          if (ragged)
            features = e.min(features, e.sub(e.i64(matrix.rows), column));
          epilogue.emit(e, tile, upTile, e.i64(0), column, features);
        });
      },
      [&] {
        e.loop(begin, end, 1, [&](Value t) {
          Value column = columnOf(t), features = e.i64(kPanelRows);
          if (ragged)
            features = e.min(features, e.sub(e.i64(matrix.rows), column));
          e.loop(e.i64(0), records.rows, kRowBlock, [&](Value m0) {
            Value count = e.min(e.sub(records.rows, m0), e.i64(kRowBlock));
            Value from = e.at(records.base, e.mul(m0, records.stride));
            e.matmul(matrix, act, panelAt(weight, matrix, t), from, count, tile, kPanelRows);
            if (upMatrix)
              e.matmul(*upMatrix, act, panelAt(upWeight, *upMatrix, t), from, count, upTile,
                       kPanelRows);
            e.loop(e.i64(0), count, 1, [&](Value m) {
              Value offset = e.mul(m, 4 * kPanelRows);
              epilogue.emit(e, e.at(tile, offset), upTile ? e.at(upTile, offset) : Value(),
                            e.add(m0, m), column, features);
            });
          });
        });
      });
}

/// The same on bf16 tiles: two panels at a time (a gated pair is two), expanded once for all rows.
static void emitBf16Segment(Emitter &e, const Records &records, const PackedMatrix &matrix,
                            Value weight, std::optional<PackedMatrix> upMatrix, Value upWeight,
                            int64_t first, int64_t panels, Epilogue &epilogue, Value tile) {
  bool gated = upMatrix.has_value();
  int64_t expandedBytes = ukBf16PanelBytes(matrix.columns);
  Value expanded = e.reserve(2 * expandedBytes);
  Value begin = e.max(e.tileBegin(), e.i64(first));
  Value end = e.min(e.tileEnd(), e.i64(first + panels));
  e.loop(begin, end, gated ? 1 : 2, [&](Value t) {
    Value index = e.sub(t, e.i64(first));
    Value count = gated ? e.i64(2) : e.min(e.sub(end, t), e.i64(2));
    e.bf16Panels(matrix, e.at(weight, e.mul(index, matrix.panelBytes)), gated ? e.i64(1) : count,
                 expanded);
    if (gated)
      e.bf16Panels(*upMatrix, e.at(upWeight, e.mul(index, upMatrix->panelBytes)), e.i64(1),
                   e.at(expanded, expandedBytes));
    Value column = e.mul(index, kPanelRows);
    Value features = gated ? e.i64(kPanelRows) : e.mul(count, kPanelRows);
    features = e.min(features, e.sub(e.i64(matrix.rows), column));
    e.loop(e.i64(0), records.rows, kRowBlock, [&](Value m0) {
      Value rows = e.min(e.sub(records.rows, m0), e.i64(kRowBlock));
      e.bf16Matmul(matrix.columns, expanded, count, e.at(records.base, e.mul(m0, records.stride)),
                   rows, tile, 2 * kPanelRows);
      e.loop(e.i64(0), rows, 1, [&](Value m) {
        Value y = e.at(tile, e.mul(m, 8 * kPanelRows));
        epilogue.emit(e, y, gated ? e.at(y, 4 * kPanelRows) : Value(), e.add(m0, m), column,
                      features);
      });
    });
  });
}

void cpu::emitKernel(Emitter &e, LinearKernelOp op) {
  int64_t columns = op.getFeatures();
  ActKind act = e.arithmetic(op.getAct(), op.getPrefill());
  bool bf16 = act == ActKind::BF16;
  Records records = emitPrologue(
      e, {columns, act, op.getPrologue(), op.getNormAttr(), op.getOutRows(),
          int64_t(op.getMaxRows()), int64_t(op.getMergeHeads()), int64_t(op.getMergeWindow()),
          int64_t(op.getMergeChunks()), op.getAddNormAttr(), op.getKeepSum()});
  struct Segment {
    PackedMatrix matrix;
    Value weight, bias;
  };
  SmallVector<Segment> segments;
  for (Attribute attr : op.getSegments()) {
    auto spec = cast<SegmentAttr>(attr);
    Segment segment{packedMatrix(spec, columns), e.nextBinding(), Value()};
    if (spec.getBias())
      segment.bias = e.nextBinding();
    segments.push_back(segment);
  }
  Value residual = op.getResidual() ? e.nextBinding() : Value();
  int64_t tileBytes = 4 * kPanelRows * std::max(kRowBlock, kPanelBlock);
  Value tile = e.reserve(bf16 ? 2 * tileBytes : tileBytes);
  Value upTile = op.getGated() && !bf16 ? e.reserve(tileBytes) : Value();

  e.tilesBegin(act, records.rows);
  int64_t first = 0;
  for (unsigned i = 0, n = op.getGated() ? 1 : segments.size(); i < n; ++i) {
    const Segment &segment = segments[i];
    Epilogue epilogue{op,
                      segment.bias,
                      op.getGated() ? segments[1].bias : Value(),
                      residual,
                      op.getLogits() ? e.stepLogits() : e.nextBinding(),
                      4 * segment.matrix.rows,
                      op.getLogits() ? e.stepLogitMaxima() : Value(),
                      logitMaximaBytes(segment.matrix.rows)};
    int64_t panels = llvm::divideCeil(segment.matrix.rows, kPanelRows);
    std::optional<PackedMatrix> upMatrix;
    Value upWeight;
    if (op.getGated()) {
      upMatrix = segments[1].matrix;
      upWeight = segments[1].weight;
    }
    if (bf16)
      emitBf16Segment(e, records, segment.matrix, segment.weight, upMatrix, upWeight, first, panels,
                      epilogue, tile);
    else
      emitSegment(e, records, act, segment.matrix, segment.weight, upMatrix, upWeight, first,
                  panels, epilogue, tile, upTile);
    first += panels;
  }
  e.tilesEnd(act, records.rows);
}
