//===- OpsTest.cpp - every llm op against hand arithmetic -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

using namespace llmc;

namespace {

/// A module whose rows are those of the table @x, and whose other weights follow it in one file.
class OpTest : public testing::Test {
protected:
  OpTest() { context.loadDialect<llm::LlmDialect, mlir::func::FuncDialect>(); }

  /// Declares a float32 weight; `shape` as in the IR.
  void weight(const std::string &name, const std::string &shape, std::vector<float> values,
              const std::string &recipe = "") {
    symbols += "llm.weight @" + name + " [" + shape + "] \"f32\" from 0 at " +
               std::to_string(4 * data.size()) + " " + recipe + "\n";
    data.insert(data.end(), values.begin(), values.end());
  }

  /// Evaluates `body`, which makes %y of `features` from %x, %ids and %pos, on rows 0, 1, ... of
  /// @x at positions from 0 on.
  std::vector<float> run(int64_t inputFeatures, int64_t rows, const std::string &body,
                         int64_t features) {
    std::string x = "tensor<?x" + std::to_string(inputFeatures) + "xf32>";
    std::string y = "tensor<?x" + std::to_string(features) + "xf32>";
    std::string text = symbols +
                       "func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> " + y +
                       " {\n%x = llm.embed %ids, @x : (tensor<?xi32>) -> " + x + "\n" + body +
                       "\nreturn %y : " + y + "\n}\n";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << text;
      return {};
    }
    files.clear();
    files.push_back(
        {"weights", llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(
                        reinterpret_cast<const char *>(data.data()), 4 * data.size()))});
    auto created = Interpreter::create(*module, files);
    if (!created) {
      ADD_FAILURE() << llvm::toString(created.takeError());
      return {};
    }
    interpreter.emplace(std::move(*created));
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < rows; ++i)
      tokens.push_back(int32_t(i));
    return step(tokens, 0);
  }

  std::vector<float> step(llvm::ArrayRef<int32_t> tokens, int64_t position) {
    auto result = interpreter->step(tokens, position);
    if (result)
      return std::move(*result);
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }

  static void expectNear(llvm::ArrayRef<float> actual, llvm::ArrayRef<double> expected,
                         double tolerance = 1e-6) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
  }

  mlir::MLIRContext context;
  std::string symbols;
  std::vector<float> data;
  std::vector<SourceFile> files;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<Interpreter> interpreter;
};

constexpr const char *kRow2 = "tensor<?x2xf32>";

} // namespace

TEST_F(OpTest, EmbedScalesRows) {
  weight("x", "2, 2", {1, 2, 3, 4});
  expectNear(run(2, 2, "%y = llm.scale %x by 0.5 : tensor<?x2xf32>", 2), {0.5, 1, 1.5, 2});
  symbols.clear();
  data.clear();
  weight("x", "2, 2", {1, 2, 3, 4}, "recipe [#llm.scale<2.0 : f32>]");
  expectNear(run(2, 2, "%y = llm.add %x, %x {scale = 3.0 : f32} : tensor<?x2xf32>", 2),
             {8, 16, 24, 32});
}

TEST_F(OpTest, Norms) {
  weight("x", "1, 4", {1, 2, 3, 4});
  weight("g", "4", {1, 1, 2, 2});
  weight("g2", "2", {1, 2});
  weight("b", "4", {0, 1, 0, 1});
  double rms = std::sqrt(7.5 + 0.5);
  expectNear(run(4, 1, "%y = llm.norm %x <rms, @g, eps = 0.5> : tensor<?x4xf32>", 4),
             {1 / rms, 2 / rms, 6 / rms, 8 / rms});
  double deviation = std::sqrt(1.25);
  expectNear(run(4, 1, "%y = llm.norm %x <layer, @g bias @b, eps = 0.0> : tensor<?x4xf32>", 4),
             {-1.5 / deviation, -0.5 / deviation + 1, 1 / deviation, 3 / deviation + 1});
  double a = std::sqrt(2.5), c = std::sqrt(12.5);
  expectNear(
      run(4, 1, "%y = llm.norm %x <rms, @g2, eps = 0.0> {groups = 2 : i64} : tensor<?x4xf32>", 4),
      {1 / a, 4 / a, 3 / c, 8 / c});
}

