//===- Launches.h - a program's kernel launches and their graph -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that a launch needs is known when a session is made: grids are those of the
// program's most rows, parameters are addresses. So a program is one graph: the
// step is copied in, kernels follow each other, the picks are copied out. Where
// the device can, a kernel is launched while its predecessor still runs (a
// programmatic edge), and waits for it by itself.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_LAUNCHES_H
#define LLMC_RUNTIME_DEVICE_CUDA_LAUNCHES_H

#include "runtime/device/cuda/Code.h"

#include <span>
#include <vector>

namespace llmc::rt::cuda {

/// What kernels work on.
struct DeviceAddresses {
  CUdeviceptr arena, kv, step;
};

/// Bytes between this machine and the device.
struct HostCopy {
  void *host = nullptr;
  CUdeviceptr device = 0;
  uint64_t bytes = 0; ///< 0: nothing to copy
};

/// Kernel launches in their order.
class Launches {
public:
  /// A kernel with addresses as parameters.
  void add(CUfunction function, const fb::Launch &launch, std::span<const CUdeviceptr> parameters);

  size_t size() const { return list.size(); }

  /// A graph that copies `in`, launches all and copies `out`.
  StatusOr<GraphExec> instantiate(const Code &code, const HostCopy &in, const HostCopy &out) const;
  /// The same without a graph, with an event before the first launch and after each.
  Status enqueue(const Device &device, CUstream stream, const HostCopy &in, const HostCopy &out,
                 std::span<const Event> events) const;

private:
  struct Launch {
    CUfunction function;
    unsigned gridX, gridY, gridZ, block, shared;
    uint32_t firstParameter;
    uint32_t parameterCount;
  };
  /// A launch's parameters as the driver takes them in one block, whose size it checks.
  struct Packed {
    Packed(const Launches &launches, const Launch &launch);
    size_t bytes;
    void *extra[5];
  };
  Status addNodes(const Code &code, CUgraph graph, const HostCopy &in, const HostCopy &out) const;

  std::vector<Launch> list;
  std::vector<CUdeviceptr> parameters; ///< of all launches
};

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_LAUNCHES_H
