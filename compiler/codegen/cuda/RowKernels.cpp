//===- RowKernels.cpp - kernels with a block per row ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread writes only elements that it alone reads, so that a result may lie
// where its input was.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/RowInput.h"
#include "llmc/kernel_abi.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;
using namespace llmc::sched;

/// Waits for the kernels before, then writes `body` for the row of this block, if the step has it.
static LaunchSpec blockPerRow(Emitter &e, bool outRows, function_ref<void(Val row)> body) {
  e.dependencies();
  Val row = e.block(0);
  e.when(row < (outRows ? e.outRows() : e.rows()), [&] { body(row); });
  LaunchSpec launch;
  launch.rowsPerBlock[0] = 1;
  launch.block = kBlockThreads;
  launch.sharedBytes = e.sharedBytes();
  return launch;
}

/// Calls `body(i)` for each i < count that is this thread's: every kBlockThreads-th.
static void forEachItem(Emitter &e, int64_t count, function_ref<void(Val i)> body) {
  e.loop(e.thread(), e.i32(count), kBlockThreads, body);
}

/// The address of row `row` of rows of `bytes`.
static Val rowAt(Emitter &e, Val base, Val row, int64_t bytes) {
  return e.at(base, e.toI64(row) * bytes);
}

/// How many elements of a row of n floats one access takes.
static int64_t accessWidth(int64_t n) { return n % 4 == 0 ? 4 : 1; }

static Vals loadFloats(Emitter &e, int64_t width, Val row, Val k, bool readOnly = false) {
  Val address = e.at(row, k * 4);
  return width == 1 ? Vals{e.load(e.f32Type(), address, readOnly)}
                    : e.loadVector(e.f32Type(), width, address, readOnly);
}
static void storeElements(Emitter &e, ArrayRef<Val> values, Val address) {
  if (values.size() == 1)
    e.store(values[0], address);
  else
    e.storeVector(values, address);
}

/// out[k] = f(a[k], b[k]) over a row; b may be null.
static void mapRow(Emitter &e, int64_t n, Val a, Val b, Val out,
                   function_ref<Val(Val a, Val b)> f) {
  int64_t width = accessWidth(n);
  forEachItem(e, n / width, [&](Val i) {
    Val k = i * width;
    Vals x = loadFloats(e, width, a, k), y;
    if (b)
      y = loadFloats(e, width, b, k);
    for (int64_t j = 0; j < width; ++j)
      x[j] = f(x[j], b ? y[j] : Val());
    storeElements(e, x, e.at(out, k * 4));
  });
}

//===----------------------------------------------------------------------===//
// Rotary tables
//===----------------------------------------------------------------------===//

/// cos and sin of an f64 angle below 2^30, to 1e-11, as on CPUs
/// (compiler/codegen/kernels/Rope.cpp).
static std::pair<Val, Val> cosSin(Emitter &e, Val angle) {
  Val magic = e.f64(6755399441055744.0); // 1.5 * 2^52: the nearest integer in the low bits
  Val shifted = e.fma(angle, e.f64(0.63661977236758134308), magic);
  Val n = shifted - magic;
  Val r = e.fma(n, e.f64(-0x1.921fb54442d18p+0), angle); // pi / 2 in two parts
  r = e.fma(n, e.f64(-0x1.1a62633145c07p-54), r);
  Val z = r * r;
  Val s =
      r * e.polynomial(z, {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800});
  Val c = e.polynomial(
      z, {1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600});
  // Quadrant n mod 4: odd swaps, the sine is negative in 2 and 3, the cosine in 1 and 2.
  Val quadrant = e.toI32(e.bitcast(shifted, e.getBuilder().getI64Type()));
  Val even = (quadrant & 1) == 0;
  Val cos = e.select(even, c, s), sin = e.select(even, s, c);
  cos = e.select(((quadrant + 1) & 2) == 0, cos, e.negate(cos));
  sin = e.select((quadrant & 2) == 0, sin, e.negate(sin));
  return {cos, sin};
}

LaunchSpec cuda::emitKernel(Emitter &e, RopeTableKernelOp op) {
  int64_t pairs = op.getInvFreq().size();
  Val out = e.nextBinding(), frequencies = e.constants(op.getInvFreq());
  Val mscale = e.f64(op.getMscale().convertToFloat());
  return blockPerRow(e, false, [&](Val row) {
    Val position = e.toF64(e.position() + row), to = rowAt(e, out, row, 8 * pairs);
    forEachItem(e, pairs, [&](Val i) {
      // The product is exact in f64: 24 and 31 bits.
      Val frequency = e.toF64(e.load(e.f32Type(), e.at(frequencies, i * 4), true));
      auto [cos, sin] = cosSin(e, frequency * position);
      e.store(e.f64ToF32(cos * mscale), e.at(to, i * 4));
      e.store(e.f64ToF32(sin * mscale), e.at(to, (i + pairs) * 4));
    });
  });
}

