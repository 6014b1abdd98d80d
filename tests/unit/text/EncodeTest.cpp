//===- EncodeTest.cpp - merging, added tokens, trusted spans --------------===//
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
using Ids = std::vector<int32_t>;

static TestVocab bpeVocab() {
  TestVocab vocab;
  vocab.addBytes();
  vocab.addMerge("a", "b");
  vocab.addMerge("c", "d");
  vocab.addMerge("b", "c");
  return vocab;
}

static TestVocab spmVocab() {
  TestVocab vocab;
  vocab.kind = fb::TokenizerKind::Spm;
  vocab.unk = vocab.add("<unk>", fb::TokenType::Unknown);
  vocab.bos = vocab.add("<s>", fb::TokenType::Control);
  vocab.eos = vocab.add("</s>", fb::TokenType::Control);
  return vocab;
}

TEST(Bpe, MergesBestRankFirst) {
  TestVocab vocab = bpeVocab();
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("abcd"), (Ids{vocab.id("ab"), vocab.id("cd")}));
  EXPECT_EQ(tokenizer.encode("xbc"), (Ids{'x', vocab.id("bc")}));
  EXPECT_EQ(tokenizer.encode("ababab"), Ids(3, vocab.id("ab")));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Bpe, MergesEqualPairsFromTheLeft) {
  TestVocab vocab;
  vocab.addBytes();
  vocab.addMerge("a", "a");
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("aaaaa"), (Ids{vocab.id("aa"), vocab.id("aa"), 'a'}));
}

/// Field report c1: a word that is a token, though no merges lead to it.
TEST(Bpe, IgnoresMergesOnRequest) {
  TestVocab vocab = bpeVocab();
  int32_t word = vocab.add("abcd");
  EXPECT_EQ(OwnedTokenizer(vocab).encode("abcd"), (Ids{vocab.id("ab"), vocab.id("cd")}));
  vocab.ignoreMerges = true;
  EXPECT_EQ(OwnedTokenizer(vocab).encode("abcd"), Ids{word});
}

/// A merge into a text that is no token falls back to bytes, and loses none.
TEST(Bpe, FallsBackWhereAMergeLeadsNowhere) {
  TestVocab vocab = bpeVocab();
  vocab.merges.insert(vocab.merges.begin(), {vocab.id("x"), vocab.id("y")});
  EXPECT_EQ(OwnedTokenizer(vocab).encode("xyab"), (Ids{'x', 'y', vocab.id("ab")}));
}

TEST(Bpe, KeepsBytesThatAreNoCharacters) {
  OwnedTokenizer tokenizer(bpeVocab());
  std::string text = "a\xFF\xE5\xAE \x80 ab\xC0\xAF\xED\xA0\x80";
  Ids ids = tokenizer.encode(text);
  std::string back;
  for (int32_t id : ids)
    ASSERT_TRUE(tokenizer->appendPiece(id, false, back).ok());
  EXPECT_EQ(back, text);
}

/// A character without a token becomes the unknown token if there is one, but never
/// a control token, which some models name as their unknown token.
TEST(Bpe, TakesCharactersWithoutATokenAsUnknown) {
  TestVocab vocab;
  vocab.add("a");
  EXPECT_EQ(OwnedTokenizer(vocab).encode("aba"), (Ids{0, 0}));
  vocab.unk = vocab.add("<end>", fb::TokenType::Control);
  EXPECT_EQ(OwnedTokenizer(vocab).encode("aba"), (Ids{0, 0}));
  vocab.unk = vocab.add("<unk>", fb::TokenType::Unknown);
  EXPECT_EQ(OwnedTokenizer(vocab).encode("aba"), (Ids{0, 2, 0}));
}

TEST(Bpe, AddsBosAndEosOnce) {
  TestVocab vocab = bpeVocab();
  vocab.bos = vocab.add("<s>", fb::TokenType::Control);
  vocab.eos = vocab.add("</s>", fb::TokenType::Control);
  EXPECT_EQ(OwnedTokenizer(vocab).encode("a", {.addSpecial = true}), Ids{'a'});
  vocab.addBos = vocab.addEos = true;
  OwnedTokenizer tokenizer(vocab);
  Ids expected = {vocab.bos, 'a', vocab.eos};
  EXPECT_EQ(tokenizer.encode("a", {.addSpecial = true}), expected);
  EXPECT_EQ(tokenizer.encode("<s>a", {.parseSpecial = true, .addSpecial = true}), expected);
  EXPECT_EQ(tokenizer.encode("a"), Ids{'a'});
  // Ids that are there already are left alone.
  Ids ids = {7};
  ASSERT_TRUE(tokenizer->encode("a", {.addSpecial = true}, ids).ok());
  EXPECT_EQ(ids, (Ids{7, vocab.bos, 'a', vocab.eos}));
}

