//===- ImportTest.cpp - files that say the same compute the same ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"
#include "frontends/common/Rope.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::test;

/// Logits of the fixture on someTokens.
static std::vector<float> logitsOf(const std::string &name) {
  return TestModel(fixture(name + ".gguf")).logits(someTokens(256));
}

static size_t weightCount(TestModel &model) {
  auto weights = model.model.module->getOps<llm::WeightOp>();
  return size_t(std::distance(weights.begin(), weights.end()));
}

TEST(Import, TiedOutputIsTheEmbedding) {
  TestModel tied(fixture("rand.gguf")), untied(fixture("rand-untied.gguf"));
  EXPECT_EQ(tied.logits(someTokens(256)), untied.logits(someTokens(256)));
  EXPECT_EQ(weightCount(tied) + 1, weightCount(untied));
}

TEST(Import, FusedTensorsAreSliced) {
  EXPECT_EQ(logitsOf("rand-fused-qkv"), logitsOf("rand"));
  EXPECT_EQ(logitsOf("phi3"), logitsOf("phi3-as-qwen2"));
}

TEST(Import, HeadCountsMayBeScalarArrayOrAbsent) {
  EXPECT_EQ(logitsOf("kv-array"), logitsOf("rand"));
  EXPECT_EQ(logitsOf("kv-absent-mha"), logitsOf("kv-scalar-mha"));
}

TEST(Import, RopeFactorsDivideFrequencies) {
  std::vector<float> plain = logitsOf("rand");
  EXPECT_EQ(logitsOf("rope-ones"), plain);
  std::vector<float> halved = logitsOf("rope-twos");
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 256, halved.begin()));
  EXPECT_FALSE(
      std::equal(plain.begin() + 40 * 256, plain.begin() + 41 * 256, halved.begin() + 40 * 256));
  EXPECT_EQ(halved, logitsOf("rope-linear2"));
}

TEST(Import, RopeScaling) {
  auto rope = [](const std::string &name) {
    TestModel model(fixture(name + ".gguf"));
    return summarizeRope(*model.model.module).at(0);
  };
  EXPECT_NEAR(rope("rope-yarn4").attentionScale, 1.138629, 5e-7);
  EXPECT_EQ(rope("rope-yarn4-explicit").attentionScale, 1.0);
  EXPECT_EQ(rope("rope-yarn4-log").attentionScale, 1.0);
  EXPECT_NEAR(rope("rope-llama3").lastInvFreq, 9.4183e-08, 5e-13);

  mlir::MLIRContext context;
  auto unknown = importGguf(fixture("rope-unknown.gguf"), context, {});
  ASSERT_FALSE(bool(unknown));
  Refusal refusal = refusalOf(unknown.takeError());
  EXPECT_EQ(refusal.kind, ImportError::Kind::Unsupported);
  EXPECT_NE(refusal.message.find("'no-such'"), std::string::npos) << refusal.message;
}

TEST(Import, LongRopeFactorsFollowTheContextAskedFor) {
  auto rope = [](uint64_t context) {
    GgufImportOptions options;
    options.context = context;
    TestModel model(fixture("longrope.gguf"), options);
    return summarizeRope(*model.model.module).at(0);
  };
  EXPECT_EQ(rope(64).firstInvFreq, 1.0);
  EXPECT_EQ(rope(65).firstInvFreq, 0.25);
  EXPECT_EQ(rope(0).firstInvFreq, 0.25); // the file's 256 positions
  EXPECT_EQ(rope(64).attentionScale, 1.5);
}

TEST(Import, AttentionTemperatureLimitsTheContext) {
  TestModel model(fixture("temperature.gguf"));
  auto length = (*model.model.module)->getAttrOfType<mlir::IntegerAttr>("llm.context_length");
  EXPECT_EQ(length.getInt(), 64);
}

TEST(Import, RefusesWhatChangesTheComputation) {
  mlir::MLIRContext context;
  auto mixture = importGguf(fixture("mixture.gguf"), context, {});
  ASSERT_FALSE(bool(mixture));
  Refusal refusal = refusalOf(mixture.takeError());
  EXPECT_EQ(refusal.kind, ImportError::Kind::Unsupported);
  EXPECT_NE(refusal.message.find("llama.expert_count is 8"), std::string::npos) << refusal.message;
}

TEST(Import, ChainModelFollowsItsChain) {
  TestModel model(fixture("chain.gguf"));
  int32_t token = 60;
  for (int64_t position = 0; position < 8; ++position) {
    std::vector<float> logits = model.step(token, position);
    int32_t next = int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
    EXPECT_EQ(next, (token + 1) % 64);
    EXPECT_NEAR(logits[size_t(next)], 8.0f, 0.01f);
    token = next;
  }
}

/// logits[0] / logits[1] of each row: the mean of the visible ids.
static std::vector<float> visibleMeans(llvm::ArrayRef<float> logits) {
  std::vector<float> means;
  for (size_t i = 0; i < logits.size(); i += 64)
    means.push_back(logits[i] / logits[i + 1]);
  return means;
}

TEST(Import, WindowsCountTheCurrentPosition) {
  std::vector<int32_t> tokens = {0, 1, 2, 3, 4, 5, 6, 7};
  TestModel all(fixture("unif.gguf")), window(fixture("unif-window4.gguf"));
  const float expectedAll[] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5};
  const float expectedWindow[] = {0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5};
  std::vector<float> meansAll = visibleMeans(all.logits(tokens));
  std::vector<float> meansWindow = visibleMeans(window.logits(tokens));
  window.interpreter->reset();
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_NEAR(meansAll[i], expectedAll[i], 1e-5f);
    EXPECT_NEAR(meansWindow[i], expectedWindow[i], 1e-5f);
    EXPECT_EQ(visibleMeans(window.step(tokens[i], int64_t(i)))[0], meansWindow[i]);
  }
}

TEST(Import, OpsCarryLayersAndLocations) {
  TestModel model(fixture("rand.gguf"));
  auto function = model.model.module->lookupSymbol<mlir::func::FuncOp>("forward");
  int64_t layer = -1;
  for (mlir::Operation &op : function.getBody().front()) {
    if (auto attr = op.getAttrOfType<mlir::IntegerAttr>("llm.layer")) {
      EXPECT_GE(attr.getInt(), layer);
      layer = attr.getInt();
      auto name = llvm::dyn_cast<mlir::NameLoc>(op.getLoc());
      ASSERT_TRUE(name);
      EXPECT_TRUE(name.getName().getValue().starts_with("blk." + std::to_string(layer)));
    }
  }
  EXPECT_EQ(layer, 1);
}
