//===- AttendKernel.cpp - attention over fixed KV chunks ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cache is cut into chunks of kKvChunk positions. A query row's result is the
// merge, in order, of its partial results over the chunks that it sees:
//
//   s[slot] = sum over d, ascending, of q[d] k[slot][d]
//   m = max s,  w = e^(s - m),  l = sum w: a lane its slots, then the lanes' tree
//   o = sum over strips of kStrip slots of (sum over its slots, ascending, of w v)
//
// These orders are all that bits depend on. Slots that a row does not see have
// weight 0, which leaves its sums as they are, so that rows may share the loads.
//
// A tile is some rows of the step with some query heads of a KV head. Split
// kernels (decode, verify) give every chunk a block; strips are summed by
// different threads, and the last block merges the chunks. The others (prefill)
// give every tile a block, which goes over all chunks; a thread has its outputs in
// registers.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include <limits>

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;
using namespace llmc::sched;

static constexpr int64_t kStrip = 32;
static constexpr int64_t kStrips = kKvChunk / kStrip;
/// Blocks of a split kernel, all KV heads together; they share the chunks.
static constexpr int64_t kSplitBlocks = 256;
/// Query rows of a tile, and of one pass over the keys.
static constexpr int64_t kSplitTile = 8, kRowsTile = 32, kPass = 16;
/// Partial sums of all strips that a split kernel has room for, in floats of output.
static constexpr int64_t kSplitOutputs = 1024;
/// Outputs of a thread in registers.
static constexpr int64_t kThreadOutputs = 32;
/// Weights of a query row in shared memory, and its state: m and l of the chunks so far, and the
/// factors of the last merge. Rows begin in different banks.
static constexpr int64_t kWeightRow = 4 * (kKvChunk + 4);
/// Partials that are read at once when chunks are merged.
static constexpr int64_t kMergeBatch = 8;

int64_t cuda::partialBytes(int64_t headDim) { return kPartialOutput + 4 * headDim; }

int64_t cuda::kvBytes(StringRef encoding, int64_t headDim) {
  return headDim * (encoding == "f32" ? 4 : 2);
}

int64_t cuda::kvWidth(StringRef encoding, int64_t headDim) {
  return encoding == "f32" || headDim % 8 ? 4 : 8;
}

/// Keys that lie together, so that the lanes of a warp read whole lines.
static constexpr int64_t kKeyBlock = kWarp;

Val cuda::keyOffset(Emitter &e, StringRef encoding, int64_t headDim, Val slot, Val d) {
  int64_t width = kvWidth(encoding, headDim), element = kvBytes(encoding, 1);
  Val block = e.toI64(slot / kKeyBlock) * (kKeyBlock * kvBytes(encoding, headDim));
  Val inBlock = d / width * (kKeyBlock * width) + slot % kKeyBlock * width + d % width;
  return block + e.toI64(inBlock * element);
}

Val cuda::valueOffset(Emitter &e, StringRef encoding, int64_t headDim, Val slot, Val d) {
  return e.toI64(slot) * kvBytes(encoding, headDim) + e.toI64(d * kvBytes(encoding, 1));
}

int64_t cuda::counterBytes(AttendKernelOp op, int64_t) {
  // The blocks of a KV head count themselves.
  return op.getSplit() ? 4 * int64_t(op.getKvHeads()) : 0;
}

namespace {
/// `rows` rows of the step from `row0` on, with `heads` query heads of the group each. Query row t
/// is head t % heads of row t / heads. Those behind the end are copies of the last one.
struct Tile {
  int64_t rows, heads, parts; ///< parts: tiles that make up a group
  int64_t count() const { return rows * heads; }

  Tile(int64_t group, int64_t room) : parts(llvm::divideCeil(group, room)) {
    heads = llvm::divideCeil(group, parts);
    rows = std::max<int64_t>(room / heads, 1);
  }
};

/// Where a tile lies in the step.
struct Place {
  Val row0, head0; ///< head0: in the group
};

/// A chunk of a KV head, and the slots of it that some row of the tile sees.
struct Chunk {
  Val keys, values, start, lo, hi;
};

class Attend {
public:
  Attend(Emitter &e, AttendKernelOp op)
      : e(e), op(op), headDim(op.getHeadDim()), group(op.getHeads() / op.getKvHeads()),
        kvF32(op.getKvEncoding() == "f32"), kvRow(kvBytes(op.getKvEncoding(), headDim)),
        width(kvWidth(op.getKvEncoding(), headDim)), columns(headDim / width),
        threads(op.getSplit() ? kBlockThreads : kKvChunk / 2), query(e.nextBinding()),
        keys(e.nextBinding()), values(e.nextBinding()), out(e.nextBinding()) {
    assert(headDim % 4 == 0 && columns <= threads && "head dims are multiples of 4");
  }

