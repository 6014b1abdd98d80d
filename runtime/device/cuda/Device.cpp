//===- Device.cpp - one CUDA device and what is owned on it ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Device.h"

#include <cstdio>

using namespace llmc::rt;
using namespace llmc::rt::cuda;

std::string llmc::rt::cuda::capabilityText(uint32_t capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::string llmc::rt::cuda::sizeText(uint64_t bytes) {
  constexpr double mebi = 1 << 20, gibi = 1 << 30;
  char text[32];
  if (double(bytes) < gibi)
    std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / mebi);
  else
    std::snprintf(text, sizeof text, "%.2f GiB", double(bytes) / gibi);
  return text;
}

StatusOr<std::shared_ptr<const Device>> Device::open(const Driver &driver, int ordinal) {
  std::shared_ptr<Device> device(new Device(driver));
  LLMC_RETURN_IF_ERROR(device->initialize(ordinal));
  return std::shared_ptr<const Device>(std::move(device));
}

Status Device::initialize(int ordinal) {
  const std::string asking = "asking CUDA device " + std::to_string(ordinal) + " what it is";
  LLMC_CUDA_RETURN_IF_ERROR(api, cuDeviceGet(&handle, ordinal), asking);
  char text[256] = {};
  LLMC_CUDA_RETURN_IF_ERROR(api, cuDeviceGetName(text, sizeof text - 1, handle), asking);
  label = text;
  int major = 0, minor = 0, optin = 0, clock = 0, width = 0;
  for (auto [attribute, value] :
       {std::pair(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major),
        std::pair(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor),
        std::pair(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &optin)})
    LLMC_CUDA_RETURN_IF_ERROR(api, cuDeviceGetAttribute(value, attribute, handle), asking);
  capability = static_cast<uint32_t>(major * 10 + minor);
  shared = static_cast<uint32_t>(optin);
  // Only for reports: a driver need not know them.
  if (api.cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, handle) ==
          CUDA_SUCCESS &&
      api.cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, handle) ==
          CUDA_SUCCESS) {
    constexpr double kilo = 1e3, transfersPerClock = 2, bitsPerByte = 8;
    bandwidth = clock * kilo * transfersPerClock * width / bitsPerByte;
  }
  LLMC_CUDA_RETURN_IF_ERROR(api, cuDevicePrimaryCtxRetain(&primary, handle),
                            "starting work on " + label);
  return {};
}

Device::~Device() {
  if (primary)
    api.cuDevicePrimaryCtxRelease(handle);
}

size_t Device::freeMemory() const {
  const Current current(*this);
  size_t free = 0, total = 0;
  return api.cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

StatusOr<DeviceMemory> llmc::rt::cuda::allocate(const std::shared_ptr<const Device> &device,
                                                uint64_t bytes, const char *what) {
  const Current current(*device);
  CUdeviceptr address = 0;
  if (bytes != 0)
    LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuMemAlloc(&address, bytes),
                              "reserving " + sizeText(bytes) + " on " + device->name() + " for " +
                                  what + ": " + sizeText(device->freeMemory()) + " are free");
  return DeviceMemory(device, address);
}

StatusOr<HostMemory> llmc::rt::cuda::allocateHost(const std::shared_ptr<const Device> &device,
                                                  uint64_t bytes, const char *what) {
  const Current current(*device);
  void *address = nullptr;
  if (bytes != 0)
    LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuMemHostAlloc(&address, bytes, 0),
                              "reserving " + sizeText(bytes) + " of this machine's memory for " +
                                  what);
  return HostMemory(device, address);
}

StatusOr<Stream> llmc::rt::cuda::createStream(const std::shared_ptr<const Device> &device) {
  const Current current(*device);
  CUstream stream = nullptr;
  LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                            "making a stream on " + device->name());
  return Stream(device, stream);
}

StatusOr<Event> llmc::rt::cuda::createEvent(const std::shared_ptr<const Device> &device) {
  const Current current(*device);
  CUevent event = nullptr;
  LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuEventCreate(&event, CU_EVENT_DEFAULT),
                            "making an event on " + device->name());
  return Event(device, event);
}
