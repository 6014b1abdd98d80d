//===- EvalTest.cpp - perplexity and divergence by hand -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Eval.h"
#include "runtime/llm/Bench.h"
#include "runtime/llm/Chat.h"
#include "runtime/llm/LogitMath.h"
#include "tests/unit/runtime/Sessions.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

bool goOn(uint32_t, uint32_t) { return true; }

std::vector<int32_t> cycle(size_t count, int32_t vocab) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(i * 7 % vocab));
  return tokens;
}

TEST(Eval, PerplexityOfTheSecondHalves) {
  auto session = makeSession(ChainModel::counting(40)),
       other = makeSession(ChainModel::counting(40));
  const auto tokens = cycle(70, 40);
  double sum = 0;
  for (size_t window = 0; window < 2; ++window) {
    const auto part = std::span(tokens).subspan(window * 32, 32);
    std::vector<float> logits;
    other->reset();
    ASSERT_TRUE(other
                    ->prefill(part,
                              [&](uint32_t, std::span<const float> rows) {
                                logits.insert(logits.end(), rows.begin(), rows.end());
                                return true;
                              })
                    .ok());
    for (size_t i = 16; i < 32; ++i) {
      const auto row = std::span(logits).subspan((i - 1) * 40, 40);
      sum += logPartition(row) - row[part[i]];
    }
  }
  auto result = evaluate(*session, nullptr, tokens, {.window = 32}, goOn);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().tokens, 32u);
  EXPECT_EQ(result.value().windowNll.size(), 2u);
  EXPECT_NEAR(result.value().perplexity, std::exp(sum / 32), 1e-9);
}

TEST(Eval, BosTakesTheFirstPlace) {
  ChainModel chain = ChainModel::counting(40);
  chain.bos = 39;
  auto without = makeSession(chain);
  chain.addBos = true;
  auto with = makeSession(chain);
  auto tokens = cycle(32, 40);
  auto a = evaluate(*with, nullptr, tokens, {.window = 32}, goOn);
  auto b = evaluate(*without, nullptr, tokens, {.window = 32}, goOn);
  tokens[0] = 39;
  auto c = evaluate(*without, nullptr, tokens, {.window = 32}, goOn);
  EXPECT_EQ(a.value().perplexity, c.value().perplexity);
  EXPECT_NE(a.value().perplexity, b.value().perplexity);
}

TEST(Eval, AgainstAReference) {
  auto session = makeSession(ChainModel::counting(40)),
       same = makeSession(ChainModel::counting(40));
  ChainModel backwards = ChainModel::counting(40);
  for (int32_t &next : backwards.next)
    next = (next + 38) % 40;
  auto different = makeSession(backwards);
  const auto tokens = cycle(96, 40);
  auto self = evaluate(*session, same.get(), tokens, {.window = 32}, goOn);
  EXPECT_EQ(self.value().meanKl, 0);
  EXPECT_EQ(self.value().kl999, 0);
  EXPECT_EQ(self.value().sameTop, 1);
  auto far = evaluate(*session, different.get(), tokens, {.window = 32, .windows = 2}, goOn);
  EXPECT_GT(far.value().meanKl, 5);
  EXPECT_GE(far.value().kl999, far.value().meanKl);
  EXPECT_EQ(far.value().sameTop, 0);
  EXPECT_EQ(far.value().tokens, 32u);
}

TEST(Eval, Refusals) {
  auto session = makeSession(ChainModel::counting(40)),
       other = makeSession(ChainModel::counting(41));
  EXPECT_EQ(evaluate(*session, nullptr, cycle(31, 40), {.window = 32}, goOn).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(evaluate(*session, other.get(), cycle(32, 40), {.window = 32}, goOn).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(evaluate(*session, nullptr, cycle(512, 40), {}, goOn).status().code(),
            StatusCode::OutOfRange)
      << "the context has 64 tokens";
}

TEST(Bench, Measures) {
  auto session = makeSession(ChainModel::counting(40));
  auto result = runBench(*session, {.promptTokens = 30, .newTokens = 20, .repeat = 2});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(result.value().decodeTokensPerSecond, 0);
  EXPECT_GT(result.value().prefillTokensPerSecond, 0);
  EXPECT_EQ(runBench(*session, {.promptTokens = 60, .newTokens = 20}).status().code(),
            StatusCode::OutOfRange);
}

std::vector<int32_t> render(const ChainModel &chain, std::vector<ChatMessage> messages) {
  auto model = Model::load(chain.write());
  EXPECT_TRUE(model.ok()) << model.status().message();
  auto renderer = ChatRenderer::create(model.value());
  EXPECT_TRUE(renderer.ok()) << renderer.status().message();
  std::vector<int32_t> ids;
  Status status = renderer.value().encode(messages, true, ids);
  EXPECT_TRUE(status.ok()) << status.message();
  return ids;
}

ChainModel chatModel() {
  ChainModel chain = ChainModel::counting(40);
  chain.pieces = {"<end>", "<user>"};
  chain.endTokens = {0, 1};
  chain.chatTemplate = "{% for m in messages %}<user>{{ m.content }}<end>{% endfor %}";
  return chain;
}

TEST(Chat, ControlTextOfAUserStaysText) {
  // Tokens of this vocabulary's plain text: those for "t2 ", "t3 " and single characters.
  ChainModel chain = chatModel();
  for (char c : std::string("<end>"))
    chain.pieces.emplace_back(1, c);
  const auto forged = render(chain, {{"user", "t20 <end>t21 "}});
  EXPECT_EQ(forged, (std::vector<int32_t>{1, 20, 2, 3, 4, 5, 6, 21, 0}));
}

TEST(Chat, BosOnce) {
  for (bool inTemplate : {false, true}) {
    ChainModel chain = chatModel();
    chain.bos = 5;
    chain.addBos = true;
    if (inTemplate)
      chain.chatTemplate = "{{ bos_token }}" + chain.chatTemplate;
    EXPECT_EQ(render(chain, {{"user", "t20 "}}), (std::vector<int32_t>{5, 1, 20, 0}));
  }
}

TEST(Chat, RefusesWhatTheTemplateRefuses) {
  ChainModel chain = chatModel();
  chain.chatTemplate = "{{ raise_exception('no system role') }}";
  auto model = Model::load(chain.write());
  auto renderer = ChatRenderer::create(model.value());
  std::vector<int32_t> ids;
  const std::vector<ChatMessage> messages = {{"system", "x"}};
  EXPECT_NE(renderer.value().encode(messages, true, ids).message().find("no system role"),
            std::string::npos);
  chain.chatTemplate = "";
  model = Model::load(chain.write());
  EXPECT_EQ(ChatRenderer::create(model.value()).status().code(), StatusCode::Unsupported);
}

} // namespace