  LaunchSpec emitSplit();
  LaunchSpec emitRows();

private:
  // --- what is seen -----------------------------------------------------------

  Val firstChunk(Val p) {
    int64_t window = op.getWindow();
    return window ? e.maxOf(p + (1 - window), e.i32(0)) / kKvChunk : e.i32(0);
  }
  Val endChunk(Val p) { return p / kKvChunk + 1; }
  /// The last position that row `row` sees.
  Val lastSeen(Val row) { return position + (op.getBidirectional() ? rows - 1 : row); }
  Val lastRow() { return rows - 1; }

  /// The slots of the chunk that begins at position `start` that `row` sees.
  std::pair<Val, Val> range(Val row, Val start) {
    Val end = lastSeen(row) + 1 - start, zero = e.i32(0), full = e.i32(kKvChunk);
    auto clamped = [&](Val slot) { return e.maxOf(e.minOf(slot, full), zero); };
    int64_t window = op.getWindow();
    return {window ? clamped(end - window) : zero, clamped(end)};
  }

  Chunk chunkOf(Val kvHead, Val index, const Tile &tile, const Place &place) {
    int64_t capacity = op.getCapacity();
    Val start = index * kKvChunk;
    Val offset = (e.toI64(kvHead) * capacity + e.toI64(start % capacity)) * kvRow;
    Val lo = range(place.row0, start).first;
    Val hi = range(e.minOf(place.row0 + (tile.rows - 1), lastRow()), start).second;
    return {e.at(keys, offset), e.at(values, offset), start, lo, hi};
  }

  /// The row of the step and the head of the group of query row t.
  Val rowOf(const Tile &tile, const Place &place, Val t) {
    return e.minOf(place.row0 + t / tile.heads, lastRow());
  }
  Val headOf(const Tile &tile, const Place &place, Val t) {
    return e.minOf(place.head0 + t % tile.heads, e.i32(group - 1));
  }
  /// Whether query row t is no copy.
  Val isReal(const Tile &tile, const Place &place, Val t) {
    Val real = (place.row0 + t / tile.heads < rows) & (t < tile.count());
    return tile.parts > 1 ? real & (place.head0 + t % tile.heads < group) : real;
  }

  // --- the parts of a kernel ----------------------------------------------------

  /// Query rows of a tile in whole passes.
  static int64_t passes(const Tile &tile) { return llvm::divideCeil(tile.count(), kPass); }
  static int64_t passRows(const Tile &tile) { return llvm::divideCeil(tile.count(), passes(tile)); }
  static int64_t padded(const Tile &tile) { return passes(tile) * passRows(tile); }

  /// Room for the query and the weights of tiles like these.
  void reserve(const Tile &tile) {
    q = e.shared(padded(tile) * 4 * headDim);
    weights = e.shared(padded(tile) * kWeightRow);
  }

  void loadQuery(Val kvHead, const Tile &tile, const Place &place) {
    int64_t fours = headDim / 4;
    e.loop(e.thread(), e.i32(padded(tile) * fours), threads, [&](Val i) {
      Val t = i / fours, d = i % fours * 16;
      Val head = kvHead * group + headOf(tile, place, t);
      Val from = e.toI64(rowOf(tile, place, t)) * int64_t(op.getHeads()) + e.toI64(head);
      Vals x = e.loadVector(e.f32Type(), 4, e.at(query, from * (4 * headDim) + e.toI64(d)));
      e.storeVector(x, e.at(q, i * 16));
    });
  }

  Val stateAt(Val t) { return e.at(weights, t * kWeightRow + 4 * kKvChunk); }

