//===- RegexSplitter.cpp - cuts a text into words -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/RegexSplitter.h"

#include "runtime/text/Utf8.h"

using namespace llmc::rt;

StatusOr<RegexSplitter> RegexSplitter::create(std::span<const SplitStep> steps) {
  RegexSplitter splitter;
  for (const SplitStep &step : steps) {
    LLMC_ASSIGN_OR_RETURN(Regex regex, Regex::create(step.pattern));
    splitter.steps.push_back({std::move(regex), step.groupsOfThree});
  }
  return splitter;
}

/// Appends the ends of the groups of three characters that text[begin, end) is
/// cut into from its end; the first may be shorter.
static void cutIntoThrees(std::string_view text, size_t begin, size_t end,
                          std::vector<uint32_t> &ends) {
  auto next = [&](size_t at) { return at + firstUtf8Unit(text.substr(at)).size; };
  size_t characters = 0;
  for (size_t at = begin; at < end; at = next(at))
    ++characters;
  while (begin < end) {
    begin = next(begin);
    if (--characters % 3 == 0)
      ends.push_back(static_cast<uint32_t>(begin));
  }
}

Status RegexSplitter::splitValid(std::string_view text, std::vector<uint32_t> &ends) const {
  RegexMatcher matcher(RegexMatcher::Patterns::OwnLinear);
  LLMC_RETURN_IF_ERROR(matcher.ready());

  ends.assign(1, static_cast<uint32_t>(text.size()));
  std::vector<uint32_t> pieces;
  for (const Step &step : steps) {
    pieces.swap(ends);
    ends.clear();
    size_t base = 0;
    for (uint32_t pieceEnd : pieces) {
      std::string_view piece = text.substr(base, pieceEnd - base);
      for (size_t at = 0; at < piece.size();) { // no pattern matches the empty text
        bool found = false;
        LLMC_RETURN_IF_ERROR(matcher.find(step.regex, piece, at, found));
        if (!found) {
          ends.push_back(pieceEnd);
          break;
        }
        size_t begin = base + matcher.begin(), end = base + matcher.end();
        if (matcher.begin() > at)
          ends.push_back(static_cast<uint32_t>(begin));
        if (step.groupsOfThree)
          cutIntoThrees(text, begin, end, ends);
        else
          ends.push_back(static_cast<uint32_t>(end));
        at = matcher.end();
      }
      base = pieceEnd;
    }
  }
  return {};
}

Status RegexSplitter::split(std::string_view text, std::vector<uint32_t> &ends) const {
  if (text.size() >= UINT32_MAX)
    return outOfRange("a text of 4 GiB or more cannot be tokenized in one piece");
  ends.clear();
  if (text.empty())
    return {};
  // A broken text is cut as a repaired copy, and the cuts are carried over.
  RepairedText repaired(text);
  if (repaired.text().size() >= UINT32_MAX)
    return outOfRange("a text of 4 GiB or more cannot be tokenized in one piece");
  LLMC_RETURN_IF_ERROR(splitValid(repaired.text(), ends));
  for (uint32_t &end : ends)
    end = repaired.place(end);
  return {};
}
