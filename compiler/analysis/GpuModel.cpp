//===- GpuModel.cpp - how long a kernel takes on a GPU, as a model --------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/GpuModel.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc;

/// Bytes that a multiprocessor takes from L2 in a cycle.
static constexpr double kL2BytesPerCycle = 64;
/// Instructions of a warp that a multiprocessor starts in a cycle, and a warp alone.
static constexpr double kSchedulers = 4, kWarpRate = 0.5;
static constexpr int64_t kWarp = 32, kRegisters = 64 << 10, kSystemShared = 1 << 10;
/// What a kernel waits for, one after the other: its input, the weights (which have been asked for
/// before), and its result on the way to the next kernel.
static constexpr double kLatencyUs = 1.5;

llvm::ArrayRef<Gpu> llmc::gpus() {
  static const Gpu table[] = {
      {"a100", "A100 SXM 80 GB", 80, 108, 1.41, 1800, 2048, 32, 164 << 10, 1.3},
      {"4090", "GeForce RTX 4090", 89, 128, 2.52, 930, 1536, 24, 100 << 10, 1.3},
      {"h100", "H100 SXM", 90, 132, 1.755, 3000, 2048, 32, 228 << 10, 0.8},
      {"h200", "H200", 90, 132, 1.755, 4300, 2048, 32, 228 << 10, 0.8},
  };
  return table;
}

const Gpu *llmc::lookupGpu(llvm::StringRef name) {
  for (const Gpu &gpu : gpus())
    if (gpu.name == name)
      return &gpu;
  return nullptr;
}

llvm::StringRef KernelTime::bound() const {
  if (execution() == latency)
    return "latency";
  return execution() == memory ? "memory" : "issue";
}

static int64_t residentBlocks(const Gpu &gpu, const KernelWork &work) {
  int64_t most = std::min({gpu.blocks, gpu.threads / work.threads,
                           gpu.sharedBytes / (work.sharedBytes + kSystemShared)});
  // Registers are given out to warps, eight for each lane at a time.
  if (work.registers)
    most = std::min(most, kRegisters / int64_t(llvm::alignTo(work.registers, 8) *
                                               llvm::alignTo(work.threads, kWarp)));
  return std::max<int64_t>(most, 1);
}

KernelTime llmc::predictKernel(const Gpu &gpu, const KernelWork &work) {
  KernelTime time;
  time.residentBlocks = residentBlocks(gpu, work);
  double cyclesPerUs = gpu.clockGHz * 1e3;
  // The multiprocessor that has most to do.
  int64_t most = llvm::divideCeil(work.blocks, gpu.multiprocessors);
  double share = double(most) / double(work.blocks);
  time.memory = std::max(work.bytes / (gpu.memoryGBs * 1e3),
                         share * work.bytes / (kL2BytesPerCycle * cyclesPerUs));
  double warps = double(std::min(most, time.residentBlocks) * (work.threads / kWarp));
  time.issue = share * work.laneInstructions / kWarp /
               (std::min(kSchedulers, kWarpRate * warps) * cyclesPerUs);
  time.latency = kLatencyUs;
  time.launch = gpu.launchUs;
  return time;
}
