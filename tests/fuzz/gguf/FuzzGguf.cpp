//===- FuzzGguf.cpp - any bytes as a GGUF file ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a file. It is refused with an ImportError of one line, or it
// gives a module that verifies, weights that lie in the file, and tokenizer
// data whose ids are in the vocabulary.
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Format.h"
#include "frontends/common/ImportError.h"
#include "frontends/common/Rope.h"
#include "frontends/gguf/ImportGguf.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>

using namespace llmc;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      llvm::errs() << "line " << __LINE__ << ": " #condition " does not hold\n";                   \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

// LLVM's allocators poison memory by hand where they are compiled with ASan; the shared libLLVM is
// not, and would not take the poison away.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

static void checkWeights(ImportedModel &model) {
  for (auto weight : model.module->getOps<llm::WeightOp>()) {
    const Encoding *encoding = lookupEncoding(weight.getEncoding());
    CHECK(encoding && weight.getFile() == 0);
    llvm::ArrayRef<int64_t> shape = weight.getShape();
    uint64_t rows = shape.size() == 2 ? uint64_t(shape[0]) : 1;
    uint64_t size = model.files[0].bytes->getBufferSize();
    CHECK(encoding->acceptsRow(uint64_t(shape.back())));
    CHECK(weight.getOffset() <= size);
    CHECK(rows * encoding->rowBytes(uint64_t(shape.back())) <= size - weight.getOffset());
  }
}

static void checkTokenizer(const TokenizerData &tokenizer) {
  auto size = int64_t(tokenizer.tokens.size());
  CHECK(tokenizer.types.size() == tokenizer.tokens.size());
  if (tokenizer.kind == TokenizerData::Kind::Spm)
    CHECK(tokenizer.scores.size() == tokenizer.tokens.size());
  for (uint64_t merge : tokenizer.merges)
    CHECK(int64_t(merge >> 32) < size && int64_t(uint32_t(merge)) < size);
  for (int32_t id : {tokenizer.bos, tokenizer.eos, tokenizer.unk, tokenizer.pad})
    CHECK(id >= -1 && id < size);
  for (int32_t id : tokenizer.endTokens)
    CHECK(id >= 0 && id < size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context keeps all names and attributes it ever saw.
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 1000 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);

  GgufImportOptions options;
  options.knownPreList = "gpt-2";
  options.findPre = [](llvm::StringRef name) {
    return name == "gpt-2" ? std::optional(PreTokenizerDefaults()) : std::nullopt;
  };
  auto bytes = llvm::MemoryBuffer::getMemBuffer(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "fuzz.gguf",
      /*RequiresNullTerminator=*/false);
  llvm::Expected<ImportedModel> model = importGguf(std::move(bytes), *context, options);
  if (!model) {
    llvm::handleAllErrors(model.takeError(), [](const ImportError &error) {
      CHECK(error.getMessage().starts_with("fuzz.gguf: "));
      CHECK(!error.getMessage().contains('\n'));
    });
    return 0;
  }
  checkTokenizer(model->tokenizer);
  if (model->module) {
    CHECK(mlir::succeeded(mlir::verify(*model->module)));
    checkWeights(*model);
    (void)summarizeRope(*model->module);
  }
  return 0;
}
