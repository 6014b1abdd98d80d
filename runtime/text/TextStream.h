//===- TextStream.h - text as it is generated ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens end anywhere: inside a character, inside a stop string. Two filters, one
// behind the other, hold back as little as possible:
//
//   ids -> StreamDecoder -> whole characters -> StopMatcher -> text to show
//
// Whatever the cuts between the parts that go in, the text that comes out is the
// same. Neither allocates once its buffers have grown.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_TEXTSTREAM_H
#define LLMC_RUNTIME_TEXT_TEXTSTREAM_H

#include "runtime/text/Tokenizer.h"

namespace llmc::rt {

struct StreamOptions {
  bool special = false;   ///< control tokens appear as text
  bool continues = false; ///< the text goes on after a prompt: a leading space is its own
};

/// Turns tokens into text that is valid UTF-8 after every token. Bytes that can no
/// longer become a character appear as U+FFFD, once per broken sequence.
class StreamDecoder {
public:
  explicit StreamDecoder(const Tokenizer &tokenizer, StreamOptions options = {})
      : tokenizer(tokenizer), special(options.special),
        state(tokenizer.startDecoding(options.continues)) {}

  /// Appends to `out` the characters that are complete with this token.
  Status push(int32_t id, std::string &out);

  /// Ends the text: an incomplete character becomes U+FFFD.
  void flush(std::string &out);

private:
  const Tokenizer &tokenizer;
  bool special;
  DecodeState state;
  std::string pending; ///< the beginning of a character
};

/// Ends a text before the first of some stop strings. Text is held back only while
/// it may still become one.
class StopMatcher {
public:
  StopMatcher() = default;
  /// Empty strings never match.
  explicit StopMatcher(std::span<const std::string> stops);

  /// Takes more text and appends to `out` what is certainly before any stop string.
  /// True if a stop string is complete: it and all after it are dropped, and the
  /// matcher takes no more. The stop string that is complete first counts; of
  /// several that end at one place, the longest.
  bool push(std::string_view text, std::string &out);

  /// Ends the text: what was held back appears, unless a stop string was found.
  void flush(std::string &out);

  bool stopped() const { return found; }

private:
  struct Stop {
    std::string text;
    /// borders[n]: length of the longest proper prefix of text[0, n) that ends it.
    std::vector<uint32_t> borders;
    uint32_t matched = 0; ///< bytes of `text` that end the text so far
    void advance(char c);
  };
  std::vector<Stop> stops;
  std::string held;
  bool found = false;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_TEXTSTREAM_H
