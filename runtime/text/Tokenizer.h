//===- Tokenizer.h - text to token ids and back ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text becomes tokens in three stages:
//
//   1. Added tokens are cut out of it (AddedTokens.h). Control tokens are found
//      only in trusted text, the template's own: a user's message that spells
//      one out stays text.
//   2. What lies between them is prepared: byte-level BPE cuts it into words
//      (RegexSplitter.h) in GPT-2's alphabet, SentencePiece puts a space in front
//      (if add_space_prefix) and writes spaces as U+2581.
//   3. Characters are merged to tokens (Merger.h).
//
// The rules of a tokenizer.json take the place of all three (Rules.h).
//
// Every byte of a text survives, be it valid UTF-8 or not, as long as the
// vocabulary has tokens for single bytes. A character without a token becomes the
// unknown token, and nothing where there is none, as in the models' own tokenizers.
//
// A tokenizer does not change after it is made; all its functions are thread safe.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_TOKENIZER_H
#define LLMC_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/text/AddedTokens.h"
#include "runtime/text/RegexSplitter.h"
#include "runtime/text/Rules.h"
#include "runtime/text/Vocabulary.h"

namespace llmc::rt {

struct EncodeOptions {
  /// Control text in the text becomes control tokens.
  bool parseSpecial = false;
  /// BOS goes in front (unless the text begins with it) and EOS behind, where the
  /// model wants them.
  bool addSpecial = false;
};

/// A part of a prompt.
struct TextSpan {
  std::string_view text;
  bool trusted; ///< may hold control tokens
};

class Tokenizer {
public:
  /// `table` lies in the mapped artifact and must outlive the tokenizer. It is
  /// checked, not believed.
  static StatusOr<std::unique_ptr<Tokenizer>> create(const fb::Tokenizer *table);

  /// Appends the tokens of `text` to `ids`.
  Status encode(std::string_view text, EncodeOptions options, std::vector<int32_t> &ids) const;

  /// Appends the tokens of the joined spans. A control token is found if it lies
  /// in trusted text as a whole; apart from that, spans leave no trace.
  Status encodeSpans(std::span<const TextSpan> spans, bool addSpecial,
                     std::vector<int32_t> &ids) const;

  /// Appends the bytes that token `id` stands for behind the tokens that `state` has seen:
  /// control tokens have none unless `special`. They need not be whole characters. An id
  /// outside the vocabulary is an error.
  Status appendPiece(int32_t id, bool special, std::string &out, DecodeState &state) const;
  /// The same for a token inside a text.
  Status appendPiece(int32_t id, bool special, std::string &out) const {
    DecodeState inside{.first = false};
    return appendPiece(id, special, out, inside);
  }

  /// How decoding begins. A text that goes on after a prompt keeps its leading spaces.
  DecodeState startDecoding(bool continues) const;

  /// Appends the text of `ids`: the pieces, less the space that encoding put in
  /// front, with U+FFFD for bytes that make no character.
  Status decode(std::span<const int32_t> ids, bool special, std::string &out) const;

  int32_t vocabularySize() const { return vocabulary.size(); }
  /// The token with this stored text ("<|im_end|>", "\u0120the"), or kNoToken.
  int32_t tokenToId(std::string_view storedText) const { return vocabulary.find(storedText); }
  std::string_view storedText(int32_t id) const { return vocabulary.storedText(id); }
  fb::TokenType type(int32_t id) const { return vocabulary.type(id); }
  bool contains(int32_t id) const { return vocabulary.contains(id); }

  int32_t bos() const { return vocabulary.table().bos(); }
  int32_t eos() const { return vocabulary.table().eos(); }
  int32_t unk() const { return vocabulary.table().unk(); }
  /// The tokens in front of a text and behind it where special tokens are wanted.
  std::span<const int32_t> prefix() const { return before; }
  std::span<const int32_t> suffix() const { return after; }
  bool addsBos() const { return !before.empty() && before[0] == bos(); }
  /// Whether texts get a leading space when encoded, which decoding takes away.
  bool addsSpacePrefix() const {
    return !rules && !vocabulary.isBpe() && vocabulary.table().add_space_prefix();
  }
  /// Whether generation stops at `id`.
  bool isEnd(int32_t id) const;
  /// The token that stands for one byte, or kNoToken: texts with this byte may lose it.
  int32_t byteToken(uint8_t byte) const { return vocabulary.byteToken(byte); }

private:
  struct Scratch;

  Tokenizer() = default;
  Status encodeRanges(std::string_view text, std::span<const TrustedRange> trusted, bool addSpecial,
                      std::vector<int32_t> &ids) const;
  Status encodeText(std::string_view text, std::span<const TrustedRange> trusted,
                    std::vector<int32_t> &ids) const;
  Status encodePlain(std::string_view text, Scratch &scratch, std::vector<int32_t> &ids) const;
  Status encodeBpe(std::string_view text, Scratch &scratch, std::vector<int32_t> &ids) const;
  Status encodeSpm(std::string_view text, Scratch &scratch, std::vector<int32_t> &ids) const;
  void emit(const Scratch &scratch, std::vector<int32_t> &ids) const;

  Vocabulary vocabulary;
  AddedTokens addedTokens;
  RegexSplitter splitter;
  std::unique_ptr<Rules> rules; ///< of a tokenizer.json; then the following are not used
  int32_t unknown = kNoToken;   ///< what a character without a token becomes
  std::vector<int32_t> before, after;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_TOKENIZER_H
