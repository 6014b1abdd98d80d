//===- CudaSteadyStateTest.cpp - a step allocates nothing, on no side -----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that give out memory are replaced, in this program, by ones that
// count. What the driver allocates on this machine is its own affair.
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Generator.h"
#include "tests/unit/device/CudaSessions.h"

#include <atomic>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

std::atomic<bool> counting;
std::atomic<int> allocations;
int (*depthInDriver)();

void note() {
  if (counting.load(std::memory_order_relaxed) && (!depthInDriver || depthInDriver() == 0))
    ++allocations;
}

} // namespace

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

__attribute__((visibility("default"))) void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void *realloc(void *pointer, size_t size) {
  note();
  return __libc_realloc(pointer, size);
}

} // extern "C"

namespace {

using CudaSteadyState = CudaTest;

/// Generates with `options` and counts from the 5th token on; gives the driver's calls.
nlohmann::json measure(const GenerateOptions &given, std::optional<uint32_t> gpuLayers = {}) {
  constexpr size_t warmUp = 5, measured = 30;
  const MockCuda &mock = MockCuda::get();
  if (mock.isThere())
    depthInDriver = mock.symbol<int()>("llmcMockCudaDepth");
  ChainModel chain = cudaChain(100);
  chain.context = 64;
  chain.layered = true;
  auto session = makeSessionOn(DeviceKind::Auto, chain, {}, gpuLayers);
  GenerateOptions options = given;
  options.maxTokens = warmUp + measured;
  auto generator = Generator::create(*session, options);
  EXPECT_TRUE(generator.ok());
  allocations = 0;
  auto result = generator.value().generate(iota(8), [&](std::string_view) {
    const size_t count = generator.value().completion().size();
    if (count == warmUp && mock.isThere())
      mock.reset();
    counting = count >= warmUp && count < warmUp + measured - 1;
    return true;
  });
  counting = false;
  EXPECT_TRUE(result.ok()) << result.status().message();
  // What a real driver does cannot be told apart.
  if (mock.isThere()) {
    EXPECT_EQ(allocations, 0);
  }
  return mock.isThere() ? mock.report()["calls"] : nlohmann::json();
}

void expectCalls(const nlohmann::json &calls, std::vector<std::string> names) {
  if (!MockCuda::get().isThere())
    return;
  std::vector<std::string> called;
  for (const auto &[name, count] : calls.items())
    called.push_back(name);
  EXPECT_EQ(called, names);
}

TEST_F(CudaSteadyState, CounterWorks) {
  allocations = 0;
  counting = true;
  void *volatile block = malloc(1000);
  counting = false;
  free(block);
  EXPECT_EQ(allocations, 1);
}

TEST_F(CudaSteadyState, Greedy) {
  expectCalls(measure({}), {"cuGraphLaunch", "cuStreamSynchronize"});
}

TEST_F(CudaSteadyState, Sampling) {
  expectCalls(measure({.sampler = {.temperature = 0.8f, .topK = 40, .seed = 1}}),
              {"cuGraphLaunch", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"});
}

TEST_F(CudaSteadyState, SomeLayers) {
  expectCalls(measure({}, 1u), {"cuGraphLaunch", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"});
}

} // namespace
