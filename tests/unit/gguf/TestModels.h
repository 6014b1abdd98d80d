//===- TestModels.h - importing and running fixtures ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of tests/e2e/fixtures.py, by name.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_GGUF_TESTMODELS_H
#define LLMC_TESTS_UNIT_GGUF_TESTMODELS_H

#include "compiler/reference/Interpreter.h"
#include "frontends/common/ImportError.h"
#include "frontends/gguf/ImportGguf.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>
#include <optional>

namespace llmc::test {

inline std::string fixture(const std::string &name) {
  return std::string(LLMC_TEST_FIXTURES) + "/" + name;
}

/// What an error says and of what kind it is.
struct Refusal {
  ImportError::Kind kind{};
  std::string message;
};

inline Refusal refusalOf(llvm::Error error) {
  Refusal refusal;
  llvm::handleAllErrors(std::move(error), [&](const ImportError &e) {
    refusal = {e.getKind(), e.getMessage().str()};
  });
  return refusal;
}

/// An imported model; float32 KV state, so that equal models have equal logits.
class TestModel {
public:
  explicit TestModel(const std::string &path, const GgufImportOptions &options = {}) {
    auto imported = importGguf(path, context, options);
    if (!imported) {
      ADD_FAILURE() << llvm::toString(imported.takeError());
      return;
    }
    model = std::move(*imported);
    if (!model.module)
      return;
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*model.module)));
    for (auto kv : model.module->getOps<llm::KvOp>())
      kv.setEncoding("f32");
    auto created = Interpreter::create(*model.module, model.files);
    if (created)
      interpreter.emplace(std::move(*created));
    else
      ADD_FAILURE() << llvm::toString(created.takeError());
  }

  /// Logits of all tokens, from position 0 on.
  std::vector<float> logits(llvm::ArrayRef<int32_t> tokens) {
    if (!interpreter)
      return {};
    interpreter->reset();
    return step(tokens, 0);
  }
  std::vector<float> step(llvm::ArrayRef<int32_t> tokens, int64_t position) {
    auto result = interpreter->step(tokens, position);
    if (result)
      return std::move(*result);
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }

  mlir::MLIRContext context;
  ImportedModel model;
  std::optional<Interpreter> interpreter;
};

/// 48 tokens below `vocabulary` in no order.
inline std::vector<int32_t> someTokens(int32_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 48; ++i)
    tokens.push_back((i * 37 + 11) % vocabulary);
  return tokens;
}

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_GGUF_TESTMODELS_H
