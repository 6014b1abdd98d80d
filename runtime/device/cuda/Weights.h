//===- Weights.h - weights in a device's memory -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_WEIGHTS_H
#define LLMC_RUNTIME_DEVICE_CUDA_WEIGHTS_H

#include "runtime/device/Executor.h"
#include "runtime/device/cuda/Device.h"

#include <span>
#include <vector>

namespace llmc::fb {
struct Artifact;
struct Program;
} // namespace llmc::fb

namespace llmc::rt::cuda {

/// Bytes of a weights section.
struct WeightRange {
  uint64_t offset, size;
};

/// Parts of one weights section, in one piece of device memory.
class Weights {
public:
  Weights() = default;
  /// Copies `ranges`, which are in order and do not overlap, straight from the mapped file.
  static StatusOr<Weights> upload(const std::shared_ptr<const Device> &device,
                                  std::span<const uint8_t> section,
                                  std::span<const WeightRange> ranges);

  /// Where byte `offset` of the section is; 0 where it was not uploaded.
  CUdeviceptr address(uint64_t offset) const;

private:
  struct Placed {
    WeightRange range;
    CUdeviceptr address;
  };
  DeviceMemory memory;
  std::vector<Placed> placed;
};

/// The weights of section `section` that the first `end` dispatches of each program read. Corrupt
/// where the artifact does not list one of them.
StatusOr<std::vector<WeightRange>> neededWeights(const fb::Artifact &artifact, uint32_t section,
                                                 const PerPhase<const fb::Program *> &programs,
                                                 const PerPhase<size_t> &end);

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_WEIGHTS_H
