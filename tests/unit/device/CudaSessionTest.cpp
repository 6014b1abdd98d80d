//===- CudaSessionTest.cpp - sessions on a CUDA device --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Bench.h"
#include "runtime/llm/Generator.h"
#include "tests/unit/device/CudaSessions.h"

#include <thread>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

using CudaSession = CudaTest;

std::vector<float> copyOf(std::span<const float> x) { return {x.begin(), x.end()}; }

/// Prompts, drafts, steps back: what a session computes, in bits.
std::vector<std::vector<float>> history(Session &session) {
  std::vector<std::vector<float>> rows;
  const auto keep = [&](uint32_t row) {
    const LogitRow logits = session.tokenLogits(row);
    rows.push_back(copyOf(logits.values));
    rows.push_back(copyOf(logits.maxima));
    rows.push_back({float(session.mostLikely(row))});
  };
  EXPECT_TRUE(session.prefill(iota(21)).ok());
  keep(0);
  EXPECT_TRUE(session.decode(3).ok());
  keep(0);
  EXPECT_TRUE(session.verify({{4, 9, 10}}).ok());
  for (uint32_t row : {2, 0, 1})
    keep(row);
  EXPECT_TRUE(session.rollback(23).ok());
  EXPECT_TRUE(session.verify({{11, 12, 13, 14}}).ok());
  keep(3);
  EXPECT_TRUE(session
                  .prefill(iota(9, 30),
                           [&](uint32_t position, std::span<const float> logits) {
                             rows.push_back({float(position)});
                             rows.push_back(copyOf(logits));
                             return true;
                           })
                  .ok());
  return rows;
}

TEST_F(CudaSession, SameBitsAsTheCpu) {
  for (uint32_t window : {0u, 8u})
    for (uint32_t chunk : {0u, 1u, 7u})
      for (int32_t vocab : {64, 77}) {
        ChainModel chain = cudaChain(vocab);
        chain.window = window;
        const SessionOptions options{.prefillChunk = chunk};
        auto cpu = makeSessionOn(DeviceKind::Cpu, chain, options);
        auto gpu = makeSessionOn(DeviceKind::Cuda, chain, options);
        EXPECT_EQ(gpu->getModel().target(), "sm90");
        EXPECT_EQ(cpu->getModel().target(), "any");
        EXPECT_EQ(history(*gpu), history(*cpu)) << window << " " << chunk << " " << vocab;
      }
}

TEST_F(CudaSession, IsChosenWhereItCan) {
  auto session = makeSessionOn(DeviceKind::Auto, cudaChain(64));
  EXPECT_EQ(session->getModel().target(), "sm90");
  EXPECT_EQ(session->getModel().fallback(), "");
  EXPECT_NE(session->getModel().device(), "cpu");
  session = makeSessionOn(DeviceKind::Auto, ChainModel::counting(64));
  EXPECT_EQ(session->getModel().device(), "cpu");
  EXPECT_EQ(session->getModel().fallback(), "");
}

TEST_F(CudaSession, VariantByName) {
  const std::string path = cudaChain(64).write();
  for (const auto &[name, target] : {std::pair("sm90", "sm90"), std::pair("any", "any")}) {
    auto model = Model::load(path, {.variant = name});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model.value()->target(), target);
  }
  EXPECT_FALSE(Model::load(path, {.variant = "sm75"}).ok());
}

/// The text and tokens of a generation.
std::vector<int32_t> generate(Session &session, const GenerateOptions &options,
                              DraftSource *draft = nullptr) {
  auto generator = Generator::create(session, options, draft);
  EXPECT_TRUE(generator.ok());
  EXPECT_TRUE(generator.value().generate(iota(5), [](std::string_view) { return true; }).ok());
  const auto tokens = generator.value().completion();
  return {tokens.begin(), tokens.end()};
}

TEST_F(CudaSession, GreedyNeedsNoLogits) {
  auto session = makeSessionOn(DeviceKind::Cuda, cudaChain(64));
  const MockCuda &mock = MockCuda::get();
  if (mock.isThere())
    mock.reset();
  EXPECT_EQ(generate(*session, {.maxTokens = 20}), iota(20, 5));
  if (!mock.isThere())
    return;
  // One launch and one wait per step, nothing else. The first token is the prompt's.
  const nlohmann::json calls = mock.report()["calls"];
  EXPECT_EQ(calls, nlohmann::json({{"cuGraphLaunch", 20}, {"cuStreamSynchronize", 20}}));
}

TEST_F(CudaSession, SamplingCopiesItsRow) {
  const GenerateOptions options{.sampler = {.temperature = 5, .repeatPenalty = 1.2f, .seed = 3},
                                .maxTokens = 20};
  auto cpu = makeSessionOn(DeviceKind::Cpu, cudaChain(64));
  const std::vector<int32_t> expected = generate(*cpu, options);
  auto gpu = makeSessionOn(DeviceKind::Cuda, cudaChain(64));
  const MockCuda &mock = MockCuda::get();
  if (mock.isThere())
    mock.reset();
  EXPECT_EQ(generate(*gpu, options), expected);
  if (mock.isThere()) {
    EXPECT_EQ(mock.calls("cuMemcpyDtoHAsync_v2"), 40u) << "logits and maxima, once per token";
  }
}

