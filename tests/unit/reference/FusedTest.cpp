//===- FusedTest.cpp - the fuse passes change nothing that is computed ----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Interpreter.h"
#include "frontends/gguf/ImportGguf.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/fuse/Passes.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace llmc;

/// Logits of the last of 24 tokens.
static std::vector<float> logits(ImportedModel &model) {
  auto interpreter = Interpreter::create(*model.module, model.files);
  EXPECT_TRUE(bool(interpreter)) << llvm::toString(interpreter.takeError());
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 24; ++i)
    tokens.push_back((i * 37 + 11) % 128);
  auto result = interpreter->step(tokens, 0, int64_t(tokens.size()) - 1);
  EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
  return std::move(*result);
}

class Fused : public testing::TestWithParam<const char *> {};

TEST_P(Fused, LogitsAreTheSameBits) {
  const char *shared = std::getenv("LLMC_SHARED");
  std::string path = (shared ? std::string(shared) : LLMC_TEST_ROOT "/../shared") + "/zoo/" +
                     GetParam() + "-dense.gguf";
  if (!llvm::sys::fs::exists(path))
    GTEST_SKIP() << "no " << path;
  mlir::MLIRContext context;
  auto model = importGguf(path, context, {});
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  std::vector<float> canonical = logits(*model);

  mlir::PassManager passes(&context);
  passes.addPass(fuse::createMergeProjectionsPass());
  passes.addPass(fuse::createFuseNormPass());
  passes.addPass(fuse::createFuseQkvPass());
  passes.addPass(fuse::createSplitAttentionPass());
  passes.addPass(fuse::createFuseEpiloguePass());
  passes.addPass(fuse::createSelectOutRowsPass());
  ASSERT_TRUE(mlir::succeeded(passes.run(*model->module)));
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*model->module)));
  EXPECT_EQ(logits(*model), canonical);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Fused,
                         testing::Values("gemma", "gemma2", "gemma3", "granite", "llama",
                                         "mistral3", "olmo2", "phi3", "qwen2", "qwen3", "smollm3",
                                         "starcoder2"),
                         [](const auto &info) { return std::string(info.param); });
