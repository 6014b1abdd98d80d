//===- Tokenizer.cpp - text to token ids and back -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Tokenizer.h"

#include "runtime/text/Merger.h"
#include "runtime/text/TextStream.h"
#include "runtime/text/Utf8.h"

using namespace llmc;
using namespace llmc::rt;

/// Buffers of one call, reused from word to word.
struct Tokenizer::Scratch {
  Merger merger;
  std::string stored; ///< the word or text as the vocabulary stores it
  std::vector<uint32_t> wordEnds;
  std::vector<AddedTokens::Piece> pieces;

  /// The token that two symbols of `stored` make.
  int32_t joined(const Vocabulary &vocabulary, const Merger::Symbol &left,
                 const Merger::Symbol &right) const {
    return vocabulary.findPlain(
        std::string_view(stored).substr(left.begin, left.size + right.size));
  }
};

StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::create(const fb::Tokenizer *table) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer);
  LLMC_ASSIGN_OR_RETURN(tokenizer->vocabulary, Vocabulary::create(table));
  const Vocabulary &vocabulary = tokenizer->vocabulary;
  if (table->pipeline()) {
    LLMC_ASSIGN_OR_RETURN(tokenizer->rules, Rules::create(vocabulary));
    auto prefix = tokenizer->rules->prefix(), suffix = tokenizer->rules->suffix();
    tokenizer->before.assign(prefix.begin(), prefix.end());
    tokenizer->after.assign(suffix.begin(), suffix.end());
    return tokenizer;
  }
  if (vocabulary.isBpe()) {
    std::string_view name = table->pre() ? table->pre()->string_view() : "default";
    const PreTokenizer *pre = findPreTokenizer(name);
    if (!pre)
      return unsupported(unknownPreTokenizerMessage(name));
    LLMC_ASSIGN_OR_RETURN(tokenizer->splitter, RegexSplitter::create(pre->steps));
  }
  tokenizer->addedTokens = AddedTokens(vocabulary);
  // Some models name a control token as their unknown token; text never makes one.
  int32_t unknown = table->unk();
  if (unknown != kNoToken && vocabulary.type(unknown) != fb::TokenType::Control)
    tokenizer->unknown = unknown;
  if (table->add_bos() && table->bos() != kNoToken)
    tokenizer->before.push_back(table->bos());
  if (table->add_eos() && table->eos() != kNoToken)
    tokenizer->after.push_back(table->eos());
  return tokenizer;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

Status Tokenizer::encode(std::string_view text, EncodeOptions options,
                         std::vector<int32_t> &ids) const {
  TrustedRange all{0, text.size()};
  return encodeRanges(text, {&all, options.parseSpecial ? 1u : 0u}, options.addSpecial, ids);
}

Status Tokenizer::encodeSpans(std::span<const TextSpan> spans, bool addSpecial,
                              std::vector<int32_t> &ids) const {
  std::string text;
  std::vector<TrustedRange> trusted;
  for (const TextSpan &span : spans) {
    size_t begin = text.size();
    text += span.text;
    if (!span.trusted)
      continue;
    if (!trusted.empty() && trusted.back().end == begin)
      trusted.back().end = text.size();
    else
      trusted.push_back({begin, text.size()});
  }
  return encodeRanges(text, trusted, addSpecial, ids);
}

