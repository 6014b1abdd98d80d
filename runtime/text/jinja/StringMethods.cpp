//===- StringMethods.cpp - the methods of str -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/TextOperations.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>

namespace llmc::rt::jinja {
namespace {

StatusOr<Value> methodCapitalize(Runtime &runtime, const Value &self, Args &) {
  return mapCase(runtime, self.text(), appendTitle, appendLower);
}

StatusOr<Value> methodLower(Runtime &runtime, const Value &self, Args &) {
  return mapCase(runtime, self.text(), appendLower, appendLower);
}

StatusOr<Value> methodUpper(Runtime &runtime, const Value &self, Args &) {
  return mapCase(runtime, self.text(), appendUpper, appendUpper);
}

StatusOr<Value> methodTitle(Runtime &runtime, const Value &self, Args &) {
  return titleCase(runtime, self.text());
}

template <bool (*predicate)(uint32_t)>
StatusOr<Value> methodIsAll(Runtime &runtime, const Value &self, Args &) {
  LLMC_RETURN_IF_ERROR(runtime.tick(self.text().size() / 8));
  return Value::boolean(allCodePoints(self.str(), predicate));
}

bool isAlnum(uint32_t c) { return isAlpha(c) || isNumeric(c); }

template <CaseMapper map> StatusOr<Value> methodIsCase(Runtime &, const Value &self, Args &) {
  return Value::boolean(hasOnlyCase(self.str(), map));
}

template <Side side> StatusOr<Value> methodStrip(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *chars, args.text(0));
  LLMC_RETURN_IF_ERROR(runtime.tick(self.text().size() * (chars ? chars->size() : 1) / 16));
  ByteRange kept = stripRange(self.str(), chars, side);
  return runtime.string(self.text().slice(kept.begin, kept.end), self.isMarkup());
}

/// The padding goes to \p side.
template <Side side> StatusOr<Value> methodPad(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(int64_t width, args.integer(0, 0));
  LLMC_ASSIGN_OR_RETURN(const Text *fill, args.text(1));
  return padText(runtime, self.text(), width, fill ? *fill : Text(" "), side);
}

StatusOr<Value> methodZfill(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(int64_t width, args.integer(0, 0));
  const Text &text = self.text();
  bool hasSign = text.str().starts_with('+') || text.str().starts_with('-');
  LLMC_ASSIGN_OR_RETURN(Value padded, padText(runtime, text.slice(hasSign, text.size()),
                                              width - hasSign, Text("0"), Side::Left));
  TextBuilder out = runtime.builder();
  out.add(text, 0, hasSign);
  out.add(padded.text());
  return runtime.finish(std::move(out));
}

/// The part of the string that the optional parameters start and end (code points) leave.
StatusOr<ByteRange> window(Runtime &runtime, std::string_view text, const Args &args,
                           size_t startParameter) {
  ByteRange range{0, text.size()};
  if (!args[startParameter] && !args[startParameter + 1])
    return range;
  LLMC_RETURN_IF_ERROR(runtime.tick(text.size() / 4));
  int64_t length = static_cast<int64_t>(countCodePoints(text));
  int64_t bounds[] = {0, length};
  for (size_t i = 0; i < 2; ++i) {
    if (const Value *bound = args[startParameter + i]; bound && !bound->isNone()) {
      LLMC_ASSIGN_OR_RETURN(bounds[i], args.integer(startParameter + i, 0));
      if (bounds[i] < 0)
        bounds[i] = std::max<int64_t>(bounds[i] + length, 0);
    }
  }
  size_t at = 0;
  for (int64_t i = 0; i < length && i < bounds[0]; ++i)
    at += decodeUtf8(text, at).bytes;
  range = {at, at};
  if (bounds[0] > length) // beyond the end not even the empty string is found
    return ByteRange{text.size() + 1, text.size()};
  for (int64_t i = bounds[0]; i < length && i < bounds[1]; ++i)
    range.end += decodeUtf8(text, range.end).bytes;
  return range;
}

template <bool atStart>
StatusOr<Value> methodAffix(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(ByteRange range, window(runtime, self.str(), args, 1));
  if (range.begin > range.end)
    return Value::boolean(false);
  std::string_view text = self.str().substr(range.begin, range.end - range.begin);
  auto matches = [&](const Value &affix) {
    return atStart ? text.starts_with(affix.str()) : text.ends_with(affix.str());
  };
  const Value &affixes = *args[0];
  if (affixes.isString())
    return Value::boolean(matches(affixes));
  if (!affixes.isSequence() || !affixes.asSequence().isTuple())
    return raised("the first argument must be str or a tuple of str, not " +
                  std::string(typeName(affixes)));
  for (const Value &affix : affixes.asSequence().items) {
    if (!affix.isString())
      return raised("a tuple of affixes must only contain str");
    if (matches(affix))
      return Value::boolean(true);
  }
  return Value::boolean(false);
}

/// find, rfind, index, rindex: the code point at which the argument begins.
template <bool fromRight, bool mustExist>
StatusOr<Value> methodFind(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *needle, args.text(0));
  if (!needle)
    return raised("must be str, not NoneType");
  LLMC_RETURN_IF_ERROR(runtime.tickSearch(self.text().size() / 4, needle->size()));
  LLMC_ASSIGN_OR_RETURN(ByteRange range, window(runtime, self.str(), args, 1));
  size_t found = std::string_view::npos;
  if (range.begin <= range.end) {
    std::string_view text = self.str().substr(range.begin, range.end - range.begin);
    found = fromRight ? text.rfind(needle->str()) : text.find(needle->str());
  }
  if (found != std::string_view::npos)
    return Value::integer(
        static_cast<int64_t>(countCodePoints(self.str().substr(0, range.begin + found))));
  if (mustExist)
    return raised("substring not found");
  return Value::integer(-1);
}