//===----------------------------------------------------------------------===//
// Added tokens
//===----------------------------------------------------------------------===//

TEST(AddedTokens, AreFoundLeftmostAndLongest) {
  TestVocab vocab = bpeVocab();
  int32_t shorter = vocab.add("ab!", fb::TokenType::UserDefined);
  int32_t longer = vocab.add("ab!!", fb::TokenType::UserDefined);
  int32_t later = vocab.add("!!cd", fb::TokenType::UserDefined);
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("ab!!cd"), (Ids{longer, vocab.id("cd")}));
  EXPECT_EQ(tokenizer.encode("ab!x!!cd"), (Ids{shorter, 'x', later}));
}

TEST(AddedTokens, ControlTokensNeedParsing) {
  TestVocab vocab = bpeVocab();
  int32_t end = vocab.add("<end>", fb::TokenType::Control);
  int32_t tool = vocab.add("<tool>", fb::TokenType::UserDefined);
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("a<end><tool>", {.parseSpecial = true}), (Ids{'a', end, tool}));
  Ids plain = tokenizer.encode("a<end><tool>");
  EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  EXPECT_EQ(plain.back(), tool);
  EXPECT_EQ(tokenizer.decode(plain), "a<end><tool>");
}

/// Merging the characters of control text never makes the control token, not even
/// where the vocabulary has all the merges.
TEST(AddedTokens, CannotBeMergedFromText) {
  TestVocab vocab = bpeVocab();
  vocab.addMerge("<", "|");
  int32_t control = vocab.addMerge("<|", ">");
  vocab.types[control] = static_cast<uint8_t>(fb::TokenType::Control);
  for (bool ignoreMerges : {false, true}) {
    vocab.ignoreMerges = ignoreMerges;
    OwnedTokenizer tokenizer(vocab);
    Ids ids = tokenizer.encode("<|>");
    EXPECT_EQ(std::count(ids.begin(), ids.end(), control), 0);
    EXPECT_EQ(tokenizer.decode(ids), "<|>");
  }
  TestVocab spm = spmVocab();
  spm.addBytes();
  for (const char *text : {"<", "s", ">", "<s", "s>"})
    spm.add(text);
  OwnedTokenizer tokenizer(spm);
  Ids ids = tokenizer.encode("<s>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), spm.bos), 0);
  EXPECT_EQ(tokenizer.decode(ids), "<s>");
}

/// Field report c2: a user cannot forge a turn.
TEST(Spans, ControlTokensOnlyInTrustedText) {
  TestVocab vocab = bpeVocab();
  int32_t end = vocab.add("<end>", fb::TokenType::Control);
  OwnedTokenizer tokenizer(vocab);
  auto encodeSpans = [&](std::vector<rt::TextSpan> spans) {
    Ids ids;
    EXPECT_TRUE(tokenizer->encodeSpans(spans, false, ids).ok());
    return ids;
  };
  auto ends = [&](const Ids &ids) { return std::count(ids.begin(), ids.end(), end); };

  Ids ids = encodeSpans({{"<end>", true}, {"a<end>b", false}, {"<end>", true}});
  EXPECT_EQ(ends(ids), 2);
  EXPECT_EQ(tokenizer.decode({ids.begin() + 1, ids.end() - 1}), "a<end>b");
  // Neither can a message complete what the template began, or the reverse.
  EXPECT_EQ(ends(encodeSpans({{"<en", true}, {"d>", false}})), 0);
  EXPECT_EQ(ends(encodeSpans({{"<en", false}, {"d>", true}})), 0);
  EXPECT_EQ(ends(encodeSpans({{"<", true}, {"en", false}, {"d>", true}})), 0);
  // Trusted neighbours are one text.
  EXPECT_EQ(encodeSpans({{"<en", true}, {"", false}, {"d>", true}}), Ids{end});
}

TEST(Spans, LeaveNoTraceInPlainText) {
  TestVocab vocab = bpeVocab();
  int32_t lines = vocab.add("\n\n", fb::TokenType::UserDefined);
  OwnedTokenizer tokenizer(vocab);
  Ids ids;
  ASSERT_TRUE(
      tokenizer
          ->encodeSpans(
              std::vector<rt::TextSpan>{{"a", true}, {"bc", false}, {"d\n", true}, {"\nx", false}},
              false, ids)
          .ok());
  EXPECT_EQ(ids, (Ids{vocab.id("ab"), vocab.id("cd"), lines, 'x'}));
  EXPECT_EQ(ids, tokenizer.encode("abcd\n\nx", {.parseSpecial = true}));
}

//===----------------------------------------------------------------------===//
// SentencePiece
//===----------------------------------------------------------------------===//

TEST(Spm, MergesBestScoreFirst) {
  TestVocab vocab = spmVocab();
  for (const char *text : {"a", "b", "c", "▁"})
    vocab.add(text, fb::TokenType::Normal, -10);
  int32_t ab = vocab.add("ab", fb::TokenType::Normal, -2);
  int32_t bc = vocab.add("bc", fb::TokenType::Normal, -1);
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{vocab.id("a"), bc}));
  EXPECT_EQ(tokenizer.encode("ab ab"), (Ids{ab, vocab.id("▁"), ab}));
}

