//===- Rules.cpp - the rules of a tokenizer.json --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Rules.h"

#include "runtime/text/Utf8.h"

#include <cmath>
#include <numeric>

using namespace llmc;
using namespace llmc::rt;

struct Rules::Buffers {
  Merger merger;
  std::string stored;
  std::vector<AddedTokens::Piece> cuts, normalizedCuts;
  TextPieces normalized, words;
  struct Node {
    double score;
    uint32_t from;
    int32_t id; ///< kNoToken: unknown
    bool reached;
  };
  std::vector<Node> lattice;                           ///< one per place in the word
  std::vector<std::pair<uint32_t, uint32_t>> bestPath; ///< ends of its tokens
  std::vector<int32_t> wordIds;
};

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static Status damaged(const char *what) {
  return corrupt(std::string("tokenizer: ") + what + "; compile the model again");
}

StatusOr<std::unique_ptr<Rules>> Rules::create(const Vocabulary &vocabulary) {
  std::unique_ptr<Rules> rules(new Rules(vocabulary));
  LLMC_RETURN_IF_ERROR(rules->bind());
  LLMC_RETURN_IF_ERROR(rules->bindAdded());
  return rules;
}

Status Rules::bind() {
  LLMC_ASSIGN_OR_RETURN(normalizers, TextSteps::create(table.normalizers()));
  LLMC_ASSIGN_OR_RETURN(preTokenizers, TextSteps::create(table.pre_tokenizers()));
  if (table.normalizers())
    for (const fb::TextStep *step : *table.normalizers())
      if (step->op() == fb::TextOp::Split)
        return damaged("a normalizer that cuts");
  if (table.continuing_prefix())
    continuingPrefix = table.continuing_prefix()->string_view();
  if (table.word_suffix())
    wordSuffix = table.word_suffix()->string_view();
  auto bindIds = [&](const flatbuffers::Vector<int32_t> *ids, std::span<const int32_t> &out) {
    if (ids)
      out = {ids->data(), ids->size()};
    return std::all_of(out.begin(), out.end(), [&](int32_t id) { return vocabulary.contains(id); });
  };
  if (!bindIds(table.prefix(), before) || !bindIds(table.suffix(), after))
    return damaged("a token around texts is outside the vocabulary");
  if (table.decoders())
    for (const fb::DecodeStep *step : *table.decoders())
      if (!step || step->op() > fb::DecodeOp::MAX || !step->pattern() || !step->text())
        return damaged("an unknown decoder");
  if (vocabulary.table().kind() == fb::TokenizerKind::Unigram) {
    double least = 0;
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      double score = table.log_probs()->Get(id);
      if (!std::isfinite(score))
        return damaged("a log probability is no number");
      least = id == 0 ? score : std::min(least, score);
    }
    constexpr double kUnknownPenalty = 10;
    unknownScore = least - kUnknownPenalty;
  }
  if (vocabulary.isBpe())
    return {};
  std::vector<int32_t> numbers(vocabulary.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  pieces.build(numbers, [&](int32_t id) { return vocabulary.storedText(id); });
  std::erase_if(numbers, [&](int32_t id) {
    return !vocabulary.storedText(id).starts_with(continuingPrefix);
  });
  continuing.build(std::move(numbers), [&](int32_t id) {
    return vocabulary.storedText(id).substr(continuingPrefix.size());
  });
  return {};
}

/// Whether ordinary text may become `id`; of two tokens with one text the first.
bool Rules::isPlain(int32_t id) const {
  return vocabulary.findPlain(vocabulary.storedText(id)) == id;
}

