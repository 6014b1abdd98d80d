//===- AddedTokens.cpp - finds added tokens in a text ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/AddedTokens.h"

#include "runtime/text/CodePoints.h"

#include <numeric>

using namespace llmc;
using namespace llmc::rt;

AddedTokens::AddedTokens(std::vector<Entry> list) : entries(std::move(list)) {
  std::vector<int32_t> numbers(entries.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  index.build(std::move(numbers), [&](int32_t n) { return entries[n].text; });
}

static std::vector<AddedTokens::Entry> entriesOf(const Vocabulary &vocabulary) {
  std::vector<AddedTokens::Entry> entries;
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.isAdded(id))
      entries.push_back({vocabulary.storedText(id), id, vocabulary.isControl(id), 0});
  return entries;
}

AddedTokens::AddedTokens(const Vocabulary &vocabulary) : AddedTokens(entriesOf(vocabulary)) {}

/// The longest added token at the front of `text`, or null. Control tokens count only
/// as far as they lie in the first `trusted` bytes.
const AddedTokens::Entry *AddedTokens::longestAt(std::string_view text, size_t trusted) const {
  const Entry *longest = nullptr;
  index.forEachPrefix(
      text, [&](int32_t n) { return entries[n].text; },
      [&](int32_t n) {
        if (!entries[n].control || entries[n].text.size() <= trusted)
          longest = &entries[n];
      });
  return longest;
}

static bool has(const AddedTokens::Entry &entry, fb::AddedFlags flag) {
  return entry.flags & static_cast<uint8_t>(flag);
}

/// Whether text[begin, end) has no letter of a word as its neighbour.
static bool standsAlone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !isWordCharacter(lastCodePoint(text.substr(0, begin)).value)) &&
         (end == text.size() || !isWordCharacter(firstCodePoint(text.substr(end)).value));
}

void AddedTokens::cut(std::string_view text, std::span<const TrustedRange> trusted,
                      std::vector<Piece> &pieces) const {
  pieces.clear();
  size_t plain = 0; // where text that is not yet cut off begins
  for (size_t at = 0; at < text.size();) {
    while (!trusted.empty() && trusted.front().end <= at)
      trusted = trusted.subspan(1);
    size_t trustedBytes =
        !trusted.empty() && trusted.front().begin <= at ? trusted.front().end - at : 0;
    const Entry *entry = longestAt(text.substr(at), trustedBytes);
    if (!entry) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + entry->text.size();
    at = end;
    if (has(*entry, fb::AddedFlags::SingleWord) && !standsAlone(text, begin, end))
      continue;
    if (has(*entry, fb::AddedFlags::TakesLeft))
      for (CodePoint c;
           begin > plain && isWhiteSpace((c = lastCodePoint(text.substr(0, begin))).value);)
        begin -= c.size;
    if (has(*entry, fb::AddedFlags::TakesRight))
      for (CodePoint c;
           end < text.size() && isWhiteSpace((c = firstCodePoint(text.substr(end))).value);)
        end += c.size;
    // What the token before has taken stays its own.
    begin = std::max(begin, plain);
    end = std::max(end, begin);
    if (begin > plain)
      pieces.push_back({plain, begin, kNoToken});
    pieces.push_back({begin, end, entry->id});
    plain = end;
  }
  if (plain < text.size())
    pieces.push_back({plain, text.size(), kNoToken});
}
