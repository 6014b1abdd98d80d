//===- QkvKernel.cpp - projection, head norms, rope, KV write -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block per head. Its projection is gathered in shared memory, a row of head_dim
// floats per row of the step; then a warp finishes a row: bias, norm, rotation,
// and the write to the query buffer or the cache.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Products.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;
using namespace llmc::sched;

/// Records of a block on tensor cores.
static constexpr int64_t kColumns = 32;

namespace {
struct Role {
  Matrix matrix;
  Val weight, bias, norm; // bias and norm may be null
  NormSpecAttr normSpec;
  int64_t heads;
  bool rotated;
};

class Qkv {
public:
  Qkv(Emitter &e, QkvKernelOp op)
      : e(e), op(op), headDim(op.getHeadDim()),
        input(e, {int64_t(op.getFeatures()), op.getAct(), op.getPrologue(), op.getNormAttr(), false,
                  0, 0, op.getAddNormAttr(), op.getKeepSum()}) {
    for (auto [i, attr] : llvm::enumerate(op.getSegments())) {
      auto spec = cast<SegmentAttr>(attr);
      Val weight = e.nextBinding();
      Val bias = spec.getBias() ? e.nextBinding() : Val();
      roles.push_back({Matrix(spec, op.getFeatures()), weight, bias, Val(), NormSpecAttr(),
                       int64_t(i == 0 ? op.getHeads() : op.getKvHeads()),
                       op.getRopePairs() > 0 && i < 2});
    }
    for (auto [i, spec] : {std::pair(0, op.getQNormAttr()), std::pair(1, op.getKNormAttr())})
      if (spec) {
        roles[i].normSpec = spec;
        roles[i].norm = e.nextBinding();
      }
    if (op.getRopePairs())
      ropeRows = e.nextBinding();
    query = e.nextBinding();
    keys = e.nextBinding();
    values = e.nextBinding();
  }

  LaunchSpec emit() {
    bool many = op.getPrologue() == Prologue::Packed && op.getAct() == ActKind::Int8;
    LaunchSpec launch = many ? emitMany() : emitFew();
    launch.grid[0] = op.getHeads() + 2 * op.getKvHeads();
    return launch;
  }

private:
  /// Calls `body(role index, head)` for the head of this block.
  void forRole(function_ref<void(size_t, Val)> body) {
    int64_t first = 0;
    for (size_t i = 0; i < roles.size(); ++i) {
      Val head = e.block(0) - first;
      e.when((head >= 0) & (head < roles[i].heads), [&] { body(i, head); });
      first += roles[i].heads;
    }
  }

  Operand operandOf(const Role &role) { return {&role.matrix, role.weight}; }

  /// Weight rows of a head in pieces of `rows`: first piece, and how many there can be.
  Val firstPiece(Val head, int64_t rows) { return head * headDim / rows; }
  int64_t pieces(int64_t rows) {
    return llvm::divideCeil(headDim + (headDim % rows ? rows - std::gcd(headDim, rows) : 0), rows);
  }

  /// Keeps the sum of weight row `row` in the place of the head's row m.
  void gather(Val head, Val row, Val m, Val sum) {
    Val d = row - head * headDim;
    auto keep = [&] { e.store(sum, e.at(projected, (m * rowStride + d) * 4)); };
    e.when((d >= 0) & (d < headDim), keep);
  }