  Val loadKv(Val address) {
    return e.load(e.vectorType(kvF32 ? e.f32Type() : e.f16Type(), width), address);
  }
  Vals widened(Val vector) {
    Vals elements = e.elements(vector);
    for (Val &x : elements)
      x = e.toF32(x);
    return elements;
  }

  void score(const Tile &tile, const Chunk &chunk);
  std::pair<Val, Val> soften(const Tile &tile, const Place &place, const Chunk &chunk, Val t);
  Vals weigh(const Chunk &chunk, Val column, ArrayRef<Val> ts, Val from, Val to, int64_t batch);

  // --- merging -------------------------------------------------------------------

  struct Factors {
    Val top, a, b;
  };
  /// What partial results with the maxima m and mb are worth once they are merged.
  Factors factors(Val m, Val mb) {
    Val top = e.select(m < mb, mb, m);
    auto worth = [&](Val m) { return e.select(m == e.f32(kLeast), e.f32(0), e.expOf(m - top)); };
    return {top, worth(m), worth(mb)};
  }
  /// The merge of x and xb. What weighs nothing may be infinite.
  Val merged(Val x, Val xb, const Factors &f) {
    return e.fma(xb, f.b, e.select(f.a == e.f32(0), e.f32(0), x * f.a));
  }
  Val finished(Val o, Val l) { return e.select(l == e.f32(0), e.f32(0), o / l); }

  // --- split ---------------------------------------------------------------------

  Val partialAt(Val row, Val head, Val chunk) {
    Val slot = (e.toI64(row) * int64_t(op.getHeads()) + e.toI64(head)) * int64_t(op.getMaxChunks());
    return e.at(out, (slot + e.toI64(chunk)) * partialBytes(headDim));
  }
  void attendSplit(Val kvHead, Val first, Val index, const Tile &tile, const Place &place);
  void mergeChunks(Val kvHead, Val first);

  static constexpr float kLeast = -std::numeric_limits<float>::infinity();

  Emitter &e;
  AttendKernelOp op;
  int64_t headDim, group;
  bool kvF32;
  int64_t kvRow, width, columns; ///< a thread reads `width` elements of a head at once
  int64_t threads;
  Val query, keys, values, out;
  Val position, rows, warp;
  Val q, weights; ///< shared: [query row][headDim], [query row][kWeightRow / 4]
  Val strips;     ///< shared, split: [strip][query row][headDim]
};
} // namespace

/// Scores of all query rows and slots of the chunk that some row sees, and some others, which come
/// from slots that are seen. A thread has its slots' keys and goes over the query rows.
void Attend::score(const Tile &tile, const Chunk &chunk) {
  int64_t slots = kKvChunk / threads, count = passRows(tile);
  int64_t step = width;
  while (headDim % (2 * step) == 0 && 2 * step * slots <= 8 * width)
    step *= 2;
  Val thread = e.thread();
  Val firstSlot = warp * kWarp;
  Val needed = e.i32(0) < e.i32(0);
  for (int64_t j = 0; j < slots; ++j) {
    Val first = firstSlot + j * threads;
    needed = needed | ((first < chunk.hi) & (first + kWarp >= chunk.lo + 1));
  }
  e.when(needed, [&] {
    SmallVector<Val> from;
    for (int64_t j = 0; j < slots; ++j) {
      Val slot = e.maxOf(e.minOf(thread + j * threads, chunk.hi - 1), chunk.lo);
      from.push_back(e.at(chunk.keys, keyOffset(e, op.getKvEncoding(), headDim, slot, e.i32(0))));
    }
    e.loop(e.i32(0), e.i32(padded(tile)), count, [&](Val t0) {
      Vals sums(count * slots, e.f32(0));
      Val rowsOfPass = e.at(q, t0 * (4 * headDim));
      sums = e.loop(e.i32(0), e.i32(headDim), step, sums, [&](Val d, ArrayRef<Val> carried) {
        Vals sums(carried.begin(), carried.end());
        Vals raw;
        for (int64_t j = 0; j < slots; ++j)
          for (int64_t w = 0; w < step; w += width)
            raw.push_back(loadKv(e.at(from[j], (d + w) * (kKeyBlock * kvRow / headDim))));
        for (int64_t w = 0; w < step; w += width) {
          SmallVector<Vals> k;
          for (int64_t j = 0; j < slots; ++j)
            k.push_back(widened(raw[(j * step + w) / width]));
          for (int64_t t = 0; t < count; ++t)
            for (int64_t i = 0; i < width; i += 4) {
              Vals x = e.loadVector(e.f32Type(), 4,
                                    e.at(e.at(rowsOfPass, t * 4 * headDim), (d + (w + i)) * 4));
              for (int64_t j = 0; j < slots; ++j)
                for (int64_t n = 0; n < 4; ++n) {
                  Val &sum = sums[t * slots + j];
                  sum = e.fma(x[n], k[j][i + n], sum);
                }
            }
        }
        return sums;
      });
      for (int64_t t = 0; t < count; ++t)
        for (int64_t j = 0; j < slots; ++j)
          e.store(sums[t * slots + j],
                  e.at(weights, (t0 + t) * kWeightRow + (thread + j * threads) * 4));
    });
  });
}

