//===- RaiseTest.cpp - one model in many forms ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Interpreter.h"
#include "frontends/common/ImportError.h"
#include "frontends/common/Rope.h"
#include "frontends/common/Vocabulary.h"
#include "frontends/gguf/ImportGguf.h"
#include "frontends/onnx/ImportOnnx.h"
#include "frontends/onnx/raise/Layout.h"
#include "frontends/onnx/raise/RotaryFit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;

static std::string fixture(llvm::StringRef name) {
  return (LLMC_TEST_FIXTURES "/models/" + name).str();
}

namespace {
/// An imported model, and what it computes.
struct Imported {
  mlir::MLIRContext context;
  ImportedModel model;

  explicit Imported(llvm::StringRef name) {
    llvm::Expected<ImportedModel> imported = name.ends_with(".gguf")
                                                 ? importGguf(fixture(name), context, {})
                                                 : importOnnx(fixture(name), context);
    if (!imported) {
      ADD_FAILURE() << llvm::toString(imported.takeError());
      return;
    }
    model = std::move(*imported);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*model.module)));
  }

  std::vector<float> logits(llvm::ArrayRef<int32_t> tokens, size_t chunk) {
    if (!model.module)
      return {};
    for (auto kv : model.module->getOps<llm::KvOp>())
      kv.setEncoding("f32");
    auto interpreter = Interpreter::create(*model.module, model.files);
    if (!interpreter) {
      ADD_FAILURE() << llvm::toString(interpreter.takeError());
      return {};
    }
    std::vector<float> all;
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      auto part = tokens.slice(at, std::min(chunk, tokens.size() - at));
      auto step = interpreter->step(part, int64_t(at));
      if (!step) {
        ADD_FAILURE() << llvm::toString(step.takeError());
        return {};
      }
      all.insert(all.end(), step->begin(), step->end());
    }
    return all;
  }

  std::string text() {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (model.module)
      model.module->lookupSymbol<mlir::func::FuncOp>(llm::kForwardName).print(os);
    return text;
  }
};

const int32_t kTokens[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

double distance(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  if (a.size() != b.size() || a.empty())
    return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, double(std::fabs(a[i] - b[i])));
  return most;
}
} // namespace

class Forms : public testing::TestWithParam<const char *> {};

TEST_P(Forms, GiveTheFunctionOfTheGgufFile) {
  Imported gguf("rand.gguf"), onnx(std::string(GetParam()) + ".onnx");
  ASSERT_TRUE(bool(onnx.model.module));
  EXPECT_EQ(onnx.text(), gguf.text());
  EXPECT_LT(distance(onnx.logits(kTokens, 5), gguf.logits(kTokens, 5)), 2e-4);
  auto a = summarizeRope(*gguf.model.module), b = summarizeRope(*onnx.model.module);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NEAR(a[0].lastInvFreq, b[0].lastInvFreq, 1e-6 * a[0].lastInvFreq);
  auto count = [](Imported &m) {
    return llvm::range_size(m.model.module->getOps<llm::WeightOp>());
  };
  EXPECT_EQ(count(gguf), count(onnx));
}

INSTANTIATE_TEST_SUITE_P(All, Forms,
                         testing::Values("primitive", "tables", "opset23", "contrib", "packed",
                                         "primitive-no-past", "opset23-no-past", "names-numbers",
                                         "names-pairs", "names-nothing"));

TEST(Raise, ReadsSoftcaps) {
  std::string first = Imported("primitive-softcap.onnx").text();
  EXPECT_NE(first, Imported("primitive.onnx").text());
  for (const char *style : {"tables", "opset23", "contrib"})
    EXPECT_EQ(Imported(std::string(style) + "-softcap.onnx").text(), first) << style;
}

TEST(Raise, ReadsWindows) {
  for (const char *style : {"primitive", "tables", "opset23", "contrib"}) {
    Imported model(std::string(style) + "-window.onnx");
    ASSERT_TRUE(bool(model.model.module)) << style;
    for (auto kv : model.model.module->getOps<llm::KvOp>())
      EXPECT_EQ(kv.getWindow(), 4) << style;
  }
}

