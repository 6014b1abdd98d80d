//===- TextSteps.cpp - runs the steps from a text to words ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/TextSteps.h"

#include "runtime/text/CodePoints.h"
#include "runtime/text/Utf8.h"
#include "runtime/text/Vocabulary.h"

#include <cstring>

using namespace llmc;
using namespace llmc::rt;
using fb::SplitBehavior;
using fb::TextOp;

void TextPieces::reset(std::string_view whole, bool atStart) {
  text.assign(whole);
  list.assign(1, {0, static_cast<uint32_t>(whole.size()), atStart});
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static Status damaged(const char *what) {
  return corrupt(std::string("tokenizer: ") + what + "; compile the model again");
}

static bool hasPattern(TextOp op) {
  return op == TextOp::Replace || op == TextOp::Surround || op == TextOp::Split;
}

StatusOr<TextSteps::Step> TextSteps::makeStep(const fb::TextStep *source) {
  Step step{source, {}, {}, {}, {}, {}};
  if (source->pattern())
    step.pattern = source->pattern()->string_view();
  if (source->text())
    step.text = source->text()->string_view();
  if (source->op() > TextOp::MAX || source->behavior() > SplitBehavior::MAX)
    return damaged("an unknown step");
  if (hasPattern(source->op())) {
    if (step.pattern.empty())
      return damaged("a step without its pattern");
    if (!source->literal()) {
      LLMC_ASSIGN_OR_RETURN(step.regex, Regex::create(step.pattern));
    }
  }
  if (source->op() == TextOp::Charsmap) {
    // Bytes of the trie, little endian; the trie; the texts.
    const auto *data = source->data();
    uint32_t size = 0;
    if (!data || data->size() < sizeof(size))
      return damaged("a character map that is too short");
    std::memcpy(&size, data->data(), sizeof(size));
    size_t rest = data->size() - sizeof(size);
    if (size > rest || size < sizeof(uint32_t) || size % sizeof(uint32_t))
      return damaged("a character map whose trie has no sound size");
    step.trie = {data->data() + sizeof(size), size};
    step.replacements = {reinterpret_cast<const char *>(data->data()) + sizeof(size) + size,
                         rest - size};
  }
  return step;
}

StatusOr<TextSteps> TextSteps::create(const Table *table) {
  TextSteps made;
  if (table)
    for (const fb::TextStep *source : *table) {
      if (!source)
        return damaged("a missing step");
      LLMC_ASSIGN_OR_RETURN(Step step, makeStep(source));
      made.steps.push_back(std::move(step));
    }
  return made;
}

//===----------------------------------------------------------------------===//
// SentencePiece's character map: a double-array trie of byte strings
//===----------------------------------------------------------------------===//

namespace {
class CharacterMap {
public:
  CharacterMap(std::span<const uint8_t> trie, std::string_view replacements)
      : trie(trie), replacements(replacements) {}

  /// What the shortest entry that begins `text` is mapped to; false if there is none.
  bool find(std::string_view text, std::string_view &mapped) const {
    uint32_t unit, node = 0;
    if (!unitAt(node, unit))
      return false;
    node ^= offsetOf(unit);
    for (char c : text) {
      auto byte = static_cast<uint8_t>(c);
      if (byte == 0)
        return false;
      node ^= byte;
      if (!unitAt(node, unit) || (unit & (1u << 31 | 0xFF)) != byte)
        return false;
      node ^= offsetOf(unit);
      if (unit >> 8 & 1)
        return value(node, mapped);
    }
    return false;
  }

  /// As SentencePiece's ports do: short graphemes as a whole, the others by character.
  void append(std::string_view text, std::string &out) const {
    constexpr size_t kShort = 6;
    std::string_view mapped;
    while (!text.empty()) {
      size_t size = firstGrapheme(text);
      std::string_view grapheme = text.substr(0, size);
      text.remove_prefix(size);
      if (size < kShort && find(grapheme, mapped)) {
        out += mapped;
        continue;
      }
      for (CodePoint c; !grapheme.empty(); grapheme.remove_prefix(c.size)) {
        c = firstCodePoint(grapheme);
        out += find(grapheme.substr(0, c.size), mapped) ? mapped : grapheme.substr(0, c.size);
      }
    }
  }

private:
  static uint32_t offsetOf(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
  bool unitAt(uint32_t node, uint32_t &unit) const {
    size_t at = static_cast<size_t>(node) * sizeof(unit);
    if (at + sizeof(unit) > trie.size())
      return false;
    std::memcpy(&unit, trie.data() + at, sizeof(unit));
    return true;
  }
  bool value(uint32_t node, std::string_view &mapped) const {
    uint32_t unit;
    if (!unitAt(node, unit) || (unit & INT32_MAX) >= replacements.size())
      return false;
    mapped = replacements.substr(unit & INT32_MAX);
    mapped = mapped.substr(0, mapped.find('\0'));
    return true;
  }

  std::span<const uint8_t> trie;
  std::string_view replacements;
};
} // namespace

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Sets `pieces.matches` to the matches in `piece` and what lies between them. Empty parts are
/// left out, but for empty matches.
Status TextSteps::findMatches(const Step &step, std::string_view piece, TextPieces &pieces,
                              RegexMatcher &matcher) {
  std::vector<TextPieces::Match> &matches = pieces.matches;
  matches.clear();
  uint32_t plain = 0;
  auto add = [&](uint32_t begin, uint32_t end) {
    if (plain < begin)
      matches.push_back({plain, begin, false});
    matches.push_back({begin, end, true});
    plain = end;
  };
  if (step.source->literal()) {
    for (size_t at = 0; (at = piece.find(step.pattern, at)) != std::string_view::npos;
         at += step.pattern.size())
      add(static_cast<uint32_t>(at), static_cast<uint32_t>(at + step.pattern.size()));
  } else {
    RepairedText repaired(piece);
    std::string_view text = repaired.text();
    size_t previousEnd = SIZE_MAX;
    for (size_t at = 0; at <= text.size();) {
      bool found = false;
      LLMC_RETURN_IF_ERROR(matcher.find(step.regex, text, at, found));
      if (!found)
        break;
      size_t begin = matcher.begin(), end = matcher.end();
      // An empty match right behind another is none.
      if (begin != end || begin != previousEnd) {
        uint32_t from = repaired.place(begin);
        add(from, repaired.place(end));
      }
      previousEnd = end;
      at = begin != end        ? end
           : end < text.size() ? end + firstUtf8Unit(text.substr(end)).size
                               : end + 1;
    }
  }
  if (plain < piece.size())
    matches.push_back({plain, static_cast<uint32_t>(piece.size()), false});
  return {};
}

/// What the behavior makes of the matches of one piece.
static void merge(const fb::TextStep &step, std::vector<TextPieces::Match> &matches,
                  std::vector<TextPieces::Match> &merged) {
  merged.clear();
  if (step.invert())
    for (TextPieces::Match &match : matches)
      match.isMatch = !match.isMatch;
  bool previous = false; // whether the part before was a match
  switch (step.behavior()) {
  case SplitBehavior::Removed:
    for (const auto &match : matches)
      if (!match.isMatch)
        merged.push_back(match);
    return;
  case SplitBehavior::Isolated:
    merged = matches;
    return;
  case SplitBehavior::Contiguous:
    for (const auto &match : matches) {
      if (!merged.empty() && match.isMatch == previous)
        merged.back().end = match.end;
      else
        merged.push_back(match);
      previous = match.isMatch;
    }
    return;
  case SplitBehavior::MergedWithPrevious:
    for (const auto &match : matches) {
      if (match.isMatch && !previous && !merged.empty())
        merged.back().end = match.end;
      else
        merged.push_back(match);
      previous = match.isMatch;
    }
    return;
  case SplitBehavior::MergedWithNext:
    for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
      if (match->isMatch && !previous && !merged.empty())
        merged.back().begin = match->begin;
      else
        merged.push_back(*match);
      previous = match->isMatch;
    }
    std::reverse(merged.begin(), merged.end());
    return;
  }
}

Status TextSteps::runStep(const Step &step, TextPieces &pieces, RegexMatcher &matcher,
                          size_t limit) const {
  const TextOp op = step.source->op();
  std::string &out = pieces.nextText;
  std::vector<TextPieces::Piece> &list = pieces.nextList;
  out.clear();
  list.clear();
  if (op == TextOp::Split) {
    for (const TextPieces::Piece &piece : pieces.list) {
      LLMC_RETURN_IF_ERROR(findMatches(step, pieces.view(piece), pieces, matcher));
      merge(*step.source, pieces.matches, pieces.merged);
      for (const TextPieces::Match &part : pieces.merged)
        if (part.begin < part.end)
          list.push_back(
              {piece.begin + part.begin, piece.begin + part.end, piece.atStart && part.begin == 0});
    }
    pieces.list.swap(list);
    return {};
  }

  const CharacterMap map(step.trie, step.replacements);
  for (const TextPieces::Piece &piece : pieces.list) {
    std::string_view text = pieces.view(piece);
    bool atStart = piece.atStart;
    size_t begin = out.size();
    switch (op) {
    case TextOp::Nfc:
    case TextOp::Nfd:
    case TextOp::Nfkc:
    case TextOp::Nfkd: {
      auto form = static_cast<NormalForm>(static_cast<int>(op) - static_cast<int>(TextOp::Nfc));
      if (!appendNormalized(text, form, out))
        return {StatusCode::ResourceExhausted, "no memory to normalize a text"};
      break;
    }
    case TextOp::Lowercase:
      appendLowercase(text, out);
      break;
    case TextOp::Replace:
    case TextOp::Surround:
      LLMC_RETURN_IF_ERROR(findMatches(step, text, pieces, matcher));
      for (const TextPieces::Match &match : pieces.matches) {
        std::string_view part = text.substr(match.begin, match.end - match.begin);
        if (!match.isMatch) {
          out += part;
          continue;
        }
        out += step.text;
        if (out.size() > limit)
          break;
        if (op == TextOp::Surround)
          out.append(part).append(step.text);
        else if (match.begin == 0 && step.text.empty() && !part.empty())
          atStart = false; // what follows begins later
      }
      break;
    case TextOp::Prepend:
      if (!text.empty() && !(step.source->unless_there() && text.starts_with(step.text)) &&
          !(step.source->first_only() && !atStart))
        out += step.text;
      out += text;
      break;
    case TextOp::Charsmap:
      map.append(text, out);
      break;
    case TextOp::ByteLevel:
      Vocabulary::appendByteLevel(text, out);
      break;
    case TextOp::Split:
      break;
    }
    if (out.size() > limit)
      return outOfRange("the tokenizer's rules make too much of a text");
    list.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(out.size()), atStart});
  }
  pieces.text.swap(out);
  pieces.list.swap(list);
  return {};
}

Status TextSteps::run(TextPieces &pieces) const {
  if (steps.empty())
    return {};
  RegexMatcher matcher(RegexMatcher::Patterns::Foreign);
  LLMC_RETURN_IF_ERROR(matcher.ready());
  // No rule of a real tokenizer makes more of a text.
  const size_t limit = std::min<size_t>((size_t(1) << 20) + 256 * pieces.text.size(), INT32_MAX);
  for (const Step &step : steps)
    LLMC_RETURN_IF_ERROR(runStep(step, pieces, matcher, limit));
  return {};
}
