//===- ModelSource.h - what a frontend hands to the driver ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A frontend turns files into: a module in the llm dialect, the mapped files
// that its weights refer to by number, and what the runtime needs to turn text
// into tokens and back. Nothing here owns weight bytes.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_SUPPORT_MODELSOURCE_H
#define LLMC_COMPILER_SUPPORT_MODELSOURCE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

/// A source file, mapped read-only. `llm.weight ... from N` means files[N].
struct SourceFile {
  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
};

/// Vocabulary and rules of a tokenizer; fields as in runtime/schema/llmc.fbs, table Tokenizer.
struct TokenizerData {
  enum class Kind { None, Bpe, Spm };
  Kind kind = Kind::None;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<uint8_t> types;   ///< one per token: GGUF's tokenizer.ggml.token_type
  std::vector<float> scores;    ///< one per token, Spm only
  std::vector<uint64_t> merges; ///< left id << 32 | right id, best rank first, Bpe only
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;
  std::vector<int32_t> endTokens;
  bool addBos = false, addEos = false, addSpacePrefix = false, ignoreMerges = false;
  bool escapeWhitespaces = true, removeExtraWhitespaces = false;
};

struct ImportedModel {
  /// Null for a file that holds a vocabulary only.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<SourceFile> files;
  TokenizerData tokenizer;
  std::string chatTemplate;
  /// Facts for `inspect`, in order (rope, windows, head counts, file type, ...).
  std::vector<std::pair<std::string, std::string>> properties;
};

} // namespace llmc

#endif // LLMC_COMPILER_SUPPORT_MODELSOURCE_H
