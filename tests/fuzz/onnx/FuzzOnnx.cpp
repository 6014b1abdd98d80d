//===- FuzzOnnx.cpp - any bytes as an ONNX file ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a file. It is refused with an ImportError of one line, or it gives a
// module that verifies and weights that lie in the model's files. The analysis runs
// also on graphs that are no language models.
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Recipe.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/Analysis.h"
#include "frontends/onnx/ImportOnnx.h"
#include "frontends/onnx/ModelReader.h"
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

static std::unique_ptr<llvm::MemoryBuffer> bufferOf(const uint8_t *data, size_t size) {
  return llvm::MemoryBuffer::getMemBuffer(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "fuzz.onnx",
      /*RequiresNullTerminator=*/false);
}

static void checkRefusal(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [](const ImportError &refusal) {
    CHECK(refusal.getMessage().starts_with("fuzz.onnx: "));
    CHECK(!refusal.getMessage().contains('\n'));
  });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context keeps all names and attributes it ever saw.
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 1000 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);

  auto read = onnx::readModel(bufferOf(data, size), "fuzz.onnx");
  if (!read) {
    checkRefusal(read.takeError());
    return 0;
  }
  if (llvm::Error error = onnx::analyze(**read))
    checkRefusal(std::move(error));
  llvm::Expected<ImportedModel> model = importOnnx(bufferOf(data, size), *context);
  if (!model) {
    checkRefusal(model.takeError());
    return 0;
  }
  CHECK(mlir::succeeded(mlir::verify(*model->module)));
  for (auto weight : model->module->getOps<llm::WeightOp>())
    llvm::cantFail(Recipe::create(weight, model->files));
  return 0;
}
