//===- TextStream.cpp - text as it is generated ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/TextStream.h"

#include "runtime/text/Utf8.h"

using namespace llmc::rt;

Status StreamDecoder::push(int32_t id, std::string &out) {
  size_t start = pending.size();
  LLMC_RETURN_IF_ERROR(tokenizer.appendPiece(id, special, pending, state));
  while (state.dropSpaces && pending.size() > start) {
    state.dropSpaces = pending[start] == ' ' ? state.dropSpaces - 1 : 0;
    if (pending[start] == ' ')
      pending.erase(start, 1);
  }
  size_t at = 0;
  while (at < pending.size()) {
    std::string_view rest = std::string_view(pending).substr(at);
    Utf8Unit unit = firstUtf8Unit(rest);
    if (unit.kind == Utf8Kind::Partial)
      break;
    out += unit.kind == Utf8Kind::Character ? rest.substr(0, unit.size) : kReplacementCharacter;
    at += unit.size;
  }
  pending.erase(0, at);
  return {};
}

void StreamDecoder::flush(std::string &out) {
  if (!pending.empty())
    out += kReplacementCharacter;
  pending.clear();
}

StopMatcher::StopMatcher(std::span<const std::string> texts) {
  for (const std::string &text : texts) {
    if (text.empty())
      continue;
    Stop stop{text, {0, 0}};
    // The borders of a text are found by matching it against itself.
    for (size_t i = 1; i < text.size(); ++i) {
      stop.advance(text[i]);
      stop.borders.push_back(stop.matched);
    }
    stop.matched = 0;
    stops.push_back(std::move(stop));
  }
}

/// One step of Knuth, Morris and Pratt's search.
void StopMatcher::Stop::advance(char c) {
  if (matched == text.size())
    matched = borders[matched];
  while (matched && text[matched] != c)
    matched = borders[matched];
  if (text[matched] == c)
    ++matched;
}

bool StopMatcher::push(std::string_view more, std::string &out) {
  for (char c : more) {
    if (found)
      return true;
    held += c;
    size_t keep = 0; // bytes of `held` that may belong to a stop string
    size_t whole = 0;
    for (Stop &stop : stops) {
      stop.advance(c);
      keep = std::max<size_t>(keep, stop.matched);
      if (stop.matched == stop.text.size())
        whole = std::max<size_t>(whole, stop.matched);
    }
    found = whole != 0;
    size_t safe = held.size() - (found ? whole : keep);
    out.append(held, 0, safe);
    held.erase(0, found ? held.size() : safe);
  }
  return found;
}

void StopMatcher::flush(std::string &out) {
  out += held;
  held.clear();
}
