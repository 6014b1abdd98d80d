//===- TextOperations.cpp - what Python's str can do ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/TextOperations.h"

#include "runtime/text/jinja/Unicode.h"

#include <algorithm>

namespace llmc::rt::jinja {
namespace {

/// The code point that ends just before byte \p end.
CodePoint decodeBefore(std::string_view text, size_t end) {
  for (size_t bytes = 4; bytes > 1; --bytes)
    if (bytes <= end)
      if (CodePoint c = decodeUtf8(text.substr(0, end), end - bytes); c.bytes == bytes)
        return c;
  return decodeUtf8(text.substr(0, end), end - 1);
}

std::vector<ByteRange> splitAtSpace(std::string_view text, uint64_t limit) {
  std::vector<ByteRange> parts;
  size_t at = 0;
  while (true) {
    at += stripRange(text.substr(at), nullptr, Side::Left).begin;
    if (at == text.size())
      return parts;
    size_t begin = at;
    if (parts.size() == limit) {
      parts.push_back({begin, text.size()});
      return parts;
    }
    for (CodePoint c = decodeUtf8(text, at); !isSpace(c.value); c = decodeUtf8(text, at)) {
      at += c.bytes;
      if (at == text.size())
        break;
    }
    parts.push_back({begin, at});
  }
}

std::vector<ByteRange> splitAtSpaceFromRight(std::string_view text, uint64_t limit) {
  std::vector<ByteRange> parts; // last first
  size_t end = text.size();
  while (true) {
    end = stripRange(text.substr(0, end), nullptr, Side::Right).end;
    if (end == 0)
      break;
    size_t begin = end;
    if (parts.size() == limit) {
      parts.push_back({0, end});
      break;
    }
    while (begin > 0) {
      CodePoint c = decodeBefore(text, begin);
      if (isSpace(c.value))
        break;
      begin -= c.bytes;
    }
    parts.push_back({begin, end});
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<ByteRange> splitAt(std::string_view text, std::string_view separator, uint64_t limit) {
  std::vector<ByteRange> parts;
  size_t begin = 0;
  while (parts.size() < limit) {
    size_t found = text.find(separator, begin);
    if (found == text.npos)
      break;
    parts.push_back({begin, found});
    begin = found + separator.size();
  }
  parts.push_back({begin, text.size()});
  return parts;
}

std::vector<ByteRange> splitAtFromRight(std::string_view text, std::string_view separator,
                                        uint64_t limit) {
  std::vector<ByteRange> parts; // last first
  size_t end = text.size();
  while (parts.size() < limit && end >= separator.size()) {
    size_t found = text.rfind(separator, end - separator.size());
    if (found == text.npos)
      break;
    parts.push_back({found + separator.size(), end});
    end = found;
  }
  parts.push_back({0, end});
  std::reverse(parts.begin(), parts.end());
  return parts;
}

} // namespace

ByteRange stripRange(std::string_view text, const Text *chars, Side side) {
  auto isStripped = [&](CodePoint c) {
    if (!chars)
      return isSpace(c.value);
    std::string_view set = chars->str();
    for (size_t i = 0; i < set.size(); i += decodeUtf8(set, i).bytes)
      if (decodeUtf8(set, i).value == c.value)
        return true;
    return false;
  };
  ByteRange range{0, text.size()};
  if (side != Side::Right)
    while (range.begin < range.end) {
      CodePoint c = decodeUtf8(text, range.begin);
      if (!isStripped(c))
        break;
      range.begin += c.bytes;
    }
  if (side != Side::Left)
    while (range.begin < range.end) {
      CodePoint c = decodeBefore(text, range.end);
      if (!isStripped(c))
        break;
      range.end -= c.bytes;
    }
  return range;
}

bool hasOnlyCase(std::string_view text, CaseMapper map) {
  bool cased = false;
  std::string mapped;
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text, at);
    mapped.clear();
    map(mapped, c.value);
    if (mapped != text.substr(at, c.bytes))
      return false;
    cased = cased || isCased(c.value);
    at += c.bytes;
  }
  return cased;
}

StatusOr<Value> mapCase(Runtime &runtime, const Text &text, CaseMapper first, CaseMapper rest) {
  TextBuilder out = runtime.builder();
  std::string mapped;
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text.str(), at);
    mapped.clear();
    (at == 0 ? first : rest)(mapped, c.value);
    out.add(mapped, text.trustAt(at));
    at += c.bytes;
  }
  return runtime.finish(std::move(out));
}