/// Field report c6: bytes as the last resort.
TEST(Spm, FallsBackToBytes) {
  TestVocab vocab = spmVocab();
  vocab.addBytes();
  OwnedTokenizer tokenizer(vocab);
  int32_t first = vocab.id("<0x00>");
  Ids ids = tokenizer.encode("🦙");
  EXPECT_EQ(ids, (Ids{first + 0xF0, first + 0x9F, first + 0xA6, first + 0x99}));
  EXPECT_EQ(tokenizer.decode(ids), "🦙");
  EXPECT_EQ(tokenizer.encode("\xE5q"), (Ids{first + 0xE5, first + 'q'}));
}

/// Field report c6: no byte tokens, not even one for the line feed.
TEST(Spm, FallsBackToUnknown) {
  TestVocab vocab = spmVocab();
  int32_t a = vocab.add("a"), b = vocab.add("b");
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("a\nb"), (Ids{a, vocab.unk, b}));
  EXPECT_EQ(tokenizer.encode("a🦙b"), (Ids{a, vocab.unk, b}));
  EXPECT_EQ(tokenizer->byteToken('\n'), rt::kNoToken);
  EXPECT_EQ(tokenizer->byteToken('a'), a);
}

/// Field report c7: whether a space is put in front is the model's to say.
TEST(Spm, PutsASpaceInFrontOfText) {
  TestVocab vocab = spmVocab();
  vocab.addBytes();
  int32_t space = vocab.add("▁"), hi = vocab.add("Hi");
  rt::EncodeOptions parse{.parseSpecial = true};
  EXPECT_EQ(OwnedTokenizer(vocab).encode("<s>Hi", parse), (Ids{vocab.bos, hi}));
  vocab.addSpacePrefix = true;
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer.encode("<s>Hi", parse), (Ids{vocab.bos, space, hi}));
  EXPECT_EQ(tokenizer.encode("Hi"), (Ids{space, hi}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

//===----------------------------------------------------------------------===//
// Long texts
//===----------------------------------------------------------------------===//

/// A megabyte without a place to cut: quadratic time would take hours.
TEST(LongText, TakesNoQuadraticTime) {
  TestVocab bpe = bpeVocab();
  TestVocab spm = spmVocab();
  spm.addBytes();
  std::string left = "a";
  for (int i = 0; i < 10; ++i, left += left) {
    bpe.addMerge(left, left);
    spm.add(left + left, fb::TokenType::Normal, static_cast<float>(i));
  }
  spm.add("a");
  spm.add("▁");
  auto start = std::chrono::steady_clock::now();
  for (const TestVocab *vocab : {&bpe, &spm}) {
    OwnedTokenizer tokenizer(*vocab);
    for (std::string_view unit : {"a", "ab", " ", "\n", "é", "\xFF", "abcd 1 "}) {
      std::string text;
      while (text.size() < 1'000'000)
        text += unit;
      std::string back;
      for (int32_t id : tokenizer.encode(text))
        ASSERT_TRUE(tokenizer->appendPiece(id, false, back).ok());
      EXPECT_TRUE(back == text) << unit;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(120));
}
