//===- RowInput.cpp - a block reads, normalizes and quantizes a row -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/RowInput.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// Elements that a block reads at once.
static constexpr int64_t kStride = 4 * kBlockThreads;
/// So many pieces of a row stay in registers between the passes over it.
static constexpr int64_t kKeptPieces = 8;

Vals cuda::readRow(Emitter &e, Val address, Val k) {
  return e.loadVector(e.f32Type(), 4, e.at(address, k * 4));
}

namespace {
/// A row in pieces of kStride elements.
class Row {
public:
  Row(Emitter &e, int64_t n, RowReader read) : e(e), n(n), read(read) {
    pieces = llvm::divideCeil(n, kStride);
    mine = e.thread() * 4;
    if (pieces <= kKeptPieces)
      for (int64_t p = 0; p < pieces; ++p)
        kept.push_back(load(p));
  }

  Val index(int64_t piece) { return mine + piece * kStride; }
  int64_t count() const { return pieces; }
  Vals get(int64_t piece) { return kept.empty() ? load(piece) : kept[piece]; }
  /// Whether this thread has elements in the piece; null where every thread has.
  Val inside(int64_t piece) { return (piece + 1) * kStride <= n ? Val() : index(piece) < n; }

private:
  /// Zeros behind the end.
  Vals load(int64_t piece) {
    Val condition = inside(piece);
    if (!condition)
      return read(index(piece));
    return e.choose(
        condition, [&] { return read(index(piece)); },
        [&] {
          Val zero = e.f32(0);
          return Vals{zero, zero, zero, zero};
        });
  }

  Emitter &e;
  int64_t n, pieces;
  RowReader read;
  Val mine;
  SmallVector<Vals> kept;
};
} // namespace

/// 1 / sqrt(mean + eps).
static Val inverseRoot(Emitter &e, Val sum, int64_t n, double eps) {
  return e.f32(1) / e.sqrtOf(sum / e.f32(float(n)) + e.f32(float(eps)));
}

void cuda::normalizeRow(Emitter &e, int64_t n, RowReader read, const RowNorm &norm,
                        function_ref<void(Val, ArrayRef<Val>)> write) {
  assert(n % 4 == 0 && "rows are read in fours");
  Row row(e, n, read);
  Val mean, scale;
  if (norm.spec) {
    double eps = norm.spec.getEps().getValueAsDouble();
    auto sumOver = [&](function_ref<Val(Val sum, Val x)> add) {
      Val sum = e.f32(0);
      for (int64_t p = 0; p < row.count(); ++p) {
        Vals x = row.get(p);
        auto all = [&] {
          Val s = sum;
          for (Val v : x)
            s = add(s, v);
          return Vals{s};
        };
        Val inside = row.inside(p);
        sum = inside ? e.choose(inside, all, [&] { return Vals{sum}; })[0] : all()[0];
      }
      return e.blockSum(sum);
    };
    if (norm.spec.getKind() == llm::NormKind::Layer)
      mean = sumOver([&](Val sum, Val x) { return sum + x; }) / e.f32(float(n));
    Val squares = sumOver([&](Val sum, Val x) {
      Val centered = mean ? x - mean : x;
      return e.fma(centered, centered, sum);
    });
    scale = inverseRoot(e, squares, n, eps);
  }
  for (int64_t p = 0; p < row.count(); ++p) {
    Vals x = row.get(p);
    Val k = row.index(p);
    auto normalized = [&] {
      Vals weight, bias, y;
      if (norm.weight)
        weight = e.loadVector(e.f32Type(), 4, e.at(norm.weight, k * 4), true);
      if (norm.bias)
        bias = e.loadVector(e.f32Type(), 4, e.at(norm.bias, k * 4), true);
      for (int i = 0; i < 4; ++i) {
        Val v = (mean ? x[i] - mean : x[i]) * scale;
        if (norm.weight)
          v = v * weight[i];
        if (norm.bias)
          v = v + bias[i];
        y.push_back(v);
      }
      return y;
    };
    if (norm.spec) {
      Val inside = row.inside(p);
      x = inside ? e.choose(inside, normalized, [&] { return x; }) : normalized();
    }
    write(k, x);
  }
}

void cuda::makeRecord(Emitter &e, sched::ActKind act, int64_t n, RowReader read,
                      const RowNorm &norm, Val record) {
  RecordLayout layout(act, n);
  normalizeRow(e, n, read, norm, [&](Val k, ArrayRef<Val> x) {
    auto stored = [&](function_ref<void()> body) {
      // Pieces are whole but for the last one.
      if (layout.paddedK % kStride)
        e.when(k < layout.paddedK, body);
      else
        body();
    };
    if (act != sched::ActKind::Int8) {
      stored([&] { e.storeVector(x, e.at(record, k * 4)); });
      return;
    }
    Val amax =
        e.maxOf(e.maxOf(e.absOf(x[0]), e.absOf(x[1])), e.maxOf(e.absOf(x[2]), e.absOf(x[3])));
    amax = e.warpMax(amax, 4);       // the four threads of a half group
    Val tiny = amax < e.f32(1e-30f); // 127 / amax would overflow
    Val d = e.select(tiny, e.f32(0), amax / e.f32(127));
    Val inverse = e.select(tiny, e.f32(0), e.f32(127) / amax);
    Val packed = e.i32(0), sum = e.i32(0);
    for (int i = 0; i < 4; ++i) {
      Val q = e.toI32Rounded(x[i] * inverse);
      sum = sum + q;
      packed = packed | ((q & 255) << int64_t(8 * i));
    }
    sum = e.warpSum(sum, 4);
    stored([&] {
      e.store(packed, e.at(record, k));
      e.when((k & 15) == 0, [&] {
        Val half = ((k >> 4) & 1) * 4;
        Val scales = e.at(e.at(record, layout.codeBytes()), (k >> 5) * 16 + half);
        e.store(d, scales);
        e.store(d * e.toF32(sum), e.at(scales, 8));
      });
    });
  });
}