Status Rules::bindAdded() {
  if (!table.added())
    return {};
  std::vector<AddedTokens::Entry> before, mixed, after;
  normalizedTexts.reserve(table.added()->size()); // entries keep views
  TextPieces text;
  for (const fb::AddedToken *token : *table.added()) {
    if (!vocabulary.contains(token->id()))
      return damaged("an added token is outside the vocabulary");
    AddedTokens::Entry entry{vocabulary.storedText(token->id()), token->id(),
                             vocabulary.isControl(token->id()), token->flags()};
    bool isNormalized = entry.flags & static_cast<uint8_t>(fb::AddedFlags::Normalized);
    if (!isNormalized || entry.control)
      mixed.push_back(entry);
    if (!isNormalized) {
      before.push_back(entry);
      continue;
    }
    text.reset(entry.text, /*atStart=*/true);
    LLMC_RETURN_IF_ERROR(normalizers.run(text));
    normalizedTexts.emplace_back(text.list.empty() ? "" : text.view(text.list[0]));
    entry.text = normalizedTexts.back();
    after.push_back(entry);
  }
  spelled = AddedTokens(std::move(before));
  allSpelled = AddedTokens(std::move(mixed));
  normalized = AddedTokens(std::move(after));
  return {};
}

//===----------------------------------------------------------------------===//
// To tokens
//===----------------------------------------------------------------------===//

Status Rules::encode(std::string_view text, std::span<const TrustedRange> trusted,
                     std::vector<int32_t> &ids) const {
  Buffers buffers;
  bool whole = trusted.size() == 1 && trusted[0].begin == 0 && trusted[0].end >= text.size();
  (whole || trusted.empty() ? spelled : allSpelled).cut(text, trusted, buffers.cuts);
  for (const AddedTokens::Piece &piece : buffers.cuts) {
    if (piece.id != kNoToken)
      ids.push_back(piece.id);
    else
      LLMC_RETURN_IF_ERROR(encodePlain(text.substr(piece.begin, piece.end - piece.begin),
                                       piece.begin == 0, whole, buffers, ids));
  }
  return {};
}

Status Rules::encodePlain(std::string_view text, bool atStart, bool trusted, Buffers &buffers,
                          std::vector<int32_t> &ids) const {
  buffers.normalized.reset(text, atStart);
  LLMC_RETURN_IF_ERROR(normalizers.run(buffers.normalized));
  for (const TextPieces::Piece &piece : buffers.normalized.list) {
    std::string_view view = buffers.normalized.view(piece);
    TrustedRange all{0, view.size()};
    normalized.cut(view, {&all, trusted ? 1u : 0u}, buffers.normalizedCuts);
    for (const AddedTokens::Piece &cut : buffers.normalizedCuts) {
      if (cut.id != kNoToken) {
        ids.push_back(cut.id);
        continue;
      }
      buffers.words.reset(view.substr(cut.begin, cut.end - cut.begin),
                          piece.atStart && cut.begin == 0);
      LLMC_RETURN_IF_ERROR(preTokenizers.run(buffers.words));
      for (const TextPieces::Piece &word : buffers.words.list)
        if (word.begin < word.end)
          encodeWord(buffers.words.view(word), buffers, ids);
    }
  }
  return {};
}

void Rules::encodeWord(std::string_view word, Buffers &buffers, std::vector<int32_t> &ids) const {
  switch (vocabulary.table().kind()) {
  case fb::TokenizerKind::WordPiece:
    return encodeWordPiece(word, ids);
  case fb::TokenizerKind::Unigram:
    return encodeUnigram(word, buffers, ids);
  default:
    return encodeBpe(word, buffers, ids);
  }
}

