//===- RowKernelsTest.cpp - kernels with a block per row ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/unit/cuda/KernelRunner.h"
#include <cmath>
#include <functional>

using namespace llmc;
using namespace llmc::cuda;

namespace {

constexpr int kMaxRows = 4;

/// A module with one kernel and a program @step that dispatches it over `bindings`, each "read x",
/// "write y", "weight w", "key kv" or "value kv"; buffers have room for kMaxRows rows of
/// `rowFloats`.
std::string moduleOf(const std::string &kernel, const std::vector<std::string> &bindings,
                     int rowFloats) {
  std::string symbols, buffers, list;
  for (const std::string &binding : bindings) {
    size_t space = binding.find(' ');
    std::string kind = binding.substr(0, space), name = binding.substr(space + 1);
    list += list.empty() ? "" : ", ";
    if (kind == "weight") {
      symbols += "llm.weight @" + name + " [4] \"f32\" from 0 at 0\n";
      list += "#sched.bind<read weight @" + name + ">";
    } else if (kind == "key" || kind == "value") {
      if (kind == "key")
        symbols += "llm.kv @" + name + " {heads = 1, head_dim = 4, encoding = \"f32\"}\n";
      list += "#sched.bind<write " + kind + " @" + name + ">";
    } else {
      buffers += "  sched.buffer @" + name + " " + std::to_string(4 * kMaxRows * rowFloats) + "\n";
      list += "#sched.bind<" + kind + " buffer @" + name + ">";
    }
  }
  return symbols + "sched." + kernel +
         "\nsched.program @step attributes {max_rows = " + std::to_string(kMaxRows) + "} {\n" +
         buffers + "  sched.dispatch @kernel <base = 1, row_block = 1> [" + list +
         "] {op_name = \"test\"}\n}\n";
}

std::string rowKernel(const std::string &attributes) {
  return "row_kernel @kernel {" + attributes + "}";
}

const char *kRms = ", norm = #sched.norm<rms, bias = false, eps = 1.0e-5 : f32>";
const char *kLayer = ", norm = #sched.norm<layer, bias = true, eps = 1.0e-5 : f32>";

std::vector<float> normalized(const std::vector<float> &x, int part, bool layer,
                              const std::vector<float> &weight, const std::vector<float> &bias) {
  std::vector<float> out(x.size());
  for (size_t base = 0; base < x.size(); base += part) {
    double mean = 0, squares = 0;
    for (int i = 0; i < part && layer; ++i)
      mean += x[base + i] / double(part);
    for (int i = 0; i < part; ++i)
      squares += (x[base + i] - mean) * (x[base + i] - mean) / part;
    for (int i = 0; i < part; ++i)
      out[base + i] = float((x[base + i] - mean) / std::sqrt(squares + 1e-5) * weight[i] +
                            (layer ? bias[i] : 0));
  }
  return out;
}

/// Runs an element-wise kernel over three of kMaxRows rows.
void checkMap(const std::string &attributes, int n, bool binary,
              const std::function<double(double, double)> &f) {
  std::vector<std::string> bindings{"read x", "write out"};
  if (binary)
    bindings.insert(bindings.begin() + 1, "read y");
  KernelRunner runner(
      moduleOf(rowKernel(attributes + ", features = " + std::to_string(n)), bindings, n));
  Contents contents;
  std::vector<float> x = randomFloats(3 * n, 1, 2), y = randomFloats(3 * n, 2), expected;
  contents.set("x", x);
  contents.set("y", y);
  for (size_t i = 0; i < x.size(); ++i)
    expected.push_back(float(f(x[i], y[i])));
  Contents after = runner.run("step", {.rows = 3}, contents);
  if (!testing::Test::HasFailure())
    expectClose(after.get<float>("out", 3 * n), expected, 1e-6f, attributes.c_str());
}

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(CudaRowKernels, elementwise) {
  for (int n : {1028, 37}) {
    checkMap("fn = #sched<row_fn add>, factor = 0.5 : f32", n, true,
             [](double x, double y) { return x + 0.5 * y; });
    checkMap("fn = #sched<row_fn scale>, factor = 3.0 : f32", n, false,
             [](double x, double) { return 3 * x; });
  }
  checkMap("fn = #sched<row_fn act>, activation = #llm<activation gelu_erf>", 64, false,
           [](double x, double) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); });
  checkMap("fn = #sched<row_fn glu>, activation = #llm<activation silu>", 64, true,
           [](double x, double y) { return silu(x) * y; });
  checkMap("fn = #sched<row_fn softcap>, factor = 2.0 : f32", 64, false,
           [](double x, double) { return 2 * std::tanh(x / 2); });
}

