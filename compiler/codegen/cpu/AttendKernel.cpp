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

  /// The address of a chunk in a head's keys or values.
  Value chunkOf(Value cache, Value head, Value chunk) {
    int64_t position = headDim * (kvF32 ? 4 : 2);
    Value slot = e.rem(e.mul(chunk, kKvChunk), op.getCapacity());
    return e.at(cache, e.add(e.mul(head, op.getCapacity() * position), e.mul(slot, position)));
  }

  Value queryAt(Value row, Value head) {
    return e.at(query, e.mul(e.add(e.mul(row, op.getHeads()), head), 4 * headDim));
  }

  /// Partials of `count` query rows over a chunk; they start at `partials`, `stride` bytes apart.
  void attend(Value q, int64_t qStride, Value count, Value head, Value chunk, Value partials,
              int64_t stride) {
    // uk_attend_chunk wants m and l as arrays; a partial keeps them with its output.
    Value m = mArray, l = lArray;
    e.call("uk_attend_chunk",
           {q, e.i64(qStride), e.toI32(count), lo, hi, chunkOf(keys, head, chunk),
            chunkOf(values, head, chunk), e.i64(headDim), e.i32(kvF32),
            e.f32(op.getScale().convertToFloat()), e.f32(op.getSoftcap().convertToFloat()), m, l,
            e.at(partials, kPartialOutput), e.i64(stride / 4)});
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
        attend(queryAt(row, firstHead), headDim, e.i64(group), head, chunk,
               e.at(out, e.mul(slot, bytes)), maxChunks * bytes);
      });
    });
  }

  /// Tile = row block * kvHeads + KV head.
  void emitRows() {
    int64_t block = op.getRowBlock(), bytes = partialBytes(headDim);
    reserveArrays(block);
    Value partials = e.reserve(block * bytes), states = e.reserve(block * bytes);
    Value rows = e.stepRows();
    e.loop(e.tileBegin(), e.tileEnd(), 1, [&](Value t) {
      Value row0 = e.mul(e.div(t, op.getKvHeads()), block), head = e.rem(t, op.getKvHeads());
      Value count = e.min(e.sub(rows, row0), e.i64(block));
      Value first = visibleChunks(e, e.add(position, row0), op.getWindow()).first;
      Value last =
          visibleChunks(e, e.add(position, e.sub(e.add(row0, count), e.i64(1))), op.getWindow())
              .second;
      e.loop(e.i64(0), e.i64(group), 1, [&](Value g) {
        Value qHead = e.add(e.mul(head, group), g);
        e.loop(e.i64(0), count, 1, [&](Value i) {
          Value state = e.at(states, e.mul(i, bytes));
          e.store(e.f32(-std::numeric_limits<float>::infinity()), state);
          e.store(e.f32(0), e.at(state, 4));
        });
        e.loop(first, last, 1, [&](Value chunk) {
          e.loop(e.i64(0), count, 1,
                 [&](Value i) { setRange(i, e.add(position, e.add(row0, i)), chunk); });
          attend(queryAt(row0, qHead), headDim * op.getHeads(), count, head, chunk, partials,
                 bytes);
          e.loop(e.i64(0), count, 1, [&](Value i) {
            // A row merges the chunks that it sees and no other.
            Type i32 = IntegerType::get(e.context(), 32);
            Value from = e.load(i32, e.at(lo, e.mul(i, 4))),
                  to = e.load(i32, e.at(hi, e.mul(i, 4)));
            e.branch(e.less(from, to), [&] {
              Value state = e.at(states, e.mul(i, bytes)),
                    partial = e.at(partials, e.mul(i, bytes));
              e.call("uk_attend_merge",
                     {state, e.at(state, 4), e.at(state, kPartialOutput), partial, e.at(partial, 4),
                      e.at(partial, kPartialOutput), e.i64(headDim)});
            });
          });
        });
        e.loop(e.i64(0), count, 1, [&](Value i) {
          Value state = e.at(states, e.mul(i, bytes));
          Value to =
              e.at(out, e.mul(e.add(e.mul(e.add(row0, i), op.getHeads()), qHead), 4 * headDim));
          e.call("uk_attend_finish",
                 {e.at(state, kPartialOutput), e.at(state, 4), e.i64(headDim), to});
        });
      });
    });
  }

private:
  Value mArray, lArray;
};
} // namespace

void cpu::emitKernel(Emitter &e, AttendKernelOp op) {
  Attend attend(e, op);
  if (op.getSplit())
    attend.emitSplit();
  else
    attend.emitRows();
}
