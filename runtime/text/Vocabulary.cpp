//===- Vocabulary.cpp - the tokens of a mapped artifact -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Vocabulary.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::rt;

//===----------------------------------------------------------------------===//
// GPT-2's alphabet: bytes that print as themselves in Latin-1 keep their code
// point, the others take U+0100 and up, in order.
//===----------------------------------------------------------------------===//

static constexpr uint32_t kAlphabetEnd = 0x144;

static constexpr std::array<uint16_t, 256> makeByteToCodePoint() {
  std::array<uint16_t, 256> map{};
  uint16_t next = 0x100;
  for (uint16_t byte = 0; byte < 256; ++byte) {
    bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    map[byte] = prints ? byte : next++;
  }
  return map;
}
static constexpr std::array<uint16_t, 256> kByteToCodePoint = makeByteToCodePoint();

static constexpr std::array<int16_t, kAlphabetEnd> makeCodePointToByte() {
  std::array<int16_t, kAlphabetEnd> map{};
  for (int16_t &byte : map)
    byte = -1;
  for (int16_t byte = 0; byte < 256; ++byte)
    map[kByteToCodePoint[byte]] = byte;
  return map;
}
static constexpr std::array<int16_t, kAlphabetEnd> kCodePointToByte = makeCodePointToByte();

void Vocabulary::appendByteLevel(std::string_view bytes, std::string &out) {
  for (char c : bytes) {
    uint16_t codePoint = kByteToCodePoint[static_cast<uint8_t>(c)];
    if (codePoint < 0x80) {
      out += static_cast<char>(codePoint);
    } else {
      out += static_cast<char>(0xC0 | codePoint >> 6);
      out += static_cast<char>(0x80 | (codePoint & 0x3F));
    }
  }
}

