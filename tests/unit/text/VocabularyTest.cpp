//===- VocabularyTest.cpp - tables that cannot be believed ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestVocab.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

static TestVocab smallVocab() {
  TestVocab vocab;
  vocab.addBytes();
  vocab.addMerge("a", "b");
  return vocab;
}

static std::string refusalOf(const Table &table) {
  auto made = rt::Tokenizer::create(*table);
  EXPECT_FALSE(made.ok());
  return made.status().message();
}
static std::string refusalOf(const TestVocab &vocab) { return refusalOf(makeTable(vocab)); }

static bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

TEST(Vocabulary, RefusesAbsence) {
  EXPECT_FALSE(rt::Tokenizer::create(nullptr).ok());
  TestVocab vocab = smallVocab();
  vocab.kind = fb::TokenizerKind::None;
  EXPECT_TRUE(has(refusalOf(vocab), "no tokenizer"));
  EXPECT_TRUE(has(refusalOf(TestVocab()), "no tokens"));
}

TEST(Vocabulary, RefusesIdsOutOfRange) {
  TestVocab vocab = smallVocab();
  vocab.bos = 257;
  EXPECT_TRUE(has(refusalOf(vocab), "bos token 257 is outside the vocabulary of 257"));
  vocab = smallVocab();
  vocab.eos = -2;
  EXPECT_TRUE(has(refusalOf(vocab), "eos token -2"));
  vocab = smallVocab();
  vocab.endTokens = {1, 1 << 30};
  EXPECT_TRUE(has(refusalOf(vocab), "end token 1073741824"));
  vocab = smallVocab();
  vocab.merges.push_back({0, 257});
  EXPECT_TRUE(has(refusalOf(vocab), "merge 1 is of tokens outside"));
  vocab.merges.back() = {-1, 0};
  EXPECT_TRUE(has(refusalOf(vocab), "merge 1 is of tokens outside"));
}

TEST(Vocabulary, RefusesColumnsThatDoNotFit) {
  TestVocab vocab = smallVocab();
  vocab.types.pop_back();
  EXPECT_TRUE(has(refusalOf(vocab), "types are not one per token"));
  vocab = smallVocab();
  vocab.types[3] = 7;
  EXPECT_TRUE(has(refusalOf(vocab), "token 3 has an unknown type"));
  vocab = smallVocab();
  vocab.scores.push_back(0);
  EXPECT_TRUE(has(refusalOf(vocab), "scores are not one per token"));
  vocab = smallVocab();
  vocab.scores[2] = std::nanf("");
  EXPECT_TRUE(has(refusalOf(vocab), "token 2 has no number"));
}

TEST(Vocabulary, RefusesOffsetsOutOfOrder) {
  Table table = makeTable(smallVocab());
  auto *offsets = const_cast<uint32_t *>((*table)->offsets()->data());
  uint32_t size = (*table)->offsets()->size();
  uint32_t saved = offsets[5];
  offsets[5] = UINT32_MAX;
  EXPECT_TRUE(has(refusalOf(table), "offsets of token 5 are out of order"));
  offsets[5] = saved;
  offsets[size - 1] += 1;
  EXPECT_TRUE(has(refusalOf(table), "beyond their table"));
}

/// Of equal rows the first counts, and many of them cost no time.
TEST(Vocabulary, TakesDuplicates) {
  TestVocab vocab = smallVocab();
  for (int i = 0; i < 20000; ++i) {
    vocab.add("same");
    vocab.add("");
    vocab.merges.push_back(vocab.merges[0]);
  }
  OwnedTokenizer tokenizer(vocab);
  EXPECT_EQ(tokenizer->tokenToId("same"), vocab.id("same"));
  EXPECT_EQ(tokenizer.encode("ab"), std::vector<int32_t>{vocab.id("ab")});
}

