//===- ImportGguf.h - GGUF file -> llm dialect ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry to the GGUF frontend. All errors are ImportErrors (see
// frontends/common/ImportError.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_IMPORTGGUF_H
#define LLMC_FRONTENDS_GGUF_IMPORTGGUF_H

#include "compiler/support/ModelSource.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>

namespace llmc {

/// What models with a pre-tokenizer do where their file does not say.
struct PreTokenizerDefaults {
  bool ignoreMerges = false; ///< a word that is a token is taken whole
  bool addBos = false;       ///< texts begin with the BOS token
};

struct GgufImportOptions {
  /// Takes the place of tokenizer.ggml.pre (`--pre NAME`).
  std::optional<std::string> preOverride;
  /// Looks a BPE pre-tokenizer up by name; nothing where the runtime does not know it. Without a
  /// function every name is taken.
  std::function<std::optional<PreTokenizerDefaults>(llvm::StringRef)> findPre;
  /// The known names, for the message that refuses another.
  std::string knownPreList;
  /// Positions asked for; chooses between short and long rope factors. 0: as trained.
  uint64_t context = 0;
};

/// Reads a GGUF file, or the set that a part belongs to. The module is null where there are no
/// tensors (a vocabulary).
llvm::Expected<ImportedModel> importGguf(llvm::StringRef path, mlir::MLIRContext &context,
                                         const GgufImportOptions &options);

/// The same for the bytes of one file.
llvm::Expected<ImportedModel> importGguf(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                         mlir::MLIRContext &context,
                                         const GgufImportOptions &options);

} // namespace llmc

#endif // LLMC_FRONTENDS_GGUF_IMPORTGGUF_H
