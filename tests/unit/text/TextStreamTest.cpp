//===- TextStreamTest.cpp - tests of the text stream ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/TextStream.h"

#include "TestVocab.h"
#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

/// A byte-level vocabulary of these pieces: token i stands for pieces[i].
static OwnedTokenizer tokenizerOf(const std::vector<std::string> &pieces) {
  TestVocab vocab;
  for (const std::string &piece : pieces) {
    std::string stored;
    rt::Vocabulary::appendByteLevel(piece, stored);
    vocab.add(stored);
  }
  return OwnedTokenizer(vocab);
}

/// What each token shows, and last what the end shows.
static std::vector<std::string> deltasOf(const OwnedTokenizer &tokenizer,
                                         const std::vector<int32_t> &ids,
                                         rt::StreamOptions options = {}) {
  rt::StreamDecoder decoder(*tokenizer, options);
  std::vector<std::string> deltas;
  for (int32_t id : ids) {
    deltas.emplace_back();
    EXPECT_TRUE(decoder.push(id, deltas.back()).ok());
  }
  deltas.emplace_back();
  decoder.flush(deltas.back());
  return deltas;
}

/// Field report c3.
TEST(StreamDecoder, NeverSplitsACharacter) {
  OwnedTokenizer tokenizer = tokenizerOf({"\xE5\xAE", "\xA2\xE5\x8D", "\x95\xF0\x9F", "\xA6\x99"});
  EXPECT_EQ(deltasOf(tokenizer, {0, 1, 2, 3}),
            (std::vector<std::string>{"", "客", "单", "🦙", ""}));
  EXPECT_EQ(tokenizer.decode({0, 1, 2, 3}), "客单🦙");
}

TEST(StreamDecoder, ReplacesWhatCanNeverBecomeACharacter) {
  OwnedTokenizer tokenizer = tokenizerOf({"a\x80", "\xE5\xAE", "b", "\xF0\x9F\xA6", "\xC0\xAF"});
  EXPECT_EQ(deltasOf(tokenizer, {0, 1, 2, 3}),
            (std::vector<std::string>{"a\uFFFD", "", "\uFFFDb", "", "\uFFFD"}));
  EXPECT_EQ(deltasOf(tokenizer, {4, 3, 3}),
            (std::vector<std::string>{"\uFFFD\uFFFD", "", "\uFFFD", "\uFFFD"}));
}

TEST(StreamDecoder, RefusesIdsOutsideTheVocabulary) {
  OwnedTokenizer tokenizer = tokenizerOf({"a", "b"});
  rt::StreamDecoder decoder(*tokenizer);
  std::string out;
  for (int32_t id : {-1, 2, INT32_MAX, INT32_MIN}) {
    rt::Status status = decoder.push(id, out);
    EXPECT_EQ(status.code(), rt::StatusCode::OutOfRange);
    EXPECT_NE(status.message().find("vocabulary of 2"), std::string::npos);
  }
  EXPECT_EQ(out, "");
}

static TestVocab spmVocab(bool spacePrefix) {
  TestVocab vocab;
  vocab.kind = fb::TokenizerKind::Spm;
  vocab.unk = vocab.add("<unk>", fb::TokenType::Unknown);
  vocab.bos = vocab.add("<s>", fb::TokenType::Control);
  vocab.addBytes();
  vocab.add("▁", fb::TokenType::Normal, -4);
  for (const char *token : {"a", "b", "H", "i"})
    vocab.add(token, fb::TokenType::Normal, -3);
  vocab.add("▁a", fb::TokenType::Normal, -2);
  vocab.add("▁b", fb::TokenType::Normal, -2);
  vocab.add("Hi", fb::TokenType::Normal, -1);
  vocab.add("▁Hi", fb::TokenType::Normal, -0.5);
  vocab.addSpacePrefix = spacePrefix;
  return vocab;
}

static std::string join(const std::vector<std::string> &parts) {
  std::string all;
  for (const std::string &part : parts)
    all += part;
  return all;
}