//===----------------------------------------------------------------------===//
// Activation records
//===----------------------------------------------------------------------===//

/// The norm's bindings, in their place among the others.
static RowNorm bindNorm(Emitter &e, NormSpecAttr spec) {
  RowNorm norm{spec, {}, {}};
  if (spec) {
    norm.weight = e.nextBinding();
    if (spec.getBias())
      norm.bias = e.nextBinding();
  }
  return norm;
}

LaunchSpec cuda::emitKernel(Emitter &e, PrepareKernelOp op) {
  int64_t features = op.getFeatures();
  Val source = e.nextBinding();
  RowNorm norm = bindNorm(e, op.getNormAttr());
  Val out = e.nextBinding();
  return blockPerRow(e, op.getOutRows(), [&](Val row) {
    Val x = rowAt(e, source, op.getOutRows() ? row + e.outBegin() : row, 4 * features);
    makeRecord(
        e, op.getAct(), features, [&](Val k) { return readRow(e, x, k); }, norm,
        rowAt(e, out, row, RecordLayout(op.getAct(), features).bytes()));
  });
}

//===----------------------------------------------------------------------===//
// Element-wise work
//===----------------------------------------------------------------------===//

/// Norms of the `groups` equal parts of a row, one after the other in a warp.
static void normalizeGroups(Emitter &e, int64_t groups, int64_t part, const RowNorm &norm, Val x,
                            Val out) {
  Val lane = e.lane(), count = e.f32(float(part));
  Val eps = e.f32(float(norm.spec.getEps().getValueAsDouble()));
  e.loop(e.warp(), e.i32(groups), kBlockThreads / kWarp, [&](Val group) {
    Val base = group * part;
    auto sumOver = [&](function_ref<Val(Val sum, Val x)> add) {
      Val sum = e.loop(lane, e.i32(part), kWarp, {e.f32(0)}, [&](Val k, ArrayRef<Val> sum) -> Vals {
        return {add(sum[0], e.load(e.f32Type(), e.at(x, (base + k) * 4)))};
      })[0];
      return e.warpSum(sum);
    };
    Val mean;
    if (norm.spec.getKind() == llm::NormKind::Layer)
      mean = sumOver([&](Val sum, Val x) { return sum + x; }) / count;
    Val squares = sumOver([&](Val sum, Val x) {
      Val centered = mean ? x - mean : x;
      return e.fma(centered, centered, sum);
    });
    Val scale = e.f32(1) / e.sqrtOf(squares / count + eps);
    e.loop(lane, e.i32(part), kWarp, [&](Val k) {
      Val offset = (base + k) * 4, v = e.load(e.f32Type(), e.at(x, offset));
      v = (mean ? v - mean : v) * scale * e.load(e.f32Type(), e.at(norm.weight, k * 4), true);
      if (norm.bias)
        v = v + e.load(e.f32Type(), e.at(norm.bias, k * 4), true);
      e.store(v, e.at(out, offset));
    });
  });
}

/// Rotates the first 2 * pairs elements of each of the `groups` parts of a row, copies the others.
static void rotateGroups(Emitter &e, int64_t groups, int64_t part, int64_t pairs, bool interleaved,
                         Val x, Val rope, Val out) {
  int64_t items = part - pairs; // pairs, then single elements
  forEachItem(e, groups * items, [&](Val i) {
    Val base = i / items * part, item = i % items;
    auto element = [&](Val address, Val k) { return e.at(address, (base + k) * 4); };
    e.when(
        item < pairs,
        [&] {
          Val first = interleaved ? item * 2 : item, second = first + (interleaved ? 1 : pairs);
          Val cos = e.load(e.f32Type(), e.at(rope, item * 4));
          Val sin = e.load(e.f32Type(), e.at(rope, (item + pairs) * 4));
          Val a = e.load(e.f32Type(), element(x, first));
          Val b = e.load(e.f32Type(), element(x, second));
          e.store(e.fma(a, cos, e.negate(b * sin)), element(out, first));
          e.store(e.fma(b, cos, a * sin), element(out, second));
        },
        [&] {
          Val k = item + pairs;
          e.store(e.load(e.f32Type(), element(x, k)), element(out, k));
        });
  });
}

