//===- Text.h - a string that knows what came from the user ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user may type `<|im_end|>`, and it must reach the model as text, not as the
// end of the turn. So every string of the template engine carries, beside its
// bytes, which of them are untrusted (came from messages, tools or documents) and
// which are trusted (literals of the template, bos_token and the like). All string
// operations are built from three primitives, appending bytes, appending a slice
// and taking a slice, and each of them keeps the marks byte for byte.
//
// The marks are a list of positions where trust flips. Nearly all strings are of
// one kind and have an empty list.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_TEXT_H
#define LLMC_RUNTIME_TEXT_JINJA_TEXT_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt::jinja {

enum class Trust : bool { Trusted, Untrusted };

class Text {
public:
  Text() = default;
  explicit Text(std::string_view bytes, Trust trust = Trust::Trusted)
      : bytes(bytes), first(bytes.empty() ? Trust::Trusted : trust) {}

  std::string_view str() const { return bytes; }
  size_t size() const { return bytes.size(); }
  bool empty() const { return bytes.empty(); }
  Trust trustAt(size_t at) const;
  /// Untrusted if any byte is.
  Trust overallTrust() const;

  void append(std::string_view more, Trust trust);
  void append(const Text &more) { append(more, 0, more.size()); }
  void append(const Text &more, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;

  /// Calls visit(std::string_view, Trust) for each maximal run in [begin, end).
  template <typename Visitor> void forEachRun(size_t begin, size_t end, Visitor visit) const {
    for (size_t run = runOf(begin); begin < end; ++run) {
      size_t stop = run < flips.size() && flips[run] < end ? flips[run] : end;
      visit(std::string_view(bytes).substr(begin, stop - begin), trustOfRun(run));
      begin = stop;
    }
  }

private:
  size_t runOf(size_t at) const;
  Trust trustOfRun(size_t run) const {
    return static_cast<Trust>(static_cast<bool>(first) != static_cast<bool>(run & 1));
  }

  std::string bytes;
  std::vector<size_t> flips;
  Trust first = Trust::Trusted;
};

/// Builds a text up to a size limit; what is beyond is dropped and remembered as an overflow.
class TextBuilder {
public:
  explicit TextBuilder(size_t limit) : limit(limit) {}

  void add(std::string_view bytes, Trust trust = Trust::Trusted) {
    if (fits(bytes.size()))
      text.append(bytes, trust);
  }
  void add(const Text &more) { add(more, 0, more.size()); }
  void add(const Text &more, size_t begin, size_t end) {
    if (fits(end - begin))
      text.append(more, begin, end);
  }
  void fill(std::string_view unit, size_t count, Trust trust = Trust::Trusted) {
    for (; count != 0 && !overflow; --count)
      add(unit, trust);
  }

  bool overflowed() const { return overflow; }
  size_t size() const { return text.size(); }
  const Text &view() const { return text; }
  Text take() { return std::move(text); }

private:
  bool fits(size_t more) {
    overflow = overflow || more > limit - text.size();
    return !overflow;
  }

  Text text;
  size_t limit;
  bool overflow = false;
};

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_TEXT_H
