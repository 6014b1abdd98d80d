//===- OnigPattern.cpp - Oniguruma's patterns as PCRE's -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/tokenizer/OnigPattern.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llmc;
using llvm::StringRef;

namespace {

/// Outside of classes, Oniguruma counts the superscripts and fractions of Latin-1 among the word
/// characters.
constexpr const char *kOnigWord =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

constexpr unsigned kDeepest = 100;

class Translator {
public:
  explicit Translator(StringRef text) : rest(text) {}

  TranslatedPattern run() {
    while (!rest.empty() && refused.empty())
      atom();
    if (refused.empty() && !groups.empty())
      refuse("a group that does not end");
    return {std::move(out), std::move(refused)};
  }

private:
  void refuse(const llvm::Twine &what) {
    if (refused.empty())
      refused = what.str();
  }
  char take() {
    char c = rest.front();
    rest = rest.drop_front();
    return c;
  }
  /// Writes something that a quantifier may follow.
  void put(const llvm::Twine &text) {
    lastAtom = out.size();
    out += text.str();
  }

  void atom() {
    char c = take();
    switch (c) {
    case '\\':
      return escape();
    case '[':
      return put(parseClass(0));
    case '(':
      return group();
    case ')':
      if (groups.empty())
        return refuse("an unmatched ')'");
      out += c;
      lastAtom = groups.pop_back_val();
      return;
    case '^':
      return put("(?:\\A|(?<=\\n)(?!\\z))");
    case '$':
      return put("(?=\\n|\\z)");
    case '{':
      return interval();
    case '*':
    case '+':
    case '?':
    case '|':
      out += c;
      return;
    default:
      lastAtom = out.size();
      out += c;
      // The bytes of one character belong together.
      while (!rest.empty() && (static_cast<unsigned char>(c) & 0x80) &&
             (static_cast<unsigned char>(rest.front()) & 0xC0) == 0x80)
        out += take();
    }
  }

  void group() {
    if (groups.size() >= kDeepest)
      return refuse("groups that are nested too deeply");
    groups.push_back(out.size());
    out += '(';
    if (!rest.consume_front("?"))
      return;
    out += '?';
    if (rest.starts_with("#"))
      return refuse("a comment");
    if (rest.starts_with("<") && !rest.starts_with("<=") && !rest.starts_with("<!"))
      return refuse("a named group");
    if (!rest.empty() && StringRef("=!>:<").contains(rest.front()))
      return;
    // Options. Ruby's m is Perl's s.
    while (!rest.empty() && rest.front() != ':' && rest.front() != ')') {
      char c = take();
      if (c != 'i' && c != 'm' && c != 'x' && c != '-')
        return refuse(llvm::Twine("the option '(?") + llvm::Twine(c) + "'");
      out += c == 'm' ? 's' : c;
    }
    if (rest.consume_front(")")) { // from here to the end of the group
      out += ')';
      groups.pop_back();
    }
  }

  /// {n}, {n,}, {n,m}, {,m}; anything else is text.
  void interval() {
    StringRef digits = rest.take_while([](char c) { return llvm::isDigit(c); });
    StringRef after = rest.drop_front(digits.size());
    StringRef upper;
    bool comma = after.consume_front(",");
    if (comma) {
      upper = after.take_while([](char c) { return llvm::isDigit(c); });
      after = after.drop_front(upper.size());
    }
    if (!after.consume_front("}") || (digits.empty() && upper.empty()))
      return put("\\{");
    rest = after;
    out += "{" + (digits.empty() ? "0" : digits.str()) + (comma ? "," : "") + upper.str() + "}";
    if (rest.starts_with("+")) {
      out.insert(lastAtom, "(?:");
      out += ')';
    } else if (comma == false && rest.starts_with("?")) {
      // Ruby's x{n}? is an optional x{n}.
      out.insert(lastAtom, "(?:");
      out += ')';
    }
  }

