//===- Lexer.cpp - template source to tokens ------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Lexer.h"

#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>

namespace llmc::rt::jinja {
namespace {

/// Line ends become '\n', and one at the very end is dropped.
std::string normalizeNewlines(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n')
      continue;
    result += source[i] == '\r' ? '\n' : source[i];
  }
  if (!result.empty() && result.back() == '\n')
    result.pop_back();
  return result;
}

/// The size of \p text without the white space at its end.
size_t strippedSize(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text, at);
    at += c.bytes;
    if (!isSpace(c.value))
      end = at;
  }
  return end;
}

bool isDecimalDigit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
public:
  Lexer(std::string_view text, std::string_view name) : source(text), name(name) {}

  StatusOr<std::vector<Token>> run();

private:
  Status fail(const std::string &message) const {
    return corrupt(std::string(name) + ":" + std::to_string(line) + ": " + message);
  }
  bool startsWith(std::string_view text) const { return source.substr(pos).starts_with(text); }
  void advance(size_t bytes) {
    line +=
        static_cast<int>(std::count(source.begin() + static_cast<ptrdiff_t>(pos),
                                    source.begin() + static_cast<ptrdiff_t>(pos + bytes), '\n'));
    pos += bytes;
  }
  void skipSpace() {
    while (pos < source.size()) {
      CodePoint c = decodeUtf8(source, pos);
      if (!isSpace(c.value))
        return;
      advance(c.bytes);
    }
  }
  void push(Token::Kind kind, std::string text = {}) {
    Token token;
    token.kind = kind;
    token.line = line;
    token.text = std::move(text);
    tokens.push_back(std::move(token));
  }

  void pushData(size_t end, char sign, bool mayStrip);
  bool atTagEnd(std::string_view delimiter) const;
  void skipTagEnd(std::string_view delimiter, bool trims);
  Status lexComment();
  StatusOr<bool> lexRaw();
  Status lexTag(Token::Kind begin, Token::Kind end, std::string_view delimiter);
  Status lexToken(std::vector<char> &open);
  Status lexString();
  StatusOr<std::string> unescape(std::string_view body) const;
  bool lexNumber();
  Status lexOperator(std::vector<char> &open);

  const std::string_view source;
  const std::string_view name;
  std::vector<Token> tokens;
  size_t pos = 0;
  int line = 1;
  bool lineStarting = true; ///< the text before pos ended a line
};

/// Emits source[pos, end) as data, stripped as the tag behind it asks.
void Lexer::pushData(size_t end, char sign, bool mayStrip) {
  std::string_view data = source.substr(pos, end - pos);
  size_t keep = data.size();
  if (sign == '-') {
    keep = strippedSize(data);
  } else if (sign != '+' && mayStrip) {
    size_t lineBegin = data.rfind('\n') + 1; // 0 where there is none
    if ((lineBegin > 0 || lineStarting) && strippedSize(data.substr(lineBegin)) == 0)
      keep = lineBegin;
  }
  if (keep != 0)
    push(Token::Kind::Data, std::string(data.substr(0, keep)));
  advance(data.size());
}

bool Lexer::atTagEnd(std::string_view delimiter) const {
  if (startsWith(delimiter))
    return true;
  bool signed_ = startsWith("-") || (startsWith("+") && delimiter != "}}");
  return signed_ && source.substr(pos + 1).starts_with(delimiter);
}

/// Moves behind the end of a tag and the white space that it swallows.
void Lexer::skipTagEnd(std::string_view delimiter, bool trims) {
  size_t before = pos;
  char sign = source[pos];
  bool hasSign = !startsWith(delimiter);
  advance(delimiter.size() + hasSign);
  if (hasSign && sign == '-')
    skipSpace();
  else if (!hasSign && trims && startsWith("\n"))
    advance(1);
  lineStarting = pos > before && source[pos - 1] == '\n';
}

Status Lexer::lexComment() {
  while (pos < source.size() && !atTagEnd("#}"))
    advance(1);
  if (pos == source.size())
    return fail("missing end of comment tag");
  skipTagEnd("#}", true);
  return {};
}

