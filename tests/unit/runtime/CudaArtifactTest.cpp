//===- CudaArtifactTest.cpp - the header's border, of CUDA variants -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Model.h"
#include "tests/unit/support/ChainModel.h"

#include <gtest/gtest.h>

#include <functional>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

ChainModel cudaChain() {
  ChainModel chain = ChainModel::counting(20);
  chain.variants.push_back({"sm90", {}, 90});
  chain.layered = true;
  return chain;
}

std::string openError(const ChainModel &chain) {
  auto artifact = Artifact::open(chain.write());
  return artifact.ok() ? "" : artifact.status().message();
}

TEST(CudaArtifact, GoodOnesOpen) {
  EXPECT_EQ(openError(cudaChain()), "");
  ChainModel chain = cudaChain();
  chain.counterBytes = 0;
  chain.variants.erase(chain.variants.begin());
  EXPECT_EQ(openError(chain), "");
}

TEST(CudaArtifact, HostileValuesAreRefused) {
  using Spoil = std::function<void(ChainModel &)>;
  const std::pair<const char *, Spoil> cases[] = {
      {"impossible grid", [](ChainModel &m) { m.storeLaunch.gridX = 1u << 31; }},
      {"impossible grid", [](ChainModel &m) { m.storeLaunch.gridY = 0; }},
      {"impossible grid", [](ChainModel &m) { m.storeLaunch.gridY = 65536; }},
      {"impossible block", [](ChainModel &m) { m.storeLaunch.block = 0; }},
      {"impossible block", [](ChainModel &m) { m.storeLaunch.block = 1025; }},
      {"shared memory", [](ChainModel &m) { m.storeLaunch.shared = 1u << 20; }},
      {"impossible counters", [](ChainModel &m) { m.counterBytes = 6; }},
      {"impossible counters", [](ChainModel &m) { m.counterBytes = 1u << 30; }},
      {"pick kernel", [](ChainModel &m) { m.pickKernel = 4; }},
      {"compute capability", [](ChainModel &m) { m.variants[1].computeCapability = 5; }},
      {"variants[1] names a section that is missing",
       [](ChainModel &m) { m.cudaWeightsSection = 9; }},
      {"weights[0] names a section", [](ChainModel &m) { m.listedWeightsSection = 1; }},
      {"another kind", [](ChainModel &m) { m.ptxSection = 3; }},
      {"section that is missing", [](ChainModel &m) { m.ptxSection = 5; }},
      {"no known kind", [](ChainModel &m) { m.deviceKind = 2; }},
      {"another kind", [](ChainModel &m) { m.deviceKind = 0; }},
      {"not between dispatches", [](ChainModel &m) { m.boundary = 3; }},
      {"not between dispatches", [](ChainModel &m) { m.boundary = 0; }},
      {"past the arena", [](ChainModel &m) { m.liveOffset = 4096 - 4; }},
      {"past the arena", [](ChainModel &m) { m.liveOffset = uint64_t(0) - 4; }},
  };
  for (const auto &[message, spoil] : cases) {
    ChainModel chain = cudaChain();
    spoil(chain);
    EXPECT_NE(openError(chain).find(message), std::string::npos)
        << message << ": " << openError(chain);
  }
}

/// Of CUDA devices weights have another layout, and here more bytes.
TEST(CudaArtifact, BindingsAreOfTheVariantsOwnWeights) {
  ChainModel chain = cudaChain();
  chain.weightBinding = 64 + 20 * 4 + 4;
  EXPECT_NE(openError(chain).find("variants[0] program 'decode' dispatches[0] binds a place"),
            std::string::npos);
  chain.variants.erase(chain.variants.begin());
  EXPECT_EQ(openError(chain), "");
  chain.weightBinding += 64;
  EXPECT_NE(openError(chain).find("binds a place outside its area"), std::string::npos);
}

TEST(CudaArtifact, TheCpuLooksForItsOwnVariants) {
  ChainModel chain = cudaChain();
  std::swap(chain.variants[0], chain.variants[1]);
  const std::string path = chain.write();
  const auto target = [&](const ModelOptions &options) {
    auto model = Model::load(path, options);
    return model.ok() ? model.value()->target() : model.status().message();
  };
  EXPECT_EQ(target({.device = DeviceKind::Cpu}), "any");
  EXPECT_EQ(target({.gpuLayers = 0u}), "any");
  EXPECT_NE(target({.variant = "sm90", .device = DeviceKind::Cpu}).find("no variant 'sm90'"),
            std::string::npos);
  EXPECT_NE(target({.device = DeviceKind::Cpu, .gpuLayers = 1u}).find("layers"), std::string::npos);
}

TEST(CudaArtifact, DeviceNames) {
  ModelOptions options;
  EXPECT_TRUE(parseDevice("cuda:3", options).ok());
  EXPECT_EQ(options.device, DeviceKind::Cuda);
  EXPECT_EQ(options.ordinal, 3);
  EXPECT_TRUE(parseDevice("auto", options).ok());
  EXPECT_EQ(options.device, DeviceKind::Auto);
  EXPECT_EQ(options.ordinal, -1);
  for (const char *bad : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999", "CPU"})
    EXPECT_FALSE(parseDevice(bad, options).ok()) << bad;
}

} // namespace
