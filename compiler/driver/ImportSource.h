//===- ImportSource.h - model file and tokenizer, read and checked -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The phase `import`: the frontend of the file's format, the tokenizer beside it or
// the one that was asked for, and whether the two go together.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_IMPORTSOURCE_H
#define LLMC_COMPILER_DRIVER_IMPORTSOURCE_H

#include "compiler/driver/Compile.h"
#include "compiler/support/ModelSource.h"
#include "mlir/IR/MLIRContext.h"

namespace llmc {

struct ImportedSource {
  ImportedModel model;
  std::string whyGraph; ///< why an ONNX file is not a language model, where it is none
};

/// Told notes and warnings: the kind, and a message without the file's name.
using SayFn = llvm::function_ref<void(llvm::StringRef kind, const llvm::Twine &message)>;

/// Reads options.input; a tokenizer may lie in one of `folders`.
llvm::Expected<ImportedSource> importSource(const CompileOptions &options,
                                            llvm::ArrayRef<std::string> folders,
                                            mlir::MLIRContext &context, SayFn say);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_IMPORTSOURCE_H
