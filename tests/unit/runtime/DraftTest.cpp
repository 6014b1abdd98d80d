//===- DraftTest.cpp - drafts change the speed and never the tokens -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Generator.h"
#include "runtime/llm/NgramDraft.h"
#include "tests/unit/runtime/Sessions.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

struct Outcome {
  std::string text;
  std::vector<int32_t> tokens;
  GenerateResult result;
};

Outcome generate(Session &session, const std::vector<int32_t> &prompt, GenerateOptions options = {},
                 DraftSource *draft = nullptr) {
  Outcome outcome;
  auto generator = Generator::create(session, std::move(options), draft);
  EXPECT_TRUE(generator.ok()) << generator.status().message();
  auto result = generator.value().generate(prompt, [&](std::string_view part) {
    outcome.text += part;
    return true;
  });
  EXPECT_TRUE(result.ok()) << result.status().message();
  outcome.result = result.value();
  outcome.tokens.assign(generator.value().completion().begin(),
                        generator.value().completion().end());
  return outcome;
}

/// Proposes t + 1, but `wrong` after `wrongAfter`.
struct CountingDraft : DraftSource {
  int32_t vocab, wrongAfter, wrong;
  size_t limit;
  CountingDraft(int32_t vocab, int32_t wrongAfter, int32_t wrong, size_t limit)
      : vocab(vocab), wrongAfter(wrongAfter), wrong(wrong), limit(limit) {}
  Proposal propose(std::span<const int32_t>, int32_t last, std::span<int32_t> draft) override {
    const size_t count = std::min(limit, draft.size());
    for (size_t i = 0; i < count; ++i)
      last = draft[i] = last == wrongAfter ? wrong : (last + 1) % vocab;
    return {count};
  }
};

constexpr DraftOptions always{.adaptive = false};

TEST(Drafts, ChangeNoTokens) {
  ChainModel chain = ChainModel::counting(32);
  chain.endTokens = {27};
  auto plain = makeSession(chain), drafted = makeSession(chain);
  for (float temperature : {0.0f, 1.5f})
    for (uint32_t maxTokens : {1u, 2u, 7u, 100u})
      for (size_t limit : {0, 1, 2, 3})
        for (int32_t wrongAfter : {-1, 4, 9}) {
          const GenerateOptions options{
              .sampler = {.temperature = temperature, .repeatPenalty = 1.1f, .seed = 7},
              .draft = always,
              .maxTokens = maxTokens};
          CountingDraft draft(32, wrongAfter, 0, limit);
          const Outcome expected = generate(*plain, {1}, options);
          const Outcome outcome = generate(*drafted, {1}, options, &draft);
          EXPECT_EQ(outcome.tokens, expected.tokens);
          EXPECT_EQ(outcome.text, expected.text);
          EXPECT_EQ(outcome.result.finish, expected.result.finish);
          EXPECT_EQ(outcome.result.stepTokens, expected.result.stepTokens);
          EXPECT_LE(drafted->position(), plain->position());
        }
}

TEST(Drafts, AreCounted) {
  // Field report e7: drafts of 3, one wrong; 12 tokens, the first from prefill.
  ChainModel chain = ChainModel::counting(32);
  chain.context = 13;
  auto session = makeSession(chain);
  for (uint32_t maxTokens : {12u, 100u}) // 100: until the context is full
    for (int round = 0; round < 50; ++round) {
      CountingDraft draft(32, 4, 9, 3);
      const Outcome outcome =
          generate(*session, {1}, {.draft = always, .maxTokens = maxTokens}, &draft);
      EXPECT_EQ(outcome.tokens, iota(12, 2));
      EXPECT_EQ(outcome.result.steps, 3u);
      EXPECT_EQ(outcome.result.verifySteps, 3u);
      EXPECT_EQ(outcome.result.drafted, 9u);
      EXPECT_EQ(outcome.result.accepted, 8u);
      EXPECT_EQ(outcome.result.stepTokens, 11u);
    }
}

