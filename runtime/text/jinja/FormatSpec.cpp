//===- FormatSpec.cpp - the % operator and str.format ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both kinds of format string come down to one Spec and one way to write a value
// by it:  [[fill]align][sign][#][0][width][,][.precision][type]
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/Operators.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace llmc::rt::jinja {
namespace {

constexpr int maxWidth = 1'000'000, maxPrecision = 300;

struct Spec {
  std::string fill = " ";
  Trust trust = Trust::Trusted; ///< of the fill
  char align = 0; ///< '<', '>', '^' or '=' (padding behind the sign); 0 for the type's own
  char sign = '-';
  bool alternate = false;
  bool grouped = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

bool isDecimalDigit(char c) { return c >= '0' && c <= '9'; }

/// Reads a number at \p at; false if it is too large.
bool readNumber(std::string_view text, size_t &at, int most, int &number) {
  for (number = 0; at < text.size() && isDecimalDigit(text[at]); ++at)
    if ((number = number * 10 + (text[at] - '0')) > most)
      return false;
  return true;
}

StatusOr<Spec> parseSpec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  auto isAlign = [&](size_t i) {
    return i < text.size() && std::string_view("<>^=").find(text[i]) != std::string_view::npos;
  };
  size_t fillBytes = text.empty() ? 0 : decodeUtf8(text, 0).bytes;
  if (fillBytes != 0 && isAlign(fillBytes)) {
    spec.fill = text.substr(0, fillBytes);
    spec.align = text[fillBytes];
    at = fillBytes + 1;
  } else if (isAlign(0)) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' '))
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '#')
    spec.alternate = text[at++] == '#';
  if (at < text.size() && text[at] == '0') {
    ++at;
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  if (!readNumber(text, at, maxWidth, spec.width))
    return raised("width in a format specifier is too large");
  if (at < text.size() && text[at] == ',')
    spec.grouped = text[at++] == ',';
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (at == text.size() || !isDecimalDigit(text[at]) ||
        !readNumber(text, at, maxWidth, spec.precision))
      return raised("invalid precision in a format specifier");
  }
  if (at < text.size())
    spec.type = text[at++];
  if (at < text.size())
    return raised("invalid format specifier");
  return spec;
}

void group(std::string &digits) {
  size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t i = end; i > 3; i -= 3)
    digits.insert(i - 3, ",");
}

/// The digits of a number without its sign, or nothing if the type does not fit.
std::optional<std::string> formatMagnitude(const Value &value, const Spec &spec) {
  char type = spec.type;
  if (value.isIntegral() &&
      (type == 0 || type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' ||
       type == 'o' || type == 'b' || type == 'n')) {
    int64_t number = value.asInt();
    uint64_t magnitude =
        number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    int base = (type | 0x20) == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    char buffer[70];
    std::string digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr);
    if (spec.alternate && base != 10)
      digits = (base == 16 ? "0x" : base == 8 ? "0o" : "0b") + digits;
    if (type == 'X')
      std::transform(digits.begin(), digits.end(), digits.begin(), [](char c) {
        return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
      });
    return digits;
  }
  double number = std::fabs(value.asDouble());
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return "inf";
  int precision = std::min(spec.precision < 0 ? 6 : spec.precision, maxPrecision);
  char buffer[maxPrecision + 340];
  auto print = [&](std::chars_format form, int digits) {
    return std::string(buffer,
                       std::to_chars(buffer, buffer + sizeof buffer, number, form, digits).ptr);
  };
  switch (type) {
  case 0: {
    if (spec.precision < 0)
      return formatFloat(number);
    std::string digits = print(std::chars_format::general, std::max(precision, 1));
    return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
  }
  case 'f':
  case 'F':
    return print(std::chars_format::fixed, precision);
  case 'e':
  case 'E':
    return print(std::chars_format::scientific, precision);
  case 'g':
  case 'G':
    return print(std::chars_format::general, std::max(precision, 1));
  case '%':
    number *= 100;
    return print(std::chars_format::fixed, precision) + "%";
  default:
    return std::nullopt;
  }
}