/// Keys and values of a row go to `slot` of every head's cache.
static void appendToCache(Emitter &e, RowKernelOp op, int64_t part, Val slot, Val k, Val v,
                          Val keys, Val values) {
  StringRef encoding = op.getKvEncoding();
  int64_t width = accessWidth(part);
  forEachItem(e, op.getFeatures() / width, [&](Val i) {
    Val at = i * width, d = at % part;
    Val head = e.toI64(at / part) * (int64_t(op.getCapacity()) * kvBytes(encoding, part));
    auto write = [&](Val from, Val cache, Val offset) {
      Vals x = loadFloats(e, width, from, at);
      if (encoding != "f32")
        for (Val &value : x)
          value = e.toF16(value);
      storeElements(e, x, e.at(cache, head + offset));
    };
    write(k, keys, keyOffset(e, encoding, part, slot, d));
    write(v, values, valueOffset(e, encoding, part, slot, d));
  });
}

/// logits[k] = factor * x[k], and the greatest of each LLMC_LOGIT_BLOCK of them.
static void writeLogits(Emitter &e, int64_t n, float factor, Val x, Val out, Val maxima) {
  int64_t width = accessWidth(n), threads = LLMC_LOGIT_BLOCK / width;
  Val first = e.thread() * width, least = e.f32(-std::numeric_limits<float>::infinity());
  // All threads of a block of logits stay together.
  e.loop(e.i32(0), e.i32(n), kBlockThreads * width, [&](Val base) {
    Val k = base + first;
    Val greatest = e.choose(
        k < n,
        [&] {
          Vals values = loadFloats(e, width, x, k);
          Val greatest = least;
          for (Val &value : values) {
            value = value * e.f32(factor);
            greatest = e.maxOf(greatest, value);
          }
          storeElements(e, values, e.at(out, k * 4));
          return Vals{greatest};
        },
        [&] { return Vals{least}; })[0];
    greatest = e.warpMax(greatest, threads);
    e.when((k % LLMC_LOGIT_BLOCK == 0) & (k < n),
           [&] { e.store(greatest, e.at(maxima, k / LLMC_LOGIT_BLOCK * 4)); });
  });
}

LaunchSpec cuda::emitKernel(Emitter &e, RowKernelOp op) {
  int64_t features = op.getFeatures(), groups = op.getGroups(), part = features / groups;
  Val factor = e.f32(op.getFactor().convertToFloat());
  RowFn fn = op.getFn();
  bool binary =
      fn == RowFn::Add || fn == RowFn::Glu || fn == RowFn::NormAdd || fn == RowFn::KvAppend;
  Val x = e.nextBinding(), y = binary ? e.nextBinding() : Val(), rope, out, valueCache;
  RowNorm norm = bindNorm(e, op.getNormAttr());
  if (fn == RowFn::Rope)
    rope = e.nextBinding();
  if (fn != RowFn::Logits)
    out = e.nextBinding();
  if (fn == RowFn::KvAppend)
    valueCache = e.nextBinding();

  return blockPerRow(e, op.getOutRows(), [&](Val row) {
    auto at = [&](Val base, Val index) { return rowAt(e, base, index, 4 * features); };
    Val a = at(x, op.getOutRows() ? row + e.outBegin() : row), b = y ? at(y, row) : Val();
    Val to = fn == RowFn::KvAppend ? out : at(fn == RowFn::Logits ? e.logits() : out, row);
    auto map = [&](function_ref<Val(Val, Val)> f) { mapRow(e, features, a, b, to, f); };
    switch (fn) {
    case RowFn::Norm:
    case RowFn::NormAdd:
      if (groups > 1) {
        normalizeGroups(e, groups, part, norm, a, to);
        break;
      }
      normalizeRow(
          e, features, [&](Val k) { return readRow(e, b ? b : a, k); }, norm,
          [&](Val k, ArrayRef<Val> normalized) {
            e.when(k < features, [&] {
              Vals values(normalized.begin(), normalized.end());
              if (b)
                for (auto [value, residual] : llvm::zip(values, readRow(e, a, k)))
                  value = residual + value;
              e.storeVector(values, e.at(to, k * 4));
            });
          });
      break;
    case RowFn::Add:
      map([&](Val a, Val b) { return e.fma(b, factor, a); });
      break;
    case RowFn::Act:
      map([&](Val a, Val) { return e.activate(op.getActivation(), a); });
      break;
    case RowFn::Glu:
      map([&](Val a, Val b) { return e.activate(op.getActivation(), a) * b; });
      break;
    case RowFn::Scale:
      map([&](Val a, Val) { return a * factor; });
      break;
    case RowFn::Softcap:
      map([&](Val a, Val) { return e.softcapOf(a, op.getFactor().convertToFloat()); });
      break;
    case RowFn::Logits: {
      int64_t blocks = llvm::divideCeil(features, LLMC_LOGIT_BLOCK);
      writeLogits(e, features, op.getFactor().convertToFloat(), a, to,
                  rowAt(e, e.logitMaxima(), row, 4 * blocks));
      break;
    }
    case RowFn::Rope:
      rotateGroups(e, groups, part, op.getRopePairs(),
                   op.getRopeKind() == llm::RopeKind::Interleaved, a,
                   rowAt(e, rope, row, 8 * op.getRopePairs()), to);
      break;
    case RowFn::KvAppend:
      appendToCache(e, op, part, (e.position() + row) % int64_t(op.getCapacity()), a, b, to,
                    valueCache);
      break;
    }
  });
}

