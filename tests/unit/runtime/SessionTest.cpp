//===- SessionTest.cpp - steps, chunks, threads, limits -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/unit/runtime/Sessions.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

std::vector<float> allLogits(Session &session, std::span<const int32_t> tokens) {
  std::vector<float> all;
  Status status = session.prefill(tokens, [&](uint32_t position, std::span<const float> rows) {
    EXPECT_EQ(position * size_t(session.getModel().vocabSize()), all.size());
    all.insert(all.end(), rows.begin(), rows.end());
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return all;
}

TEST(Session, FollowsTheChain) {
  auto session = makeSession(ChainModel::counting(100));
  ASSERT_TRUE(session->prefill(iota(5)).ok());
  EXPECT_EQ(session->position(), 5u);
  int32_t token = argmax(session->logits());
  EXPECT_EQ(token, 5);
  for (int32_t expected = 6; expected < 20; ++expected) {
    ASSERT_TRUE(session->decode(token).ok());
    token = argmax(session->logits());
    EXPECT_EQ(token, expected);
  }
}

TEST(Session, SameBitsForThreadsAndChunks) {
  const auto prompt = iota(45, 7);
  const ChainModel chain = ChainModel::counting(100);
  auto reference = makeSession(chain);
  const auto expected = allLogits(*reference, prompt);
  for (unsigned threads : {1, 2, 3, 5})
    for (uint32_t chunk : {1, 7, 16, 512}) {
      auto session = makeSession(chain, threads, {.prefillChunk = chunk});
      EXPECT_EQ(allLogits(*session, prompt), expected) << threads << " threads, chunk " << chunk;
      session->reset();
      ASSERT_TRUE(session->prefill(prompt).ok());
      EXPECT_TRUE(
          std::equal(session->logits().begin(), session->logits().end(), expected.end() - 100));
    }
}

TEST(Session, SameBitsForUnequalShares) {
  const auto prompt = iota(45, 7);
  const ChainModel chain = ChainModel::counting(100);
  const auto expected = allLogits(*makeSession(chain), prompt);
  for (unsigned slow : {0, 1, 2}) {
    auto session = makeSession(chain, 3);
    Balance &balance = session->workers().balance();
    for (int i = 0; i < 20; ++i) {
      for (unsigned worker = 0; worker < 3; ++worker)
        balance.report(worker, worker == slow ? 20 : 1);
      balance.update();
    }
    ASSERT_FALSE(balance.isEven());
    EXPECT_EQ(allLogits(*session, prompt), expected) << slow;
  }
}

TEST(Session, VerifyEqualsDecode) {
  const ChainModel chain = ChainModel::counting(50);
  auto one = makeSession(chain), many = makeSession(chain, 2);
  ASSERT_TRUE(one->prefill(iota(3)).ok());
  ASSERT_TRUE(many->prefill(iota(3)).ok());
  EXPECT_EQ(many->verifyRows(), 4u);
  const std::vector<int32_t> draft = {3, 4, 9, 9};
  ASSERT_TRUE(many->verify(draft).ok());
  for (uint32_t i = 0; i < draft.size(); ++i) {
    ASSERT_TRUE(one->decode(draft[i]).ok());
    EXPECT_EQ(copy(one->logits()), copy(many->logits(i))) << i;
  }
  EXPECT_EQ(many->verify(iota(5)).code(), StatusCode::OutOfRange);
}

TEST(Session, RollbackForgets) {
  auto session = makeSession(ChainModel::counting(50));
  ASSERT_TRUE(session->prefill(iota(20)).ok());
  const auto expected = copy(session->logits());
  ASSERT_TRUE(session->decode(33).ok());
  ASSERT_TRUE(session->decode(34).ok());
  ASSERT_TRUE(session->rollback(19).ok());
  EXPECT_EQ(session->position(), 19u);
  ASSERT_TRUE(session->decode(19).ok());
  EXPECT_EQ(copy(session->logits()), expected);
  EXPECT_EQ(session->rollback(21).code(), StatusCode::OutOfRange);
}

TEST(Session, RollbackKnowsSlidingWindows) {
  ChainModel chain = ChainModel::counting(50);
  chain.window = 8;
  chain.capacity = 8 + 16 - 1;
  auto session = makeSession(chain);
  ASSERT_TRUE(session->prefill(iota(23)).ok());
  EXPECT_TRUE(session->rollback(1).ok()) << "nothing was overwritten yet";
  session->reset();
  ASSERT_TRUE(session->prefill(iota(40)).ok());
  ASSERT_TRUE(session->rollback(24).ok());
  ASSERT_TRUE(session->decode(24).ok());
  const auto warm = copy(session->logits());
  session->reset();
  ASSERT_TRUE(session->prefill(iota(25)).ok());
  EXPECT_EQ(copy(session->logits()), warm);
  ASSERT_TRUE(session->prefill(iota(15, 25)).ok());
  EXPECT_EQ(session->rollback(23).code(), StatusCode::OutOfRange);
  EXPECT_TRUE(session->rollback(0).ok());
}

TEST(Session, ContextLimitIsCheckedFirst) {
  auto session = makeSession(ChainModel::counting(100));
  Status status = session->prefill(iota(65));
  EXPECT_EQ(status.code(), StatusCode::OutOfRange);
  EXPECT_NE(status.message().find("65"), std::string::npos);
  EXPECT_NE(status.message().find("64"), std::string::npos);
  EXPECT_EQ(session->position(), 0u);
  ASSERT_TRUE(session->prefill(iota(64)).ok());
  EXPECT_EQ(session->decode(64).code(), StatusCode::OutOfRange);
  EXPECT_EQ(session->position(), 64u);

  auto small = makeSession(ChainModel::counting(100), 1, {.contextLimit = 10});
  EXPECT_EQ(small->prefill(iota(11)).code(), StatusCode::OutOfRange);
}

TEST(Session, TokenIdsAreCheckedFirst) {
  auto session = makeSession(ChainModel::counting(100));
  for (int32_t bad : {-1, 100, INT32_MAX, INT32_MIN}) {
    const std::vector<int32_t> prompt = {1, bad};
    Status status = session->prefill(prompt);
    EXPECT_EQ(status.code(), StatusCode::OutOfRange);
    EXPECT_NE(status.message().find(std::to_string(bad)), std::string::npos);
    EXPECT_EQ(session->decode(bad).code(), StatusCode::OutOfRange);
  }
  EXPECT_EQ(session->prefill({}).code(), StatusCode::InvalidArgument);
  EXPECT_EQ(session->position(), 0u);
}

TEST(Session, ContextBeyondTheArtifactIsRefused) {
  auto model = Model::load(ChainModel::counting(10).write());
  ASSERT_TRUE(model.ok());
  auto pool = WorkerPool::create(1);
  auto session = Session::create(model.take(), pool.take(), {.contextLimit = 65});
  EXPECT_EQ(session.status().code(), StatusCode::OutOfRange);
}

} // namespace