/// Merges chosen to fall on one place of the hash table: refused, not crawled over.
TEST(Vocabulary, RefusesCollisions) {
  TestVocab vocab;
  for (int i = 0; i < 4000; ++i)
    vocab.add("t" + std::to_string(i));
  for (int32_t left = 0; left < 4000 && vocab.merges.size() < 2000; ++left)
    for (int32_t right = 0; right < 4000 && vocab.merges.size() < 2000; ++right)
      if (mixHash(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right)) % 4096 == 0)
        vocab.merges.push_back({left, right});
  ASSERT_EQ(vocab.merges.size(), 2000u);
  EXPECT_TRUE(has(refusalOf(vocab), "merges collide"));
}

/// With the tables in the file everything is found, and what is not there is not.
TEST(Vocabulary, UsesTheIndexesOfTheFile) {
  TestVocab vocab = smallVocab();
  vocab.add("");
  for (int i = 0; i < 1000; ++i)
    vocab.add("token " + std::to_string(i % 900));
  vocab.makeIndexes();
  OwnedTokenizer tokenizer(vocab);
  for (const std::string &text : vocab.tokens)
    EXPECT_EQ(tokenizer->tokenToId(text), text.empty() ? -1 : vocab.id(text));
  EXPECT_EQ(tokenizer->tokenToId("token 900"), -1);
  EXPECT_EQ(tokenizer.encode("ab"), std::vector<int32_t>{vocab.id("ab")});
}

TEST(Vocabulary, BelievesNoIndex) {
  TestVocab vocab = smallVocab();
  vocab.makeIndexes();
  TestVocab odd = vocab;
  odd.textIndex.pop_back();
  EXPECT_TRUE(has(refusalOf(odd), "index of texts has an impossible size"));
  odd = vocab;
  odd.textIndex.resize(256);
  EXPECT_TRUE(has(refusalOf(odd), "index of texts has an impossible size"));
  odd = vocab;
  odd.mergeIndex.resize(1);
  EXPECT_TRUE(has(refusalOf(odd), "index of merges has an impossible size"));

  // Whatever the slots hold: no token but the right one, and an end.
  uint32_t noise = 1;
  for (int round = 0; round < 50; ++round) {
    odd = vocab;
    for (std::vector<uint32_t> *slots : {&odd.textIndex, &odd.mergeIndex})
      for (uint32_t &slot : *slots) {
        noise = noise * 1664525 + 1013904223;
        slot = round % 2 ? noise : slot + (noise >> 24);
      }
    OwnedTokenizer tokenizer(odd);
    for (const std::string &text : odd.tokens)
      if (int32_t id = tokenizer->tokenToId(text); id != -1)
        EXPECT_EQ(tokenizer->storedText(id), text);
    EXPECT_EQ(tokenizer->tokenToId("no such token"), -1);
    tokenizer.encode("abababab");
  }
}

TEST(Vocabulary, KnowsItsEnds) {
  TestVocab vocab = smallVocab();
  vocab.eos = 4;
  vocab.endTokens = {9};
  OwnedTokenizer tokenizer(vocab);
  EXPECT_TRUE(tokenizer->isEnd(4));
  EXPECT_TRUE(tokenizer->isEnd(9));
  EXPECT_FALSE(tokenizer->isEnd(5));
  EXPECT_FALSE(tokenizer->isEnd(-1));
}

/// Every byte has a character of its own, and comes back from it.
TEST(Vocabulary, MapsAllBytes) {
  TestVocab vocab;
  vocab.addBytes();
  OwnedTokenizer tokenizer(vocab);
  for (int value = 0; value < 256; ++value) {
    std::string piece;
    ASSERT_TRUE(tokenizer->appendPiece(value, false, piece).ok());
    EXPECT_EQ(piece, std::string(1, static_cast<char>(value)));
    EXPECT_EQ(tokenizer->byteToken(static_cast<uint8_t>(value)), value);
  }
  EXPECT_EQ(tokenizer->tokenToId("Ġ"), ' ');
  EXPECT_EQ(tokenizer->tokenToId("Ċ"), '\n');
  EXPECT_EQ(tokenizer->tokenToId("Ń"), 0xAD);
}
