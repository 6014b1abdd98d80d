//===- MemoryApi.cpp - memory of the mock driver --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/State.h"

#include <cstdlib>
#include <cstring>

using namespace llmc::mock;

LLMC_CUDA CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  LLMC_ENTER;
  *total = driver.memory->capacity();
  *free = *total - driver.memory->used();
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  LLMC_ENTER;
  if (!address || !size)
    return CUDA_ERROR_INVALID_VALUE;
  *address = driver.memory->allocate(size);
  return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

LLMC_CUDA CUresult cuMemFree_v2(CUdeviceptr address) {
  LLMC_ENTER;
  driver.flush();
  if (!address)
    return CUDA_SUCCESS;
  if (!driver.memory->free(address))
    return driver.complain(CUDA_ERROR_INVALID_VALUE, "cuMemFree of what is no allocation");
  return driver.sticky;
}

LLMC_CUDA CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream) {
  return cuMemAlloc_v2(address, size);
}
LLMC_CUDA CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree_v2(address); }

LLMC_CUDA CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  LLMC_ENTER;
  auto *a = driver.memory->find(address);
  if (!a)
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = a->base;
  if (size)
    *size = a->size;
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuMemHostAlloc(void **address, size_t size, unsigned) {
  LLMC_ENTER;
  if (!address || !size)
    return CUDA_ERROR_INVALID_VALUE;
  *address = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  if (!*address)
    return CUDA_ERROR_OUT_OF_MEMORY;
  driver.hostMemory[reinterpret_cast<uint64_t>(*address)] = size;
  driver.memory->registerHost(*address, size);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuMemAllocHost_v2(void **address, size_t size) {
  return cuMemHostAlloc(address, size, 0);
}

LLMC_CUDA CUresult cuMemFreeHost(void *address) {
  LLMC_ENTER;
  driver.flush();
  auto it = driver.hostMemory.find(reinterpret_cast<uint64_t>(address));
  if (it == driver.hostMemory.end())
    return driver.complain(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost of what was not allocated");
  driver.memory->free(it->first);
  driver.hostMemory.erase(it);
  ::free(address);
  return driver.sticky;
}

LLMC_CUDA CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned) {
  LLMC_ENTER;
  if (!address || !size)
    return CUDA_ERROR_INVALID_VALUE;
  if (driver.memory->find(reinterpret_cast<uint64_t>(address)))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  driver.memory->registerHost(address, size);
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuMemHostUnregister(void *address) {
  LLMC_ENTER;
  driver.flush();
  return driver.memory->free(reinterpret_cast<uint64_t>(address))
             ? driver.sticky
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

LLMC_CUDA CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned) {
  LLMC_ENTER;
  *out = reinterpret_cast<uint64_t>(address);
  return driver.memory->find(*out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Copies that wait are done at once, after all before them.
static CUresult copyNow(const char *name, uint64_t to, bool toDevice, uint64_t from,
                        bool fromDevice, size_t size) {
  LLMC_ENTER_AS(name);
  driver.flush();
  return driver.sticky ? driver.sticky : driver.copy(to, toDevice, from, fromDevice, size);
}
static CUresult copyLater(const char *name, uint64_t to, bool toDevice, uint64_t from,
                          bool fromDevice, size_t size) {
  LLMC_ENTER_AS(name);
  if (!driver.settings.lateWork)
    return driver.copy(to, toDevice, from, fromDevice, size);
  driver.enqueue([=, &driver] {
    if (CUresult r = driver.copy(to, toDevice, from, fromDevice, size))
      driver.sticky = r;
  });
  return CUDA_SUCCESS;
}
static uint64_t number(const void *p) { return reinterpret_cast<uint64_t>(p); }

LLMC_CUDA CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  return copyNow(__func__, to, true, number(from), false, size);
}
LLMC_CUDA CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  return copyNow(__func__, number(to), false, from, true, size);
}
LLMC_CUDA CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copyNow(__func__, to, true, from, true, size);
}
LLMC_CUDA CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream) {
  return copyLater(__func__, to, true, number(from), false, size);
}
LLMC_CUDA CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream) {
  return copyLater(__func__, number(to), false, from, true, size);
}
LLMC_CUDA CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) {
  return copyLater(__func__, to, true, from, true, size);
}
static bool onDevice(CUdeviceptr p) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  return driver.memory && driver.memory->find(p);
}
LLMC_CUDA CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copyNow(__func__, to, onDevice(to), from, onDevice(from), size);
}
LLMC_CUDA CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) {
  return copyLater(__func__, to, onDevice(to), from, onDevice(from), size);
}

static CUresult fill(const char *name, CUdeviceptr to, uint32_t value, unsigned element,
                     size_t count, bool wait) {
  LLMC_ENTER_AS(name);
  if (wait || !driver.settings.lateWork) {
    driver.flush();
    return driver.sticky ? driver.sticky : driver.fill(to, value, element, count);
  }
  driver.enqueue([=, &driver] {
    if (CUresult r = driver.fill(to, value, element, count))
      driver.sticky = r;
  });
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
  return fill(__func__, to, value, 1, n, true);
}
LLMC_CUDA CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) {
  return fill(__func__, to, value, 2, n, true);
}
LLMC_CUDA CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
  return fill(__func__, to, value, 4, n, true);
}
LLMC_CUDA CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream) {
  return fill(__func__, to, value, 1, n, false);
}
LLMC_CUDA CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream) {
  return fill(__func__, to, value, 2, n, false);
}
LLMC_CUDA CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream) {
  return fill(__func__, to, value, 4, n, false);
}