/// The tokenizer has fewer tokens than the model: a row of the head that is no token is greatest.
TEST_F(CudaSession, PicksThatAreNoTokens) {
  ChainModel chain = cudaChain(64);
  chain.tokenizerSize = 40;
  auto cpu = makeSessionOn(DeviceKind::Cpu, chain);
  auto gpu = makeSessionOn(DeviceKind::Cuda, chain);
  EXPECT_EQ(generate(*gpu, {.maxTokens = 40}), generate(*cpu, {.maxTokens = 40}));
}

TEST_F(CudaSession, DraftsChangeNothing) {
  struct Wrong : DraftSource {
    Proposal propose(std::span<const int32_t>, int32_t last, std::span<int32_t> draft) override {
      for (size_t i = 0; i < draft.size(); ++i)
        draft[i] = i < 2 ? ++last % 64 : 0;
      return {draft.size()};
    }
  } draft;
  auto session = makeSessionOn(DeviceKind::Cuda, cudaChain(64));
  EXPECT_EQ(generate(*session, {.draft = {.adaptive = false}, .maxTokens = 20}, &draft),
            iota(20, 5));
}

TEST_F(CudaSession, SessionsShareTheModel) {
  auto model = Model::load(cudaChain(64).write(), {.device = DeviceKind::Cuda});
  ASSERT_TRUE(model.ok());
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) {
    auto pool = WorkerPool::create(1);
    auto session = Session::create(model.value(), pool.take());
    ASSERT_TRUE(session.ok());
    sessions.push_back(session.take());
  }
  // In turns: each has its own sequence.
  for (size_t i = 0; i < sessions.size(); ++i)
    ASSERT_TRUE(sessions[i]->prefill(iota(3 + i, int32_t(i))).ok());
  for (int step = 0; step < 5; ++step)
    for (size_t i = 0; i < sessions.size(); ++i) {
      const int32_t token = sessions[i]->mostLikely();
      EXPECT_EQ(token, int32_t(3 + 2 * i) + step);
      ASSERT_TRUE(sessions[i]->decode(token).ok());
    }
  if (MockCuda::get().isThere()) {
    EXPECT_EQ(MockCuda::get().calls("cuModuleLoadData"), 1u);
    EXPECT_EQ(MockCuda::get().calls("cuMemAlloc_v2"), 4u) << "weights, and one per session";
  }
}

TEST_F(CudaSession, ThreadsHaveTheirOwnSessions) {
  auto model = Model::load(cudaChain(64).write(), {.device = DeviceKind::Cuda});
  ASSERT_TRUE(model.ok());
  std::vector<std::vector<int32_t>> tokens(3);
  std::vector<std::thread> threads;
  for (std::vector<int32_t> &mine : tokens)
    threads.emplace_back([&] {
      auto pool = WorkerPool::create(1);
      auto session = Session::create(model.value(), pool.take());
      if (session.ok())
        mine = generate(*session.value(), {.maxTokens = 20});
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::vector<int32_t> &mine : tokens)
    EXPECT_EQ(mine, iota(20, 5));
}

/// Nobody has computed them; asking does no harm.
TEST_F(CudaSession, LogitsThatAreNotThere) {
  auto session = makeSessionOn(DeviceKind::Cuda, cudaChain(64));
  EXPECT_EQ(session->logits().size(), 64u);
  ASSERT_TRUE(session->decode(4).ok());
  EXPECT_EQ(session->logits(3).size(), 64u);
  EXPECT_EQ(session->logits(0)[5], 10.0f);
  EXPECT_TRUE(session->decode(5).ok());
}

TEST_F(CudaSession, Profile) {
  auto session =
      makeSessionOn(DeviceKind::Cuda, cudaChain(64), {.prefillChunk = 2, .profile = true});
  EXPECT_EQ(generate(*session, {.maxTokens = 8}), iota(8, 5));
  for (const ProgramProfile *profile : session->profiles()) {
    const bool prefill = profile->phase == "prefill";
    const uint64_t steps = prefill ? 3 : profile->phase == "decode" ? 7 : 0;
    EXPECT_EQ(profile->steps, steps) << profile->phase;
    ASSERT_EQ(profile->dispatches.size(), 3u);
    EXPECT_EQ(profile->dispatches[0].calls, steps);
    EXPECT_EQ(profile->dispatches[2].calls, prefill ? 1 : steps) << "the last chunk has logits";
    for (const ProgramProfile::Dispatch &dispatch : profile->dispatches)
      EXPECT_EQ(dispatch.nanoseconds > 0, steps > 0);
  }
}

TEST_F(CudaSession, Bench) {
  auto session = makeSessionOn(DeviceKind::Cuda, cudaChain(64));
  auto result = runBench(*session, {.promptTokens = 4, .newTokens = 3, .repeat = 1});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(result.value().decodeTokensPerSecond, 0);
  EXPECT_GT(result.value().memoryBytesPerSecond, 1e11) << "the device's, not this machine's";
}

} // namespace
