//===- TextSteps.h - runs the steps from a text to words --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A list of pieces passes through the steps of a pipeline (runtime/schema/llmc.fbs,
// table TextStep). A step changes the text of each piece or cuts pieces further; it
// sees every piece as a text of its own. The pieces lie in one buffer, which a step
// that changes text writes anew.
//
// Steps come from a file: they are checked when they are made, and a text that grows
// out of all proportion is refused.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_TEXTSTEPS_H
#define LLMC_RUNTIME_TEXT_TEXTSTEPS_H

#include "runtime/schema/llmc_generated.h"
#include "runtime/text/Regex.h"

#include <span>

namespace llmc::rt {

struct TextPieces {
  struct Piece {
    uint32_t begin, end; ///< bytes of `text`
    bool atStart;        ///< begins where the whole text begins
  };
  std::string text;
  std::vector<Piece> list;

  // Buffers of a step, kept for the next.
  std::string nextText;
  std::vector<Piece> nextList;
  struct Match {
    uint32_t begin, end;
    bool isMatch;
  };
  std::vector<Match> matches, merged;

  /// Starts over with one piece.
  void reset(std::string_view whole, bool atStart);
  std::string_view view(const Piece &piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class TextSteps {
public:
  using Table = flatbuffers::Vector<flatbuffers::Offset<fb::TextStep>>;

  TextSteps() = default;
  /// `table` may be null; it must outlive the steps.
  static StatusOr<TextSteps> create(const Table *table);

  bool empty() const { return steps.empty(); }
  Status run(TextPieces &pieces) const;

private:
  struct Step {
    const fb::TextStep *source;
    std::string_view pattern, text;
    Regex regex;                   ///< unless the pattern is a text
    std::span<const uint8_t> trie; ///< Charsmap: units of four bytes
    std::string_view replacements; ///< Charsmap: texts, each ended by a zero
  };

  static StatusOr<Step> makeStep(const fb::TextStep *source);
  Status runStep(const Step &step, TextPieces &pieces, RegexMatcher &matcher, size_t limit) const;
  static Status findMatches(const Step &step, std::string_view piece, TextPieces &pieces,
                            RegexMatcher &matcher);

  std::vector<Step> steps;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_TEXTSTEPS_H