/// Behind "{%" and its sign: whether this is a raw block, which is then done.
StatusOr<bool> Lexer::lexRaw() {
  size_t start = pos;
  int startLine = line;
  skipSpace();
  bool isRaw = startsWith("raw");
  if (isRaw) {
    advance(3);
    skipSpace();
  }
  if (!isRaw || !(startsWith("%}") || startsWith("-%}"))) {
    pos = start;
    line = startLine;
    return false;
  }
  skipTagEnd("%}", false);
  for (size_t end = source.find("{%", pos); end != std::string_view::npos;
       end = source.find("{%", end + 1)) {
    size_t at = end + 2;
    char sign = at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : 0;
    at += sign != 0;
    auto skip = [&] {
      while (at < source.size() && isSpace(decodeUtf8(source, at).value))
        at += decodeUtf8(source, at).bytes;
    };
    skip();
    if (!source.substr(at).starts_with("endraw"))
      continue;
    at += 6;
    skip();
    std::string_view rest = source.substr(at);
    if (!rest.starts_with("%}") && !rest.starts_with("-%}") && !rest.starts_with("+%}"))
      continue;
    pushData(end, sign, true);
    advance(at - end);
    skipTagEnd("%}", true);
    return true;
  }
  return fail("missing end of raw directive");
}