/// Writes a number, which is trusted: it cannot spell a control token.
Status addNumber(TextBuilder &out, const Value &value, const Spec &spec) {
  std::optional<std::string> digits = formatMagnitude(value, spec);
  if (!digits)
    return raised("unknown format code '" + std::string(1, spec.type) + "' for object of type '" +
                  std::string(typeName(value)) + "'");
  if (spec.grouped)
    group(*digits);
  bool negative = value.isFloat() ? std::signbit(value.asDouble()) : value.asInt() < 0;
  std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  size_t size = sign.size() + digits->size(), width = static_cast<size_t>(spec.width);
  size_t missing = width > size ? width - size : 0;
  char align = spec.align ? spec.align : '>';
  size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  out.fill(spec.fill, left, spec.trust);
  out.add(sign);
  if (align == '=')
    out.fill(spec.fill, missing, spec.trust);
  out.add(*digits);
  if (align == '<' || align == '^')
    out.fill(spec.fill, missing - left, spec.trust);
  return {};
}

Status addString(TextBuilder &out, const Text &text, const Spec &spec) {
  if (spec.align == '=' && spec.fill != "0")
    return raised("'=' alignment not allowed in string format specifier");
  size_t end = 0, length = 0;
  while (end < text.size() &&
         (spec.precision < 0 || length < static_cast<size_t>(spec.precision))) {
    end += decodeUtf8(text.str(), end).bytes;
    ++length;
  }
  size_t width = static_cast<size_t>(spec.width);
  size_t missing = width > length ? width - length : 0;
  size_t left = spec.align == '>' ? missing : spec.align == '^' ? missing / 2 : 0;
  out.fill(spec.fill, left, spec.trust);
  out.add(text, 0, end);
  out.fill(spec.fill, missing - left, spec.trust);
  return {};
}

StatusOr<Value> repr(Runtime &runtime, const Value &value) {
  TextBuilder out = runtime.builder();
  LLMC_RETURN_IF_ERROR(runtime.appendRepr(out, value));
  return runtime.finish(std::move(out));
}

/// Hands out the values of `format % values`.
class PercentArguments {
public:
  explicit PercentArguments(const Value &values) : values(values) {
    isTuple = values.isSequence() && values.asSequence().isTuple();
  }

  StatusOr<Value> next() {
    size_t count = isTuple ? values.asSequence().items.size() : 1;
    if (used == count)
      return raised("not enough arguments for format string");
    return isTuple ? values.asSequence().items[used++] : (++used, values);
  }
  StatusOr<Value> named(Runtime &runtime, std::string_view key) {
    if (!values.isDict())
      return raised("format requires a mapping");
    LLMC_RETURN_IF_ERROR(runtime.tick());
    const Value *value = values.asDict().find(Dict::textCode(key));
    used = 1;
    return value ? StatusOr<Value>(*value)
                 : StatusOr<Value>(raised("no key '" + std::string(key) + "' for format string"));
  }
  bool allUsed() const {
    if (isTuple)
      return used == values.asSequence().items.size();
    return used == 1 || values.isDict() || values.isUndefined() ||
           (values.isSequence() && values.asSequence().isIndexable());
  }

private:
  const Value &values;
  bool isTuple;
  size_t used = 0;
};

