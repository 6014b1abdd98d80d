//===- GeneratorTest.cpp - text, stops, ends, limits, drafts --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Generator.h"
#include "tests/unit/runtime/Sessions.h"

#include <gtest/gtest.h>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

struct Outcome {
  std::string text;
  std::vector<std::string> parts;
  std::vector<int32_t> tokens;
  GenerateResult result;
  std::string error;
};

Outcome generate(Session &session, const std::vector<int32_t> &prompt, GenerateOptions options = {},
                 DraftSource *draft = nullptr) {
  Outcome outcome;
  auto generator = Generator::create(session, std::move(options), draft);
  EXPECT_TRUE(generator.ok()) << generator.status().message();
  auto result = generator.value().generate(prompt, [&](std::string_view part) {
    outcome.parts.emplace_back(part);
    outcome.text += part;
    return true;
  });
  outcome.error = result.status().message();
  if (result.ok())
    outcome.result = result.value();
  outcome.tokens.assign(generator.value().completion().begin(),
                        generator.value().completion().end());
  return outcome;
}

/// Tokens 0, 1, 2, ... with these texts; the rest have the default ones.
ChainModel withPieces(std::vector<std::string> pieces) {
  ChainModel chain = ChainModel::counting(32);
  chain.pieces = std::move(pieces);
  return chain;
}

TEST(Generator, MaxTokensAndUsage) {
  auto session = makeSession(ChainModel::counting(32));
  const Outcome outcome = generate(*session, iota(5), {.maxTokens = 7});
  EXPECT_EQ(outcome.text, "t5 t6 t7 t8 t9 t10 t11 ");
  EXPECT_EQ(outcome.tokens, iota(7, 5));
  EXPECT_EQ(outcome.result.finish, FinishReason::Length);
  EXPECT_EQ(outcome.result.promptTokens, 5u);
  EXPECT_EQ(outcome.result.completionTokens, 7u);
}

TEST(Generator, EveryEndTokenEnds) {
  ChainModel chain = ChainModel::counting(32);
  chain.endTokens = {4, 9};
  auto session = makeSession(chain);
  for (auto [first, text] : {std::pair(1, "t2 t3 "), std::pair(5, "t6 t7 t8 ")}) {
    const Outcome outcome = generate(*session, {first});
    EXPECT_EQ(outcome.text, text);
    EXPECT_EQ(outcome.result.finish, FinishReason::Stop);
  }
  const Outcome on = generate(*session, {1}, {.maxTokens = 5, .ignoreEnd = true, .special = true});
  EXPECT_EQ(on.text, "t2 t3 t4 t5 t6 ");
}

TEST(Generator, EndAtOnce) {
  ChainModel chain = ChainModel::counting(32);
  chain.endTokens = {4};
  auto session = makeSession(chain);
  const Outcome outcome = generate(*session, {3});
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.result.finish, FinishReason::Stop);
  EXPECT_EQ(outcome.result.completionTokens, 0u);
}

TEST(Generator, CharactersAreNeverSplit) {
  // The characters of field report c3, cut inside each of them.
  auto session =
      makeSession(withPieces({"", "\xe5\xae", "\xa2\xe5\x8d", "\x95\xf0\x9f", "\xa6\x99", "."}));
  const Outcome outcome = generate(*session, {0}, {.maxTokens = 4});
  EXPECT_EQ(outcome.text, "\xe5\xae\xa2\xe5\x8d\x95\xf0\x9f\xa6\x99");
  EXPECT_EQ(outcome.parts,
            (std::vector<std::string>{"\xe5\xae\xa2", "\xe5\x8d\x95", "\xf0\x9f\xa6\x99"}));
  const Outcome cut = generate(*session, {0}, {.maxTokens = 3});
  EXPECT_EQ(cut.text, "\xe5\xae\xa2\xe5\x8d\x95\xef\xbf\xbd");
}

