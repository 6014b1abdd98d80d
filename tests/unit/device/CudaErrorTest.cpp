//===- CudaErrorTest.cpp - what is said where a CUDA device fails ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A driver reads its settings once, and is lost after an error: each case is a
// process of its own, which prints what it was told.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/device/CudaSessions.h"

#include <cstdio>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

class CudaError : public testing::Test {
protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const char *which = std::getenv("LLMC_TEST_CUDA");
    if (which && std::strcmp(which, "real") == 0)
      GTEST_SKIP() << "of the mock driver only";
  }
};

/// Loads `chain` and computes some steps; ends the process with what came of it on the standard
/// error.
[[noreturn]] void tell(const char *settings, const ChainModel &chain,
                       const ModelOptions &options = {.device = DeviceKind::Cuda}) {
  setenv("LLMC_MOCK_CUDA", settings, 1);
  MockCuda::get();
  const auto compute = [&]() -> Status {
    LLMC_ASSIGN_OR_RETURN(auto model, Model::load(chain.write(), options));
    std::fprintf(stderr, "on %s (%s)\n", model->target().c_str(), model->fallback().c_str());
    LLMC_ASSIGN_OR_RETURN(auto pool, WorkerPool::create(1));
    LLMC_ASSIGN_OR_RETURN(auto session, Session::create(model, std::move(pool)));
    LLMC_RETURN_IF_ERROR(session->prefill(iota(5)));
    LLMC_RETURN_IF_ERROR(session->decode(session->mostLikely()));
    std::fprintf(stderr, "computed %d\n", session->mostLikely());
    return {};
  };
  const Status status = compute();
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::fflush(stderr);
  _exit(0);
}

#define EXPECT_TOLD(pattern, ...)                                                                  \
  EXPECT_EXIT(tell(__VA_ARGS__), testing::ExitedWithCode(0), pattern)

TEST_F(CudaError, NoDevice) {
  EXPECT_TOLD("CUDA_ERROR_NO_DEVICE .* while starting the CUDA driver", "devices=0", cudaChain(64));
  EXPECT_TOLD("on any \\(CUDA_ERROR_NO_DEVICE .*computed 6", "devices=0", cudaChain(64),
              {.device = DeviceKind::Auto});
}

TEST_F(CudaError, NoSuchDevice) {
  EXPECT_TOLD("there is no CUDA device 3, only 1", "sm=90", cudaChain(64),
              {.device = DeviceKind::Cuda, .ordinal = 3});
}

TEST_F(CudaError, NoMemory) {
  ChainModel chain = cudaChain(64);
  chain.kvSize = 8 << 20;
  EXPECT_TOLD("CUDA_ERROR_OUT_OF_MEMORY .* while reserving 8.0 MiB on PTX emulator .sm_90. for the "
              "KV cache and intermediate values: 1.0 MiB are free; fewer layers",
              "memory=1M", chain);
  chain = cudaChain(1 << 19);
  chain.withTokenizer = false;
  EXPECT_TOLD("CUDA_ERROR_OUT_OF_MEMORY .* for weights: .*gpu-layers", "memory=1M", chain);
  EXPECT_TOLD("on any .*OUT_OF_MEMORY", "memory=1M", chain, {.device = DeviceKind::Auto});
}

TEST_F(CudaError, TooOld) {
  EXPECT_TOLD("sm90 needs compute capability 9.0 or later; PTX emulator .sm_75. has 7.5", "sm=75",
              cudaChain(64));
  EXPECT_TOLD("on sm80 .*computed 6", "sm=89", cudaChain(64, 80));
}

TEST_F(CudaError, TheBestVariant) {
  ChainModel chain = cudaChain(64, 80);
  chain.variants.push_back({"sm89", {}, 89});
  chain.variants.push_back({"sm90", {}, 90});
  EXPECT_TOLD("on sm80 ", "sm=80", chain);
  EXPECT_TOLD("on sm89 ", "sm=89", chain);
  EXPECT_TOLD("on sm90 ", "sm=100", chain);
}

/// Its PTX is not at hand: a driver that does not take a cubin gets the text.
TEST_F(CudaError, CubinIsRefused) {
  ChainModel chain = cudaChain(64);
  chain.cubin = std::string("\x7f"
                            "ELF\x02");
  EXPECT_TOLD("the code for sm90 on .* is no whole ELF file", "sm=90", chain);
  chain.cubin.resize(64);
  EXPECT_TOLD("on sm90 .*computed 6", "sm=90", chain);
  // Of the same generation, but for a later device: not even tried.
  chain.cubin.resize(5);
  EXPECT_TOLD("on sm90 .*computed 6", "sm=100", chain);
}

TEST_F(CudaError, BrokenCode) {
  ChainModel chain = cudaChain(64);
  chain.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry x() { rumble; }";
  EXPECT_TOLD("CUDA_ERROR_INVALID_PTX .* while compiling the code for sm90", "sm=90", chain);
  chain.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry store() { ret; }";
  EXPECT_TOLD("CUDA_ERROR_NOT_FOUND .* while looking for the kernel 'look_back'", "sm=90", chain);
}

/// A kernel of fewer parameters than the header gives, or of more, reads no foreign memory.
TEST_F(CudaError, OtherParameters) {
  ChainModel chain = cudaChain(64);
  chain.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n";
  for (const char *name : {"store", "look_back", "logits", "pick"})
    chain.ptx += std::string(".visible .entry ") + name +
                 "(.param .align 8 .b8 many[512]) { griddepcontrol.wait; ret; }\n";
  EXPECT_TOLD("CUDA_ERROR_INVALID_VALUE .* while making a graph", "sm=90", chain);
}

TEST_F(CudaError, KernelFails) {
  ChainModel chain = cudaChain(64);
  chain.storeLaunch.block = 2000;
  // The header's own limits.
  EXPECT_TOLD("impossible block", "sm=90", chain);
  chain = cudaChain(64);
  chain.storeLaunch.shared = 200 << 10;
  EXPECT_TOLD("'store' needs 204800 bytes of shared memory, and a block .* has 101376", "sm=89",
              [] {
                ChainModel chain = cudaChain(64, 89);
                chain.storeLaunch.shared = 200 << 10;
                return chain;
              }());
  EXPECT_TOLD("computed 6", "sm=90", chain);
  // The kernels look at a KV area that is not there.
  chain = cudaChain(64);
  chain.capacity = 1 << 20;
  EXPECT_TOLD("computed 6", "sm=90", chain);
}

/// Programmatic edges: a kernel that does not wait for its predecessor is caught.
TEST_F(CudaError, KernelsOverlap) {
  ChainModel chain = cudaChain(64);
  chain.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n"
              ".visible .entry store(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }\n"
              ".visible .entry look_back(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 "
              "d) { ret; }\n"
              ".visible .entry logits(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }\n"
              ".visible .entry pick(.param .u64 a) { ret; }\n";
  EXPECT_TOLD("CUDA_ERROR_LAUNCH_FAILED .* while computing the program 'prefill' on PTX emulator",
              "sm=90,check=full", chain);
}

} // namespace