StatusOr<std::string> Lexer::unescape(std::string_view body) const {
  std::string out;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    char c = body[++i]; // the body never ends with a lone backslash
    constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    if (size_t at = letters.find(c); at != std::string_view::npos) {
      out += meanings[at];
    } else if (c == '\n') {
      continue;
    } else if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      size_t stop = std::min(body.size(), i + 3);
      for (; i < stop && body[i] >= '0' && body[i] <= '7'; ++i)
        value = value * 8 + static_cast<uint32_t>(body[i] - '0');
      --i;
      appendUtf8(out, value);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      std::string_view hex = body.substr(i + 1, digits);
      bool valid = hex.size() == digits &&
                   hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
      int64_t value = valid ? parseInt(hex, 16).value_or(-1) : -1;
      if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return fail("invalid \\" + std::string(1, c) + " escape in a string");
      appendUtf8(out, static_cast<uint32_t>(value));
      i += digits;
    } else if (c == 'N') {
      return Status(StatusCode::Unsupported, std::string(name) + ":" + std::to_string(line) +
                                                 ": \\N escapes in strings are not supported");
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

Status Lexer::lexString() {
  char quote = source[pos];
  size_t end = pos + 1;
  while (end < source.size() && source[end] != quote)
    end += source[end] == '\\' ? 2 : 1;
  if (end >= source.size())
    return fail("unterminated string");
  LLMC_ASSIGN_OR_RETURN(std::string text, unescape(source.substr(pos + 1, end - pos - 1)));
  push(Token::Kind::String, std::move(text));
  advance(end + 1 - pos);
  return {};
}

/// Whether a number begins here; it is then done. A number that does not fit becomes a float.
bool Lexer::lexNumber() {
  auto digitsFrom = [&](size_t at) { // digits with single underscores between them
    size_t end = at;
    while (end < source.size() && (isDecimalDigit(source[end]) ||
                                   (source[end] == '_' && end > at && end + 1 < source.size() &&
                                    isDecimalDigit(source[end + 1]))))
      ++end;
    return end;
  };
  size_t end = digitsFrom(pos);
  if (end == pos)
    return false;
  bool afterDot = pos > 0 && source[pos - 1] == '.';
  bool isFloat = false;
  if (!afterDot) {
    if (end + 1 < source.size() && source[end] == '.' && isDecimalDigit(source[end + 1])) {
      end = digitsFrom(end + 1);
      isFloat = true;
    }
    if (end + 1 < source.size() && (source[end] == 'e' || source[end] == 'E')) {
      size_t exponent = end + 1 + (source[end + 1] == '+' || source[end + 1] == '-');
      if (size_t stop = digitsFrom(exponent); stop > exponent) {
        end = stop;
        isFloat = true;
      }
    }
  }
  int base = 10;
  if (!isFloat && source[pos] == '0' && pos + 2 < source.size()) {
    char letter = static_cast<char>(source[pos + 1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    auto isDigitOfBase = [&](char c) {
      int value = isDecimalDigit(c) ? c - '0' : (c | 0x20) >= 'a' ? (c | 0x20) - 'a' + 10 : 99;
      return value < base;
    };
    size_t stop = pos + 2;
    while (base != 10 && stop < source.size() &&
           (isDigitOfBase(source[stop]) || source[stop] == '_'))
      ++stop;
    if (base != 10 && stop > pos + 2)
      end = stop;
    else
      base = 10;
  }
  std::string digits(source.substr(pos, end - pos));
  std::erase(digits, '_');
  std::optional<int64_t> integer;
  if (!isFloat)
    integer = parseInt(base == 10 ? digits : digits.substr(2), base);
  push(integer ? Token::Kind::Integer : Token::Kind::Float);
  tokens.back().integer = integer.value_or(0);
  if (!integer)
    tokens.back().number = parseFloat(digits).value_or(0);
  advance(end - pos);
  return true;
}

Status Lexer::lexOperator(std::vector<char> &open) {
  constexpr std::string_view two[] = {"//", "**", "==", "!=", ">=", "<="};
  constexpr std::string_view one = "+-/*%~[](){}><=.:|,;";
  std::string_view op;
  for (std::string_view candidate : two)
    if (startsWith(candidate))
      op = candidate;
  if (op.empty() && one.find(source[pos]) != std::string_view::npos)
    op = source.substr(pos, 1);
  if (op.empty())
    return fail("unexpected character '" +
                std::string(source.substr(pos, decodeUtf8(source, pos).bytes)) + "'");
  char c = op[0];
  if (c == '(' || c == '[' || c == '{') {
    open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
  } else if (c == ')' || c == ']' || c == '}') {
    if (open.empty() || open.back() != c)
      return fail("unexpected '" + std::string(1, c) + "'" +
                  (open.empty() ? "" : ", expected '" + std::string(1, open.back()) + "'"));
    open.pop_back();
  }
  push(Token::Kind::Operator, std::string(op));
  advance(op.size());
  return {};
}

Status Lexer::lexToken(std::vector<char> &open) {
  char c = source[pos];
  if (c == '\'' || c == '"')
    return lexString();
  if (lexNumber())
    return {};
  size_t end = pos;
  while (end < source.size()) {
    CodePoint point = decodeUtf8(source, end);
    if (point.value != '_' && !isAlpha(point.value) && !isNumeric(point.value))
      break;
    end += point.bytes;
  }
  if (end == pos)
    return lexOperator(open);
  push(Token::Kind::Name, std::string(source.substr(pos, end - pos)));
  advance(end - pos);
  return {};
}

Status Lexer::lexTag(Token::Kind begin, Token::Kind end, std::string_view delimiter) {
  push(begin);
  std::vector<char> open; // brackets to be closed before the tag can end
  while (true) {
    skipSpace();
    if (pos == source.size())
      return fail("unexpected end of template inside a tag");
    if (open.empty() && atTagEnd(delimiter)) {
      push(end);
      skipTagEnd(delimiter, delimiter == "%}");
      return {};
    }
    LLMC_RETURN_IF_ERROR(lexToken(open));
  }
}

StatusOr<std::vector<Token>> Lexer::run() {
  while (pos < source.size()) {
    size_t tag = pos;
    auto opensTag = [&] {
      char next = tag + 1 < source.size() ? source[tag + 1] : 0;
      return source[tag] == '{' && (next == '%' || next == '{' || next == '#');
    };
    while (tag < source.size() && !opensTag())
      ++tag;
    if (tag == source.size()) {
      pushData(tag, '+', false);
      break;
    }
    char kind = source[tag + 1];
    char sign = tag + 2 < source.size() ? source[tag + 2] : 0;
    bool hasSign = sign == '-' || sign == '+';
    pushData(tag, sign, kind != '{');
    advance(2 + hasSign);
    lineStarting = false;
    if (kind == '#') {
      LLMC_RETURN_IF_ERROR(lexComment());
    } else if (kind == '{') {
      LLMC_RETURN_IF_ERROR(lexTag(Token::Kind::VariableBegin, Token::Kind::VariableEnd, "}}"));
    } else {
      LLMC_ASSIGN_OR_RETURN(bool raw, lexRaw());
      if (!raw)
        LLMC_RETURN_IF_ERROR(lexTag(Token::Kind::BlockBegin, Token::Kind::BlockEnd, "%}"));
    }
  }
  push(Token::Kind::End);
  return std::move(tokens);
}

} // namespace

StatusOr<std::vector<Token>> tokenize(std::string_view source, std::string_view name) {
  std::string text = normalizeNewlines(source);
  return Lexer(text, name).run();
}

} // namespace llmc::rt::jinja
