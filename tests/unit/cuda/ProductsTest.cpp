//===- ProductsTest.cpp - linear, qkv and embed kernels -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/WarpLayout.h"
#include "mlir/Parser/Parser.h"
#include "tests/unit/cuda/KernelRunner.h"
#include "tests/unit/weights/RandomWeights.h"
#include <cmath>

using namespace llmc;
using namespace llmc::cuda;

namespace {

constexpr int kRows = 16;

struct Weight {
  const Encoding &encoding;
  int64_t rows, columns;
  std::vector<uint8_t> packed;
  std::vector<float> values; // [rows][columns]

  Weight(const char *name, int64_t rows, int64_t columns, unsigned seed)
      : encoding(*lookupEncoding(name)), rows(rows), columns(columns) {
    std::vector<uint8_t> source = randomWeights(encoding, rows, columns, seed);
    WarpLayout layout = warpLayout(encoding, rows, columns);
    packed.resize(layout.totalBytes);
    packWarpTiles(encoding, source.data(), rows, columns, 0, layout.tiles, packed.data());
    values.resize(rows * columns);
    for (int64_t r = 0; r < rows; ++r)
      dequantizeRow(encoding, &source[r * encoding.rowBytes(columns)], &values[r * columns],
                    columns);
  }
  std::string segment() const {
    return "#sched.segment<" + std::to_string(rows) + ", \"" + encoding.name.str() +
           "\", bias = false>";
  }
};

/// What int8 records say of x: a scale per 16 elements.
std::vector<float> quantized(const std::vector<float> &x, int64_t columns) {
  std::vector<float> out(x.size());
  for (size_t row = 0; row < x.size(); row += columns)
    for (int64_t k = 0; k < columns; k += 16) {
      int64_t n = std::min<int64_t>(16, columns - k);
      float amax = 0;
      for (int64_t i = 0; i < n; ++i)
        amax = std::max(amax, std::abs(x[row + k + i]));
      for (int64_t i = 0; i < n; ++i)
        out[row + k + i] = std::nearbyint(x[row + k + i] * (127 / amax)) * (amax / 127);
    }
  return out;
}

std::vector<float> multiplied(const std::vector<float> &x, const Weight &weight) {
  std::vector<float> out;
  for (size_t row = 0; row < x.size(); row += weight.columns)
    for (int64_t n = 0; n < weight.rows; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < weight.columns; ++k)
        sum += double(weight.values[n * weight.columns + k]) * x[row + k];
      out.push_back(float(sum));
    }
  return out;
}

std::string act(bool int8) { return int8 ? "#sched<act int8>" : "#sched<act f32>"; }

/// Attributes that a plain product has.
std::string linearKernel(const std::string &name, const char *prologue, bool int8,
                         const std::vector<const Weight *> &weights, const std::string &more,
                         bool gated = false) {
  std::string segments;
  for (const Weight *weight : weights)
    segments += (segments.empty() ? "" : ", ") + weight->segment();
  return "sched.linear_kernel @" + name + " {features = " + std::to_string(weights[0]->columns) +
         ", act = " + act(int8) + ", prologue = #sched<prologue " + prologue + ">, segments = [" +
         segments + "], max_rows = " + std::to_string(kRows) +
         (more.find("activation") == std::string::npos ? ", activation = #llm<activation none>"
                                                       : "") +
         (more.find("scale") == std::string::npos ? ", scale = 1.0 : f32" : "") +
         (more.find("softcap") == std::string::npos ? ", softcap = 0.0 : f32" : "") + more +
         (gated ? ", gated" : "") + "}\n";
}

std::string buffer(const std::string &name, int64_t bytes) {
  return "  sched.buffer @" + name + " " + std::to_string(bytes) + "\n";
}
std::string dispatch(const std::string &kernel, const std::string &bindings) {
  return "  sched.dispatch @" + kernel + " <base = 1> [" + bindings + "] {op_name = \"test\"}\n";
}
std::string read(const std::string &name) { return "#sched.bind<read buffer @" + name + ">"; }
std::string write(const std::string &name) { return "#sched.bind<write buffer @" + name + ">"; }
std::string weightBinding(const std::string &name) {
  return "#sched.bind<read weight @" + name + ">";
}
std::string program(const std::string &name, const std::string &body) {
  return "sched.program @" + name + " attributes {max_rows = " + std::to_string(kRows) + "} {\n" +
         body + "}\n";
}
std::string weightSymbol(const std::string &name) {
  return "llm.weight @" + name + " [4] \"f32\" from 0 at 0\n";
}

