//===- Device.h - one CUDA device and what is owned on it -------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Owners keep their device alive, so that everything is released in order. The
// device's primary context is shared with other users in the process; it is made
// current around calls (Current) and left as it was found.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_DEVICE_H
#define LLMC_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/device/cuda/Driver.h"

#include <memory>
#include <span>
#include <utility>

namespace llmc::rt::cuda {

class Device {
public:
  /// Device number `ordinal`, as the driver counts.
  static StatusOr<std::shared_ptr<const Device>> open(const Driver &driver, int ordinal);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const Driver &driver() const { return api; }
  CUcontext context() const { return primary; }
  /// "NVIDIA H200"
  const std::string &name() const { return label; }
  /// 90 is compute capability 9.0.
  uint32_t computeCapability() const { return capability; }
  /// Bytes of shared memory that a block may have.
  uint32_t sharedLimit() const { return shared; }
  double memoryBandwidth() const { return bandwidth; }
  /// Bytes of its memory that nobody has; 0 where that is not known.
  size_t freeMemory() const;

private:
  explicit Device(const Driver &driver) : api(driver) {}
  Status initialize(int ordinal);

  const Driver &api;
  CUdevice handle = 0;
  CUcontext primary = nullptr;
  std::string label;
  uint32_t capability = 0;
  uint32_t shared = 0;
  double bandwidth = 0; ///< bytes per second
};

/// "9.0"
std::string capabilityText(uint32_t capability);
/// "1.5 GiB"
std::string sizeText(uint64_t bytes);

/// In front of what calls the driver in a header: its functions name the types of handles
/// differently than DriverApi.h, which sanitizers notice (CMakeLists.txt has the sources).
#if defined(__clang__)
#define LLMC_CALLS_DRIVER __attribute__((no_sanitize("function")))
#else
#define LLMC_CALLS_DRIVER
#endif

/// As long as it lives, calls of this thread go to the device.
class Current {
public:
  LLMC_CALLS_DRIVER explicit Current(const Device &device) : driver(device.driver()) {
    driver.cuCtxPushCurrent(device.context());
  }
  LLMC_CALLS_DRIVER ~Current() {
    CUcontext popped;
    driver.cuCtxPopCurrent(&popped);
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  const Driver &driver;
};

/// A handle of the driver that `Release` gives back.
template <typename Handle, CUresult (*Driver::*Release)(Handle)> class Owned {
public:
  Owned() = default;
  Owned(std::shared_ptr<const Device> device, Handle handle)
      : device(std::move(device)), handle(handle) {}
  Owned(Owned &&other) noexcept
      : device(std::move(other.device)), handle(std::exchange(other.handle, Handle())) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(device, other.device);
    std::swap(handle, other.handle);
    return *this;
  }
  LLMC_CALLS_DRIVER ~Owned() {
    if (!handle)
      return;
    const Current current(*device);
    (device->driver().*Release)(handle);
  }
  Handle get() const { return handle; }

private:
  std::shared_ptr<const Device> device;
  Handle handle = {};
};

using DeviceMemory = Owned<CUdeviceptr, &Driver::cuMemFree>;
using HostMemory = Owned<void *, &Driver::cuMemFreeHost>;
using Stream = Owned<CUstream, &Driver::cuStreamDestroy>;
using Event = Owned<CUevent, &Driver::cuEventDestroy>;
using Module = Owned<CUmodule, &Driver::cuModuleUnload>;
using Graph = Owned<CUgraph, &Driver::cuGraphDestroy>;
using GraphExec = Owned<CUgraphExec, &Driver::cuGraphExecDestroy>;

/// `what` it is for stands in the error, with how much is free. The bytes have no values.
StatusOr<DeviceMemory> allocate(const std::shared_ptr<const Device> &device, uint64_t bytes,
                                const char *what);
/// Memory of this machine that the device reads and writes by itself.
StatusOr<HostMemory> allocateHost(const std::shared_ptr<const Device> &device, uint64_t bytes,
                                  const char *what);
StatusOr<Stream> createStream(const std::shared_ptr<const Device> &device);
StatusOr<Event> createEvent(const std::shared_ptr<const Device> &device);

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_DEVICE_H
