//===- Rules.h - the rules of a tokenizer.json ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs what runtime/schema/llmc.fbs, table TextPipeline, describes. To tokens:
//
//   text ─► added tokens ─► normalizers ─► normalized added tokens ─► pre-tokenizers ─► words
//
// and each word by the model: BPE (with Tokenizer's merger), WordPiece or Unigram.
// Back to text, a token's text passes through the decoders.
//
// Control tokens are found in trusted text only. One that is looked for after
// normalization is found where its whole surroundings are trusted; in a text of both
// kinds it is looked for as it is spelled.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_RULES_H
#define LLMC_RUNTIME_TEXT_RULES_H

#include "runtime/base/FunctionRef.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/Merger.h"
#include "runtime/text/TextSteps.h"

namespace llmc::rt {

/// Where decoding stands between two tokens.
struct DecodeState {
  bool first = true;       ///< no token yet
  bool spaceDue = false;   ///< the last token ended a word
  uint32_t dropSpaces = 0; ///< spaces in front of the whole text that are not its own
};

class Rules {
public:
  /// `vocabulary` must outlive the rules, and have a pipeline.
  static StatusOr<std::unique_ptr<Rules>> create(const Vocabulary &vocabulary);

  /// Appends the tokens of `text`, without those around it.
  Status encode(std::string_view text, std::span<const TrustedRange> trusted,
                std::vector<int32_t> &ids) const;

  std::span<const int32_t> prefix() const { return before; }
  std::span<const int32_t> suffix() const { return after; }
  uint32_t leadingSpaces() const { return table.strip_start(); }

  /// Appends what `id` stands for behind the tokens before it.
  void decode(int32_t id, DecodeState &state, std::string &out) const;

private:
  struct Buffers;
  explicit Rules(const Vocabulary &vocabulary)
      : vocabulary(vocabulary), table(*vocabulary.table().pipeline()) {}

  Status bind();
  Status bindAdded();
  Status encodePlain(std::string_view text, bool atStart, bool trusted, Buffers &buffers,
                     std::vector<int32_t> &ids) const;
  void encodeWord(std::string_view word, Buffers &buffers, std::vector<int32_t> &ids) const;
  void encodeBpe(std::string_view word, Buffers &buffers, std::vector<int32_t> &ids) const;
  void encodeWordPiece(std::string_view word, std::vector<int32_t> &ids) const;
  void encodeUnigram(std::string_view word, Buffers &buffers, std::vector<int32_t> &ids) const;
  bool isPlain(int32_t id) const;
  bool appendBytes(std::string_view text, std::vector<int32_t> &ids) const;
  int32_t joined(int32_t left, int32_t right, std::string &buffer) const;

  const Vocabulary &vocabulary;
  const fb::TextPipeline &table;
  TextSteps normalizers, preTokenizers;
  std::string_view continuingPrefix, wordSuffix;
  std::span<const int32_t> before, after;
  AddedTokens spelled;    ///< looked for before normalization
  AddedTokens allSpelled; ///< the same, and all control tokens: for texts of mixed trust
  AddedTokens normalized; ///< looked for after it
  std::vector<std::string> normalizedTexts;
  PrefixIndex pieces;      ///< WordPiece, Unigram: all tokens
  PrefixIndex continuing;  ///< WordPiece: those inside a word, without the prefix
  double unknownScore = 0; ///< Unigram
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_RULES_H
