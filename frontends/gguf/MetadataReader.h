//===- MetadataReader.h - typed access to a model's metadata ----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads entries of a GGUF file as numbers, flags and texts. The first thing
// that is wrong is kept; readers go on with defaults and ask for the error once
// in the end. A key that begins with "%." is completed with the architecture's
// name: "%.block_count" reads "llama.block_count".
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_METADATAREADER_H
#define LLMC_FRONTENDS_GGUF_METADATAREADER_H

#include "frontends/gguf/GgufFile.h"
#include <vector>

namespace llmc::gguf {

class MetadataReader {
public:
  MetadataReader(const GgufFile &file, llvm::StringRef architecture)
      : file(file), architecture(architecture) {}
  ~MetadataReader() { llvm::consumeError(std::move(firstError)); }

  /// The value, or null where the key is absent.
  const MetaValue *find(llvm::StringRef key) const { return file.find(fullKey(key)); }
  std::string fullKey(llvm::StringRef key) const;

  uint64_t count(llvm::StringRef key, uint64_t fallback);
  uint64_t requiredCount(llvm::StringRef key);
  double number(llvm::StringRef key, double fallback);
  double requiredNumber(llvm::StringRef key);
  bool flag(llvm::StringRef key, bool fallback);
  std::string text(llvm::StringRef key, llvm::StringRef fallback);
  /// A token id; -1 where the key is absent or, as some files have it, no id of the vocabulary.
  int32_t tokenId(llvm::StringRef key, int32_t fallback, size_t vocabulary);
  /// One value per layer: an array of that length, or a scalar for all layers.
  std::vector<uint64_t> perLayer(llvm::StringRef key, size_t layers,
                                 std::optional<uint64_t> fallback);

  void fail(llvm::Error error);
  bool failed() const { return hasFailed; }
  llvm::Error takeError();
  const GgufFile &getFile() const { return file; }

private:
  const MetaValue *require(llvm::StringRef key);
  void wrongType(llvm::StringRef key, const MetaValue &value, llvm::StringRef expected);

  const GgufFile &file;
  llvm::StringRef architecture;
  llvm::Error firstError = llvm::Error::success();
  bool hasFailed = false;
};

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_METADATAREADER_H