/// @few multiplies float rows, @many records that a prepare kernel makes.
std::string plainModule(const Weight &weight, bool int8) {
  int64_t k = weight.columns, n = weight.rows;
  std::string prepare = "sched.prepare_kernel @prepare {features = " + std::to_string(k) +
                        ", act = " + act(int8) + ", prefill}\n";
  return weightSymbol("w") + linearKernel("rows", "rows", int8, {&weight}, "") +
         linearKernel("packed", "packed", int8, {&weight}, ", prefill") + prepare +
         program("few", buffer("x", 4 * k * kRows) + buffer("out", 4 * n * kRows) +
                            dispatch("rows",
                                     read("x") + ", " + weightBinding("w") + ", " + write("out"))) +
         program("many", buffer("x", 4 * k * kRows) + buffer("act", 64 * (k + 32) * kRows) +
                             buffer("out", 4 * n * kRows) +
                             dispatch("prepare", read("x") + ", " + write("act")) +
                             dispatch("packed", read("act") + ", " + weightBinding("w") + ", " +
                                                    write("out")));
}

class CudaProducts : public testing::TestWithParam<const char *> {};

void checkProduct(const char *name, int64_t n, int64_t k, bool int8) {
  SCOPED_TRACE(std::string(name) + (int8 ? " int8 " : " f32 ") + std::to_string(n) + " x " +
               std::to_string(k));
  Weight weight(name, n, k, unsigned(n + k));
  KernelRunner runner(plainModule(weight, int8));
  constexpr int rows = 5;
  std::vector<float> x = randomFloats(rows * k, 3, 2);
  std::vector<float> expected = multiplied(int8 ? quantized(x, k) : x, weight);
  Contents contents;
  contents.set("x", x);
  contents.set("w", weight.packed);
  std::vector<float> few = runner.run("few", {.rows = rows}, contents).get<float>("out", rows * n);
  if (testing::Test::HasFailure())
    return;
  expectClose(few, expected, 1e-5f, "few rows");
  std::vector<float> many =
      runner.run("many", {.rows = rows}, contents).get<float>("out", rows * n);
  if (testing::Test::HasFailure())
    return;
  expectSameBits(many, few, "many rows");
  // The last row alone.
  contents.set("x", std::vector<float>(x.end() - k, x.end()));
  std::vector<float> one = runner.run("few", {.rows = 1}, contents).get<float>("out", n);
  if (!testing::Test::HasFailure())
    expectSameBits(one, {few.end() - n, few.end()}, "one row");
}

TEST_P(CudaProducts, AllWaysGiveTheSameBits) {
  const Encoding &encoding = *lookupEncoding(GetParam());
  // A whole super-group, or eight groups and a bit.
  int64_t k = encoding.format.superGroup ? 512 : encoding.isFloat() || encoding.grouped ? 304 : 320;
  checkProduct(GetParam(), 40, k, !encoding.isFloat());
}
INSTANTIATE_TEST_SUITE_P(Encodings, CudaProducts, testing::ValuesIn(testedEncodings()),
                         [](const auto &info) { return std::string(info.param); });

TEST(CudaProducts, Shapes) {
  checkProduct("q4_0", 96, 64, true);    // less than a chunk
  checkProduct("q4_0", 33, 576, true);   // two slices, a tail
  checkProduct("q4_0", 130, 2304, true); // eight slices of one or two chunks
  checkProduct("q8_0", 32, 16384, true); // records so large that fewer fit
  checkProduct("q4_1", 64, 320, false);  // float activations
  checkProduct("f16", 40, 2052, false);
}

TEST(CudaProducts, GatedWithBiasAndResidual) {
  // act(gate x) * (up x), with a norm in front; and a product onto a residual.
  constexpr int64_t k = 320, n = 72;
  Weight gate("q4_1", n, k, 1), up("q5_0", n, k, 2);
  std::string module =
      weightSymbol("g") + weightSymbol("u") + weightSymbol("norm") +
      linearKernel("up", "norm", true, {&gate, &up},
                   ", activation = #llm<activation silu>, norm = #sched.norm<rms, bias = false, "
                   "eps = 1.0e-5 : f32>",
                   true) +
      linearKernel("add", "rows", true, {&gate}, ", residual, scale = 0.5 : f32") +
      program("gated", buffer("x", 4 * k * kRows) + buffer("out", 4 * n * kRows) +
                           dispatch("up", read("x") + ", " + weightBinding("norm") + ", " +
                                              weightBinding("g") + ", " + weightBinding("u") +
                                              ", " + write("out"))) +
      program("onto",
              buffer("x", 4 * k * kRows) + buffer("old", 4 * n * kRows) +
                  dispatch("add", read("x") + ", " + weightBinding("g") + ", " + read("old") +
                                      ", " + "#sched.bind<update buffer @old>"));
  KernelRunner runner(module);
  constexpr int rows = 3;
  std::vector<float> x = randomFloats(rows * k, 5), scale = randomFloats(k, 6), normalized(x);
  for (int row = 0; row < rows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < k; ++i)
      squares += double(x[row * k + i]) * x[row * k + i];
    for (int64_t i = 0; i < k; ++i)
      normalized[row * k + i] = float(x[row * k + i] / std::sqrt(squares / k + 1e-5) * scale[i]);
  }
  std::vector<float> expected = multiplied(quantized(normalized, k), gate),
                     factor = multiplied(quantized(normalized, k), up);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = expected[i] / (1 + std::exp(-expected[i])) * factor[i];
  Contents contents;
  contents.set("x", x);
  contents.set("norm", scale);
  contents.set("g", gate.packed);
  contents.set("u", up.packed);
  std::vector<float> got =
      runner.run("gated", {.rows = rows}, contents).get<float>("out", rows * n);
  if (HasFailure())
    return;
  // A code may round the other way where the normalized value is between two.
  expectClose(got, expected, 2e-3f, "gated");

  std::vector<float> old = randomFloats(rows * n, 7);
  contents.set("old", old);
  expected = multiplied(quantized(x, k), gate);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = old[i] + 0.5f * expected[i];
  got = runner.run("onto", {.rows = rows}, contents).get<float>("old", rows * n);
  if (!HasFailure())
    expectClose(got, expected, 1e-5f, "onto the residual");
}

