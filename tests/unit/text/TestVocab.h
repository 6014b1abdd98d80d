//===- TestVocab.h - vocabularies for tests --------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vocabularies written by hand or read from a GGUF file's metadata, and the
// flatbuffer table that the compiler would have made of them. The GGUF reader is
// the tests' own, so that they do not depend on the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_TEXT_TESTVOCAB_H
#define LLMC_TESTS_UNIT_TEXT_TESTVOCAB_H

#include "runtime/text/Tokenizer.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc::test {

struct TestVocab {
  fb::TokenizerKind kind = fb::TokenizerKind::Bpe;
  std::string pre = "gpt-2";
  std::vector<std::string> tokens;
  std::vector<uint8_t> types; ///< empty: all Normal
  std::vector<float> scores;
  std::vector<std::pair<int32_t, int32_t>> merges;
  std::vector<int32_t> endTokens;
  int32_t bos = -1, eos = -1, unk = -1;
  bool addBos = false, addEos = false, addSpacePrefix = false, ignoreMerges = false;
  std::vector<uint32_t> textIndex, mergeIndex; ///< empty: not in the table

  int32_t add(std::string text, fb::TokenType type = fb::TokenType::Normal, float score = 0);
  /// Adds the 256 tokens for single bytes, as the kind stores them.
  void addBytes();
  /// Adds the token left + right, both given as stored, and its merge.
  int32_t addMerge(const std::string &left, const std::string &right);
  int32_t id(const std::string &text) const;
  /// Fills both indexes as the compiler does.
  void makeIndexes();

  /// The columns as the table has them.
  std::pair<std::string, std::vector<uint32_t>> textColumns() const;
  std::vector<uint64_t> mergeColumn() const;
};

/// A flatbuffer table and the bytes it lies in.
struct Table {
  std::vector<uint8_t> bytes;
  const fb::Tokenizer *operator*() const {
    return flatbuffers::GetRoot<fb::Tokenizer>(bytes.data());
  }
};
Table makeTable(const TestVocab &vocab);

/// A tokenizer together with its table. Aborts the test if it cannot be made.
struct OwnedTokenizer {
  explicit OwnedTokenizer(const TestVocab &vocab);
  Table table;
  std::unique_ptr<rt::Tokenizer> tokenizer;
  const rt::Tokenizer *operator->() const { return tokenizer.get(); }
  const rt::Tokenizer &operator*() const { return *tokenizer; }

  std::vector<int32_t> encode(std::string_view text, rt::EncodeOptions options = {}) const;
  std::string decode(const std::vector<int32_t> &ids, bool special = false) const;
};

/// The tokenizer in a GGUF file's metadata (kinds "gpt2" and "llama"), or nothing if
/// there is no such file.
std::optional<TestVocab> readGgufVocab(const std::string &path);

/// The folder with third-party test data: $LLMC_SHARED, or ../shared beside the
/// checkout. Need not exist.
std::string sharedFolder();

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_TEXT_TESTVOCAB_H