TEST_F(OpTest, LinearWithAllThatIsFusedIntoIt) {
  weight("x", "2, 2", {1, 2, -1, 1});
  weight("w", "2, 2", {1, 1, 0, 2});
  weight("v", "2, 2", {2, 0, 0, 1});
  weight("b", "2", {1, -1});
  // x w^T + b: (4, 3) and (1, 1); x v^T: (2, 2) and (-2, 1).
  expectNear(run(2, 2,
                 "%y = llm.linear %x [@w] {biases = [@b]} : (tensor<?x2xf32>) -> tensor<?x2xf32>",
                 2),
             {4, 3, 1, 1});
  expectNear(run(2, 2,
                 "%z, %y = llm.linear %x [@w, @v] {biases = [@b, unit]} : "
                 "(tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)",
                 2),
             {2, 2, -2, 1});
  expectNear(run(2, 2,
                 "%y = llm.linear %x [@w, @v] residual(%x) {biases = [@b, unit], gated, "
                 "activation = #llm<activation relu>, scale = 0.5 : f32} : "
                 "(tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>",
                 2),
             {5, 5, -2, 1.5});
  expectNear(run(2, 2,
                 "%y = llm.linear %x [@w] {softcap = 2.0 : f32} : "
                 "(tensor<?x2xf32>) -> tensor<?x2xf32>",
                 2),
             {2 * std::tanh(1.5), 2 * std::tanh(2.0), 0, 2 * std::tanh(1.0)});
}

TEST_F(OpTest, Activations) {
  weight("x", "1, 2", {-0.5f, 2});
  auto act = [&](const std::string &kind) {
    return run(2, 1, "%y = llm.act " + kind + " %x : " + kRow2, 2);
  };
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  auto gelu = [](double v) { return 0.5 * v * (1 + std::erf(v / std::numbers::sqrt2)); };
  expectNear(act("silu"), {-0.5 * sigmoid(-0.5), 2 * sigmoid(2)});
  expectNear(act("gelu_erf"), {gelu(-0.5), gelu(2)});
  expectNear(act("gelu_tanh"), {gelu(-0.5), gelu(2)}, 1e-3);
  expectNear(act("relu"), {0, 2});
  expectNear(act("relu_squared"), {0, 4});
  expectNear(run(2, 1, "%y = llm.glu relu %x, %x : tensor<?x2xf32>", 2), {0, 4});
  expectNear(run(2, 1, "%y = llm.softcap %x at 0.5 : tensor<?x2xf32>", 2),
             {0.5 * std::tanh(-1.0), 0.5 * std::tanh(4.0)});
}

TEST_F(OpTest, RopeTurnsPairs) {
  weight("x", "1, 8", {1, 2, 3, 4, 5, 6, 7, 8});
  std::string quarter = std::to_string(std::numbers::pi / 2);
  for (const char *kind : {"half_split", "interleaved"})
    symbols += std::string("llm.rope_table @") + kind + " " + kind +
               " {inv_freq = array<f32: " + quarter + ", " + quarter + ">}\n";
  auto rope = [&](const std::string &table, int64_t position) {
    run(8, 1,
        "%y = llm.rope %x, %pos, @" + table +
            " {heads = 1 : i64} : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>",
        8);
    return step(int32_t(0), position);
  };
  // At position 1 both pairs are turned by a quarter; what is not rotated passes through.
  expectNear(rope("half_split", 0), {1, 2, 3, 4, 5, 6, 7, 8});
  expectNear(rope("half_split", 1), {-3, -4, 1, 2, 5, 6, 7, 8}, 1e-5);
  expectNear(rope("interleaved", 1), {-2, 1, -4, 3, 5, 6, 7, 8}, 1e-5);
}

