//===- OnigPatternTest.cpp - Oniguruma's patterns as PCRE's ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/tokenizer/OnigPattern.h"
#include "runtime/text/Regex.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

/// The matches of a pattern of Oniguruma in `text`, with '|' between them.
std::string matches(llvm::StringRef pattern, std::string_view text) {
  TranslatedPattern translated = translateOnigPattern(pattern);
  EXPECT_EQ(translated.refused, "") << pattern.str();
  auto regex = rt::Regex::create(translated.pattern);
  if (!regex.ok()) {
    ADD_FAILURE() << translated.pattern << ": " << regex.status().message();
    return {};
  }
  rt::RegexMatcher matcher(rt::RegexMatcher::Patterns::Foreign);
  std::string found;
  bool more = true;
  for (size_t at = 0; at < text.size();) {
    EXPECT_TRUE(matcher.find(regex.value(), text, at, more).ok());
    if (!more)
      break;
    found += (found.empty() ? "" : "|") +
             std::string(text.substr(matcher.begin(), matcher.end() - matcher.begin()));
    at = std::max(matcher.end(), at + 1);
  }
  return found;
}

TEST(OnigPattern, WordsAreUnicodes) {
  EXPECT_EQ(matches("\\w+", "na\u00efve_1 x-\u4e2d"), "na\u00efve_1|x|\u4e2d");
  EXPECT_EQ(matches("\\bx\\b", "x xx \u00efx x"), "x|x");
  EXPECT_EQ(matches("[[:punct:]]+", "a+b,c"), "+|,");
  EXPECT_EQ(matches("\\h+", "xyz af09"), "af09");
}

TEST(OnigPattern, LinesAreRubys) {
  EXPECT_EQ(matches("^\\w+$", "one\ntwo x\nthree"), "one|three");
  EXPECT_EQ(matches("(?m:a.b)", "a\nb"), "a\nb");
  EXPECT_EQ(matches("a.b", "a\nb"), "");
}

TEST(OnigPattern, ClassesAreSets) {
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "hello world"), "h|ll|w|rld");
  EXPECT_EQ(matches("[a[^b-z]]+", "abcA"), "a|A");
  EXPECT_EQ(matches("[^\\S\\n]+", "a \n\tb"), " |\t");
  EXPECT_EQ(matches("[\\]\\[x-]+", "[x]-a"), "[x]-");
}

TEST(OnigPattern, RepeatsAreNotPossessive) {
  EXPECT_EQ(matches("\\p{N}{1,3}+", "12345"), "12345");
  EXPECT_EQ(matches("\\p{N}{1,3}", "12345"), "123|45");
  EXPECT_EQ(matches("a{,2}b", "aab"), "aab");
  EXPECT_EQ(matches("a{b", "xa{b"), "a{b");
}

TEST(OnigPattern, Properties) {
  EXPECT_EQ(matches("\\p{Han}+", "a\u4e2d\u6587b"), "\u4e2d\u6587");
  EXPECT_EQ(matches("\\p{^L}+", "a1 b"), "1 ");
  EXPECT_EQ(matches("\\u4e2d|\\x{41}", "A\u4e2d"), "A|\u4e2d");
}

TEST(OnigPattern, RefusesByName) {
  auto refused = [](llvm::StringRef pattern) { return translateOnigPattern(pattern).refused; };
  EXPECT_EQ(refused("(a)\\1"), "'\\1'");
  EXPECT_EQ(refused("\\g<1>"), "'\\g'");
  EXPECT_EQ(refused("(?<name>a)"), "a named group");
  EXPECT_EQ(refused("[[:graph:]]"), "the bracket '[:graph:]'");
  EXPECT_EQ(refused("a)"), "an unmatched ')'");
  EXPECT_EQ(refused("(a"), "a group that does not end");
  EXPECT_EQ(refused("[a"), "a class that does not end");
  EXPECT_EQ(refused("a\\"), "a '\\' at the end");
  EXPECT_EQ(refused(std::string(1000, '(')), "groups that are nested too deeply");
  EXPECT_EQ(refused(std::string(1000, '[')), "classes that are nested too deeply");
}

} // namespace