  LaunchSpec emitFew() {
    RecordLayout record = input.record();
    int64_t rows = fewRowsBlock(record);
    FewRows all(e, {operandOf(roles[0])}, record, rows);
    rowStride = headDim;
    projected = e.shared(4 * rowStride * rows);
    Val records = e.shared(0);
    LaunchSpec launch;
    launch.minBlocks = kFewBlocks;
    launch.rowsPerBlock[1] = rows;
    launch.sharedBytes = e.sharedBytes();
    launch.sharedBytesPerRow = record.bytes();
    launch.sharedRows = rows;
    int64_t step = all.tilesPerBlock(), count = pieces(kWarpRows);
    forRole([&](size_t i, Val head) {
      FewRows products = all.with({operandOf(roles[i])});
      for (int64_t t = 0; t < count; t += step)
        products.prefetch(firstPiece(head, kWarpRows) + t);
    });
    e.dependencies();
    Val first = e.block(1) * rows, total = e.rows();
    e.when(first < total, [&] {
      Val here = e.minOf(total - first, e.i32(rows));
      input.makeRecords(e, first, here, records);
      forRole([&](size_t i, Val head) {
        FewRows products = all.with({operandOf(roles[i])});
        Val tile = firstPiece(head, kWarpRows);
        e.loop(e.i32(0), e.i32(count), step, [&](Val t) {
          products.run(tile + t, records, here, [&](Val slot, Val m, ArrayRef<Val> sums) {
            // A tile behind the last one of the matrix is a copy of it.
            Val row = (tile + t + slot) * int64_t(kWarpRows) + e.lane();
            gather(head, row, m, sums[0]);
          });
        });
        e.loop(e.warp(), here, kBlockThreads / kWarp,
               [&](Val m) { finish(i, head, m, first + m); });
      });
    });
    return launch;
  }

  LaunchSpec emitMany() {
    ManyRows all(e, {operandOf(roles[0])}, input.record(), kColumns);
    rowStride = headDim + 4; // neighbours in other banks
    projected = e.shared(4 * rowStride * kColumns);
    LaunchSpec launch;
    launch.block = kMmaWarps * kWarp;
    launch.rowsPerBlock[1] = kColumns;
    launch.sharedBytes = e.sharedBytes();
    int64_t count = pieces(kMmaRows);
    e.dependencies();
    Val first = e.block(1) * kColumns, total = e.rows();
    e.when(first < total, [&] {
      forRole([&](size_t i, Val head) {
        ManyRows products = all.with({operandOf(roles[i])});
        Val piece = firstPiece(head, kMmaRows);
        e.loop(e.i32(0), e.i32(count), kMmaWarps, [&](Val p) {
          Val firstRow = (piece + p + e.warp()) * kMmaRows;
          products.run(firstRow, input.source, first, total,
                       [&](Val r, Val c, ArrayRef<ManyRows::Fragment> sums) {
                         for (int64_t k = 0; k < 4; ++k)
                           gather(head, firstRow + r + 8 * (k / 2), c + k % 2, sums[0][k]);
                       });
        });
        e.barrier();
        Val here = e.minOf(total - first, e.i32(kColumns));
        e.loop(e.warp(), here, kMmaWarps, [&](Val m) { finish(i, head, m, first + m); });
      });
    });
    return launch;
  }

  /// What happens to the gathered row m, which is row `row` of the step.
  void finish(size_t i, Val head, Val m, Val row) {
    const Role &role = roles[i];
    Val y = e.at(projected, m * (4 * rowStride)), lane = e.lane();
    int64_t steps = llvm::divideCeil(headDim, kWarp);
    // A lane has the elements lane, lane + 32, ...
    Vals x;
    SmallVector<Val> inside;
    for (int64_t s = 0; s < steps; ++s) {
      Val d = lane + s * kWarp;
      inside.push_back((s + 1) * kWarp <= headDim ? Val() : d < headDim);
      auto load = [&] {
        Val value = e.load(e.f32Type(), e.at(y, d * 4));
        if (role.bias)
          value = value + e.load(e.f32Type(), e.at(role.bias, (head * headDim + d) * 4), true);
        return Vals{value};
      };
      x.push_back(inside[s] ? e.choose(inside[s], load, [&] { return Vals{e.f32(0)}; })[0]
                            : load()[0]);
    }
    if (role.norm)
      normalize(role, lane, inside, x);
    auto forInside = [&](function_ref<void(int64_t, Val)> body) {
      for (int64_t s = 0; s < steps; ++s) {
        Val d = lane + s * kWarp;
        if (inside[s])
          e.when(inside[s], [&] { body(s, d); });
        else
          body(s, d);
      }
    };
    if (role.rotated)
      rotate(row, y, lane, forInside, x);
    forInside([&](int64_t s, Val d) { write(i, head, row, d, x[s]); });
  }