/// Field report c7: the space that SentencePiece puts in front.
TEST(StreamDecoder, TakesAwayTheAddedSpaceOnce) {
  for (bool prefix : {true, false}) {
    TestVocab vocab = spmVocab(prefix);
    OwnedTokenizer tokenizer(vocab);
    for (std::string text : {" a b", "a b", "  a", "Hi", " ", "", "\na"}) {
      std::vector<int32_t> ids = tokenizer.encode(text);
      EXPECT_EQ(tokenizer.decode(ids), text);
      EXPECT_EQ(join(deltasOf(tokenizer, ids)), text);
      ids.insert(ids.begin(), vocab.bos);
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
    // Behind a prompt, a leading space is the model's own.
    EXPECT_EQ(join(deltasOf(tokenizer, {vocab.id("▁a")}, {.continues = true})), " a");
  }
}

TEST(StreamDecoder, ShowsControlTokensOnRequest) {
  TestVocab vocab = spmVocab(true);
  OwnedTokenizer tokenizer(vocab);
  std::vector<int32_t> ids = {vocab.bos, vocab.id("▁a"), vocab.unk};
  EXPECT_EQ(tokenizer.decode(ids), "a");
  EXPECT_EQ(tokenizer.decode(ids, /*special=*/true), "<s> a<unk>");
}

//===----------------------------------------------------------------------===//
// Stop strings
//===----------------------------------------------------------------------===//

static std::pair<std::string, bool> runStops(std::vector<std::string> stops,
                                             const std::vector<std::string> &pieces) {
  rt::StopMatcher matcher(stops);
  std::string out;
  for (const std::string &piece : pieces)
    if (matcher.push(piece, out))
      break;
  matcher.flush(out);
  return {out, matcher.stopped()};
}

/// Field report g1.
TEST(StopMatcher, StopsOverTokenBorders) {
  std::vector<std::string> pieces = {"ab", "c\nU", "ser", ":", "zz"};
  EXPECT_EQ(runStops({"\nUser:"}, pieces), std::pair(std::string("abc"), true));
  EXPECT_EQ(runStops({"\nUserX"}, pieces), std::pair(std::string("abc\nUser:zz"), false));
}

TEST(StopMatcher, HoldsBackNoMoreThanItMust) {
  rt::StopMatcher matcher(std::vector<std::string>{"\nUser:"});
  std::string out;
  EXPECT_FALSE(matcher.push("abc\nU", out));
  EXPECT_EQ(out, "abc");
  EXPECT_FALSE(matcher.push("ncle", out));
  EXPECT_EQ(out, "abc\nUncle");
  EXPECT_FALSE(matcher.push("\n\nUse", out));
  EXPECT_EQ(out, "abc\nUncle\n");
  EXPECT_TRUE(matcher.push("r: hello", out));
  EXPECT_EQ(out, "abc\nUncle\n");
  EXPECT_TRUE(matcher.push("more", out));
  EXPECT_EQ(out, "abc\nUncle\n");
}

TEST(StopMatcher, FindsStopsThatOverlapThemselves) {
  EXPECT_EQ(runStops({"aab"}, {"aaa", "ab"}), std::pair(std::string("aa"), true));
  EXPECT_EQ(runStops({"abcabd"}, {"abcabcabd"}), std::pair(std::string("abc"), true));
}

TEST(StopMatcher, TakesTheStopThatIsCompleteFirst) {
  EXPECT_EQ(runStops({"abcd", "bc"}, {"xabcd"}), std::pair(std::string("xa"), true));
  EXPECT_EQ(runStops({"c", "abc"}, {"xabcd"}), std::pair(std::string("x"), true));
  EXPECT_EQ(runStops({"", "q"}, {"xabcd"}), std::pair(std::string("xabcd"), false));
  EXPECT_EQ(runStops({}, {"x", "y"}), std::pair(std::string("xy"), false));
}

/// The cuts between pieces do not matter.
TEST(StopMatcher, DoesNotDependOnTheCuts) {
  std::string text = "aabaabaaabbabab";
  std::vector<std::string> stops = {"aaab", "bb", "babab"};
  auto whole = runStops(stops, {text});
  for (size_t first = 0; first <= text.size(); ++first)
    for (size_t second = first; second <= text.size(); ++second)
      EXPECT_EQ(runStops(stops, {text.substr(0, first), text.substr(first, second - first),
                                 text.substr(second)}),
                whole);
}
