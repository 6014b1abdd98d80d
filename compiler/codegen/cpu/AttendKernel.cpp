//===- AttendKernel.cpp - attention over fixed KV chunks ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cache is cut into chunks of kKvChunk positions. A row's result is the
// merge, in order, of its partial results over the chunks that it sees; who
// computes which partial does not matter. Split tiles store the partials (the
// reader merges them), row tiles merge at once.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;
using namespace llmc::sched;

/// Rows that share a widened chunk: so many that widening costs little, and their states stay in
/// the second cache.
static constexpr int64_t kSharedRows = 64;

namespace {
struct Attend {
  Emitter &e;
  AttendKernelOp op;
  int64_t headDim, group;
  bool kvF32;
  Value query, keys, values, out;
  Value position;
  Value lo, hi; // int32 arrays in scratch

  Attend(Emitter &e, AttendKernelOp op)
      : e(e), op(op), headDim(op.getHeadDim()), group(op.getHeads() / op.getKvHeads()),
        kvF32(op.getKvEncoding() == "f32"), query(e.nextBinding()), keys(e.nextBinding()),
        values(e.nextBinding()), out(e.nextBinding()), position(e.stepPosition()) {}

  /// Sets lo[i] and hi[i] to what position `p` sees of `chunk`.
  void setRange(Value i, Value p, Value chunk) {
    Value start = e.mul(chunk, kKvChunk), zero = e.i64(0), full = e.i64(kKvChunk);
    Value to = e.max(e.min(e.sub(e.add(p, 1), start), full), zero);
    Value from = zero;
    if (int64_t window = op.getWindow())
      from = e.max(e.min(e.sub(e.add(p, 1 - window), start), full), zero);
    e.store(e.toI32(from), e.at(lo, e.mul(i, 4)));
    e.store(e.toI32(to), e.at(hi, e.mul(i, 4)));
  }

  /// The last position that the row at position `p` sees.
  Value lastSeen(Value p) {
    return op.getBidirectional() ? e.add(e.add(position, e.stepRows()), -1) : p;
  }

  /// The address of a chunk in a head's keys or values.
  Value chunkOf(Value cache, Value head, Value chunk) {
    int64_t position = headDim * (kvF32 ? 4 : 2);
    Value slot = e.rem(e.mul(chunk, kKvChunk), op.getCapacity());
    return e.at(cache, e.add(e.mul(head, op.getCapacity() * position), e.mul(slot, position)));
  }

  Value queryAt(Value row, Value head) {
    return e.at(query, e.mul(e.add(e.mul(row, op.getHeads()), head), 4 * headDim));
  }

  /// The keys and values of a chunk.
  struct Chunk {
    Value keys, values;
    bool f32;
  };
  Chunk cachedChunk(Value head, Value chunk) {
    return {chunkOf(keys, head, chunk), chunkOf(values, head, chunk), kvF32};
  }
  /// A chunk up to slot `end` as f32, in scratch: many rows pay for one conversion.
  Chunk widenedChunk(Value head, Value chunk, Value end) {
    if (kvF32)
      return cachedChunk(head, chunk);
    constexpr int64_t block = 16; // uk_attend_chunk reads keys in blocks of that many slots
    Value keySlots = e.mul(e.div(e.add(end, block - 1), block), block);
    e.call("uk_kv_widen", {chunkOf(keys, head, chunk), e.mul(keySlots, headDim), wideKeys});
    e.call("uk_kv_widen", {chunkOf(values, head, chunk), e.mul(end, headDim), wideValues});
    return {wideKeys, wideValues, true};
  }

  /// Partials of `count` query rows over a chunk; they start at `partials`, `stride` bytes apart.
  void attend(Value q, int64_t qStride, Value count, const Chunk &chunk, Value partials,
              int64_t stride) {
    // uk_attend_chunk wants m and l as arrays; a partial keeps them with its output.
    Value m = mArray, l = lArray;
    e.call("uk_attend_chunk",
           {q, e.i64(qStride), e.toI32(count), lo, hi, chunk.keys, chunk.values, e.i64(headDim),
            e.i32(chunk.f32), e.f32(op.getScale().convertToFloat()),
            e.f32(op.getSoftcap().convertToFloat()), m, l, e.at(partials, kPartialOutput),
            e.i64(stride / 4)});
    e.loop(e.i64(0), count, 1, [&](Value i) {
      Value partial = e.at(partials, e.mul(i, stride)), offset = e.mul(i, 4);
      Type f32 = Float32Type::get(e.context());
      e.store(e.load(f32, e.at(m, offset)), partial);
      e.store(e.load(f32, e.at(l, offset)), e.at(partial, 4));
    });
  }

  void reserveArrays(int64_t rows) {
    lo = e.reserve(4 * rows);
    hi = e.reserve(4 * rows);
    mArray = e.reserve(4 * rows);
    lArray = e.reserve(4 * rows);
  }