bool Vocabulary::appendFromByteLevel(std::string_view text, std::string &out) {
  size_t start = out.size();
  for (size_t at = 0; at < text.size();) {
    uint32_t codePoint = static_cast<uint8_t>(text[at++]);
    if (codePoint >= 0xC0 && at < text.size()) // two bytes reach beyond the alphabet
      codePoint = (codePoint & 0x3F) << 6 | (static_cast<uint8_t>(text[at++]) & 0x3F);
    int16_t byte = codePoint < kAlphabetEnd ? kCodePointToByte[codePoint] : -1;
    if (byte < 0) {
      out.resize(start);
      return false;
    }
    out += static_cast<char>(byte);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Checking and indexing
//===----------------------------------------------------------------------===//

StatusOr<Vocabulary> Vocabulary::create(const fb::Tokenizer *table) {
  if (!table || table->kind() == fb::TokenizerKind::None)
    return notFound("the artifact has no tokenizer");
  Vocabulary vocabulary;
  vocabulary.source = table;
  LLMC_RETURN_IF_ERROR(vocabulary.bind());
  LLMC_RETURN_IF_ERROR(vocabulary.checkIds());
  LLMC_RETURN_IF_ERROR(vocabulary.bindTextIndex());
  if (vocabulary.isBpe())
    LLMC_RETURN_IF_ERROR(vocabulary.bindMergeIndex());
  vocabulary.findByteTokens();
  return vocabulary;
}

static Status damaged(const std::string &what) {
  return corrupt("tokenizer: " + what + "; compile the model again");
}

/// Checks the vectors' lengths and contents, and keeps pointers to them.
Status Vocabulary::bind() {
  if (source->kind() > fb::TokenizerKind::MAX)
    return damaged("unknown kind " + std::to_string(static_cast<int>(source->kind())));
  if (!source->text() || !source->offsets() || source->offsets()->size() < 2 ||
      source->offsets()->size() > INT32_MAX)
    return damaged("no tokens");
  texts = reinterpret_cast<const char *>(source->text()->data());
  offsets = source->offsets()->data();
  count = static_cast<int32_t>(source->offsets()->size() - 1);
  for (int32_t id = 0; id < count; ++id) {
    if (offsets[id] > offsets[id + 1])
      return damaged("offsets of token " + std::to_string(id) + " are out of order");
    longestText = std::max(longestText, offsets[id + 1] - offsets[id]);
  }
  if (offsets[count] > source->text()->size())
    return damaged("token texts reach beyond their table");

  auto hasRow = [&](const auto *column) { return column->size() == static_cast<uint32_t>(count); };
  if (source->types() && source->types()->size() != 0) {
    if (!hasRow(source->types()))
      return damaged("types are not one per token");
    types = source->types()->data();
    for (int32_t id = 0; id < count; ++id)
      if (types[id] > static_cast<uint8_t>(fb::TokenType::MAX))
        return damaged("token " + std::to_string(id) + " has an unknown type");
  }
  if (source->scores() && source->scores()->size() != 0) {
    if (!hasRow(source->scores()))
      return damaged("scores are not one per token");
    scores = source->scores()->data();
    for (int32_t id = 0; id < count; ++id)
      if (std::isnan(scores[id]))
        return damaged("token " + std::to_string(id) + " has no number as its score");
  }
  if (const fb::TextPipeline *pipeline = source->pipeline()) {
    if (source->kind() == fb::TokenizerKind::Spm)
      return damaged("rules that its kind does not have");
    if (source->kind() == fb::TokenizerKind::Unigram &&
        (!pipeline->log_probs() || !hasRow(pipeline->log_probs())))
      return damaged("log probabilities are not one per token");
  } else if (source->kind() > fb::TokenizerKind::Spm) {
    return damaged("no rules");
  }
  if (source->merges())
    merges = {source->merges()->data(), source->merges()->size()};
  return {};
}

Status Vocabulary::checkIds() const {
  auto check = [&](const char *name, int32_t id) -> Status {
    return id >= kNoToken && id < count
               ? Status()
               : damaged(std::string(name) + " token " + std::to_string(id) +
                         " is outside the vocabulary of " + std::to_string(count));
  };
  LLMC_RETURN_IF_ERROR(check("bos", source->bos()));
  LLMC_RETURN_IF_ERROR(check("eos", source->eos()));
  LLMC_RETURN_IF_ERROR(check("unk", source->unk()));
  LLMC_RETURN_IF_ERROR(check("pad", source->pad()));
  if (source->end_tokens())
    for (int32_t id : *source->end_tokens())
      LLMC_RETURN_IF_ERROR(check("end", id));
  return {};
}

Status Vocabulary::bindTextIndex() {
  const auto rows = static_cast<uint32_t>(count);
  std::span<const uint32_t> slots;
  if (const auto *given = source->text_index(); given && given->size() != 0) {
    if (!HashIndex::isTable(given->size(), rows))
      return damaged("the index of texts has an impossible size");
    slots = {given->data(), given->size()};
  } else {
    slots = madeTextIndex = indexTexts(texts, {offsets, size_t(rows) + 1});
    if (slots.empty())
      return damaged("token texts collide");
  }
  textIndex = HashIndex(slots, rows);
  return {};
}

Status Vocabulary::bindMergeIndex() {
  if (merges.size() >= HashIndex::kNone)
    return damaged("too many merges");
  const auto rows = static_cast<uint32_t>(merges.size());
  for (uint32_t rank = 0; rank < rows; ++rank)
    if (merges[rank] >> 32 >= static_cast<uint64_t>(count) ||
        static_cast<uint32_t>(merges[rank]) >= static_cast<uint32_t>(count))
      return damaged("merge " + std::to_string(rank) + " is of tokens outside the vocabulary");
  std::span<const uint32_t> slots;
  if (const auto *given = source->merge_index(); given && given->size() != 0) {
    if (!HashIndex::isTable(given->size(), rows))
      return damaged("the index of merges has an impossible size");
    slots = {given->data(), given->size()};
  } else {
    slots = madeMergeIndex = indexMerges(merges);
    if (slots.empty())
      return damaged("merges collide");
  }
  mergeIndex = HashIndex(slots, rows);
  return {};
}

void Vocabulary::findByteTokens() {
  for (int value = 0; value < 256; ++value) {
    char byte = static_cast<char>(value);
    std::string stored;
    if (isByteLevel()) {
      appendByteLevel({&byte, 1}, stored);
      byteTokens[value] = findPlain(stored);
      continue;
    }
    static constexpr char kHex[] = "0123456789ABCDEF";
    stored = {'<', '0', 'x', kHex[value >> 4], kHex[value & 15], '>'};
    byteTokens[value] = find(stored);
    if (byteTokens[value] == kNoToken)
      byteTokens[value] = findPlain({&byte, 1});
  }
}

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

int32_t Vocabulary::find(std::string_view text) const {
  if (text.empty())
    return kNoToken;
  // HashIndex::kNone is kNoToken as an unsigned number.
  return static_cast<int32_t>(
      textIndex.find(hashBytes(text), [&](uint32_t id) { return storedText(id) == text; }));
}

int32_t Vocabulary::findPlain(std::string_view text) const {
  int32_t id = find(text);
  return id != kNoToken && !isControl(id) && type(id) != fb::TokenType::Byte ? id : kNoToken;
}

uint32_t Vocabulary::mergeRank(int32_t left, int32_t right) const {
  uint64_t pair = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  return mergeIndex.find(mixHash(pair), [&](uint32_t rank) { return merges[rank] == pair; });
}

int Vocabulary::parseByteText(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return -1;
  int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high << 4 | low;
}

void Vocabulary::appendText(int32_t id, std::string &out) const {
  std::string_view text = storedText(id);
  if (type(id) == fb::TokenType::Byte) {
    if (int byte = parseByteText(text); byte >= 0) {
      out += static_cast<char>(byte);
      return;
    }
  }
  if (isAdded(id)) {
    out += text;
  } else if (isBpe()) {
    if (!appendFromByteLevel(text, out))
      out += text;
  } else if (!source->escape_whitespaces()) {
    out += text;
  } else {
    for (size_t at = 0; at < text.size();) {
      size_t space = text.find(kStoredSpace, at);
      out += text.substr(at, space - at);
      if (space == std::string_view::npos)
        break;
      out += ' ';
      at = space + kStoredSpace.size();
    }
  }
}