TEST(Generator, StopStringsOverTokenBorders) {
  auto session = makeSession(withPieces({"", "ab", "c\nU", "ser", ":", "zz"}));
  const Outcome hit = generate(*session, {0}, {.maxTokens = 5, .stops = {"\nUser:"}});
  EXPECT_EQ(hit.text, "abc");
  EXPECT_EQ(hit.result.finish, FinishReason::Stop);
  EXPECT_EQ(hit.result.completionTokens, 4u);
  const Outcome missed = generate(*session, {0}, {.maxTokens = 5, .stops = {"\nUserX"}});
  EXPECT_EQ(missed.text, "abc\nUser:zz");
  EXPECT_EQ(missed.result.finish, FinishReason::Length);
  const Outcome atEnd = generate(*session, {0}, {.maxTokens = 3, .stops = {"\nUser:"}});
  EXPECT_EQ(atEnd.text, "abc\nUser") << "what was held back appears in the end";
}

TEST(Generator, ContextLimit) {
  auto session = makeSession(ChainModel::counting(100));
  const Outcome tooLong = generate(*session, iota(65));
  EXPECT_NE(tooLong.error.find("65"), std::string::npos);
  EXPECT_NE(tooLong.error.find("64"), std::string::npos);
  const Outcome full = generate(*session, iota(64));
  EXPECT_EQ(full.error, "");
  EXPECT_EQ(full.result.finish, FinishReason::Length);
  EXPECT_EQ(full.result.completionTokens, 0u);
  const Outcome nearly = generate(*session, iota(60));
  EXPECT_EQ(nearly.tokens, iota(4, 60));
  EXPECT_EQ(nearly.result.finish, FinishReason::Length);
  EXPECT_NE(generate(*session, {}).error, "");
}

TEST(Generator, PaddedVocabularyRowsAreNeverSampled) {
  // Token 31 would be next, but the tokenizer knows only 0..30.
  ChainModel chain = ChainModel::counting(32);
  chain.tokenizerSize = 31;
  auto session = makeSession(chain);
  const Outcome outcome = generate(*session, {30}, {.maxTokens = 20});
  for (int32_t token : outcome.tokens)
    EXPECT_LT(token, 31);
}

TEST(Generator, WarmEqualsCold) {
  for (bool fast : {false, true}) {
    ChainModel chain = ChainModel::counting(40);
    chain.fast = fast;
    auto warm = makeSession(chain), cold = makeSession(chain);
    generate(*warm, iota(20), {.maxTokens = 5});
    const Outcome again = generate(*warm, iota(24), {.maxTokens = 5});
    const Outcome fresh = generate(*cold, iota(24), {.maxTokens = 5});
    EXPECT_EQ(again.tokens, fresh.tokens);
    EXPECT_EQ(again.result.reusedTokens, fast ? 20u : 23u);
    const Outcome same = generate(*warm, iota(24), {.maxTokens = 5});
    EXPECT_EQ(same.result.reusedTokens, 23u);
    const Outcome other = generate(*warm, iota(10, 3), {.maxTokens = 5});
    EXPECT_EQ(other.result.reusedTokens, 0u);
    EXPECT_EQ(other.tokens, iota(5, 13));
  }
}

TEST(Generator, ReceiverCanCancel) {
  auto session = makeSession(ChainModel::counting(32));
  auto generator = Generator::create(*session, {});
  int calls = 0;
  auto result = generator.value().generate(iota(3), [&](std::string_view) { return ++calls < 3; });
  EXPECT_EQ(result.value().finish, FinishReason::Cancelled);
  EXPECT_EQ(generator.value().completion().size(), 3u);
}

TEST(Generator, WithoutTokenizerThereAreTokensOnly) {
  ChainModel chain = ChainModel::counting(32);
  chain.withTokenizer = false;
  auto session = makeSession(chain);
  const Outcome outcome = generate(*session, {3}, {.maxTokens = 3});
  EXPECT_EQ(outcome.tokens, iota(3, 4));
  EXPECT_EQ(outcome.text, "");
}

TEST(Generator, BadOptionsAreRefused) {
  auto session = makeSession(ChainModel::counting(32));
  for (const SamplerOptions &sampler :
       {SamplerOptions{.temperature = -1}, SamplerOptions{.topP = 0}, SamplerOptions{.minP = 2},
        SamplerOptions{.repeatPenalty = 0}})
    EXPECT_EQ(Generator::create(*session, {.sampler = sampler}).status().code(),
              StatusCode::InvalidArgument);
}

} // namespace