TEST(Drafts, EndTokenInsideABlock) {
  // Field report e3.
  ChainModel chain = ChainModel::counting(32);
  chain.endTokens = {4};
  chain.verifyRows = 5;
  auto session = makeSession(chain);
  CountingDraft draft(32, -1, 0, 4);
  for (int round = 0; round < 3; ++round) {
    const Outcome outcome = generate(*session, {1}, {.draft = always}, &draft);
    EXPECT_EQ(outcome.tokens, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(outcome.text, "t2 t3 ");
    EXPECT_EQ(outcome.result.finish, FinishReason::Stop);
    EXPECT_EQ(outcome.result.completionTokens, 2u);
    EXPECT_EQ(outcome.result.steps, 1u);
    EXPECT_EQ(generate(*session, {5}, {.draft = always, .maxTokens = 3}, &draft).tokens,
              iota(3, 6));
  }
}

/// The acceptance rule over 3 tokens of probabilities .6, .3, .1, for each token as the draft
/// (field report e2).
TEST(Drafts, AcceptanceKeepsTheDistribution) {
  constexpr int draws = 100000;
  constexpr double p[] = {0.6, 0.3, 0.1};
  std::vector<float> logits;
  for (double probability : p)
    logits.push_back(static_cast<float>(std::log(probability)));
  for (int32_t drafted : {0, 1, 2}) {
    Sampler sampler({.temperature = 1, .seed = 11}, 3);
    double accepted = 0, counts[3] = {};
    for (int i = 0; i < draws; ++i) {
      const int32_t token = sampler.sample(logits, {});
      accepted += token == drafted;
      ++counts[token];
    }
    EXPECT_NEAR(accepted / draws, p[drafted], 0.01);
    double chiSquare = 0, restSquare = 0;
    for (int32_t token = 0; token < 3; ++token) {
      const double expected = draws * p[token];
      chiSquare += (counts[token] - expected) * (counts[token] - expected) / expected;
      // After a rejection: p without the draft, renormalised.
      if (token == drafted)
        continue;
      const double rest = (draws - accepted) * p[token] / (1 - p[drafted]);
      restSquare += (counts[token] - rest) * (counts[token] - rest) / rest;
    }
    EXPECT_LT(chiSquare, 13.8) << "probability 0.001 with 2 degrees of freedom";
    EXPECT_LT(restSquare, 10.8) << "probability 0.001 with 1 degree of freedom";
  }
}

using Tokens = std::vector<int32_t>;

/// What is drafted after `text`.
Tokens drafted(NgramDraft &draft, const Tokens &text, size_t count,
               unsigned *confidence = nullptr) {
  Tokens tokens(count);
  const auto history = std::span(text).first(text.size() - 1);
  const DraftSource::Proposal proposal = draft.propose(history, text.back(), tokens);
  tokens.resize(proposal.size);
  if (confidence)
    *confidence = proposal.confidence;
  return tokens;
}

TEST(NgramDraft, ContinuesTheLongestOccurrence) {
  NgramDraft draft(100);
  EXPECT_EQ(drafted(draft, {5}, 3), Tokens());
  draft.start();
  EXPECT_EQ(drafted(draft, {5, 6, 7}, 3), Tokens());
  draft.start();
  EXPECT_EQ(drafted(draft, {1, 2, 3, 4, 1, 2}, 2), (Tokens{3, 4}));
  draft.start();
  // The pair 2 3 occurs later, the triple 1 2 3 earlier.
  unsigned pair, triple;
  EXPECT_EQ(drafted(draft, {1, 2, 3, 4, 2, 3, 5, 1, 2, 3}, 1, &triple), Tokens{4});
  draft.start();
  EXPECT_EQ(drafted(draft, {1, 2, 3, 4, 2, 3, 5, 2, 3}, 1, &pair), Tokens{5});
  EXPECT_LT(pair, triple);
}

TEST(NgramDraft, OverlapsWithWhatItPredicts) {
  NgramDraft draft(100);
  EXPECT_EQ(drafted(draft, {8, 9, 8, 9}, 5), (Tokens{8, 9, 8, 9, 8}));
  draft.start();
  EXPECT_EQ(drafted(draft, {9, 9, 9}, 4), (Tokens{9, 9, 9, 9}));
}

TEST(NgramDraft, FollowsTheText) {
  NgramDraft draft(100);
  Tokens text = iota(50, 3);
  for (int32_t token : iota(49, 3)) {
    text.push_back(token);
    const bool pairSeen = token > 3;
    EXPECT_EQ(drafted(draft, text, 1), pairSeen ? Tokens{token + 1} : Tokens());
  }
  draft.start();
  EXPECT_EQ(drafted(draft, {40, 41}, 1), Tokens()) << "the other text is forgotten";
}

TEST(NgramDraft, DraftsAChainInALoop) {
  auto session = makeSession(ChainModel::counting(10));
  NgramDraft draft(session->contextLimit());
  const Outcome outcome = generate(*session, iota(10), {.draft = always, .maxTokens = 30}, &draft);
  Tokens expected;
  for (int32_t i = 0; i < 30; ++i)
    expected.push_back(i % 10);
  EXPECT_EQ(outcome.tokens, expected);
  EXPECT_EQ(outcome.result.accepted, outcome.result.drafted);
  EXPECT_EQ(outcome.result.steps, 8u) << "1 plain step, then 4 tokens in each";
}

/// A machine and a text: time of a step of M tokens, acceptance of each draft.
struct Simulation {
  DraftLength length;
  RandomSource random{3};
  double elapsed = 0, tokens = 0;
  uint32_t drafted = 0;

  explicit Simulation(DraftOptions options = {}) : length(options) {}
  /// `cost` gives the time of a step of M tokens in plain steps.
  void run(int steps, double acceptance, double (*cost)(uint32_t)) {
    for (int step = 0; step < steps; ++step) {
      const DraftSource::Proposal proposal{length.most(), 2};
      const uint32_t drafts = length.choose(proposal);
      uint32_t matched = 0;
      while (matched < proposal.size && random.uniform() < acceptance)
        ++matched;
      const uint32_t drawn = std::min(matched, drafts) + 1;
      const double seconds = cost(drafts + 1) * (0.9 + 0.2 * random.uniform());
      length.observe(proposal, drafts + 1, seconds, drawn, std::min(matched, drawn));
      elapsed += seconds;
      tokens += drawn;
      drafted += drafts;
    }
  }
  /// Tokens per plain step.
  double speed() const { return tokens / elapsed; }
};

double cheap(uint32_t rows) { return 1 + 0.05 * (rows - 1); }
double costly(uint32_t rows) { return rows; }

TEST(DraftLength, GoodDraftsAreUsed) {
  Simulation simulation;
  simulation.run(100, 1, cheap);
  EXPECT_GT(simulation.speed(), 5.5) << "9 tokens in 1.4 plain steps at best";
}

TEST(DraftLength, BadDraftsCostLittle) {
  for (auto cost : {cheap, costly})
    for (double acceptance : {0.0, 0.02}) {
      Simulation simulation;
      simulation.run(64, acceptance, cost);
      EXPECT_GT(simulation.speed(), 0.95) << "field report e5";
      simulation.run(1000, acceptance, cost);
      EXPECT_GT(simulation.speed(), 0.97);
    }
}

TEST(DraftLength, CostlyStepsAreNotTaken) {
  Simulation simulation;
  simulation.run(1000, 0.7, costly);
  EXPECT_GT(simulation.speed(), 0.97);
}

TEST(DraftLength, ReturnsWhenDraftsBecomeGood) {
  Simulation simulation;
  simulation.run(500, 0, cheap);
  const uint32_t before = simulation.drafted;
  simulation.run(60, 1, cheap);
  EXPECT_GT(simulation.drafted, before + 200);
}

TEST(DraftLength, NoMoreThanAllowed) {
  Simulation simulation({.most = 2});
  simulation.run(100, 1, cheap);
  EXPECT_LE(simulation.drafted, 200u);
  EXPECT_GT(simulation.drafted, 180u);
}

} // namespace