TEST(CudaRowKernels, norms) {
  struct Case {
    int features, groups;
    bool layer, add;
  };
  for (Case c :
       {Case{1540, 1, false, false}, Case{72, 1, true, false}, Case{8292, 1, false, false},
        Case{12 * 20, 12, false, false}, Case{3 * 64, 3, true, false}, Case{100, 1, false, true}}) {
    int n = c.features, part = n / c.groups;
    std::string attributes = std::string("fn = #sched<row_fn ") + (c.add ? "norm_add" : "norm") +
                             ">, features = " + std::to_string(n) +
                             ", groups = " + std::to_string(c.groups) + (c.layer ? kLayer : kRms);
    std::vector<std::string> bindings{"read x", "weight w", "write out"};
    if (c.layer)
      bindings.insert(bindings.begin() + 2, "weight b");
    if (c.add)
      bindings.insert(bindings.begin(), "read residual");
    KernelRunner runner(moduleOf(rowKernel(attributes), bindings, n));
    Contents contents;
    std::vector<float> x = randomFloats(2 * n, 1), w = randomFloats(part, 2),
                       b = randomFloats(part, 3), residual = randomFloats(2 * n, 4);
    contents.set("x", x);
    contents.set("w", w);
    contents.set("b", b);
    contents.set("residual", residual);
    std::vector<float> expected = normalized(x, part, c.layer, w, b);
    if (c.add)
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] += residual[i];
    Contents after = runner.run("step", {.rows = 2}, contents);
    if (HasFailure())
      return;
    expectClose(after.get<float>("out", 2 * n), expected, 2e-6f, attributes.c_str());
  }
}

TEST(CudaRowKernels, ropeTable) {
  constexpr int pairs = 5;
  const float frequency[pairs] = {1, 0.31f, 0.017f, 1.5e-4f, 2e-7f};
  std::string text = "rope_table_kernel @kernel {inv_freq = array<f32: 1.0, 0.31, 0.017, 1.5e-4, "
                     "2.0e-7>, mscale = 1.25 : f32}";
  KernelRunner runner(moduleOf(text, {"write out"}, 2 * pairs));
  for (int position : {0, 1000000}) {
    Contents after = runner.run("step", {.rows = 3, .position = position}, {});
    if (HasFailure())
      return;
    std::vector<float> out = after.get<float>("out", 3 * 2 * pairs);
    for (int row = 0; row < 3; ++row)
      for (int i = 0; i < pairs; ++i) {
        double angle = double(frequency[i]) * (position + row);
        EXPECT_FLOAT_EQ(out[row * 2 * pairs + i], float(1.25 * std::cos(angle))) << i;
        EXPECT_FLOAT_EQ(out[row * 2 * pairs + pairs + i], float(1.25 * std::sin(angle))) << i;
      }
  }
}

TEST(CudaRowKernels, rope) {
  constexpr int groups = 3, part = 20, pairs = 6, n = groups * part;
  for (bool interleaved : {false, true}) {
    std::string attributes =
        "fn = #sched<row_fn rope>, features = 60, groups = 3, rope_pairs = 6, rope_kind = #llm<"
        "rope_kind " +
        std::string(interleaved ? "interleaved" : "half_split") + ">";
    KernelRunner runner(moduleOf(rowKernel(attributes), {"read x", "read rope", "write out"}, n));
    Contents contents;
    std::vector<float> x = randomFloats(2 * n, 1), rope = randomFloats(2 * 2 * pairs, 2),
                       expected = x;
    contents.set("x", x);
    contents.set("rope", rope);
    for (int row = 0; row < 2; ++row)
      for (int g = 0; g < groups; ++g)
        for (int i = 0; i < pairs; ++i) {
          float cos = rope[row * 2 * pairs + i], sin = rope[row * 2 * pairs + pairs + i];
          int base = row * n + g * part;
          int first = base + (interleaved ? 2 * i : i), second = first + (interleaved ? 1 : pairs);
          expected[first] = x[first] * cos - x[second] * sin;
          expected[second] = x[second] * cos + x[first] * sin;
        }
    Contents after = runner.run("step", {.rows = 2}, contents);
    if (HasFailure())
      return;
    expectClose(after.get<float>("out", 2 * n), expected, 1e-6f, attributes.c_str());
  }
}

TEST(CudaRowKernels, kvAppend) {
  constexpr int heads = 2, headDim = 12, n = heads * headDim, capacity = 256;
  for (bool f32 : {false, true}) {
    std::string attributes =
        "fn = #sched<row_fn kv_append>, features = 24, groups = 2, capacity = 256, kv_encoding = " +
        std::string(f32 ? "\"f32\"" : "\"f16\"");
    KernelRunner runner(
        moduleOf(rowKernel(attributes), {"read k", "read v", "key kv", "value kv"}, n));
    Contents contents;
    std::vector<float> k = randomFloats(3 * n, 1), v = randomFloats(3 * n, 2);
    contents.set("k", k);
    contents.set("v", v);
    for (const char *side : {"kv.key", "kv.value"})
      contents.reserve(side, heads * capacity * headDim * (f32 ? 4 : 2));
    // The last row wraps.
    Contents after = runner.run("step", {.rows = 3, .position = capacity - 2}, contents);
    if (HasFailure())
      return;
    for (int row = 0; row < 3; ++row)
      for (int h = 0; h < heads; ++h)
        for (bool key : {true, false}) {
          const std::vector<float> &from = key ? k : v;
          const char *name = key ? "kv.key" : "kv.value";
          int slot = (capacity - 2 + row) % capacity;
          for (int d = 0; d < headDim; ++d) {
            size_t at = size_t(h) * capacity * headDim +
                        (key ? keyIndex(f32, headDim, slot, d) : size_t(slot) * headDim + d);
            float expected = from[row * n + h * headDim + d];
            if (f32)
              EXPECT_EQ(after.get<float>(name, 1, at)[0], expected);
            else
              EXPECT_EQ(float(after.get<_Float16>(name, 1, at)[0]), float(_Float16(expected)));
          }
        }
  }
}