  /// "\p{...}" after its p or P, as PCRE's item.
  std::string property(bool negated) {
    size_t end = rest.find('}');
    if (!rest.consume_front("{") || end == StringRef::npos) {
      refuse("a '\\p' without '{...}'");
      return "";
    }
    StringRef name = rest.take_front(end - 1);
    rest = rest.drop_front(end);
    if (name.consume_front("^"))
      negated = !negated;
    std::string plain;
    for (char c : name)
      if (c != '_' && c != '-' && c != ' ')
        plain += llvm::toLower(c);
    StringRef known = llvm::StringSwitch<StringRef>(plain)
                          .Case("letter", "L")
                          .Case("mark", "M")
                          .Case("number", "N")
                          .Case("punctuation", "P")
                          .Case("symbol", "S")
                          .Case("separator", "Z")
                          .Case("other", "C")
                          .Cases({"alphabetic", "alpha"}, "Alphabetic")
                          .Cases({"uppercase", "upper"}, "Uppercase")
                          .Cases({"lowercase", "lower"}, "Lowercase")
                          .Case("digit", "Nd")
                          .Case("emoji", "Emoji")
                          .Default("");
    std::string item = known.str();
    if (item.empty())
      item = name.size() <= 2 ? name.str() : "sc:" + name.str();
    for (char c : item)
      if (!llvm::isAlnum(c) && c != '_' && c != ':') {
        refuse("the property '" + name + "'");
        return "";
      }
    return (negated ? "\\P{" : "\\p{") + item + "}";
  }

  /// The number in "\x{..}", "\xHH" or "\uHHHH" as PCRE's item.
  std::string codePoint(char kind) {
    StringRef digits;
    if (kind == 'x' && rest.consume_front("{")) {
      digits = rest.take_while([](char c) { return llvm::isHexDigit(c); });
      rest = rest.drop_front(digits.size());
      if (!rest.consume_front("}"))
        digits = "";
    } else {
      digits = rest.take_front(kind == 'x' ? 2 : 4).take_while([](char c) {
        return llvm::isHexDigit(c);
      });
      rest = rest.drop_front(digits.size());
    }
    if (digits.empty() || digits.size() > 6)
      refuse("a '\\" + llvm::Twine(kind) + "' without a code point");
    return "\\x{" + digits.str() + "}";
  }

  void escape() {
    if (rest.empty())
      return refuse("a '\\' at the end");
    char c = take();
    std::string word(kOnigWord);
    switch (c) {
    case 'w':
      return put("[" + word + "]");
    case 'W':
      return put("[^" + word + "]");
    case 'h':
      return put("[0-9a-fA-F]");
    case 'H':
      return put("[^0-9a-fA-F]");
    case 'b':
      return put("(?:(?<=[" + word + "])(?![" + word + "])|(?<![" + word + "])(?=[" + word + "]))");
    case 'B':
      return put("(?:(?<=[" + word + "])(?=[" + word + "])|(?<![" + word + "])(?![" + word + "]))");
    case 'p':
    case 'P':
      return put(property(c == 'P'));
    case 'x':
    case 'u':
      return put(codePoint(c));
    case 'v':
      return put("\\x{b}");
    case 's':
    case 'S':
    case 'd':
    case 'D':
    case 'n':
    case 'r':
    case 't':
    case 'f':
    case 'a':
    case 'e':
    case 'A':
    case 'z':
    case 'Z':
    case 'R':
    case 'X':
      return put(llvm::Twine('\\') + llvm::Twine(c));
    default:
      if (llvm::isAlnum(c) || (c & 0x80))
        return refuse(llvm::Twine("'\\") + llvm::Twine(c) + "'");
      return put(llvm::Twine('\\') + llvm::Twine(c));
    }
  }

  /// A set of characters under construction: PCRE's items, and patterns of one character each.
  struct Set {
    std::string items;
    llvm::SmallVector<std::string, 0> others;