//===----------------------------------------------------------------------===//
// Sampling
//===----------------------------------------------------------------------===//

/// The smallest i below `count` for which `isWanted(i)` holds; INT32_MAX where there is none. For
/// all threads of a block; has two barriers.
static Val firstIndex(Emitter &e, int64_t count, Val scratch, function_ref<Val(Val i)> isWanted) {
  Val none = e.i32(std::numeric_limits<int32_t>::max());
  auto lesser = [&](Val a, Val b) { return e.minOf(a, b); };
  Val best =
      e.loop(e.thread(), e.i32(count), kBlockThreads, {none}, [&](Val i, ArrayRef<Val> best) {
        return Vals{lesser(best[0], e.select(isWanted(i), i, none))};
      })[0];
  for (int64_t mask = kWarp / 2; mask > 0; mask /= 2)
    best = lesser(best, e.shuffleXor(best, mask));
  Val place = e.at(scratch, e.warp() * 4);
  e.when(e.lane() == 0, [&] { e.store(best, place); });
  e.barrier();
  best = none;
  for (int64_t i = 0; i < kBlockThreads / kWarp; i += 4)
    for (Val part : e.loadVector(e.i32Type(), 4, e.at(scratch, 4 * i)))
      best = lesser(best, part);
  e.barrier();
  return best;
}

/// The greatest of `count` floats, for all threads of a block; has two barriers.
static Val greatestOf(Emitter &e, int64_t count, Val scratch, Val values) {
  Val least = e.f32(-std::numeric_limits<float>::infinity());
  Val best =
      e.loop(e.thread(), e.i32(count), kBlockThreads, {least}, [&](Val i, ArrayRef<Val> best) {
        return Vals{e.maxOf(best[0], e.load(e.f32Type(), e.at(values, i * 4)))};
      })[0];
  best = e.warpMax(best);
  Val place = e.at(scratch, e.warp() * 4);
  e.when(e.lane() == 0, [&] { e.store(best, place); });
  e.barrier();
  best = least;
  for (int64_t i = 0; i < kBlockThreads / kWarp; i += 4)
    for (Val part : e.loadVector(e.f32Type(), 4, e.at(scratch, 4 * i)))
      best = e.maxOf(best, part);
  e.barrier();
  return best;
}

LaunchSpec cuda::emitPickKernel(Emitter &e, int64_t vocab) {
  int64_t blocks = llvm::divideCeil(vocab, LLMC_LOGIT_BLOCK);
  Val scratch = e.shared(4 * kBlockThreads / kWarp);
  return blockPerRow(e, true, [&](Val row) {
    Val logits = rowAt(e, e.logits(), row, 4 * vocab);
    Val maxima = rowAt(e, e.logitMaxima(), row, 4 * blocks);
    Val greatest = greatestOf(e, blocks, scratch, maxima);
    auto equal = [&](Val address, Val i) {
      return e.load(e.f32Type(), e.at(address, i * 4)) == greatest;
    };
    Val some = e.f32(-std::numeric_limits<float>::infinity()) < greatest;
    Val pick = e.choose(
        some,
        [&] {
          Val first = firstIndex(e, blocks, scratch, [&](Val i) { return equal(maxima, i); }) *
                      LLMC_LOGIT_BLOCK;
          Val inside = firstIndex(e, LLMC_LOGIT_BLOCK, scratch, [&](Val i) {
            Val k = first + i;
            return e.choose(
                k < vocab, [&] { return Vals{equal(logits, k)}; }, [&] { return Vals{i < 0}; })[0];
          });
          return Vals{first + inside};
        },
        [&] {
          // A block of -infinity may have no number at all.
          Val first = firstIndex(e, vocab, scratch, [&](Val i) { return equal(logits, i); });
          return Vals{e.select(first < vocab, first, e.i32(-1))};
        })[0];
    e.when(e.thread() == 0, [&] { e.store(pick, e.at(e.picks(), row * 4)); });
  });
}
