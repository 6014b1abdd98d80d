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
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

/// A source file, mapped read-only. `llm.weight ... from N` means files[N].
struct SourceFile {
  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
};

/// The rules of a tokenizer.json; all as in runtime/schema/llmc.fbs, table TextPipeline.
struct TextStepData {
  enum class Op {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    Replace,
    Surround,
    Prepend,
    Charsmap,
    ByteLevel,
    Split,
  };
  enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };
  Op op = Op::Split;
  std::string pattern, text;
  std::vector<uint8_t> data;
  bool literal = false;
  Behavior behavior = Behavior::Removed;
  bool invert = false, unlessThere = false, firstOnly = false;
};

struct DecodeStepData {
  enum class Op {
    ByteLevel,
    ByteFallback,
    Replace,
    StripLeft,
    StripRight,
    SkipFirst,
    Join,
    CleanUp,
    Suffix,
  };
  Op op = Op::Replace;
  std::string pattern, text;
  uint32_t count = 0;
};

struct AddedTokenData {
  enum Flags : uint8_t { TakesLeft = 1, TakesRight = 2, SingleWord = 4, Normalized = 8 };
  int32_t id = -1;
  uint8_t flags = 0;
};

struct TextPipelineData {
  std::vector<TextStepData> normalizers, preTokenizers;
  std::vector<DecodeStepData> decoders;
  uint32_t stripStart = 0;
  std::vector<AddedTokenData> added;
  std::vector<int32_t> prefix, suffix;
  bool byteLevel = false, byteFallback = false, fuseUnk = false;
  std::string continuingPrefix, wordSuffix;
  uint32_t maxWordChars = 0;
  std::vector<double> logProbs; ///< one per token, Unigram only
};

/// Vocabulary and rules of a tokenizer; fields as in runtime/schema/llmc.fbs, table Tokenizer.
struct TokenizerData {
  enum class Kind { None, Bpe, Spm, WordPiece, Unigram };
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
  std::optional<TextPipelineData> pipeline; ///< of a tokenizer.json
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
