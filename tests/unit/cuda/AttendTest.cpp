//===- AttendTest.cpp - attention over the KV cache -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "tests/unit/cuda/KernelRunner.h"
#include <cmath>

using namespace llmc;
using namespace llmc::cuda;

namespace {

constexpr int kMaxRows = 6;

struct Shape {
  int heads = 2, kvHeads = 1, headDim = 16, window = 0, capacity = 512;
  float softcap = 0;
  bool f32 = false, bidirectional = false;

  int group() const { return heads / kvHeads; }
  int rowFloats() const { return heads * headDim; }
  int maxChunks() const { return capacity / 256; }
  int partialFloats() const { return 16 + headDim; }
};

/// Programs @split and @rows of the same attention.
std::string moduleOf(const Shape &s, bool withSplit = true) {
  auto number = [](auto value) { return std::to_string(value); };
  std::string common =
      "heads = " + number(s.heads) + ", kv_heads = " + number(s.kvHeads) +
      ", head_dim = " + number(s.headDim) + ", scale = 0.25 : f32, softcap = " + number(s.softcap) +
      " : f32, window = " + number(s.window) + ", capacity = " + number(s.capacity) +
      ", kv_encoding = \"" + (s.f32 ? "f32" : "f16") +
      "\", row_block = 4, max_chunks = " + number(s.maxChunks()) +
      (s.bidirectional ? ", bidirectional" : "");
  std::string text = "llm.kv @kv {heads = 1, head_dim = 4, encoding = \"f32\"}\n";
  for (bool split : {true, false}) {
    if (split && !withSplit)
      continue;
    std::string name = split ? "split" : "rows";
    int outFloats = s.rowFloats();
    if (split)
      outFloats = s.heads * s.maxChunks() * s.partialFloats();
    text += "sched.attend_kernel @" + name + "_kernel {" + common + (split ? ", split" : "") +
            "}\nsched.program @" + name + " attributes {max_rows = " + number(kMaxRows) +
            "} {\n  sched.buffer @q " + number(4 * kMaxRows * s.rowFloats()) +
            "\n  sched.buffer @out " + number(4 * kMaxRows * outFloats) + "\n  sched.dispatch @" +
            name +
            "_kernel <base = 1> [#sched.bind<read buffer @q>, #sched.bind<read key @kv>, "
            "#sched.bind<read value @kv>, #sched.bind<write buffer @out>] {op_name = "
            "\"attention\"}\n}\n";
  }
  return text;
}

/// Keys and values by position, queries of a step's rows, and what comes of them.
struct Problem {
  Shape shape;
  int position, rows;
  std::vector<float> q, k, v; // [row or position][head][headDim]

  Problem(const Shape &shape, int position, int rows)
      : shape(shape), position(position), rows(rows), q(randomFloats(rows * shape.rowFloats(), 1)),
        k(randomFloats(size_t(position + rows) * shape.kvHeads * shape.headDim, 2)),
        v(randomFloats(k.size(), 3)) {
    if (shape.f32)
      return;
    for (std::vector<float> *values : {&k, &v})
      for (float &value : *values)
        value = float(_Float16(value));
  }

  /// What a step over the rows [row, row + count) finds.
  Contents contents(int row, int count) const {
    Contents contents;
    auto first = q.begin() + row * shape.rowFloats();
    contents.set("q", std::vector<float>(first, first + count * shape.rowFloats()));
    if (shape.f32)
      fillCache<float>(contents, position + row + count);
    else
      fillCache<_Float16>(contents, position + row + count);
    return contents;
  }