StatusOr<Value> methodCount(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *needle, args.text(0));
  if (!needle)
    return raised("must be str, not NoneType");
  LLMC_RETURN_IF_ERROR(runtime.tickSearch(self.text().size() / 4, needle->size()));
  LLMC_ASSIGN_OR_RETURN(ByteRange range, window(runtime, self.str(), args, 1));
  if (range.begin > range.end)
    return Value::integer(0);
  std::string_view text = self.str().substr(range.begin, range.end - range.begin);
  if (needle->empty())
    return Value::integer(static_cast<int64_t>(countCodePoints(text)) + 1);
  int64_t count = 0;
  for (size_t at = text.find(needle->str()); at != text.npos;
       at = text.find(needle->str(), at + needle->size()))
    ++count;
  return Value::integer(count);
}

StatusOr<Value> methodFormat(Runtime &runtime, const Value &self, Args &args) {
  return formatBraces(runtime, self.text(), args);
}

StatusOr<Value> methodJoin(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> items, runtime.iterate(*args[0]));
  return joinValues(runtime, self.text(), items->items, true);
}

StatusOr<Value> methodReplace(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *old, args.text(0));
  LLMC_ASSIGN_OR_RETURN(const Text *replacement, args.text(1));
  LLMC_ASSIGN_OR_RETURN(int64_t count, args.integer(2, -1));
  if (!old || !replacement)
    return raised("replace() arguments must be str, not NoneType");
  return replaceText(runtime, self.text(), *old, *replacement, count);
}

Value listOfSlices(Runtime &runtime, const Text &text, const std::vector<ByteRange> &ranges) {
  std::vector<Value> parts;
  for (const ByteRange &range : ranges)
    parts.push_back(runtime.string(text.slice(range.begin, range.end)));
  return runtime.list(std::move(parts));
}

template <Side from> StatusOr<Value> methodSplit(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *separator, args.text(0));
  LLMC_ASSIGN_OR_RETURN(int64_t limit, args.integer(1, -1));
  LLMC_ASSIGN_OR_RETURN(std::vector<ByteRange> ranges,
                        splitText(runtime, self.text(), separator, limit, from));
  return listOfSlices(runtime, self.text(), ranges);
}

