//===- QkvKernel.cpp - projection, head norms, rope, KV write -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;
using namespace llmc::sched;

/// Rows that are projected before their epilogue runs.
static constexpr int64_t kRowBlock = 16, kBf16RowBlock = 32;

namespace {
struct Role {
  PackedMatrix matrix;
  Value weight, bias, norm; // bias and norm may be null
  NormSpecAttr normSpec;
  bool rotated;
  int64_t heads;
};
} // namespace

void cpu::emitKernel(Emitter &e, QkvKernelOp op) {
  int64_t columns = op.getFeatures(), headDim = op.getHeadDim();
  ActKind act = e.arithmetic(op.getAct(), op.getPrefill());
  bool bf16 = act == ActKind::BF16;
  Records records =
      emitPrologue(e, {columns, act, op.getPrologue(), op.getNormAttr(), false,
                       int64_t(op.getMaxRows()), 0, 0, 0, op.getAddNormAttr(), op.getKeepSum()});

  Role roles[3];
  for (auto [role, attr] : llvm::zip(roles, op.getSegments())) {
    auto spec = cast<SegmentAttr>(attr);
    role.matrix = packedMatrix(spec, columns);
    role.weight = e.nextBinding();
    if (spec.getBias())
      role.bias = e.nextBinding();
  }
  auto takeNorm = [&](Role &role, NormSpecAttr spec) {
    role.normSpec = spec;
    if (spec)
      role.norm = e.nextBinding();
  };
  takeNorm(roles[0], op.getQNormAttr());
  takeNorm(roles[1], op.getKNormAttr());
  int64_t pairs = op.getRopePairs();
  Value ropeRows = pairs ? e.nextBinding() : Value();
  Value query = e.nextBinding(), keys = e.nextBinding(), values = e.nextBinding();
  for (auto [i, role] : llvm::enumerate(roles)) {
    role.heads = i == 0 ? op.getHeads() : op.getKvHeads();
    role.rotated = pairs && i < 2;
  }

  bool kvF32 = op.getKvEncoding() == "f32";
  int64_t headBytes = int64_t(op.getCapacity()) * headDim * (kvF32 ? 4 : 2);
  int64_t headPanels = headDim / kPanelRows, expandedBytes = ukBf16PanelBytes(columns);
  int64_t rowBlock = bf16 ? kBf16RowBlock : kRowBlock;
  Value tile = e.reserve(4 * headDim * rowBlock);
  Value expanded = bf16 ? e.reserve(headPanels * expandedBytes) : Value();
  Value position = e.stepPosition();

  // What happens to row m of head `head`, whose projection is at y.
  auto finish = [&](const Role &role, unsigned i, Value head, Value m, Value y) {
    if (role.bias)
      e.call("uk_add", {y, e.at(role.bias, e.mul(head, 4 * headDim)), e.f32(1), e.i64(headDim), y});
    if (role.norm)
      e.normalize(role.normSpec, role.norm, Value(), y, headDim, y);
    if (role.rotated)
      e.call("uk_rope", {y, e.at(ropeRows, e.mul(m, 8 * pairs)), e.i64(2 * pairs),
                         e.i32(op.getRopeKind() == llm::RopeKind::Interleaved)});
    if (i == 0) {
      Value to =
          e.at(query, e.add(e.mul(m, 4 * headDim * op.getHeads()), e.mul(head, 4 * headDim)));
      e.call("uk_scale", {y, e.f32(1), e.i64(headDim), to});
      return;
    }
    Value slot = e.rem(e.add(position, m), op.getCapacity());
    Value cache = e.at(i == 1 ? keys : values, e.mul(head, headBytes));
    e.call(i == 1 ? "uk_k_store" : "uk_v_store", {y, e.i64(headDim), slot, e.i32(kvF32), cache});
  };

  e.tilesBegin(act, records.rows);
  int64_t first = 0;
  for (auto [i, role] : llvm::enumerate(roles)) {
    Value begin = e.max(e.tileBegin(), e.i64(first));
    Value end = e.min(e.tileEnd(), e.i64(first + role.heads));
    e.loop(begin, end, 1, [&, &role = role, i = i](Value t) {
      Value head = e.sub(t, e.i64(first));
      Value panel = e.at(role.weight, e.mul(head, headPanels * role.matrix.panelBytes));
      auto manyRows = [&](llvm::function_ref<void(Value, Value)> multiply) {
        e.loop(e.i64(0), records.rows, rowBlock, [&](Value m0) {
          Value count = e.min(e.sub(records.rows, m0), e.i64(rowBlock));
          multiply(e.at(records.base, e.mul(m0, records.stride)), count);
          e.loop(e.i64(0), count, 1, [&](Value m) {
            finish(role, i, head, e.add(m0, m), e.at(tile, e.mul(m, 4 * headDim)));
          });
        });
      };
      if (bf16) {
        e.bf16Panels(role.matrix, panel, e.i64(headPanels), expanded);
        manyRows([&](Value from, Value count) {
          e.loop(e.i64(0), e.i64(headPanels), 2, [&](Value p) {
            e.bf16Matmul(columns, e.at(expanded, e.mul(p, expandedBytes)),
                         e.min(e.sub(e.i64(headPanels), p), e.i64(2)), from, count,
                         e.at(tile, e.mul(p, 4 * kPanelRows)), headDim);
          });
        });
        return;
      }
      e.branch(
          e.equal(records.rows, e.i64(1)),
          [&] {
            e.gemv(role.matrix, act, panel, e.i64(headPanels), records.base, tile);
            finish(role, i, head, e.i64(0), tile);
          },
          [&] {
            manyRows([&](Value from, Value count) {
              e.loop(e.i64(0), e.i64(headPanels), 1, [&](Value p) {
                e.matmul(role.matrix, act, e.at(panel, e.mul(p, role.matrix.panelBytes)), from,
                         count, e.at(tile, e.mul(p, 4 * kPanelRows)), headDim);
              });
            });
          });
    });
    first += role.heads;
  }
  e.tilesEnd(act, records.rows);
}