TEST(CudaRowKernels, prepareMakesRecords) {
  // Two whole groups and one that is padded.
  constexpr int n = 72, padded = 96, recordBytes = padded + padded / 2;
  KernelRunner runner(moduleOf("prepare_kernel @kernel {features = 72, act = #sched<act int8>, "
                               "out_rows" +
                                   std::string(kRms) + "}",
                               {"read x", "weight w", "write out"}, n));
  Contents contents;
  std::vector<float> x = randomFloats(3 * n, 1), w = randomFloats(n, 2);
  contents.set("x", x);
  contents.set("w", w);
  Contents after = runner.run("step", {.rows = 3, .outBegin = 1, .outRows = 2}, contents);
  if (HasFailure())
    return;
  std::vector<float> rows = normalized(x, n, false, w, {});
  for (int row = 0; row < 2; ++row) {
    std::vector<int8_t> codes = after.get<int8_t>("out", padded, row * recordBytes);
    std::vector<float> scales =
        after.get<float>("out", padded / 8, (row * recordBytes + padded) / 4);
    for (int group = 0; group < padded / 32; ++group)
      for (int half = 0; half < 2; ++half) {
        int first = 32 * group + 16 * half, sum = 0;
        float d = scales[4 * group + half];
        for (int i = first; i < first + 16; ++i) {
          float value = i < n ? rows[(row + 1) * n + i] : 0;
          EXPECT_NEAR(d * codes[i], value, 0.51f * d + 1e-6f) << i;
          sum += codes[i];
        }
        EXPECT_FLOAT_EQ(scales[4 * group + 2 + half], d * sum);
      }
  }
}

TEST(CudaRowKernels, logitsAndPick) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (int vocab : {200, 35}) {
    KernelRunner runner(moduleOf(rowKernel("fn = #sched<row_fn logits>, factor = 2.0 : f32, "
                                           "out_rows, features = " +
                                           std::to_string(vocab)),
                                 {"read x"}, vocab));
    int blocks = (vocab + 15) / 16;
    std::vector<float> x = randomFloats(4 * vocab, 1);
    float *row = x.data() + vocab; // row 0 has no logits
    row[17] = row[31] = row[34] = 9;
    row[3] = NAN;
    for (int i = 0; i < vocab; ++i) {
      row[vocab + i] = NAN;
      row[2 * vocab + i] = i < 20 ? NAN : -inf;
    }
    Contents contents;
    contents.set("x", x);
    contents.reserve("logits", 4 * 3 * vocab);
    contents.reserve("logit_maxima", 4 * 3 * blocks);
    Contents after = runner.run("step", {.rows = 4, .outBegin = 1, .outRows = 3}, contents, true);
    if (HasFailure())
      return;
    std::vector<float> logits = after.get<float>("logits", 3 * vocab);
    std::vector<float> maxima = after.get<float>("logit_maxima", 3 * blocks);
    for (int m = 0; m < 3; ++m)
      for (int b = 0; b < blocks; ++b) {
        float greatest = -inf;
        for (int i = 16 * b; i < std::min(vocab, 16 * b + 16); ++i) {
          float expected = 2 * row[m * vocab + i];
          EXPECT_TRUE(logits[m * vocab + i] == expected || std::isnan(expected));
          greatest = std::fmax(greatest, expected);
        }
        EXPECT_EQ(maxima[m * blocks + b], greatest);
      }
    EXPECT_EQ(after.get<int32_t>("picks", 3), (std::vector<int32_t>{17, -1, 20}));
  }
}

TEST(CudaRowKernels, staticLimits) {
  expectStaticLimits(moduleOf("prepare_kernel @kernel {features = 14336, act = #sched<act int8>" +
                                  std::string(kRms) + "}",
                              {"read x", "weight w", "write out"}, 14336));
  expectStaticLimits(
      moduleOf(rowKernel("fn = #sched<row_fn norm>, features = 8192" + std::string(kLayer)),
               {"read x", "weight w", "weight b", "write out"}, 8192));
  expectStaticLimits(
      moduleOf(rowKernel("fn = #sched<row_fn logits>, features = 128256"), {"read x"}, 128256));
  expectStaticLimits(moduleOf("rope_table_kernel @kernel {inv_freq = array<f32: 1.0, 0.1>, "
                              "mscale = 1.0 : f32}",
                              {"write out"}, 4));
}

} // namespace
