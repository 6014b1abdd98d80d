//===- Launches.cpp - a program's kernel launches and their graph ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Launches.h"

#include "runtime/schema/llmc_generated.h"

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::rt::cuda;

namespace {

CUDA_MEMCPY3D toDevice(const HostCopy &copy) {
  CUDA_MEMCPY3D node = {};
  node.srcMemoryType = CU_MEMORYTYPE_HOST;
  node.srcHost = copy.host;
  node.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  node.dstDevice = copy.device;
  node.WidthInBytes = copy.bytes;
  node.Height = node.Depth = 1;
  return node;
}

CUDA_MEMCPY3D toHost(const HostCopy &copy) {
  CUDA_MEMCPY3D node = {};
  node.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  node.srcDevice = copy.device;
  node.dstMemoryType = CU_MEMORYTYPE_HOST;
  node.dstHost = copy.host;
  node.WidthInBytes = copy.bytes;
  node.Height = node.Depth = 1;
  return node;
}

} // namespace

Launches::Packed::Packed(const Launches &launches, const Launch &launch)
    : bytes(launch.parameterCount * sizeof(CUdeviceptr)),
      extra{CU_LAUNCH_PARAM_BUFFER_POINTER,
            const_cast<CUdeviceptr *>(launches.parameters.data() + launch.firstParameter),
            CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END} {}

void Launches::add(CUfunction function, const fb::Launch &launch,
                   std::span<const CUdeviceptr> addresses) {
  list.push_back({function, launch.grid_x(), launch.grid_y(), launch.grid_z(), launch.block(),
                  launch.shared_bytes(), static_cast<uint32_t>(parameters.size()),
                  static_cast<uint32_t>(addresses.size())});
  parameters.insert(parameters.end(), addresses.begin(), addresses.end());
}

StatusOr<GraphExec> Launches::instantiate(const Code &code, const HostCopy &in,
                                          const HostCopy &out) const {
  const std::shared_ptr<const Device> &device = code.device();
  const Driver &driver = device->driver();
  const Current current(*device);
  const std::string doing = "making a graph on " + device->name();
  CUgraph made = nullptr;
  LLMC_CUDA_RETURN_IF_ERROR(driver, cuGraphCreate(&made, 0), doing);
  const Graph graph(device, made);
  LLMC_RETURN_IF_ERROR(addNodes(code, made, in, out));
  CUgraphExec exec = nullptr;
  LLMC_CUDA_RETURN_IF_ERROR(driver, cuGraphInstantiate(&exec, made, 0), doing);
  return GraphExec(device, exec);
}

Status Launches::addNodes(const Code &code, CUgraph graph, const HostCopy &in,
                          const HostCopy &out) const {
  const Device &device = *code.device();
  const Driver &driver = device.driver();
  const std::string doing = "making a graph on " + device.name();
  const CUDA_MEMCPY3D first = toDevice(in);
  CUgraphNode last = nullptr;
  LLMC_CUDA_RETURN_IF_ERROR(
      driver, cuGraphAddMemcpyNode(&last, graph, nullptr, 0, &first, device.context()), doing);
  for (const Launch &launch : list) {
    Packed packed(*this, launch);
    const CUDA_KERNEL_NODE_PARAMS params = {
        launch.function, launch.gridX, launch.gridY, launch.gridZ, launch.block, 1, 1,
        launch.shared,   nullptr,      packed.extra, nullptr,      nullptr};
    // A kernel never overlaps with the copy before it.
    const bool overlaps = code.overlaps() && &launch != list.data();
    CUgraphNode node = nullptr;
    LLMC_CUDA_RETURN_IF_ERROR(
        driver, cuGraphAddKernelNode(&node, graph, &last, overlaps ? 0 : 1, &params), doing);
    constexpr CUgraphEdgeData edge = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
    if (overlaps)
      LLMC_CUDA_RETURN_IF_ERROR(driver, cuGraphAddDependencies(graph, &last, &node, &edge, 1),
                                doing);
    last = node;
  }
  if (out.bytes != 0) {
    const CUDA_MEMCPY3D copy = toHost(out);
    LLMC_CUDA_RETURN_IF_ERROR(
        driver, cuGraphAddMemcpyNode(&last, graph, &last, 1, &copy, device.context()), doing);
  }
  return {};
}

Status Launches::enqueue(const Device &device, CUstream stream, const HostCopy &in,
                         const HostCopy &out, std::span<const Event> events) const {
  const Driver &driver = device.driver();
  constexpr const char *doing = "launching kernels to measure them";
  LLMC_CUDA_RETURN_IF_ERROR(driver, cuMemcpyHtoDAsync(in.device, in.host, in.bytes, stream), doing);
  LLMC_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(events[0].get(), stream), doing);
  for (size_t i = 0; i < list.size(); ++i) {
    const Launch &launch = list[i];
    Packed packed(*this, launch);
    LLMC_CUDA_RETURN_IF_ERROR(driver,
                              cuLaunchKernel(launch.function, launch.gridX, launch.gridY,
                                             launch.gridZ, launch.block, 1, 1, launch.shared,
                                             stream, nullptr, packed.extra),
                              doing);
    LLMC_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(events[i + 1].get(), stream), doing);
  }
  if (out.bytes != 0)
    LLMC_CUDA_RETURN_IF_ERROR(driver, cuMemcpyDtoHAsync(out.host, out.device, out.bytes, stream),
                              doing);
  return {};
}