  std::vector<float> expected() const {
    std::vector<float> out;
    for (int row = 0; row < rows; ++row)
      for (int h = 0; h < shape.heads; ++h)
        expectHead(row, h, out);
    return out;
  }

private:
  template <typename T> void fillCache(Contents &contents, int end) const {
    int d = shape.headDim;
    for (bool key : {true, false}) {
      std::string name = key ? "kv.key" : "kv.value";
      contents.reserve(name, sizeof(T) * shape.kvHeads * shape.capacity * d);
      const std::vector<float> &from = key ? k : v;
      for (int p = std::max(0, end - shape.capacity); p < end; ++p)
        for (int h = 0; h < shape.kvHeads; ++h)
          for (int i = 0; i < d; ++i) {
            T value = T(from[(size_t(p) * shape.kvHeads + h) * d + i]);
            int slot = p % shape.capacity;
            size_t inHead = key ? keyIndex(shape.f32, d, slot, i) : size_t(slot) * d + i;
            size_t at = sizeof(T) * (size_t(h) * shape.capacity * d + inHead);
            memcpy(&contents.bytes[name][at], &value, sizeof(T));
            std::fill_n(contents.written[name].begin() + at, sizeof(T), true);
          }
    }
  }

  void expectHead(int row, int h, std::vector<float> &out) const {
    int last = shape.bidirectional ? position + rows - 1 : position + row, d = shape.headDim;
    int begin = shape.window ? std::max(0, last + 1 - shape.window) : 0, kvHead = h / shape.group();
    auto at = [&](const std::vector<float> &x, int p) {
      return x.data() + (size_t(p) * shape.kvHeads + kvHead) * d;
    };
    std::vector<double> weights, sums(d);
    double total = 0, most = -INFINITY;
    for (int p = begin; p <= last; ++p) {
      double s = 0;
      for (int i = 0; i < d; ++i)
        s += double(q[row * shape.rowFloats() + h * d + i]) * at(k, p)[i];
      s *= 0.25;
      weights.push_back(shape.softcap ? shape.softcap * std::tanh(s / shape.softcap) : s);
      most = std::max(most, weights.back());
    }
    for (double &w : weights)
      total += w = std::exp(w - most);
    for (int p = begin; p <= last; ++p)
      for (int i = 0; i < d; ++i)
        sums[i] += weights[p - begin] / total * at(v, p)[i];
    out.insert(out.end(), sums.begin(), sums.end());
  }
};

/// The merged outputs of a split kernel.
std::vector<float> mergedRows(const Shape &s, const Contents &after, int rows) {
  std::vector<float> out;
  for (int i = 0; i < rows * s.heads; ++i) {
    std::vector<float> head =
        after.get<float>("out", s.headDim, size_t(i) * s.maxChunks() * s.partialFloats() + 16);
    out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

/// The rows one by one and all together, split and not, give the same bits, which are right.
void check(const Shape &shape, int position, int rows) {
  SCOPED_TRACE(testing::Message() << shape.heads << " heads of " << shape.headDim << ", "
                                  << shape.kvHeads << " in the cache, window " << shape.window
                                  << ", position " << position << ", " << rows << " rows");
  Problem problem(shape, position, rows);
  KernelRunner runner(moduleOf(shape, !shape.bidirectional));
  Contents contents = problem.contents(0, rows);
  Contents after = runner.run("rows", {.rows = rows, .position = position}, contents);
  if (testing::Test::HasFailure())
    return;
  std::vector<float> out = after.get<float>("out", rows * shape.rowFloats());
  expectClose(out, problem.expected(), 2e-6f, "rows");
  if (shape.bidirectional)
    return;
  after = runner.run("split", {.rows = rows, .position = position}, contents);
  if (testing::Test::HasFailure())
    return;
  expectSameBits(mergedRows(shape, after, rows), out, "verified rows");
  for (int row = 0; row < rows; ++row) {
    after = runner.run("split", {.rows = 1, .position = position + row}, problem.contents(row, 1));
    if (testing::Test::HasFailure())
      return;
    auto first = out.begin() + row * shape.rowFloats();
    expectSameBits(mergedRows(shape, after, 1),
                   std::vector<float>(first, first + shape.rowFloats()), "a decoded row");
  }
}

TEST(CudaAttend, fewPositions) {
  check({}, 0, 1);
  check({.heads = 6, .kvHeads = 2, .headDim = 64}, 3, 4);
}

TEST(CudaAttend, severalChunks) {
  check({.heads = 3, .headDim = 64, .capacity = 1024}, 509, kMaxRows);
  check({.heads = 2, .kvHeads = 2, .headDim = 36, .capacity = 3072}, 2400, 2);
}

TEST(CudaAttend, cachesInFloat32) {
  check({.heads = 4, .kvHeads = 2, .headDim = 20, .f32 = true}, 250, kMaxRows);
}

TEST(CudaAttend, softcap) { check({.headDim = 32, .softcap = 5}, 40, 2); }

TEST(CudaAttend, slidingWindows) {
  // Within a chunk, over a chunk's end where rows begin in different chunks, and around the ring.
  check({.headDim = 16, .window = 20}, 100, 3);
  check({.headDim = 16, .window = 200, .capacity = 768}, 452, kMaxRows);
  check({.headDim = 16, .window = 300, .capacity = 768}, 1022, kMaxRows);
}

TEST(CudaAttend, manyQueryHeads) {
  // Groups that are larger than a tile, and no multiple of it.
  check({.heads = 11, .headDim = 128}, 30, 2);
  check({.heads = 37, .headDim = 16}, 5, 2);
}

TEST(CudaAttend, wideHeads) { check({.heads = 4, .headDim = 256}, 255, 3); }

TEST(CudaAttend, sizesThatAreRefused) {
  mlir::DialectRegistry registry;
  registry.insert<llm::LlmDialect, sched::SchedDialect>();
  registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  for (auto [headDim, reason] : {std::pair(516, "at most 512"), {18, "units of 4"}}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(moduleOf({.headDim = headDim}), &context);
    llvm::Expected<CodeObject> built = buildCodeObject(*module, targets().back());
    ASSERT_FALSE(bool(built));
    EXPECT_NE(llvm::toString(built.takeError()).find(reason), std::string::npos);
  }
}

TEST(CudaAttend, longestHeads) {
  check({.headDim = 512, .f32 = true}, 2, 2);
  check({.headDim = 512}, 2, 2);
}

TEST(CudaAttend, bidirectional) {
  check({.heads = 4, .kvHeads = 4, .headDim = 16, .f32 = true, .bidirectional = true}, 0, 5);
}

TEST(CudaAttend, staticLimits) {
  expectStaticLimits(moduleOf({.heads = 32, .kvHeads = 8, .headDim = 128, .capacity = 8192}));
  expectStaticLimits(moduleOf({.heads = 9, .kvHeads = 3, .headDim = 64, .capacity = 8192}));
  expectStaticLimits(moduleOf({.heads = 8, .kvHeads = 1, .headDim = 256, .softcap = 50}));
  expectStaticLimits(moduleOf({.heads = 4, .kvHeads = 4, .headDim = 128, .f32 = true}));
}

TEST(CudaAttend, readsSixteenBytesAtOnce) {
  for (bool f32 : {false, true}) {
    KernelRunner runner(moduleOf({.heads = 4, .kvHeads = 1, .headDim = 64, .f32 = f32}));
    Problem problem({.heads = 4, .kvHeads = 1, .headDim = 64, .f32 = f32}, 511, 1);
    runner.run("split", {.rows = 1, .position = 511}, problem.contents(0, 1));
    const ptx::Counters &counters = runner.counters();
    // Keys, values and queries are read in whole sectors; the step and partials are little.
    EXPECT_LE(counters.globalLoadSectors, counters.globalLoadIdealSectors * 21 / 20);
    EXPECT_GE(counters.globalLoadBytes, counters.globalLoadRequests * 32 * 8);
    EXPECT_EQ(counters.localBytes, 0u);
  }
}

} // namespace
