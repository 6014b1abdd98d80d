//===- Vocabulary.h - the tokens of a mapped artifact ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checked view of the flatbuffer table llmc::fb::Tokenizer: token texts, types,
// scores, merges and the hash tables over them stay in the mapped file.
//
// How a token's stored text and the text it stands for differ:
//
//   byte-level BPE   stored in GPT-2's alphabet: every byte is one printable
//                    character (' ' is U+0120), so that texts are valid UTF-8
//   SentencePiece    ' ' is stored as U+2581; a token of type Byte is stored as
//                    "<0x0A>" and stands for that one byte
//
// Added tokens (UserDefined, Control, Unknown) stand for their stored text.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_VOCABULARY_H
#define LLMC_RUNTIME_TEXT_VOCABULARY_H

#include "runtime/base/Status.h"
#include "runtime/schema/HashIndex.h"
#include "runtime/schema/llmc_generated.h"

#include <array>
#include <span>
#include <string_view>

namespace llmc::rt {

inline constexpr int32_t kNoToken = -1;

/// How SentencePiece stores a space.
inline constexpr std::string_view kStoredSpace = "\xE2\x96\x81";

class Vocabulary {
public:
  /// Checks `table`, which must outlive the vocabulary, and builds the hash tables that it lacks.
  static StatusOr<Vocabulary> create(const fb::Tokenizer *table);

  const fb::Tokenizer &table() const { return *source; }
  bool isBpe() const { return source->kind() == fb::TokenizerKind::Bpe; }
  /// Whether tokens are stored in GPT-2's alphabet.
  bool isByteLevel() const {
    return source->pipeline() ? source->pipeline()->byte_level() : isBpe();
  }
  int32_t size() const { return count; }
  bool contains(int32_t id) const { return id >= 0 && id < count; }

  // The following take an id that the vocabulary contains.
  std::string_view storedText(int32_t id) const {
    return {texts + offsets[id], offsets[id + 1] - offsets[id]};
  }
  fb::TokenType type(int32_t id) const {
    return types ? static_cast<fb::TokenType>(types[id]) : fb::TokenType::Normal;
  }
  float score(int32_t id) const { return scores ? scores[id] : 0.0f; }

  /// Whether `id` is found as a piece of the text: always (UserDefined), or only
  /// in text that may hold control tokens (Control, Unknown).
  bool isAdded(int32_t id) const { return type(id) == fb::TokenType::UserDefined || isControl(id); }
  bool isControl(int32_t id) const {
    return type(id) == fb::TokenType::Control || type(id) == fb::TokenType::Unknown;
  }

  /// The token stored as `text`, of any type, or kNoToken.
  int32_t find(std::string_view text) const;

  /// The token stored as `text` that ordinary text may become, or kNoToken:
  /// merging characters never makes a control token or a byte token.
  int32_t findPlain(std::string_view text) const;

  /// The rank of the merge of two tokens (0 is merged first), or HashIndex::kNone.
  uint32_t mergeRank(int32_t left, int32_t right) const;

  /// Bytes of the longest stored text.
  uint32_t longest() const { return longestText; }

  /// The token that stands for one byte, or kNoToken.
  int32_t byteToken(uint8_t byte) const { return byteTokens[byte]; }

  /// Appends the bytes that `id` stands for.
  void appendText(int32_t id, std::string &out) const;

  /// The value of a byte token's text, "<0x0A>", or -1.
  static int parseByteText(std::string_view text);

  /// Appends `bytes` in GPT-2's alphabet.
  static void appendByteLevel(std::string_view bytes, std::string &out);
  /// The inverse. False, with `out` as it was, if `text` is not in the alphabet.
  static bool appendFromByteLevel(std::string_view text, std::string &out);

private:
  Status bind();
  Status checkIds() const;
  Status bindTextIndex();
  Status bindMergeIndex();
  void findByteTokens();

  const fb::Tokenizer *source = nullptr;
  const char *texts = nullptr;
  const uint32_t *offsets = nullptr;
  const uint8_t *types = nullptr;   ///< null: all Normal
  const float *scores = nullptr;    ///< null: all 0
  std::span<const uint64_t> merges; ///< left id << 32 | right id
  int32_t count = 0;
  std::vector<uint32_t> madeTextIndex, madeMergeIndex; ///< empty: they are in the file
  uint32_t longestText = 0;
  HashIndex textIndex, mergeIndex;
  std::array<int32_t, 256> byteTokens;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_VOCABULARY_H
