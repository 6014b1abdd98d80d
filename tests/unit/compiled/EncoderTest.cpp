//===- EncoderTest.cpp - a bidirectional model, compiled and run ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module of the llm dialect with random weights goes through all phases into
// an artifact; what the runtime computes of it is compared with the interpreter.
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Encoder.h"
#include "compiler/artifact/Writer.h"
#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/driver/Phases.h"
#include "compiler/reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/llm/Session.h"
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

constexpr int64_t kVocabulary = 64, kWidth = 64, kMlp = 128, kContext = 384;
constexpr float kClose = 2e-4f;

/// The text of a module, and its weights in one file.
struct Source {
  std::string symbols, body;
  std::vector<float> data;
  std::mt19937 random{7};

  std::string weight(const std::string &name, int64_t rows, int64_t columns, float spread,
                     float center = 0) {
    std::string shape = rows ? std::to_string(rows) + ", " : "";
    symbols += "llm.weight @" + name + " [" + shape + std::to_string(columns) +
               "] \"f32\" from 0 at " + std::to_string(4 * data.size()) + "\n";
    std::normal_distribution<float> values(center, spread);
    for (int64_t i = 0; i < std::max<int64_t>(rows, 1) * columns; ++i)
      data.push_back(values(random));
    return "@" + name;
  }
  std::string linear(const std::string &to, const std::string &from, int64_t in, int64_t out,
                     const std::string &more = "") {
    std::string w = weight(to + "_w", out, in, 1 / std::sqrt(float(in)));
    std::string b = weight(to + "_b", 0, out, 0.1f);
    return "%" + to + " = llm.linear %" + from + " [" + w + "] {biases = [" + b + "]" + more +
           "} : (tensor<?x" + std::to_string(in) + "xf32>) -> tensor<?x" + std::to_string(out) +
           "xf32>\n";
  }
  std::string norm(const std::string &to, const std::string &from) {
    std::string g = weight(to + "_g", 0, kWidth, 0.1f, 1), b = weight(to + "_c", 0, kWidth, 0.1f);
    return "%" + to + " = llm.norm %" + from + " <layer, " + g + " bias " + b +
           ", eps = 1.0e-12 : f64> : tensor<?x64xf32>\n";
  }
};

Source encoder(int layers) {
  Source s;
  std::string tokens = s.weight("tokens", kVocabulary, kWidth, 1);
  std::string positions = s.weight("positions", kContext, kWidth, 1);
  s.body = "%t = llm.embed %ids, " + tokens +
           " : (tensor<?xi32>) -> tensor<?x64xf32>\n%p = " + "llm.embed %pos, " + positions +
           " : (tensor<?xi32>) -> tensor<?x64xf32>\n" + "%e = llm.add %t, %p : tensor<?x64xf32>\n" +
           s.norm("x0", "e");
  for (int layer = 0; layer < layers; ++layer) {
    std::string n = std::to_string(layer), x = "x" + n;
    s.symbols += "llm.kv @kv" + n + " {heads = 4 : i64, head_dim = 16 : i64, encoding = \"f32\"}\n";
    for (const char *part : {"q", "k", "v"})
      s.body += s.linear(part + n, x, kWidth, kWidth);
    s.body += "%a" + n + " = llm.attention %q" + n + ", %k" + n + ", %v" + n + ", %pos, @kv" + n +
              " {heads = 4 : i64, scale = 0.25 : f32, bidirectional} : "
              "(tensor<?x64xf32>, "
              "tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xi32>) -> "
              "tensor<?x64xf32>\n";
    s.body += s.linear("o" + n, "a" + n, kWidth, kWidth) + "%r" + n + " = llm.add %" + x + ", %o" +
              n + " : tensor<?x64xf32>\n" + s.norm("h" + n, "r" + n) +
              s.linear("u" + n, "h" + n, kWidth, kMlp) + "%g" + n + " = llm.act gelu_erf %u" + n +
              " : tensor<?x128xf32>\n" + s.linear("d" + n, "g" + n, kMlp, kWidth) + "%s" + n +
              " = llm.add %h" + n + ", %d" + n + " : tensor<?x64xf32>\n" +
              s.norm("x" + std::to_string(layer + 1), "s" + n);
  }
  s.body += "return %x" + std::to_string(layers) + " : tensor<?x64xf32>\n";
  return s;
}