/// Appends the tokens of the bytes of `text`, if all of them have one.
bool Rules::appendBytes(std::string_view text, std::vector<int32_t> &ids) const {
  size_t mark = ids.size();
  for (char c : text) {
    int32_t id = vocabulary.byteToken(static_cast<uint8_t>(c));
    if (id == kNoToken) {
      ids.resize(mark);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

/// Bytes of the character at the front; a broken byte is one.
static uint32_t characterSize(std::string_view text) {
  Utf8Unit unit = firstUtf8Unit(text);
  return unit.kind == Utf8Kind::Character ? unit.size : 1;
}

//===----------------------------------------------------------------------===//
// BPE
//===----------------------------------------------------------------------===//

int32_t Rules::joined(int32_t left, int32_t right, std::string &buffer) const {
  std::string_view tail = vocabulary.storedText(right);
  if (!continuingPrefix.empty() && tail.starts_with(continuingPrefix))
    tail.remove_prefix(continuingPrefix.size());
  buffer.assign(vocabulary.storedText(left)).append(tail);
  return vocabulary.findPlain(buffer);
}

void Rules::encodeBpe(std::string_view word, Buffers &buffers, std::vector<int32_t> &ids) const {
  if (vocabulary.table().ignore_merges())
    if (int32_t id = vocabulary.findPlain(word); id != kNoToken) {
      ids.push_back(id);
      return;
    }
  Merger &merger = buffers.merger;
  std::vector<int32_t> &bytes = buffers.wordIds;
  merger.clear();
  const int32_t unknown = vocabulary.table().unk();
  uint32_t unknownFrom = 0, unknownSize = 0; // unknown characters that wait to become a token
  auto flush = [&] {
    if (unknownSize)
      merger.push(unknownFrom, unknownSize, unknown);
    unknownSize = 0;
  };
  for (uint32_t at = 0, size; at < word.size(); at += size) {
    size = characterSize(word.substr(at));
    std::string_view text = word.substr(at, size);
    bool first = at == 0, last = at + size == word.size();
    if ((!first && !continuingPrefix.empty()) || (last && !wordSuffix.empty())) {
      buffers.stored.assign(first ? std::string_view() : continuingPrefix).append(text);
      if (last)
        buffers.stored += wordSuffix;
      text = buffers.stored;
    }
    if (int32_t id = vocabulary.findPlain(text); id != kNoToken) {
      flush();
      merger.push(at, size, id);
      continue;
    }
    bytes.clear();
    if (table.byte_fallback() && appendBytes(text, bytes)) {
      flush();
      for (int32_t id : bytes)
        merger.push(at, 1, id);
    } else if (unknown != kNoToken) {
      if (!table.fuse_unk())
        flush();
      unknownFrom = unknownSize ? unknownFrom : at;
      unknownSize += size;
    }
  }
  flush();
  merger.run(
      [&](const Merger::Symbol &left, const Merger::Symbol &right) -> std::optional<uint32_t> {
        uint32_t rank = vocabulary.mergeRank(left.id, right.id);
        return rank == HashIndex::kNone ? std::nullopt : std::optional(rank);
      },
      [&](const Merger::Symbol &left, const Merger::Symbol &right) {
        return joined(left.id, right.id, buffers.stored);
      });
  merger.forEach([&](const Merger::Symbol &symbol) {
    if (symbol.id != kNoToken)
      ids.push_back(symbol.id);
  });
}

//===----------------------------------------------------------------------===//
// WordPiece: the longest token that begins what is left of the word
//===----------------------------------------------------------------------===//

void Rules::encodeWordPiece(std::string_view word, std::vector<int32_t> &ids) const {
  size_t mark = ids.size(), characters = 0;
  for (size_t at = 0; at < word.size(); at += characterSize(word.substr(at)))
    ++characters;
  bool known = characters <= table.max_word_chars();
  for (size_t begin = 0; known && begin < word.size();) {
    int32_t longest = kNoToken;
    size_t size = 0;
    auto textOf = [&](int32_t id) {
      return vocabulary.storedText(id).substr(begin ? continuingPrefix.size() : 0);
    };
    (begin ? continuing : pieces).forEachPrefix(word.substr(begin), textOf, [&](int32_t id) {
      if (textOf(id).size() == size || !isPlain(id))
        return;
      longest = id;
      size = textOf(id).size();
    });
    known = longest != kNoToken;
    ids.push_back(longest);
    begin += size;
  }
  if (!known) {
    ids.resize(mark);
    if (vocabulary.table().unk() != kNoToken)
      ids.push_back(vocabulary.table().unk());
  }
}

//===----------------------------------------------------------------------===//
// Unigram: the most probable sequence of tokens
//===----------------------------------------------------------------------===//

void Rules::encodeUnigram(std::string_view word, Buffers &buffers,
                          std::vector<int32_t> &ids) const {
  std::vector<Buffers::Node> &lattice = buffers.lattice;
  lattice.assign(word.size() + 1, {0, 0, kNoToken, false});
  auto reach = [&](size_t from, size_t to, int32_t id, double score) {
    Buffers::Node &node = lattice[to];
    score += lattice[from].score;
    if (!node.reached || score > node.score)
      node = {score, static_cast<uint32_t>(from), id, true};
  };
  for (size_t at = 0, size; at < word.size(); at += size) {
    size = characterSize(word.substr(at));
    bool hasOne = false;
    pieces.forEachPrefix(
        word.substr(at), [&](int32_t id) { return vocabulary.storedText(id); },
        [&](int32_t id) {
          if (!isPlain(id))
            return;
          size_t length = vocabulary.storedText(id).size();
          reach(at, at + length, id, table.log_probs()->Get(id));
          hasOne |= length == size;
        });
    if (!hasOne)
      reach(at, at + size, kNoToken, unknownScore);
  }

  // From the end to the front; unknown neighbours are one.
  std::vector<int32_t> &path = buffers.wordIds;
  std::vector<std::pair<uint32_t, uint32_t>> &ranges = buffers.bestPath;
  path.clear();
  ranges.clear();
  for (uint32_t end = static_cast<uint32_t>(word.size()); end > 0;) {
    const Buffers::Node &node = lattice[end];
    if (node.id == kNoToken && !path.empty() && path.back() == kNoToken) {
      ranges.back().first = node.from;
    } else {
      path.push_back(node.id);
      ranges.push_back({node.from, end});
    }
    end = node.from;
  }
  for (size_t i = path.size(); i-- > 0;) {
    if (path[i] != kNoToken)
      ids.push_back(path[i]);
    else if (!(table.byte_fallback() &&
               appendBytes(word.substr(ranges[i].first, ranges[i].second - ranges[i].first),
                           ids)) &&
             vocabulary.table().unk() != kNoToken)
      ids.push_back(vocabulary.table().unk());
  }
}

//===----------------------------------------------------------------------===//
// To text
//===----------------------------------------------------------------------===//

static void replaceAll(std::string &text, std::string_view pattern, std::string_view by) {
  if (pattern.empty())
    return;
  for (size_t at = 0; (at = text.find(pattern, at)) != std::string::npos; at += by.size())
    text.replace(at, pattern.size(), by);
}

/// What BERT's decoder takes back of spaces that its words have got.
static void cleanUp(std::string &text) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto [pattern, by] : kPairs)
    replaceAll(text, pattern, by);
}

void Rules::decode(int32_t id, DecodeState &state, std::string &out) const {
  std::string text(vocabulary.storedText(id));
  const bool first = state.first;
  bool spaceAfter = false;
  state.first = false;
  if (table.decoders())
    for (const fb::DecodeStep *step : *table.decoders()) {
      std::string_view pattern = step->pattern()->string_view();
      switch (step->op()) {
      case fb::DecodeOp::ByteLevel: {
        std::string bytes;
        if (Vocabulary::appendFromByteLevel(text, bytes))
          text = std::move(bytes);
        break;
      }
      case fb::DecodeOp::ByteFallback:
        if (int byte = Vocabulary::parseByteText(text); byte >= 0)
          text.assign(1, static_cast<char>(byte));
        break;
      case fb::DecodeOp::Replace:
        replaceAll(text, pattern, step->text()->string_view());
        break;
      case fb::DecodeOp::StripLeft:
        for (uint32_t n = step->count(); n && !pattern.empty() && text.starts_with(pattern); --n)
          text.erase(0, pattern.size());
        break;
      case fb::DecodeOp::StripRight:
        for (uint32_t n = step->count(); n && !pattern.empty() && text.ends_with(pattern); --n)
          text.resize(text.size() - pattern.size());
        break;
      case fb::DecodeOp::SkipFirst:
        if (first)
          replaceAll(text, pattern, "");
        break;
      case fb::DecodeOp::Join:
        if (first)
          break;
        if (!pattern.empty() && text.starts_with(pattern))
          text.erase(0, pattern.size());
        else
          text.insert(0, step->text()->string_view());
        break;
      case fb::DecodeOp::CleanUp:
        cleanUp(text);
        break;
      case fb::DecodeOp::Suffix:
        spaceAfter = !pattern.empty() && text.find(pattern) != std::string::npos;
        replaceAll(text, pattern, "");
        break;
      }
    }
  if (state.spaceDue)
    out += ' ';
  state.spaceDue = spaceAfter;
  out += text;
}