Status Tokenizer::encodeRanges(std::string_view text, std::span<const TrustedRange> trusted,
                               bool addSpecial, std::vector<int32_t> &ids) const {
  if (text.size() > INT32_MAX)
    return outOfRange("a text of 2 GiB or more cannot be tokenized in one piece");
  const size_t first = ids.size();
  LLMC_RETURN_IF_ERROR(rules ? rules->encode(text, trusted, ids) : encodeText(text, trusted, ids));
  if (!addSpecial)
    return {};
  // A text that begins with BOS does not get a second one.
  auto begin = ids.begin() + static_cast<ptrdiff_t>(first);
  if (!before.empty() && (begin == ids.end() || *begin != before[0]))
    ids.insert(begin, before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
  return {};
}

Status Tokenizer::encodeText(std::string_view text, std::span<const TrustedRange> trusted,
                             std::vector<int32_t> &ids) const {
  Scratch scratch;
  addedTokens.cut(text, trusted, scratch.pieces);
  for (const AddedTokens::Piece &piece : scratch.pieces) {
    if (piece.id != kNoToken)
      ids.push_back(piece.id);
    else
      LLMC_RETURN_IF_ERROR(
          encodePlain(text.substr(piece.begin, piece.end - piece.begin), scratch, ids));
  }
  return {};
}

Status Tokenizer::encodePlain(std::string_view text, Scratch &scratch,
                              std::vector<int32_t> &ids) const {
  return vocabulary.isBpe() ? encodeBpe(text, scratch, ids) : encodeSpm(text, scratch, ids);
}

Status Tokenizer::encodeBpe(std::string_view text, Scratch &scratch,
                            std::vector<int32_t> &ids) const {
  LLMC_RETURN_IF_ERROR(splitter.split(text, scratch.wordEnds));
  size_t begin = 0;
  for (uint32_t end : scratch.wordEnds) {
    std::string_view word = text.substr(begin, end - begin);
    begin = end;
    scratch.stored.clear();
    Vocabulary::appendByteLevel(word, scratch.stored);
    if (vocabulary.table().ignore_merges()) {
      if (int32_t id = vocabulary.findPlain(scratch.stored); id != kNoToken) {
        ids.push_back(id);
        continue;
      }
    }
    scratch.merger.clear();
    uint32_t at = 0;
    for (char byte : word) {
      uint32_t size = firstUtf8Unit(std::string_view(scratch.stored).substr(at)).size;
      scratch.merger.push(at, size, vocabulary.byteToken(static_cast<uint8_t>(byte)));
      at += size;
    }
    scratch.merger.run(
        [&](const Merger::Symbol &left, const Merger::Symbol &right) -> std::optional<uint32_t> {
          uint32_t rank = left.id == kNoToken || right.id == kNoToken
                              ? HashIndex::kNone
                              : vocabulary.mergeRank(left.id, right.id);
          return rank == HashIndex::kNone ? std::nullopt : std::optional(rank);
        },
        [&](const auto &left, const auto &right) {
          return scratch.joined(vocabulary, left, right);
        });
    emit(scratch, ids);
  }
  return {};
}

/// Maps floats to integers of the opposite order: the best score is the smallest.
static uint32_t priorityOfScore(float score) {
  uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f); // no negative zero
  uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

Status Tokenizer::encodeSpm(std::string_view text, Scratch &scratch,
                            std::vector<int32_t> &ids) const {
  std::string &stored = scratch.stored;
  std::string_view space = vocabulary.table().escape_whitespaces() ? kStoredSpace : " ";
  stored.clear();
  if (addsSpacePrefix())
    stored += space;
  for (char c : text)
    c == ' ' ? stored.append(space) : stored.append(1, c);
  if (stored.size() >= UINT32_MAX)
    return outOfRange("a text of 4 GiB or more cannot be tokenized in one piece");

  scratch.merger.clear();
  for (uint32_t at = 0; at < stored.size();) {
    std::string_view rest = std::string_view(stored).substr(at);
    Utf8Unit unit = firstUtf8Unit(rest);
    // A byte of no character is a symbol of its own.
    uint32_t size = unit.kind == Utf8Kind::Character ? unit.size : 1;
    scratch.merger.push(at, size, vocabulary.findPlain(rest.substr(0, size)));
    at += size;
  }
  scratch.merger.run(
      [&](const Merger::Symbol &left, const Merger::Symbol &right) -> std::optional<uint32_t> {
        uint32_t size = left.size + right.size;
        if (size > vocabulary.longest())
          return std::nullopt;
        int32_t id = vocabulary.findPlain(std::string_view(stored).substr(left.begin, size));
        return id == kNoToken ? std::nullopt : std::optional(priorityOfScore(vocabulary.score(id)));
      },
      [&](const auto &left, const auto &right) { return scratch.joined(vocabulary, left, right); });
  emit(scratch, ids);
  return {};
}

/// Appends the merged symbols' tokens. A symbol without one falls back to its
/// bytes, and if one of these has no token either, to the unknown token.
void Tokenizer::emit(const Scratch &scratch, std::vector<int32_t> &ids) const {
  scratch.merger.forEach([&](const Merger::Symbol &symbol) {
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
      return;
    }
    size_t mark = ids.size();
    std::string_view rest = std::string_view(scratch.stored).substr(symbol.begin, symbol.size);
    while (!rest.empty()) {
      // In GPT-2's alphabet a byte is a character.
      size_t size = vocabulary.isBpe() ? firstUtf8Unit(rest).size : 1;
      int32_t id = vocabulary.isBpe() ? vocabulary.findPlain(rest.substr(0, size))
                                      : vocabulary.byteToken(static_cast<uint8_t>(rest[0]));
      if (id == kNoToken) {
        ids.resize(mark);
        if (unknown != kNoToken)
          ids.push_back(unknown);
        return;
      }
      ids.push_back(id);
      rest.remove_prefix(size);
    }
  });
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

DecodeState Tokenizer::startDecoding(bool continues) const {
  DecodeState state;
  state.first = !continues;
  if (!continues)
    state.dropSpaces = rules ? rules->leadingSpaces() : addsSpacePrefix();
  return state;
}

Status Tokenizer::appendPiece(int32_t id, bool special, std::string &out,
                              DecodeState &state) const {
  if (!contains(id))
    return outOfRange("token id " + std::to_string(id) + " is outside the vocabulary of " +
                      std::to_string(vocabularySize()) + " tokens");
  if (!special && vocabulary.isControl(id))
    return {};
  rules ? rules->decode(id, state, out) : vocabulary.appendText(id, out);
  return {};
}

Status Tokenizer::decode(std::span<const int32_t> ids, bool special, std::string &out) const {
  StreamDecoder decoder(*this, {.special = special});
  for (int32_t id : ids)
    LLMC_RETURN_IF_ERROR(decoder.push(id, out));
  decoder.flush(out);
  return {};
}

bool Tokenizer::isEnd(int32_t id) const {
  if (id == kNoToken)
    return false;
  if (id == eos())
    return true;
  const auto *ends = vocabulary.table().end_tokens();
  return ends && std::find(ends->begin(), ends->end(), id) != ends->end();
}
