//===- ImportOnnx.h - ONNX file -> llm dialect ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry to the ONNX frontend. All errors are ImportErrors (see
// frontends/common/ImportError.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_IMPORTONNX_H
#define LLMC_FRONTENDS_ONNX_IMPORTONNX_H

#include "compiler/support/ModelSource.h"
#include "llvm/Support/Error.h"

namespace llmc {

/// Reads an ONNX model and raises it to the llm dialect. Its context length and end tokens come
/// from genai_config.json or config.json beside it, where they are there; the tokenizer is left
/// open.
llvm::Expected<ImportedModel> importOnnx(llvm::StringRef path, mlir::MLIRContext &context);

/// The same for the bytes of a file, without anything beside it.
llvm::Expected<ImportedModel> importOnnx(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                         mlir::MLIRContext &context);

} // namespace llmc

#endif // LLMC_FRONTENDS_ONNX_IMPORTONNX_H