/// One conversion of a % format, from behind the percent sign at \p at.
Status addPercent(Runtime &runtime, TextBuilder &out, const Text &format, size_t &at,
                  PercentArguments &arguments) {
  std::string_view bytes = format.str();
  Spec spec;
  spec.trust = format.overallTrust();
  std::optional<Value> value;
  if (at < bytes.size() && bytes[at] == '(') {
    size_t close = bytes.find(')', at);
    if (close == bytes.npos)
      return raised("incomplete format key");
    LLMC_ASSIGN_OR_RETURN(value, arguments.named(runtime, bytes.substr(at + 1, close - at - 1)));
    at = close + 1;
  }
  spec.align = '>';
  for (; at < bytes.size(); ++at) {
    if (bytes[at] == '-')
      spec.align = '<';
    else if (bytes[at] == '+' || (bytes[at] == ' ' && spec.sign != '+'))
      spec.sign = bytes[at];
    else if (bytes[at] == '#')
      spec.alternate = true;
    else if (bytes[at] == '0')
      spec.fill = "0";
    else
      break;
  }
  if (!readNumber(bytes, at, maxWidth, spec.width))
    return raised("width too big");
  if (at < bytes.size() && bytes[at] == '.')
    if (!readNumber(bytes, ++at, maxWidth, spec.precision))
      return raised("precision too big");
  if (at == bytes.size())
    return raised("incomplete format");
  spec.type = bytes[at++];
  if (spec.type == '%') {
    out.add("%", format.trustAt(at - 1));
    return {};
  }
  if (!value) {
    LLMC_ASSIGN_OR_RETURN(value, arguments.next());
  }
  bool isText = spec.type == 's' || spec.type == 'r';
  if (spec.align == '<' || isText)
    spec.fill = " ";
  else if (spec.fill == "0")
    spec.align = '=';
  if (isText) {
    LLMC_ASSIGN_OR_RETURN(Value text,
                          spec.type == 's' ? runtime.str(*value) : repr(runtime, *value));
    return addString(out, text.text(), spec);
  }
  if (!value->isNumber())
    return raised("%" + std::string(1, spec.type) + " format: a number is required, not " +
                  std::string(typeName(*value)));
  bool wantsInt = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
  if (wantsInt && value->isFloat()) {
    double whole = std::trunc(value->asDouble());
    if (!(std::fabs(whole) < 0x1p63))
      return raised("cannot convert float to integer");
    value = Value::integer(static_cast<int64_t>(whole));
  }
  if (wantsInt && spec.precision >= 0)
    return raised("a precision is not supported for integers");
  return addNumber(out, *value, spec);
}

/// Hands out the values of `format.format(...)`.
class BraceArguments {
public:
  BraceArguments(Runtime &runtime, const Args &args) : runtime(runtime), args(args) {}

  /// \p field: a name, a number or nothing, then .attribute and [item] parts.
  StatusOr<Value> get(std::string_view field) {
    size_t end = std::min(field.find_first_of(".["), field.size());
    LLMC_ASSIGN_OR_RETURN(Value value, first(field.substr(0, end)));
    while (end < field.size()) {
      size_t begin = end + 1;
      if (field[end] == '.') {
        end = std::min(field.find_first_of(".[", begin), field.size());
        LLMC_ASSIGN_OR_RETURN(value,
                              getAttribute(runtime, value, field.substr(begin, end - begin)));
        continue;
      }
      size_t close = field.find(']', begin);
      if (field[end] != '[' || close == field.npos)
        return raised("invalid field name in format string");
      std::string_view key = field.substr(begin, close - begin);
      std::optional<int64_t> index = isIndex(key) ? parseInt(key) : std::nullopt;
      LLMC_ASSIGN_OR_RETURN(
          value, getItem(runtime, value, index ? Value::integer(*index) : Value::literal(key)));
      end = close + 1;
    }
    return value;
  }

private:
  static bool isIndex(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), isDecimalDigit);
  }
  StatusOr<Value> first(std::string_view name) {
    bool numbered = isIndex(name);
    if (name.empty() || numbered) {
      if (numbered ? automatic : manual)
        return raised("cannot mix manual and automatic field numbering");
      (numbered ? manual : automatic) = true;
      size_t index = numbered ? static_cast<size_t>(parseInt(name).value_or(INT64_MAX)) : next++;
      if (index >= args.positional.size())
        return raised("replacement index out of range for positional args tuple");
      return args.positional[index];
    }
    const Value *value = args.find(name);
    return value ? StatusOr<Value>(*value)
                 : StatusOr<Value>(raised("no argument '" + std::string(name) + "' for format"));
  }

  Runtime &runtime;
  const Args &args;
  size_t next = 0;
  bool automatic = false, manual = false;
};

