//===- Pooling.cpp - what an encoder gives for a text ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Pooling.h"
#include "frontends/common/SentenceConfig.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llmc;

llvm::SmallVector<std::string> llmc::foldersOf(llvm::StringRef model) {
  llvm::StringRef own = llvm::sys::path::parent_path(model);
  llvm::SmallVector<std::string> folders = {own.empty() ? "." : own.str()};
  llvm::SmallString<256> path(model);
  llvm::sys::fs::make_absolute(path);
  if (llvm::sys::path::filename(llvm::sys::path::parent_path(path)) == "onnx")
    folders.push_back(folders[0] + "/..");
  return folders;
}

llvm::Expected<PoolingChoice> llmc::choosePooling(mlir::ModuleOp module, llvm::StringRef kind,
                                                  std::optional<bool> normalize,
                                                  llvm::ArrayRef<std::string> folders) {
  PoolingChoice choice;
  auto pooled = module->getAttrOfType<mlir::StringAttr>("llm.pooling");
  for (const std::string &folder : folders) {
    llvm::Expected<std::optional<SentenceConfig>> config = readSentenceConfig(folder);
    if (!config) {
      // Who says what to do needs no file that does.
      if (kind.empty() && !pooled)
        return config.takeError();
      llvm::consumeError(config.takeError());
      continue;
    }
    if (!*config)
      continue;
    choice = {(*config)->pooling, (*config)->normalize, "modules.json", (*config)->maxTokens};
    break;
  }
  if (pooled) {
    auto normalized = module->getAttrOfType<mlir::BoolAttr>("llm.normalize");
    choice.kind = pooled.str();
    choice.normalize = normalized && normalized.getValue();
    choice.source = "the graph";
  } else if (choice.kind.empty()) {
    choice = {"mean", true, "default", 0};
  }
  if (!kind.empty()) {
    choice.normalize = choice.normalize && kind != "none";
    choice.kind = kind.str();
    choice.source = "--pooling";
  }
  choice.normalize = normalize.value_or(choice.normalize);
  return choice;
}