/// A warp turns the scores of query row t into weights, 0 where it does not see the slot; gives m
/// and l.
std::pair<Val, Val> Attend::soften(const Tile &tile, const Place &place, const Chunk &chunk,
                                   Val t) {
  auto [lo, hi] = range(rowOf(tile, place, t), chunk.start);
  Val row = e.at(weights, t * kWeightRow), lane = e.lane(), least = e.f32(kLeast);
  Val scale = e.f32(op.getScale().convertToFloat());
  float softcap = op.getSoftcap().convertToFloat();
  Val begin = chunk.lo / kWarp, end = (chunk.hi + (kWarp - 1)) / kWarp;
  auto slotOf = [&](Val i) { return i * kWarp + lane; };
  auto seen = [&](Val slot) { return (slot >= lo) & (slot < hi); };
  Val m = e.loop(begin, end, 1, {least}, [&](Val i, ArrayRef<Val> m) {
    Val slot = slotOf(i);
    Val x = e.choose(
        seen(slot),
        [&] {
          Val x = e.load(e.f32Type(), e.at(row, slot * 4)) * scale;
          return Vals{softcap != 0 ? e.softcapOf(x, softcap) : x};
        },
        [&] { return Vals{least}; })[0];
    e.store(x, e.at(row, slot * 4));
    return Vals{e.maxOf(m[0], x)};
  })[0];
  m = e.warpMax(m);
  // -infinity - -infinity is not a number.
  Val origin = e.select(m == least, e.f32(0), m);
  Val l = e.loop(begin, end, 1, {e.f32(0)}, [&](Val i, ArrayRef<Val> l) {
    Val slot = slotOf(i), at = e.at(row, slot * 4);
    Val w = e.select(seen(slot), e.expOf(e.load(e.f32Type(), at) - origin), e.f32(0));
    e.store(w, at);
    return Vals{l[0] + w};
  })[0];
  return {m, e.warpSum(l)};
}

/// The weighted sums over the slots [from, to) of a strip, for `width` elements of the head and the
/// query rows `ts`: [query row][element].
Vals Attend::weigh(const Chunk &chunk, Val column, ArrayRef<Val> ts, Val from, Val to,
                   int64_t batch) {
  Vals zeros(ts.size() * width, e.f32(0));
  Val values = e.at(chunk.values, column * (width * kvRow / headDim));
  SmallVector<Val> rows;
  for (Val t : ts)
    rows.push_back(e.at(weights, t * kWeightRow));
  return e.loop(from, to, batch, zeros, [&](Val slot, ArrayRef<Val> carried) {
    Vals sums(carried.begin(), carried.end()), raw;
    for (int64_t i = 0; i < batch; ++i) {
      // Slots that no row sees have weight 0.
      Val seen = e.maxOf(e.minOf(slot + i, chunk.hi - 1), chunk.lo);
      raw.push_back(loadKv(e.at(values, seen * kvRow)));
    }
    for (int64_t i = 0; i < batch; i += 4) {
      SmallVector<Vals> w;
      for (Val row : rows)
        w.push_back(e.loadVector(e.f32Type(), 4, e.at(row, (slot + i) * 4)));
      for (int64_t n = 0; n < 4; ++n) {
        Vals v = widened(raw[i + n]);
        for (size_t t = 0; t < ts.size(); ++t)
          for (int64_t d = 0; d < width; ++d) {
            Val &sum = sums[t * width + d];
            sum = e.fma(v[d], w[t][n], sum);
          }
      }
    }
    return sums;
  });
}