/// Writes the replacement field \p field, which is without its braces.
Status addField(Runtime &runtime, TextBuilder &out, std::string_view field, Trust trust,
                BraceArguments &arguments) {
  size_t nameEnd = 0; // a bracketed key may hold '!' and ':'
  for (bool inBrackets = false; nameEnd < field.size(); ++nameEnd) {
    char c = field[nameEnd];
    inBrackets = inBrackets ? c != ']' : c == '[';
    if (!inBrackets && (c == '!' || c == ':'))
      break;
  }
  std::string_view rest = field.substr(nameEnd);
  char conversion = 0;
  if (rest.starts_with('!')) {
    conversion = rest.size() > 1 ? rest[1] : 0;
    if ((conversion != 's' && conversion != 'r') || (rest.size() > 2 && rest[2] != ':'))
      return raised("unknown conversion specifier in format string");
    rest.remove_prefix(2);
  }
  if (rest.starts_with(':'))
    rest.remove_prefix(1);
  if (rest.find('{') != rest.npos)
    return raised("nested replacement fields are not supported");
  LLMC_ASSIGN_OR_RETURN(Value value, arguments.get(field.substr(0, nameEnd)));
  LLMC_ASSIGN_OR_RETURN(Spec spec, parseSpec(rest));
  spec.trust = trust;
  if (conversion == 'r') {
    LLMC_ASSIGN_OR_RETURN(value, repr(runtime, value));
  }
  if (value.isNumber() && conversion == 0 && !(value.isBool() && rest.empty()))
    return addNumber(out, value, spec);
  if (!value.isString() && conversion == 0 && !rest.empty())
    return raised("unsupported format string passed to " + std::string(typeName(value)) +
                  ".__format__");
  if (spec.type != 0 && spec.type != 's')
    return raised("unknown format code '" + std::string(1, spec.type) +
                  "' for object of type 'str'");
  LLMC_ASSIGN_OR_RETURN(value, runtime.str(value));
  return addString(out, value.text(), spec);
}

} // namespace

StatusOr<Value> formatPercent(Runtime &runtime, const Text &format, const Value &values) {
  LLMC_RETURN_IF_ERROR(runtime.tick(format.size() / 8));
  std::string_view bytes = format.str();
  PercentArguments arguments(values);
  TextBuilder out = runtime.builder();
  for (size_t at = 0; at < bytes.size() && !out.overflowed();) {
    size_t sign = std::min(bytes.find('%', at), bytes.size());
    out.add(format, at, sign);
    at = sign + 1;
    if (sign < bytes.size())
      LLMC_RETURN_IF_ERROR(addPercent(runtime, out, format, at, arguments));
  }
  if (!out.overflowed() && !arguments.allUsed())
    return raised("not all arguments converted during string formatting");
  return runtime.finish(std::move(out));
}

StatusOr<Value> formatBraces(Runtime &runtime, const Text &format, const Args &args) {
  LLMC_RETURN_IF_ERROR(runtime.tick(format.size() / 8));
  std::string_view bytes = format.str();
  BraceArguments arguments(runtime, args);
  TextBuilder out = runtime.builder();
  for (size_t at = 0; at < bytes.size() && !out.overflowed();) {
    size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.add(format, at, brace);
    if (brace == bytes.size())
      break;
    bool doubled = brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace];
    if (doubled) {
      out.add(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == bytes.npos)
      return raised("single '" + std::string(1, bytes[brace]) + "' encountered in format string");
    LLMC_RETURN_IF_ERROR(addField(runtime, out, bytes.substr(brace + 1, close - brace - 1),
                                  format.overallTrust(), arguments));
    at = close + 1;
  }
  return runtime.finish(std::move(out));
}

} // namespace llmc::rt::jinja