TEST(CudaProducts, EmbedReadsRowsOfTheTable) {
  for (const char *name : {"q4_k", "q6_k", "q8_0", "iq4_nl", "bf16", "int4_g64_min"}) {
    SCOPED_TRACE(name);
    constexpr int64_t k = 512, vocab = 70;
    Weight table(name, vocab, k, 9);
    std::string module =
        weightSymbol("t") + "sched.embed_kernel @embed {vocab = 70, features = 512, encoding = \"" +
        name + "\", scale = 2.0 : f32}\n" +
        program("step", buffer("out", 4 * k * kRows) +
                            dispatch("embed", weightBinding("t") + ", " + write("out")));
    KernelRunner runner(module);
    Contents contents;
    contents.set("t", table.packed);
    const std::vector<int32_t> tokens = {69, 0, 31, 32};
    std::vector<float> got = runner.run("step", {.rows = 4, .tokens = tokens}, contents)
                                 .get<float>("out", 4 * k),
                       expected;
    if (HasFailure())
      return;
    for (int32_t token : tokens)
      for (int64_t i = 0; i < k; ++i)
        expected.push_back(2 * table.values[token * k + i]);
    expectClose(got, expected, 1e-6f, "rows");
  }
}

TEST(CudaProducts, RowsThatAreNoUnitsAreRefused) {
  Weight weight("f32", 8, 30, 1);
  mlir::DialectRegistry registry;
  registry.insert<llm::LlmDialect, sched::SchedDialect>();
  cuda::registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(plainModule(weight, false), &context);
  ASSERT_TRUE(module);
  auto object = buildCodeObject(*module, *lookupTarget("sm90"));
  ASSERT_FALSE(bool(object));
  EXPECT_NE(llvm::toString(object.takeError()).find("features = 30"), std::string::npos);
}

/// What the counters say of `program` for a matrix times one row.
ptx::Counters countersOf(KernelRunner &runner, const Weight &weight) {
  Contents contents;
  contents.set("x", randomFloats(weight.columns, 3, 2));
  contents.set("w", weight.packed);
  runner.run("few", {.rows = 1}, contents);
  return runner.counters();
}

TEST(CudaProducts, WeightsAreReadOnceAndWhole) {
  for (const char *name : {"q4_0", "q4_1", "q8_0", "q4_k"}) {
    SCOPED_TRACE(name);
    Weight weight(name, 64, 4096, 7);
    KernelRunner runner(plainModule(weight, true));
    ptx::Counters counters = countersOf(runner, weight);
    EXPECT_EQ(counters.globalLoadSectors, counters.globalLoadIdealSectors);
    // Each of the two blocks reads the row of activations, and the step.
    uint64_t others = 2 * (4 * weight.columns + 4096);
    EXPECT_GE(counters.globalLoadBytes, weight.packed.size());
    EXPECT_LE(counters.globalLoadBytes, weight.packed.size() + others);
    EXPECT_EQ(counters.localBytes, 0u);
  }
}

TEST(CudaProducts, InstructionsPerWeight) {
  // A block of 32 rows makes the records of the whole input for itself, which counts, too.
  for (auto [name, most] : {std::pair("q4_0", 2.0), {"q4_1", 2.0}, {"q8_0", 2.0}}) {
    Weight weight(name, 64, 4096, 7);
    KernelRunner runner(plainModule(weight, true));
    double perWeight =
        double(countersOf(runner, weight).totalLanes()) / double(weight.rows * weight.columns);
    EXPECT_LE(perWeight, most) << name;
    if (getenv("LLMC_TEST_VERBOSE"))
      printf("%s: %.3f instructions per weight\n", name, perWeight);
  }
}

} // namespace