//===----------------------------------------------------------------------===//
// Chunks in blocks of their own
//===----------------------------------------------------------------------===//

/// Partial results of a tile over the chunk `index`.
void Attend::attendSplit(Val kvHead, Val first, Val index, const Tile &tile, const Place &place) {
  constexpr int64_t batch = 8;
  Chunk chunk = chunkOf(kvHead, first + index, tile, place);
  e.when(chunk.lo < chunk.hi, [&] {
    int64_t count = padded(tile), stripBytes = count * 4 * headDim;
    auto partialOf = [&](Val t) {
      Val head = kvHead * group + headOf(tile, place, t);
      return partialAt(rowOf(tile, place, t), head, index);
    };
    e.barrier(); // nobody reads the last tile's query and weights
    loadQuery(kvHead, tile, place);
    e.barrier();
    score(tile, chunk);
    e.barrier();
    e.loop(warp, e.i32(count), threads / kWarp, [&](Val t) {
      auto [m, l] = soften(tile, place, chunk, t);
      e.when((e.lane() == 0) & isReal(tile, place, t),
             [&] { e.storeVector({m, l}, partialOf(t)); });
    });
    e.barrier();
    // A thread sums a column of a strip for every `sets`-th query row.
    int64_t sets = std::clamp<int64_t>(threads / (columns * kStrips), 1, count);
    int64_t units = columns * kStrips * sets;
    for (int64_t base = 0; base < units; base += threads) {
      Val unit = e.thread() + base;
      auto sum = [&] {
        Val column = unit % columns, strip = unit / columns % kStrips;
        Val set = unit / (columns * kStrips);
        SmallVector<Val> ts;
        for (int64_t t = 0; t < count; t += sets)
          ts.push_back(t + sets <= count ? set + t : e.minOf(set + t, e.i32(count - 1)));
        Val begin = strip * kStrip;
        Val from = e.maxOf(begin, chunk.lo & -batch), to = e.minOf(begin + kStrip, chunk.hi);
        e.when(from < to, [&] {
          Vals sums = weigh(chunk, column, ts, from, to, batch);
          Val at = e.at(strips, strip * stripBytes + column * (4 * width));
          for (size_t j = 0; j < ts.size(); ++j) {
            auto store = [&] {
              for (int64_t d = 0; d < width; d += 4)
                e.storeVector(ArrayRef<Val>(sums).slice(j * width + d, 4),
                              e.at(e.at(at, ts[j] * (4 * headDim)), 4 * d));
            };
            // Of copies one is enough.
            if (int64_t(j + 1) * sets <= count)
              store();
            else
              e.when(set + int64_t(j) * sets < count, store);
          }
        });
      };
      if (base + threads <= units)
        sum();
      else
        e.when(unit < units, sum);
    }
    e.barrier();
    int64_t fours = headDim / 4;
    e.loop(e.thread(), e.i32(tile.count() * fours), threads, [&](Val i) {
      Val t = i / fours, d = i % fours * 16;
      Vals zeros(4, e.f32(0));
      Vals o = e.loop(chunk.lo / kStrip, (chunk.hi + (kStrip - 1)) / kStrip, 1, zeros,
                      [&](Val strip, ArrayRef<Val> o) {
                        Vals part =
                            e.loadVector(e.f32Type(), 4, e.at(strips, strip * stripBytes + i * 16));
                        for (int n = 0; n < 4; ++n)
                          part[n] = o[n] + part[n];
                        return part;
                      });
      e.when(isReal(tile, place, t),
             [&] { e.storeVector(o, e.at(e.at(partialOf(t), kPartialOutput), d)); });
    });
  });
}

