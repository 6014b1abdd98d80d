//===- ProfileTest.cpp - the time of every dispatch -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Bench.h"
#include "runtime/llm/Generator.h"
#include "tests/unit/runtime/Sessions.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

const ProgramProfile &phase(const Session &session, std::string_view name) {
  for (const ProgramProfile *profile : session.profiles())
    if (profile->phase == name)
      return *profile;
  ADD_FAILURE() << "no phase " << name;
  std::abort();
}

uint64_t total(const ProgramProfile &profile) {
  uint64_t sum = 0;
  for (const ProgramProfile::Dispatch &dispatch : profile.dispatches)
    sum += dispatch.nanoseconds;
  return sum;
}

TEST(Profile, OnlyWhereAskedFor) {
  EXPECT_TRUE(makeSession(ChainModel::counting(32))->profiles().empty());
}

TEST(Profile, CallsAreStepsWithWork) {
  for (unsigned threads : {1u, 3u}) {
    auto session =
        makeSession(ChainModel::counting(32), threads, {.prefillChunk = 4, .profile = true});
    auto generator = Generator::create(*session, {.maxTokens = 7});
    ASSERT_TRUE(generator.ok());
    ASSERT_TRUE(generator.value().generate(iota(10), [](std::string_view) { return true; }).ok());

    const ProgramProfile &decode = phase(*session, "decode");
    EXPECT_EQ(decode.steps, 6u) << "the first token comes from prefill";
    ASSERT_EQ(decode.dispatches.size(), 3u);
    for (const ProgramProfile::Dispatch &dispatch : decode.dispatches) {
      EXPECT_EQ(dispatch.op, "test");
      EXPECT_EQ(dispatch.layer, -1);
      EXPECT_EQ(dispatch.weightBytes, 64u);
      EXPECT_EQ(dispatch.calls, 6u);
    }
    const ProgramProfile &prefill = phase(*session, "prefill");
    EXPECT_EQ(prefill.steps, 3u);
    EXPECT_EQ(prefill.dispatches[0].calls, 3u);
    EXPECT_EQ(prefill.dispatches[2].calls, 1u) << "only the last chunk has logits";
    EXPECT_EQ(phase(*session, "verify").steps, 0u);
    EXPECT_EQ(total(phase(*session, "verify")), 0u);
  }
}

TEST(Profile, TimesAddUpToTheWallTime) {
  auto session = makeSession(ChainModel::counting(32), 2, {.profile = true});
  ASSERT_TRUE(session->prefill(iota(3)).ok());
  using Clock = std::chrono::steady_clock;
  std::chrono::nanoseconds wall{0};
  for (int32_t token = 3; token < 30; ++token) {
    const auto start = Clock::now();
    ASSERT_TRUE(session->decode(token).ok());
    wall += Clock::now() - start;
  }
  const uint64_t sum = total(phase(*session, "decode"));
  EXPECT_GT(sum, 0u);
  EXPECT_LE(sum, static_cast<uint64_t>(wall.count()));
}

TEST(Profile, BitsAreTheSame) {
  auto plain = makeSession(ChainModel::counting(32), 2);
  auto profiled = makeSession(ChainModel::counting(32), 2, {.profile = true});
  for (Session *session : {plain.get(), profiled.get()})
    ASSERT_TRUE(session->prefill(iota(20)).ok());
  EXPECT_TRUE(std::ranges::equal(plain->logits(), profiled->logits()));
}

TEST(VerifyCosts, OneForEveryNumberOfTokens) {
  ChainModel chain = ChainModel::counting(32);
  chain.verifyRows = 6;
  auto session = makeSession(chain);
  auto costs = measureVerify(*session, {.position = 20, .repeat = 2});
  ASSERT_TRUE(costs.ok());
  EXPECT_EQ(costs.value().seconds.size(), 6u);
  EXPECT_EQ(session->position(), 20u);
  EXPECT_EQ(measureVerify(*session, {.position = 60}).value().position, 58u) << "as far as fits";
}

} // namespace
