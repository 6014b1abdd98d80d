//===- SplitTest.cpp - the first layers on a CUDA device ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Generator.h"
#include "tests/unit/device/CudaSessions.h"

using namespace llmc::rt;
using namespace llmc::test;

namespace {

using Split = CudaTest;

ChainModel layeredChain() {
  ChainModel chain = cudaChain(64);
  chain.layered = true;
  return chain;
}

TEST_F(Split, SameBitsAsEachDevice) {
  const auto logitsOf = [](std::optional<uint32_t> layers, const std::string &target) {
    auto session = makeSessionOn(DeviceKind::Auto, layeredChain(), {.prefillChunk = 6}, layers);
    EXPECT_EQ(session->getModel().target(), target);
    std::vector<float> all;
    const auto keep = [&](uint32_t row) {
      const auto logits = session->logits(row);
      all.insert(all.end(), logits.begin(), logits.end());
      all.push_back(float(session->mostLikely(row)));
    };
    EXPECT_TRUE(session->prefill(iota(20)).ok());
    keep(0);
    EXPECT_TRUE(session->decode(7).ok());
    keep(0);
    EXPECT_TRUE(session->verify({{8, 20, 9}}).ok());
    keep(0);
    keep(2);
    return all;
  };
  const std::vector<float> expected = logitsOf(0u, "any");
  EXPECT_EQ(logitsOf({}, "sm90"), expected);
  EXPECT_EQ(logitsOf(2u, "sm90"), expected);
  EXPECT_EQ(logitsOf(1u, "sm90 (1 of 2 layers), any"), expected);
}

TEST_F(Split, CopiesWhatIsLive) {
  auto session = makeSessionOn(DeviceKind::Auto, layeredChain(), {}, 1u);
  const MockCuda &mock = MockCuda::get();
  if (mock.isThere())
    mock.reset();
  ASSERT_TRUE(session->decode(1).ok());
  if (mock.isThere()) {
    EXPECT_EQ(mock.report()["calls"],
              nlohmann::json(
                  {{"cuGraphLaunch", 1}, {"cuMemcpyDtoHAsync_v2", 1}, {"cuStreamSynchronize", 1}}));
    const nlohmann::json kernels = mock.report()["kernels"];
    EXPECT_TRUE(kernels.contains("look_back"));
    EXPECT_FALSE(kernels.contains("logits") || kernels.contains("pick")) << "on the CPU";
  }
}

/// The memory that is left for more layers: no weights and no cache of what the CPU computes.
TEST_F(Split, NeedsLessMemory) {
  if (!MockCuda::get().isThere())
    GTEST_SKIP() << "nobody tells";
  ChainModel chain = layeredChain();
  chain.kvSize = 1 << 20;
  const auto used = [&](std::optional<uint32_t> layers) {
    auto session = makeSessionOn(DeviceKind::Auto, chain, {}, layers);
    return MockCuda::get().report()["memory_used"].get<uint64_t>();
  };
  EXPECT_GT(used({}), uint64_t(1 << 20));
  EXPECT_LT(used(1u), uint64_t(1 << 18));
}

TEST_F(Split, Profile) {
  auto session = makeSessionOn(DeviceKind::Auto, layeredChain(), {.profile = true}, 1u);
  ASSERT_TRUE(session->decode(1).ok());
  ASSERT_TRUE(session->decode(2).ok());
  for (const ProgramProfile *profile : session->profiles())
    if (profile->phase == "decode") {
      EXPECT_EQ(profile->steps, 2u);
      for (const ProgramProfile::Dispatch &dispatch : profile->dispatches) {
        EXPECT_EQ(dispatch.calls, 2u);
        EXPECT_GT(dispatch.nanoseconds, 0u);
      }
    }
}

TEST_F(Split, Refusals) {
  const auto message = [](const ChainModel &chain, const ModelOptions &options) {
    auto model = Model::load(chain.write(), options);
    return model.ok() ? "" : model.status().message();
  };
  const auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  ChainModel chain = ChainModel::counting(64);
  chain.layered = true;
  EXPECT_TRUE(has(message(chain, {.gpuLayers = 1u}), "no code for CUDA devices"));
  chain = layeredChain();
  chain.variants.erase(chain.variants.begin());
  EXPECT_TRUE(has(message(chain, {.gpuLayers = 1u}), "code for CUDA devices only"));
  EXPECT_TRUE(has(message(chain, {.device = DeviceKind::Cpu}), "code for CUDA devices only"));
  EXPECT_EQ(message(chain, {.gpuLayers = 2u}), "");
}

} // namespace