/// The last block of a KV head puts its rows' merged and divided outputs in the place of their
/// first partial's.
void Attend::mergeChunks(Val kvHead, Val first) {
  int64_t fours = headDim / 4;
  e.loop(e.thread(), rows * (group * fours), threads, [&](Val i) {
    Val d = i % fours * 16, row = i / (group * fours), p = position + row;
    Val head = kvHead * group + i / fours % group;
    Val partials = partialAt(row, head, e.i32(0));
    Val begin = firstChunk(p) - first, end = endChunk(p) - first;
    Val zero = e.f32(0);
    Vals state = e.loop(
        begin, end, kMergeBatch, {e.f32(kLeast), zero, zero, zero, zero, zero},
        [&](Val chunk, ArrayRef<Val> carried) {
          Vals state(carried.begin(), carried.end());
          SmallVector<Vals> heads, outputs;
          for (int64_t j = 0; j < kMergeBatch; ++j) {
            Val at = e.at(partials, e.toI64(e.minOf(chunk + j, end - 1)) * partialBytes(headDim));
            heads.push_back(e.loadVector(e.f32Type(), 2, at));
            outputs.push_back(e.loadVector(e.f32Type(), 4, e.at(e.at(at, kPartialOutput), d)));
          }
          for (int64_t j = 0; j < kMergeBatch; ++j) {
            Factors f = factors(state[0], heads[j][0]);
            Vals next{f.top, merged(state[1], heads[j][1], f)};
            for (int n = 0; n < 4; ++n)
              next.push_back(merged(state[2 + n], outputs[j][n], f));
            for (size_t n = 0; n < next.size(); ++n)
              state[n] = e.select(chunk + j < end, next[n], state[n]);
          }
          return state;
        });
    Vals o;
    for (int n = 0; n < 4; ++n)
      o.push_back(finished(state[2 + n], state[1]));
    e.storeVector(o, e.at(e.at(partials, kPartialOutput), d));
  });
}

LaunchSpec Attend::emitSplit() {
  int64_t room = std::clamp<int64_t>(kSplitOutputs / headDim, 1, kSplitTile);
  Tile many(group, room), one = many;
  one.rows = 1;
  reserve(many);
  strips = e.shared(kStrips * padded(many) * 4 * headDim);
  Val isLast = e.shared(4);
  int64_t kvHeads = op.getKvHeads();
  int64_t blocks = std::clamp<int64_t>(kSplitBlocks / kvHeads, 1, op.getMaxChunks());

  e.dependencies();
  position = e.position();
  rows = e.rows();
  warp = e.warp();
  Val kvHead = e.block(0), first = firstChunk(position);
  Val count = endChunk(position + lastRow()) - first;
  e.when(e.block(1) < count, [&] {
    e.loop(e.block(1), count, blocks, [&](Val index) {
      auto attend = [&](const Tile &tile) {
        e.loop(e.i32(0), rows, tile.rows, [&](Val row0) {
          e.loop(e.i32(0), e.i32(tile.parts * tile.heads), tile.heads,
                 [&](Val head0) { attendSplit(kvHead, first, index, tile, {row0, head0}); });
        });
      };
      if (many.rows == 1)
        attend(one);
      else
        e.when(rows == 1, [&] { attend(one); }, [&] { attend(many); });
    });
    e.barrier();
    Val active = e.minOf(count, e.i32(blocks));
    e.when(e.thread() == 0, [&] {
      Val before = e.choose(
          active == 1, [&] { return Vals{e.i32(0)}; },
          [&] {
            Val counter = e.at(e.counters(), kvHead * 4);
            e.fence();
            Val before = e.atomicAdd(counter, e.i32(1));
            e.when(before + 1 == active, [&] {
              e.fence();
              e.store(e.i32(0), counter);
            });
            return Vals{before};
          })[0];
      e.store(before, isLast);
    });
    e.barrier();
    e.when(e.load(e.i32Type(), isLast) + 1 == active, [&] { mergeChunks(kvHead, first); });
  });
  LaunchSpec launch;
  launch.grid = {kvHeads, blocks, 1};
  launch.block = threads;
  launch.minBlocks = 2;
  launch.sharedBytes = e.sharedBytes();
  return launch;
}

//===----------------------------------------------------------------------===//
// Rows in blocks of their own
//===----------------------------------------------------------------------===//