TEST(Vocabulary, PaddedLogitsAreLeftOut) {
  Imported whole("opset23.onnx"), part("opset23.onnx");
  ASSERT_TRUE(dropPaddedLogits(*part.model.module, 200));
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*part.model.module)));
  EXPECT_EQ(vocabularyOf(*part.model.module), 200);
  std::vector<float> a = whole.logits(kTokens, 12), b = part.logits(kTokens, 12);
  ASSERT_EQ(b.size(), std::size(kTokens) * 200);
  for (size_t row = 0; row < std::size(kTokens); ++row)
    for (size_t i = 0; i < 200; ++i)
      ASSERT_EQ(a[row * 256 + i], b[row * 200 + i]);
  EXPECT_FALSE(dropPaddedLogits(*part.model.module, 200));
}

/// The fuzzer does this for longer.
TEST(Raise, SurvivesDamage) {
  uint64_t state = 1;
  auto next = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (const char *style : {"primitive", "tables", "opset23", "contrib"}) {
    auto whole = llvm::MemoryBuffer::getFile(fixture(std::string(style) + ".onnx"));
    ASSERT_TRUE(bool(whole));
    for (int i = 0; i < 60; ++i) {
      std::string bytes = (*whole)->getBuffer().str();
      // Nodes come first in these files, weights after them.
      for (uint64_t n = 1 + next(4); n > 0; --n)
        bytes[next(std::min<size_t>(bytes.size(), 12000))] = char(next(256));
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      auto model = importOnnx(llvm::MemoryBuffer::getMemBufferCopy(bytes, "damaged.onnx"), context);
      if (model) {
        EXPECT_TRUE(mlir::succeeded(mlir::verify(*model->module)));
        continue;
      }
      std::string message = llvm::toString(model.takeError());
      EXPECT_TRUE(llvm::StringRef(message).starts_with("damaged.onnx: ")) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(Layout, FollowsReshapesAndTransposes) {
  SymbolTable symbols;
  Dim rows = symbols.named("S"), time = rows + symbols.named("P");
  LayoutSizes sizes{rows, time};
  Layout flat = rowMajorLayout(3, 24);
  EXPECT_TRUE(flat.isRowMajor());
  std::optional<Layout> split = reshaped(flat, {Dim(1), rows, Dim(3), Dim(8)}, sizes);
  ASSERT_TRUE(split);
  EXPECT_TRUE(split->featuresInOrder());
  Layout heads = transposed(*split, {0, 2, 1, 3});
  EXPECT_FALSE(heads.isRowMajor());
  EXPECT_EQ(elementPlaces(heads, {1, 3, 2, 8}, 24, 2)[8], 24); // head 0 of row 1
  EXPECT_EQ(reshaped(transposed(heads, {0, 2, 1, 3}), {Dim(1), rows, Dim(24)}, sizes), flat);
  EXPECT_FALSE(reshaped(flat, {Dim(1), rows, Dim(5), Dim(5)}, sizes));
  // Features in another order are no matrix.
  std::optional<Layout> wrong =
      reshaped(transposed(*split, {0, 1, 3, 2}), {Dim(1), rows, Dim(24)}, sizes);
  EXPECT_TRUE(!wrong || !wrong->isRowMajor());
}

TEST(RotaryFit, FindsFrequenciesToTheLastBit) {
  RotarySamples samples;
  samples.pairs = 8;
  std::vector<float> frequencies;
  for (int i = 0; i < 8; ++i)
    frequencies.push_back(float(std::pow(1e5, -i / 8.0)));
  for (int64_t p : {0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}) {
    samples.positions.push_back(p);
    for (float f : frequencies) {
      float angle = float(p) * f;
      samples.cosines.push_back(float(std::cos(double(angle)) * 1.25));
      samples.sines.push_back(float(std::sin(double(angle)) * 1.25));
    }
  }
  std::optional<RopeTable> table = fitRotary(samples, llm::RopeKind::HalfSplit, 1e-4);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->invFreq, frequencies);
  EXPECT_NEAR(table->mscale, 1.25, 1e-6);
  samples.cosines[samples.cosines.size() - 3] += 0.01;
  EXPECT_FALSE(fitRotary(samples, llm::RopeKind::HalfSplit, 1e-4));
}
