//===- Pooling.h - what an encoder gives for a text -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_POOLING_H
#define LLMC_COMPILER_DRIVER_POOLING_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace llmc {

struct PoolingChoice {
  std::string kind; ///< as in runtime/schema/llmc.fbs, in lower case
  bool normalize = false;
  std::string source;    ///< who said so, for people
  int64_t maxTokens = 0; ///< after so many tokens a text is cut; 0: nothing is said
};

/// The first that says something of: the user (`kind`, `normalize`), the graph, which may pool
/// itself, sentence-transformers' files in one of `folders`. Else the mean, of length 1.
llvm::Expected<PoolingChoice> choosePooling(mlir::ModuleOp module, llvm::StringRef kind,
                                            std::optional<bool> normalize,
                                            llvm::ArrayRef<std::string> folders);

/// The folders beside a model that may hold its tokenizer and configuration: its own, and that
/// above where its own is only one of formats ("onnx").
llvm::SmallVector<std::string> foldersOf(llvm::StringRef model);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_POOLING_H
