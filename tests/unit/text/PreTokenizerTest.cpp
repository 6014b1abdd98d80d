//===- PreTokenizerTest.cpp - names, words, and texts that cost time ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestVocab.h"

#include <chrono>
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;
using Words = std::vector<std::string>;

static Words wordsOf(const char *name, std::string_view text) {
  const rt::PreTokenizer *pre = rt::findPreTokenizer(name);
  if (!pre)
    return {"no such pre-tokenizer"};
  auto splitter = rt::RegexSplitter::create(pre->steps);
  if (!splitter.ok())
    return {splitter.status().message()};
  std::vector<uint32_t> ends;
  if (rt::Status status = splitter.value().split(text, ends); !status.ok())
    return {status.message()};
  Words words;
  size_t begin = 0;
  for (uint32_t end : ends) {
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return words;
}

/// Field report a13: the refusal lists what there is, and the way out.
TEST(PreTokenizer, UnknownNameIsRefusedWithTheKnownOnes) {
  TestVocab vocab;
  vocab.addBytes();
  vocab.pre = "no-such";
  Table table = makeTable(vocab);
  auto made = rt::Tokenizer::create(*table);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), rt::StatusCode::Unsupported);
  const std::string &message = made.status().message();
  for (const char *part : {"'no-such'", "--pre", "qwen2", "llama-bpe", "gpt-2", "smollm"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(PreTokenizer, KnowsItsNames) {
  EXPECT_GT(rt::knownPreTokenizers().size(), 80u);
  for (const rt::PreTokenizer &pre : rt::knownPreTokenizers())
    EXPECT_EQ(rt::findPreTokenizer(pre.name), &pre);
  EXPECT_TRUE(rt::isKnownPreTokenizer("qwen2"));
  EXPECT_FALSE(rt::isKnownPreTokenizer(""));
  EXPECT_FALSE(rt::isKnownPreTokenizer("qwen"));
  EXPECT_TRUE(rt::findPreTokenizer("llama-bpe")->ignoreMerges);
  EXPECT_TRUE(rt::findPreTokenizer("llama-bpe")->addBos);
  EXPECT_FALSE(rt::findPreTokenizer("smollm")->ignoreMerges);
}

TEST(PreTokenizer, CutsIntoWords) {
  EXPECT_EQ(wordsOf("gpt-2", "It's  12 a.m.\n\n x"),
            (Words{"It", "'s", " ", " 12", " a", ".", "m", ".", "\n\n", " x"}));
  EXPECT_EQ(wordsOf("smollm", "in 2024!"), (Words{"in", " ", "2", "0", "2", "4", "!"}));
  EXPECT_EQ(wordsOf("llama-bpe", "IT'S 12345\n\n x"),
            (Words{"IT", "'S", " ", "123", "45", "\n\n", " x"}));
  EXPECT_EQ(wordsOf("qwen2", "(été)\n 42"), (Words{"(été", ")\n", " ", "4", "2"}));
  EXPECT_EQ(wordsOf("gpt-4o", "helloWorld's 1234"), (Words{"hello", "World's", " ", "123", "4"}));
  EXPECT_EQ(wordsOf("tekken", "HTTPServer's 12"), (Words{"HTTPServer", "'s", " ", "1", "2"}));
  EXPECT_EQ(wordsOf("kimi-k2", "ab漢字cd  漢"), (Words{"ab", "漢字", "cd", " ", " ", "漢"}));
  EXPECT_EQ(wordsOf("deepseek-coder", "a\n b1"), (Words{"a", "\n", " b", "1"}));
  EXPECT_EQ(wordsOf("deepseek-llm", "a1  "), (Words{"a", "1", "  "}));
  EXPECT_EQ(wordsOf("bloom", "Hi, you"), (Words{"Hi", ",", " you"}));
}

TEST(PreTokenizer, GroupsDigitsFromTheRight) {
  EXPECT_EQ(wordsOf("superbpe", "to 1234567 be"), (Words{"to ", "1", "234", "567", " be"}));
  EXPECT_EQ(wordsOf("afmoe", "12345 678"), (Words{"12", "345", " ", "678"}));
  EXPECT_EQ(wordsOf("tiny_aya", "1234x"), (Words{"123", "4", "x"}));
  EXPECT_EQ(wordsOf("superbpe", "١٢٣٤"), (Words{"١", "٢٣٤"}));
}

/// The spaces of Unicode, and U+180E, which is none any more.
TEST(PreTokenizer, KnowsUnicodeSpaces) {
  for (const char *space : {"\u0085", "\u00A0", "\u2029", "\u3000", "\u202F"})
    EXPECT_EQ(wordsOf("gpt-2", "a" + std::string(space) + space + "b"),
              (Words{"a", space, space, "b"}));
  EXPECT_EQ(wordsOf("gpt-2", "a\u180E\u180Eb"), (Words{"a", "\u180E\u180E", "b"}));
}

/// Bytes that are no character are cut like U+FFFD, and stay as they are.
TEST(PreTokenizer, CutsBrokenText) {
  EXPECT_EQ(wordsOf("gpt-2", "ab\xFF\xFE c\xE5\xAE!d"),
            (Words{"ab", "\xFF\xFE", " c", "\xE5\xAE!", "d"}));
  EXPECT_EQ(wordsOf("smollm", "\x80"
                              "1\x80"),
            (Words{"\x80", "1", "\x80"}));
}

/// Every pattern compiles, cuts all of a text, and takes linear time on the runs
/// that patterns like to try again from every place.
TEST(PreTokenizer, TakesNoQuadraticTime) {
  std::vector<std::string> units = {" ", "\n", " \n", "a", "A", "é", "1", ".", "'", "漢", "\u0301"};
  for (const rt::PreTokenizer &pre : rt::knownPreTokenizers()) {
    auto splitter = rt::RegexSplitter::create(pre.steps);
    ASSERT_TRUE(splitter.ok()) << pre.name << ": " << splitter.status().message();
    for (const std::string &unit : units) {
      std::string text = "7";
      while (text.size() < 50'000)
        text += unit;
      text += "7x";
      std::vector<uint32_t> ends;
      auto start = std::chrono::steady_clock::now();
      rt::Status status = splitter.value().split(text, ends);
      std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      ASSERT_TRUE(status.ok()) << pre.name << ": " << status.message();
      EXPECT_EQ(ends.back(), text.size());
      EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
      EXPECT_LT(time.count(), 1.0) << pre.name << " on a run of '" << unit << "'";
    }
  }
}