LaunchSpec Attend::emitRows() {
  constexpr int64_t batch = 4;
  int64_t sets = threads / columns, mostRows = kThreadOutputs / width;
  Tile tile(group, std::min(kRowsTile, sets * mostRows));
  int64_t count = padded(tile), kvHeads = op.getKvHeads();
  reserve(tile);

  e.dependencies();
  position = e.position();
  rows = e.rows();
  warp = e.warp();
  Val tiles = (rows + (tile.rows - 1)) / tile.rows;
  e.when(e.block(1) < tiles, [&] {
    // The last rows see most: they begin first.
    Val kvHead = e.block(0) / tile.parts;
    Place place{(tiles - 1 - e.block(1)) * tile.rows, e.block(0) % tile.parts * tile.heads};
    loadQuery(kvHead, tile, place);
    e.loop(e.thread(), e.i32(count), threads,
           [&](Val t) { e.storeVector({e.f32(kLeast), e.f32(0)}, stateAt(t)); });
    // A thread has a column of every `sets`-th query row; those that have none have copies.
    Val column = e.thread() % columns, set = e.minOf(e.thread() / columns, e.i32(sets - 1));
    SmallVector<Val> ts;
    for (int64_t t = 0; t < count; t += sets)
      ts.push_back(t + sets <= count ? set + t : e.minOf(set + t, e.i32(count - 1)));

    Val begin = firstChunk(position + place.row0);
    Val end = endChunk(lastSeen(e.minOf(place.row0 + (tile.rows - 1), lastRow())));
    Vals zeros(ts.size() * width, e.f32(0));
    Vals o = e.loop(begin, end, 1, zeros, [&](Val index, ArrayRef<Val> carried) {
      Chunk chunk = chunkOf(kvHead, index, tile, place);
      e.barrier();
      score(tile, chunk);
      e.barrier();
      e.loop(warp, e.i32(count), threads / kWarp, [&](Val t) {
        auto [mb, lb] = soften(tile, place, chunk, t);
        e.when(e.lane() == 0, [&] {
          Val at = stateAt(t);
          Vals state = e.loadVector(e.f32Type(), 2, at);
          Factors f = factors(state[0], mb);
          e.storeVector({f.top, merged(state[1], lb, f), f.a, f.b}, at);
        });
      });
      e.barrier();
      Vals sums = e.loop(chunk.lo / kStrip, (chunk.hi + (kStrip - 1)) / kStrip, 1, zeros,
                         [&](Val strip, ArrayRef<Val> so_far) {
                           Val from = e.maxOf(strip * kStrip, chunk.lo & -batch);
                           Val to = e.minOf(strip * kStrip + kStrip, chunk.hi);
                           Vals sums = weigh(chunk, column, ts, from, to, batch);
                           for (size_t i = 0; i < sums.size(); ++i)
                             sums[i] = so_far[i] + sums[i];
                           return sums;
                         });
      for (size_t j = 0; j < ts.size(); ++j) {
        Vals weight = e.loadVector(e.f32Type(), 2, e.at(stateAt(ts[j]), 8));
        Factors f{Val(), weight[0], weight[1]};
        for (int64_t d = 0; d < width; ++d)
          sums[j * width + d] = merged(carried[j * width + d], sums[j * width + d], f);
      }
      return sums;
    });

    for (size_t j = 0; j < ts.size(); ++j) {
      Val t = set + int64_t(j) * sets;
      e.when((e.thread() < columns * sets) & isReal(tile, place, t), [&] {
        Val l = e.load(e.f32Type(), e.at(stateAt(t), 4));
        Val head = kvHead * group + headOf(tile, place, t);
        Val to = e.toI64(rowOf(tile, place, t)) * int64_t(op.getHeads()) + e.toI64(head);
        Val at = e.at(out, to * (4 * headDim) + e.toI64(column * (4 * width)));
        for (int64_t d = 0; d < width; d += 4) {
          Vals y;
          for (int64_t n = 0; n < 4; ++n)
            y.push_back(finished(o[j * width + d + n], l));
          e.storeVector(y, e.at(at, 4 * d));
        }
      });
    }
  });
  LaunchSpec launch;
  launch.grid = {kvHeads * tile.parts, 1, 1};
  launch.rowsPerBlock = {0, tile.rows, 0};
  launch.block = threads;
  launch.minBlocks = 2;
  launch.sharedBytes = e.sharedBytes();
  return launch;
}

LaunchSpec cuda::emitKernel(Emitter &e, AttendKernelOp op) {
  Attend attend(e, op);
  return op.getSplit() ? attend.emitSplit() : attend.emitRows();
}