StatusOr<Value> titleCase(Runtime &runtime, const Text &text) {
  TextBuilder out = runtime.builder();
  std::string mapped;
  bool inWord = false;
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text.str(), at);
    mapped.clear();
    (inWord ? appendLower : appendTitle)(mapped, c.value);
    out.add(mapped, text.trustAt(at));
    inWord = isCased(c.value);
    at += c.bytes;
  }
  return runtime.finish(std::move(out));
}

StatusOr<Value> replaceText(Runtime &runtime, const Text &text, const Text &old,
                            const Text &replacement, int64_t count) {
  LLMC_RETURN_IF_ERROR(runtime.tickSearch(text.size() / 8, old.size()));
  TextBuilder out = runtime.builder();
  std::string_view bytes = text.str();
  uint64_t left = static_cast<uint64_t>(count); // a negative count is as good as endless
  size_t at = 0;
  if (old.empty()) { // before every code point and at the end
    for (; left != 0 && !out.overflowed(); --left) {
      out.add(replacement);
      if (at == bytes.size())
        break;
      size_t next = at + decodeUtf8(bytes, at).bytes;
      out.add(text, at, next);
      at = next;
    }
  } else {
    for (size_t found = bytes.find(old.str()); left != 0 && found != bytes.npos; --left) {
      out.add(text, at, found);
      out.add(replacement);
      if (out.overflowed())
        break;
      at = found + old.size();
      found = bytes.find(old.str(), at);
    }
  }
  out.add(text, at, bytes.size());
  return runtime.finish(std::move(out));
}

StatusOr<std::vector<ByteRange>> splitText(Runtime &runtime, const Text &text,
                                           const Text *separator, int64_t limit, Side from) {
  uint64_t most = static_cast<uint64_t>(limit);
  std::vector<ByteRange> parts;
  if (!separator) {
    LLMC_RETURN_IF_ERROR(runtime.tick(text.size()));
    parts = from == Side::Right ? splitAtSpaceFromRight(text.str(), most)
                                : splitAtSpace(text.str(), most);
  } else {
    if (separator->empty())
      return raised("empty separator");
    LLMC_RETURN_IF_ERROR(runtime.tickSearch(text.size() / 8, separator->size()));
    parts = from == Side::Right ? splitAtFromRight(text.str(), separator->str(), most)
                                : splitAt(text.str(), separator->str(), most);
  }
  LLMC_RETURN_IF_ERROR(runtime.tick(parts.size()));
  LLMC_RETURN_IF_ERROR(runtime.reserve(parts.size() * (sizeof(Value) + sizeof(TextNode))));
  return parts;
}

std::vector<ByteRange> splitLines(std::string_view text, bool keepEnds) {
  std::vector<ByteRange> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text, at);
    size_t next = at + c.bytes;
    if (isLineBreak(c.value)) {
      if (c.value == '\r' && next < text.size() && text[next] == '\n')
        ++next;
      lines.push_back({begin, keepEnds ? next : at});
      begin = next;
    }
    at = next;
  }
  if (begin < text.size())
    lines.push_back({begin, text.size()});
  return lines;
}

StatusOr<Value> padText(Runtime &runtime, const Text &text, int64_t width, const Text &fill,
                        Side side) {
  if (countCodePoints(fill.str()) != 1)
    return raised("the fill character must be exactly one character long");
  int64_t length = static_cast<int64_t>(countCodePoints(text.str()));
  size_t missing = width > length ? static_cast<size_t>(width - length) : 0;
  size_t left = side == Side::Left ? missing : 0;
  if (side == Side::Both) // as CPython: an odd rest goes left where the width is odd
    left = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  TextBuilder out = runtime.builder();
  out.fill(fill.str(), left, fill.overallTrust());
  out.add(text);
  out.fill(fill.str(), missing - left, fill.overallTrust());
  return runtime.finish(std::move(out));
}

StatusOr<Value> joinValues(Runtime &runtime, const Text &separator, const std::vector<Value> &items,
                           bool onlyStrings) {
  TextBuilder out = runtime.builder();
  for (size_t i = 0; i < items.size() && !out.overflowed(); ++i) {
    if (onlyStrings && !items[i].isString())
      return raised("sequence item " + std::to_string(i) + ": expected str instance, " +
                    std::string(typeName(items[i])) + " found");
    if (i != 0)
      out.add(separator);
    LLMC_RETURN_IF_ERROR(runtime.tick());
    LLMC_RETURN_IF_ERROR(runtime.appendStr(out, items[i]));
  }
  return runtime.finish(std::move(out));
}

} // namespace llmc::rt::jinja
