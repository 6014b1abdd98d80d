//===- RecipeTest.cpp - steps of recipes ----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Recipe.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace llmc;

/// A matrix [K][N] of floats with element k * 1000 + n, as rows of N, from row `begin` on.
static void checkTransposed(llvm::StringRef steps, uint64_t K, uint64_t N, uint64_t begin,
                            uint64_t count) {
  std::vector<float> values;
  for (uint64_t k = 0; k < K; ++k)
    for (uint64_t n = 0; n < N; ++n)
      values.push_back(float(k * 1000 + n));
  mlir::MLIRContext context;
  context.loadDialect<llm::LlmDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      ("llm.weight @w [" + llvm::Twine(K) + ", " + llvm::Twine(N) +
       "] \"f32\" from 0 at 4 recipe [" + steps + "]")
          .str(),
      &context);
  ASSERT_TRUE(bool(module));
  std::string bytes(4, 'x');
  bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * 4);
  std::vector<SourceFile> files;
  files.push_back({"w", llvm::MemoryBuffer::getMemBuffer(bytes, "", false)});
  auto recipe = Recipe::create(*module->getOps<llm::WeightOp>().begin(), files);
  ASSERT_TRUE(bool(recipe)) << llvm::toString(recipe.takeError());
  EXPECT_TRUE(recipe->sourceBytes().empty()); // not mapped: nothing may be dropped
  std::vector<float> row(K), out(count * K);
  if (!steps.contains("pack")) {
    ASSERT_EQ(recipe->bytes(), out.size() * 4);
    for (uint64_t i = 0; i < recipe->pieces(); ++i)
      recipe->evaluate(i, reinterpret_cast<uint8_t *>(out.data()));
  }
  for (uint64_t n = 0; n < count; ++n) {
    recipe->dequantizeRow(n, row.data());
    for (uint64_t k = 0; k < K; ++k) {
      ASSERT_EQ(row[k], float(k * 1000 + n + begin)) << n << ", " << k;
      if (!steps.contains("pack"))
        ASSERT_EQ(out[n * K + k], row[k]) << n << ", " << k;
    }
  }
}

TEST(Recipe, TransposesMatrices) {
  checkTransposed("#llm.transpose", 3, 5, 0, 5);
  checkTransposed("#llm.transpose", 40, 700, 0, 700); // several pieces
  checkTransposed("#llm.transpose, #llm.slice_rows<30, 600>", 40, 700, 30, 600);
  checkTransposed("#llm.transpose, #llm.pack<\"panel16\">", 40, 33, 0, 33);
}