TEST_F(OpTest, AttentionGroupsHeadsAndCapsScores) {
  // Two query heads share one KV head of one feature; the value is the row's third feature.
  weight("x", "2, 2", {1, 2, 3, -1});
  weight("wk", "1, 2", {1, 0});
  weight("wv", "1, 2", {0, 1});
  symbols += "llm.kv @kv {heads = 1 : i64, head_dim = 1 : i64, encoding = \"f32\"}\n";
  std::string body =
      "%k = llm.linear %x [@wk] : (tensor<?x2xf32>) -> tensor<?x1xf32>\n"
      "%v = llm.linear %x [@wv] : (tensor<?x2xf32>) -> tensor<?x1xf32>\n"
      "%y = llm.attention %x, %k, %v, %pos, @kv {heads = 2 : i64, scale = 0.5 : f32, softcap = "
      "1.0 : f32} : (tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x1xf32>, tensor<?xi32>) -> "
      "tensor<?x2xf32>";
  auto mix = [](double q) { // of the values 2 and -1 at keys 1 and 3
    double a = std::exp(std::tanh(0.5 * q)), b = std::exp(std::tanh(0.5 * q * 3));
    return (2 * a - b) / (a + b);
  };
  expectNear(run(2, 2, body, 2), {2, 2, mix(3), mix(-1)});

  std::string split =
      "%k = llm.linear %x [@wk] : (tensor<?x2xf32>) -> tensor<?x1xf32>\n"
      "%v = llm.linear %x [@wv] : (tensor<?x2xf32>) -> tensor<?x1xf32>\n"
      "llm.kv_append %k, %v, %pos, @kv : tensor<?x1xf32>, tensor<?x1xf32>, tensor<?xi32>\n"
      "%y = llm.attend %x, %pos, @kv {heads = 2 : i64, scale = 0.5 : f32, softcap = 1.0 : f32} : "
      "tensor<?x2xf32>, tensor<?xi32> -> tensor<?x2xf32>";
  expectNear(run(2, 2, split, 2), {2, 2, mix(3), mix(-1)});
}

TEST_F(OpTest, BidirectionalAttentionSeesTheWholeStep) {
  weight("x", "2, 1", {1, 3});
  symbols += "llm.kv @kv {heads = 1 : i64, head_dim = 1 : i64, encoding = \"f32\"}\n";
  std::string body = "%y = llm.attention %x, %x, %x, %pos, @kv {heads = 1 : i64, scale = 1.0 : "
                     "f32, bidirectional} : (tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x1xf32>, "
                     "tensor<?xi32>) -> tensor<?x1xf32>";
  auto mix = [](double q) {
    return (std::exp(q) + 3 * std::exp(3 * q)) / (std::exp(q) + std::exp(3 * q));
  };
  expectNear(run(1, 2, body, 1), {mix(1), mix(3)});
}

TEST_F(OpTest, PositionsAreEmbedded) {
  weight("x", "2, 1", {1, 2});
  weight("p", "3, 1", {10, 20, 30});
  run(1, 1,
      "%p = llm.embed %pos, @p : (tensor<?xi32>) -> tensor<?x1xf32>\n"
      "%y = llm.add %x, %p : tensor<?x1xf32>",
      1);
  expectNear(step({1, 0}, 1), {22, 31});
  EXPECT_EQ(llvm::toString(interpreter->step({0, 0}, 2).takeError()),
            "a position has no row in the table of positions");
}

TEST_F(OpTest, KvKeepsHalfPrecision) {
  float fine = 1 + 0x1p-12f;
  weight("x", "1, 1", {fine});
  for (const char *encoding : {"f16", "f32"})
    symbols += std::string("llm.kv @") + encoding + " {heads = 1 : i64, head_dim = 1 : i64, " +
               "encoding = \"" + encoding + "\"}\n";
  auto attend = [&](const std::string &kv) {
    return run(1, 1,
               "%y = llm.attention %x, %x, %x, %pos, @" + kv +
                   " {heads = 1 : i64, scale = 1.0 : f32} : (tensor<?x1xf32>, tensor<?x1xf32>, "
                   "tensor<?x1xf32>, tensor<?xi32>) -> tensor<?x1xf32>",
               1);
  };
  EXPECT_EQ(attend("f16"), std::vector<float>{1.0f});
  EXPECT_EQ(attend("f32"), std::vector<float>{fine});
}

TEST_F(OpTest, OutRowsAndErrors) {
  weight("x", "3, 1", {1, 2, 3});
  run(1, 1, "%y = llm.out_rows %x : tensor<?x1xf32> -> tensor<?x1xf32>", 1);
  auto rows = interpreter->step({0, 1, 2}, 0, {2, 0});
  ASSERT_TRUE(bool(rows));
  EXPECT_EQ(*rows, (std::vector<float>{3, 1}));
  EXPECT_EQ(llvm::toString(interpreter->step(int32_t(3), 0).takeError()),
            "token 3 is not in the vocabulary");
  EXPECT_EQ(llvm::toString(interpreter->step(int32_t(0), 0, int64_t(1)).takeError()),
            "logits of row 1 of a step of 1 tokens");
}