class Encoder : public testing::Test {
protected:
  Encoder() : context(registry()) { context.loadAllAvailableDialects(); }
  ~Encoder() override { std::remove(path.c_str()); }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerLlmcDialects(registry);
    return registry;
  }

  void build(bool f32, const std::string &pooling = "none", bool normalize = false) {
    Source source = encoder(2);
    std::string text = source.symbols +
                       "func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> "
                       "tensor<?x64xf32> {\n" +
                       source.body + "}\n";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    files.push_back({"weights", llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(
                                    reinterpret_cast<const char *>(source.data.data()),
                                    4 * source.data.size()))});
    original = module->clone();
    auto made = Interpreter::create(*original, files);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    interpreter.emplace(std::move(*made));

    PipelineOptions options;
    options.f32Activations = f32;
    options.context = kContext;
    options.prefillRows = kContext;
    for (Phase phase : {Phase::Fuse, Phase::PlanKv, Phase::Schedule}) {
      mlir::PassManager pm(&context);
      buildPhasePipeline(pm, phase, options);
      ASSERT_TRUE(mlir::succeeded(pm.run(*module))) << phaseName(phase).str();
    }
    auto isa = cpu::resolveTarget("native");
    ASSERT_TRUE(bool(isa));
    auto object = cpu::buildCodeObject(*module, **isa);
    ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
    ArtifactContents contents;
    contents.model.vocab = kVocabulary;
    contents.model.hidden = kWidth;
    contents.model.context = kContext;
    contents.model.isEncoder = true;
    contents.model.width = kWidth;
    contents.model.pooling = pooling;
    contents.model.normalize = normalize;
    contents.model.activations = f32 ? "f32" : "int8";
    contents.model.numerics = "strict";
    contents.tokenizer = &tokenizer;
    contents.module = *module;
    contents.files = files;
    ArtifactVariant variant;
    variant.target = (*isa)->name.str();
    variant.triple = (*isa)->triple.str();
    variant.code = std::move(object->elf);
    variant.kernels = std::move(object->kernels);
    variant.scratchBytes = std::move(object->scratchBytes);
    contents.variants.push_back(std::move(variant));
    path = testing::TempDir() + "llmc-encoder-test.llmc";
    llvm::Error error = writeArtifact(path, contents);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }

  std::unique_ptr<rt::Encoder> load(unsigned threads, rt::EncoderOptions options = {}) {
    auto model = rt::Model::load(path);
    EXPECT_TRUE(model.ok()) << model.status().message();
    auto pool = rt::WorkerPool::create(threads);
    auto encoder = rt::Encoder::create(model.take(), pool.take(), options);
    EXPECT_TRUE(encoder.ok()) << encoder.status().message();
    return encoder.take();
  }

  /// What the encoder gives for texts: all their rows, or a row for each.
  static std::vector<float> embed(rt::Encoder &encoder,
                                  const std::vector<std::vector<int32_t>> &texts) {
    std::vector<rt::EncoderInput> inputs;
    size_t rows = 0;
    for (const std::vector<int32_t> &tokens : texts) {
      inputs.push_back({tokens});
      rows += encoder.isPooled() ? 1 : tokens.size();
    }
    std::vector<float> result(rows * kWidth);
    auto status = encoder.embed(inputs, result.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return result;
  }

  /// The rows of a text, [tokens, kWidth].
  std::vector<float> compute(llvm::ArrayRef<int32_t> tokens, unsigned threads) {
    return embed(*load(threads), {tokens.vec()});
  }

  std::vector<float> expected(llvm::ArrayRef<int32_t> tokens) {
    interpreter->reset();
    auto rows = interpreter->step(tokens, 0);
    EXPECT_TRUE(bool(rows));
    return rows ? std::move(*rows) : std::vector<float>();
  }

  static std::vector<int32_t> text(size_t length) {
    std::mt19937 random(length);
    std::vector<int32_t> tokens(length);
    for (int32_t &token : tokens)
      token = int32_t(random() % kVocabulary);
    return tokens;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module, original;
  std::vector<SourceFile> files;
  std::optional<Interpreter> interpreter;
  TokenizerData tokenizer;
  std::string path;
};

double cosine(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i)
    ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

TEST_F(Encoder, EqualsTheInterpreterInFloat) {
  build(/*f32=*/true);
  // One row, some, a block of rows and one more, more than a chunk of the
  // cache.
  for (size_t length : {1u, 2u, 7u, 17u, 65u, 300u}) {
    std::vector<int32_t> tokens = text(length);
    std::vector<float> ours = compute(tokens, 2), theirs = expected(tokens);
    ASSERT_EQ(ours.size(), theirs.size()) << length;
    float worst = 0;
    for (size_t i = 0; i < ours.size(); ++i)
      worst = std::max(worst, std::fabs(ours[i] - theirs[i]));
    EXPECT_LT(worst, kClose) << length;
    EXPECT_EQ(ours, compute(tokens, 1)) << length;
  }
}

TEST_F(Encoder, FirstRowSeesTheLastToken) {
  build(/*f32=*/true);
  std::vector<int32_t> tokens = text(12);
  std::vector<float> before = compute(tokens, 1);
  tokens.back() = (tokens.back() + 1) % kVocabulary;
  std::vector<float> after = compute(tokens, 1);
  EXPECT_FALSE(std::equal(before.begin(), before.begin() + kWidth, after.begin()));
}

TEST_F(Encoder, IsCloseWithQuantizedActivations) {
  build(/*f32=*/false);
  std::vector<int32_t> tokens = text(40);
  std::vector<float> ours = compute(tokens, 2), theirs = expected(tokens);
  ASSERT_EQ(ours.size(), theirs.size());
  EXPECT_GT(cosine(ours, theirs), 0.999);
}

TEST_F(Encoder, PoolsRows) {
  std::vector<int32_t> tokens = text(9);
  struct Case {
    const char *pooling;
    bool normalize;
  };
  for (auto [pooling, normalize] :
       {Case{"mean", false}, Case{"mean", true}, Case{"cls", false}, Case{"last", true}}) {
    build(/*f32=*/true, pooling, normalize);
    std::vector<float> rows = expected(tokens), want(kWidth);
    for (int64_t i = 0; i < kWidth; ++i) {
      for (size_t r = 0; r < tokens.size(); ++r)
        want[i] += rows[r * kWidth + i] / float(tokens.size());
      if (pooling != std::string("mean"))
        want[i] = rows[(pooling == std::string("cls") ? 0 : tokens.size() - 1) * kWidth + i];
    }
    float square = 0;
    for (float x : want)
      square += x * x;
    std::vector<float> got = compute(tokens, 1);
    ASSERT_EQ(got.size(), size_t(kWidth));
    for (int64_t i = 0; i < kWidth; ++i)
      EXPECT_NEAR(got[i], normalize ? want[i] / std::sqrt(square) : want[i], kClose) << pooling;
  }
}

TEST_F(Encoder, TextsDoNotTouchEachOther) {
  build(/*f32=*/false, "mean", true);
  std::vector<std::vector<int32_t>> texts;
  std::vector<float> alone;
  for (size_t length : {3u, 1u, 40u, 17u, 16u, 5u, 300u}) {
    texts.push_back(text(length));
    std::vector<float> row = compute(texts.back(), 1);
    alone.insert(alone.end(), row.begin(), row.end());
  }
  // With fewer workers than texts and with more.
  for (unsigned threads : {1u, 2u, 3u, 16u})
    EXPECT_EQ(embed(*load(threads), texts), alone) << threads;
}

TEST_F(Encoder, RefusesWhatItCannotCompute) {
  build(/*f32=*/true, "mean", true);
  auto encoder = load(1, {.contextLimit = 8});
  EXPECT_EQ(encoder->check({}).code(), rt::StatusCode::InvalidArgument);
  EXPECT_EQ(encoder->check(text(9)).code(), rt::StatusCode::OutOfRange);
  std::vector<int32_t> unknown = {3, kVocabulary};
  EXPECT_EQ(encoder->check(unknown).code(), rt::StatusCode::OutOfRange);
  unknown[1] = -1;
  EXPECT_EQ(encoder->check(unknown).code(), rt::StatusCode::OutOfRange);
  EXPECT_EQ(encoder->tokenize("a text").status().code(), rt::StatusCode::Unsupported);
  auto model = rt::Model::load(path);
  auto pool = rt::WorkerPool::create(1);
  auto longer = rt::Encoder::create(model.value(), pool.take(), {.contextLimit = kContext + 1});
  EXPECT_EQ(longer.status().code(), rt::StatusCode::OutOfRange);
  pool = rt::WorkerPool::create(1);
  auto session = rt::Session::create(model.value(), pool.take());
  EXPECT_NE(session.status().message().find("--embed"), std::string::npos);
}

} // namespace