  void normalize(const Role &role, Val lane, ArrayRef<Val> inside, Vals &x) {
    Val mean;
    Val count = e.f32(float(headDim));
    if (role.normSpec.getKind() == llm::NormKind::Layer) {
      Val sum = e.f32(0);
      for (Val v : x)
        sum = sum + v;
      mean = e.warpSum(sum) / count;
    }
    Val squares = e.f32(0);
    for (size_t s = 0; s < x.size(); ++s) {
      if (mean)
        x[s] = x[s] - mean;
      Val next = e.fma(x[s], x[s], squares);
      squares = inside[s] ? e.select(inside[s], next, squares) : next;
    }
    Val eps = e.f32(float(role.normSpec.getEps().getValueAsDouble()));
    Val scale = e.f32(1) / e.sqrtOf(e.warpSum(squares) / count + eps);
    for (size_t s = 0; s < x.size(); ++s) {
      Val d = lane + int64_t(s) * kWarp;
      auto weighted = [&] {
        return Vals{x[s] * scale * e.load(e.f32Type(), e.at(role.norm, d * 4), true)};
      };
      x[s] =
          inside[s] ? e.choose(inside[s], weighted, [&] { return Vals{x[s]}; })[0] : weighted()[0];
    }
  }

  /// Element d is rotated with its partner, which another lane may have: they meet in the row.
  void rotate(Val row, Val y, Val lane,
              function_ref<void(function_ref<void(int64_t, Val)>)> forInside, Vals &x) {
    int64_t pairs = op.getRopePairs();
    bool interleaved = op.getRopeKind() == llm::RopeKind::Interleaved;
    Val table = e.at(ropeRows, e.toI64(row) * (8 * pairs));
    forInside([&](int64_t s, Val d) { e.store(x[s], e.at(y, d * 4)); });
    e.warpBarrier();
    for (size_t s = 0; s < x.size(); ++s) {
      if (int64_t(s) * kWarp >= 2 * pairs)
        continue;
      Val d = lane + int64_t(s) * kWarp;
      x[s] = e.choose(
          d < 2 * pairs,
          [&] {
            Val pair = interleaved ? d >> 1 : e.select(d < pairs, d, d - pairs);
            Val isSecond = interleaved ? (d & 1) == 1 : d >= pairs;
            Val partner = interleaved ? d ^ 1 : e.select(isSecond, d - pairs, d + pairs);
            Val other = e.load(e.f32Type(), e.at(y, partner * 4));
            Val cosine = e.load(e.f32Type(), e.at(table, pair * 4));
            Val sine = e.load(e.f32Type(), e.at(table, pair * 4 + 4 * pairs));
            // (a cos - b sin, b cos + a sin)
            Val turned = other * sine;
            return Vals{e.fma(x[s], cosine, e.select(isSecond, turned, e.negate(turned)))};
          },
          [&] { return Vals{x[s]}; })[0];
    }
  }

  void write(size_t i, Val head, Val row, Val d, Val value) {
    if (i == 0) {
      Val place =
          e.toI64(row) * (4 * headDim * int64_t(op.getHeads())) + e.toI64((head * headDim + d) * 4);
      e.store(value, e.at(query, place));
      return;
    }
    StringRef encoding = op.getKvEncoding();
    int64_t capacity = op.getCapacity();
    Val slot = (e.position() + row) % capacity;
    Val place = e.toI64(head) * (capacity * kvBytes(encoding, headDim));
    place = place + (i == 1 ? keyOffset(e, encoding, headDim, slot, d)
                            : valueOffset(e, encoding, headDim, slot, d));
    e.store(encoding == "f32" ? value : e.toF16(value), e.at(i == 1 ? keys : values, place));
  }

  Emitter &e;
  QkvKernelOp op;
  int64_t headDim, rowStride = 0;
  Input input;
  SmallVector<Role, 3> roles;
  Val ropeRows, query, keys, values;
  Val projected; ///< [rows][headDim] in shared memory
};
} // namespace

LaunchSpec cuda::emitKernel(Emitter &e, QkvKernelOp op) { return Qkv(e, op).emit(); }