    /// A pattern that matches one character that is in the set, or is not.
    std::string pattern(bool negated) const {
      if (others.empty())
        return items.empty() ? (negated ? "(?s:.)" : "(?!)") : (negated ? "[^" : "[") + items + "]";
      std::string any = llvm::join(others, "|");
      if (negated)
        return "(?:(?!" + any + ")" + (items.empty() ? "(?s:.)" : "[^" + items + "]") + ")";
      return "(?:" + any + (items.empty() ? "" : "|[" + items + "]") + ")";
    }
  };

  /// A class after its '['.
  std::string parseClass(unsigned depth) {
    if (depth >= kDeepest) {
      refuse("classes that are nested too deeply");
      return "";
    }
    bool negated = rest.consume_front("^");
    Set set;
    llvm::SmallVector<std::string, 0> intersected;
    if (rest.consume_front("]"))
      set.items += "\\]";
    while (refused.empty()) {
      if (rest.empty()) {
        refuse("a class that does not end");
        return "";
      }
      if (rest.consume_front("]"))
        break;
      if (rest.consume_front("&&")) {
        intersected.push_back(set.pattern(false));
        set = Set();
        continue;
      }
      classItem(set, depth);
    }
    if (intersected.empty())
      return set.pattern(negated);
    std::string all;
    for (const std::string &one : intersected)
      all += "(?=" + one + ")";
    all += set.pattern(false);
    return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
  }

  void classItem(Set &set, unsigned depth) {
    if (rest.consume_front("[:")) {
      size_t end = rest.find(":]");
      StringRef name = rest.take_front(end);
      StringRef items = llvm::StringSwitch<StringRef>(name)
                            .Case("alpha", "\\p{Alphabetic}")
                            .Case("alnum", "\\p{Alphabetic}\\p{Nd}")
                            .Case("digit", "\\p{Nd}")
                            .Case("lower", "\\p{Lowercase}")
                            .Case("upper", "\\p{Uppercase}")
                            .Case("punct", "\\p{P}\\p{S}")
                            .Case("space", "\\s")
                            .Case("word", kWordItems)
                            .Default("");
      if (end == StringRef::npos || items.empty())
        return refuse("the bracket '[:" + name.take_front(20) + ":]'");
      rest = rest.drop_front(end + 2);
      set.items += items;
      return;
    }
    char c = take();
    if (c == '[') {
      set.others.push_back(parseClass(depth + 1));
      return;
    }
    if (c != '\\') {
      set.items += c;
      return;
    }
    if (rest.empty())
      return refuse("a '\\' at the end");
    c = take();
    switch (c) {
    case 'w':
      set.items += kWordItems;
      return;
    case 'W':
      set.others.push_back("[^" + std::string(kWordItems) + "]");
      return;
    case 'h':
      set.items += "0-9a-fA-F";
      return;
    case 'H':
      set.others.push_back("[^0-9a-fA-F]");
      return;
    case 'S':
      set.others.push_back("\\S");
      return;
    case 'p':
    case 'P':
      set.items += property(c == 'P');
      return;
    case 'x':
    case 'u':
      set.items += codePoint(c);
      return;
    case 'v':
      set.items += "\\x{b}";
      return;
    case 's':
    case 'd':
    case 'D':
    case 'n':
    case 'r':
    case 't':
    case 'f':
    case 'a':
    case 'e':
    case 'b':
      set.items += {'\\', c};
      return;
    default:
      if (llvm::isAlnum(c) || (c & 0x80))
        return refuse(llvm::Twine("'\\") + llvm::Twine(c) + "'");
      set.items += {'\\', c};
    }
  }

  StringRef rest;
  std::string out, refused;
  size_t lastAtom = 0;                 ///< where the last atom begins in `out`
  llvm::SmallVector<size_t, 8> groups; ///< where the open groups begin
};

} // namespace

TranslatedPattern llmc::translateOnigPattern(StringRef pattern) {
  return Translator(pattern).run();
}

std::string llmc::escapePattern(StringRef text) {
  std::string out;
  for (char c : text) {
    if (!llvm::isAlnum(c) && !(c & 0x80))
      out += '\\';
    out += c;
  }
  return out;
}
