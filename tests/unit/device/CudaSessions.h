//===- CudaSessions.h - the chain model on a CUDA device --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_DEVICE_CUDASESSIONS_H
#define LLMC_TESTS_UNIT_DEVICE_CUDASESSIONS_H

#include "tests/unit/runtime/Sessions.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <nlohmann/json.hpp>

namespace llmc::test {

/// The mock driver, which the runtime finds under its usual name once it is loaded. With
/// LLMC_TEST_CUDA=real nothing is loaded, and nothing can be asked.
class MockCuda {
public:
  static MockCuda &get() {
    static MockCuda mock;
    return mock;
  }
  bool isThere() const { return library; }
  /// What it counted since reset().
  nlohmann::json report() const {
    return nlohmann::json::parse(symbol<const char *()>("llmcMockCudaReport")());
  }
  uint64_t calls(const char *name) const { return report()["calls"].value(name, uint64_t(0)); }
  void reset() const { symbol<void()>("llmcMockCudaReset")(); }
  template <typename Function> Function *symbol(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(library, name));
  }

private:
  MockCuda() {
    const char *which = std::getenv("LLMC_TEST_CUDA");
    if (!which || std::strcmp(which, "real") != 0)
      library = dlopen(LLMC_MOCK_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  }
  void *library = nullptr;
};

/// t -> t + 1, with code for this CPU and for CUDA devices.
inline ChainModel cudaChain(int32_t vocab, uint32_t capability = 90) {
  ChainModel chain = ChainModel::counting(vocab);
  chain.variants.push_back({"sm" + std::to_string(capability), {}, capability});
  return chain;
}

inline std::unique_ptr<rt::Session> makeSessionOn(rt::DeviceKind device, const ChainModel &chain,
                                                  rt::SessionOptions options = {},
                                                  std::optional<uint32_t> gpuLayers = {}) {
  auto model = rt::Model::load(chain.write(), {.device = device, .gpuLayers = gpuLayers});
  EXPECT_TRUE(model.ok()) << model.status().message();
  auto pool = rt::WorkerPool::create(1);
  auto session = rt::Session::create(model.take(), pool.take(), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.take();
}

/// A test in which the driver must find nothing wrong, and get everything back.
class CudaTest : public testing::Test {
protected:
  void SetUp() override {
    if (MockCuda::get().isThere())
      MockCuda::get().reset();
  }
  void TearDown() override {
    if (!MockCuda::get().isThere())
      return;
    const nlohmann::json report = MockCuda::get().report();
    EXPECT_EQ(report["errors"].dump(), "[]");
    EXPECT_EQ(report["memory_used"], 0);
  }
};

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_DEVICE_CUDASESSIONS_H