StatusOr<Value> methodSplitlines(Runtime &runtime, const Value &self, Args &args) {
  LLMC_RETURN_IF_ERROR(runtime.tick(self.text().size()));
  return listOfSlices(runtime, self.text(), splitLines(self.str(), args.flag(0, false)));
}

template <Side from>
StatusOr<Value> methodPartition(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *separator, args.text(0));
  if (!separator)
    return raised("must be str, not NoneType");
  LLMC_ASSIGN_OR_RETURN(std::vector<ByteRange> ranges,
                        splitText(runtime, self.text(), separator, 1, from));
  Value whole = self, empty = runtime.string("");
  if (ranges.size() == 1)
    return from == Side::Left ? runtime.tuple({whole, empty, empty})
                              : runtime.tuple({empty, empty, whole});
  auto part = [&](size_t begin, size_t end) {
    return runtime.string(self.text().slice(begin, end));
  };
  return runtime.tuple({part(ranges[0].begin, ranges[0].end), part(ranges[0].end, ranges[1].begin),
                        part(ranges[1].begin, ranges[1].end)});
}

template <bool atStart>
StatusOr<Value> methodRemoveAffix(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *affix, args.text(0));
  if (!affix)
    return raised("must be str, not NoneType");
  size_t size = self.text().size();
  bool found = atStart ? self.str().starts_with(affix->str()) : self.str().ends_with(affix->str());
  if (!found)
    return self;
  return runtime.string(atStart ? self.text().slice(affix->size(), size)
                                : self.text().slice(0, size - affix->size()));
}

constexpr Builtin table[] = {
    {"capitalize", "", methodCapitalize},
    {"center", "width fillchar?", methodPad<Side::Both>},
    {"count", "sub start? end?", methodCount},
    {"endswith", "suffix start? end?", methodAffix<false>},
    {"find", "sub start? end?", methodFind<false, false>},
    {"format", "*", methodFormat},
    {"index", "sub start? end?", methodFind<false, true>},
    {"isalnum", "", methodIsAll<isAlnum>},
    {"isalpha", "", methodIsAll<isAlpha>},
    {"isdecimal", "", methodIsAll<isDecimal>},
    {"isdigit", "", methodIsAll<isDigit>},
    {"islower", "", methodIsCase<appendLower>},
    {"isnumeric", "", methodIsAll<isNumeric>},
    {"isspace", "", methodIsAll<isSpace>},
    {"isupper", "", methodIsCase<appendUpper>},
    {"join", "iterable", methodJoin},
    {"ljust", "width fillchar?", methodPad<Side::Right>},
    {"lower", "", methodLower},
    {"lstrip", "chars?", methodStrip<Side::Left>},
    {"partition", "sep", methodPartition<Side::Left>},
    {"removeprefix", "prefix", methodRemoveAffix<true>},
    {"removesuffix", "suffix", methodRemoveAffix<false>},
    {"replace", "old new count?", methodReplace},
    {"rfind", "sub start? end?", methodFind<true, false>},
    {"rindex", "sub start? end?", methodFind<true, true>},
    {"rjust", "width fillchar?", methodPad<Side::Left>},
    {"rpartition", "sep", methodPartition<Side::Right>},
    {"rsplit", "sep? maxsplit?", methodSplit<Side::Right>},
    {"rstrip", "chars?", methodStrip<Side::Right>},
    {"split", "sep? maxsplit?", methodSplit<Side::Left>},
    {"splitlines", "keepends?", methodSplitlines},
    {"startswith", "prefix start? end?", methodAffix<true>},
    {"strip", "chars?", methodStrip<Side::Both>},
    {"title", "", methodTitle},
    {"upper", "", methodUpper},
    {"zfill", "width", methodZfill},
};

} // namespace

std::span<const Builtin> stringMethods() { return table; }

} // namespace llmc::rt::jinja