  /// Tile = chunk * kvHeads + KV head; each row's query heads of that KV head.
  void emitSplit() {
    reserveArrays(group);
    int64_t bytes = partialBytes(headDim), maxChunks = op.getMaxChunks();
    Value base = visibleChunks(e, position, op.getWindow()).first;
    e.loop(e.tileBegin(), e.tileEnd(), 1, [&](Value t) {
      Value local = e.div(t, op.getKvHeads()), head = e.rem(t, op.getKvHeads());
      Value chunk = e.add(base, local), firstHead = e.mul(head, group);
      e.loop(e.i64(0), e.stepRows(), 1, [&](Value row) {
        Value p = e.add(position, row);
        e.loop(e.i64(0), e.i64(group), 1, [&](Value g) { setRange(g, p, chunk); });
        Value slot = e.add(e.mul(e.add(e.mul(row, op.getHeads()), firstHead), maxChunks), local);
        attend(queryAt(row, firstHead), headDim, e.i64(group), cachedChunk(head, chunk),
               e.at(out, e.mul(slot, bytes)), maxChunks * bytes);
      });
    });
  }

  /// Tile = KV head * row blocks + row block. A worker's tiles of one head are taken together, up
  /// to kSharedRows rows: its query heads and these rows share the widened chunks.
  void emitRows() {
    int64_t block = op.getRowBlock(), bytes = partialBytes(headDim);
    reserveArrays(kSharedRows);
    partials = e.reserve(kSharedRows * bytes);
    states = e.reserve(group * kSharedRows * bytes);
    if (!kvF32) {
      wideKeys = e.reserve(4 * kKvChunk * headDim);
      wideValues = e.reserve(4 * kKvChunk * headDim);
    }
    Value blocks = e.div(e.add(e.stepRows(), block - 1), block);
    Value endHead = e.div(e.add(e.tileEnd(), e.add(blocks, -1)), blocks);
    e.loop(e.div(e.tileBegin(), blocks), endHead, 1, [&](Value head) {
      Value firstTile = e.mul(head, blocks);
      Value begin = e.mul(e.max(e.sub(e.tileBegin(), firstTile), e.i64(0)), block);
      Value end = e.min(e.mul(e.sub(e.tileEnd(), firstTile), block), e.stepRows());
      e.loop(begin, end, kSharedRows,
             [&](Value row) { attendRows(head, row, e.min(e.sub(end, row), e.i64(kSharedRows))); });
    });
  }

  /// All query heads of a KV head, for `count` rows from `row0` on.
  void attendRows(Value head, Value row0, Value count) {
    Value firstPosition = e.add(position, row0);
    Value end = e.add(lastSeen(e.add(e.add(firstPosition, count), -1)), 1);
    Value firstChunk = visibleChunks(e, firstPosition, op.getWindow()).first;
    Value lastChunk = visibleChunks(e, e.add(end, -1), op.getWindow()).second;
    int64_t bytes = partialBytes(headDim);
    auto stateOf = [&](Value g, Value i) {
      return e.at(states, e.mul(e.add(e.mul(g, kSharedRows), i), bytes));
    };
    auto forEachRow = [&](function_ref<void(Value g, Value i)> body) {
      e.loop(e.i64(0), e.i64(group), 1,
             [&](Value g) { e.loop(e.i64(0), count, 1, [&](Value i) { body(g, i); }); });
    };

    forEachRow([&](Value g, Value i) {
      Value state = stateOf(g, i);
      e.store(e.f32(-std::numeric_limits<float>::infinity()), state);
      e.store(e.f32(0), e.at(state, 4));
    });
    e.loop(firstChunk, lastChunk, 1, [&](Value chunk) {
      e.loop(e.i64(0), count, 1,
             [&](Value i) { setRange(i, lastSeen(e.add(firstPosition, i)), chunk); });
      Chunk shared =
          widenedChunk(head, chunk, e.min(e.sub(end, e.mul(chunk, kKvChunk)), e.i64(kKvChunk)));
      e.loop(e.i64(0), e.i64(group), 1, [&](Value g) {
        attend(queryAt(row0, e.add(e.mul(head, group), g)), headDim * op.getHeads(), count, shared,
               partials, bytes);
        e.loop(e.i64(0), count, 1, [&](Value i) { mergeVisible(stateOf(g, i), i); });
      });
    });
    forEachRow([&](Value g, Value i) {
      Value state = stateOf(g, i), qHead = e.add(e.mul(head, group), g);
      Value to = e.at(out, e.mul(e.add(e.mul(e.add(row0, i), op.getHeads()), qHead), 4 * headDim));
      e.call("uk_attend_finish", {e.at(state, kPartialOutput), e.at(state, 4), e.i64(headDim), to});
    });
  }

  /// A row merges the chunks that it sees and no other.
  void mergeVisible(Value state, Value i) {
    Type i32 = IntegerType::get(e.context(), 32);
    Value from = e.load(i32, e.at(lo, e.mul(i, 4))), to = e.load(i32, e.at(hi, e.mul(i, 4)));
    e.branch(e.less(from, to), [&] {
      Value partial = e.at(partials, e.mul(i, partialBytes(headDim)));
      e.call("uk_attend_merge", {state, e.at(state, 4), e.at(state, kPartialOutput), partial,
                                 e.at(partial, 4), e.at(partial, kPartialOutput), e.i64(headDim)});
    });
  }

private:
  Value mArray, lArray;
  Value partials, states;
  Value wideKeys, wideValues;
};
} // namespace

void cpu::emitKernel(Emitter &e, AttendKernelOp op) {
  Attend attend(e, op);
  if (op.getSplit())
    attend.emitSplit();
  else
    attend.emitRows();
}
