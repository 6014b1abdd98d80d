//===- Device.cpp - devices, contexts and error codes ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/State.h"

#include <algorithm>
#include <cstring>

using namespace llmc::mock;

LLMC_CUDA CUresult cuInit(unsigned flags) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (!driver.settings.devices)
    return CUDA_ERROR_NO_DEVICE;
  if (!driver.initialised)
    driver.start();
  return driver.settings.error.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

LLMC_CUDA CUresult cuDriverGetVersion(int *version) {
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDeviceGetCount(int *count) {
  LLMC_ENTER;
  *count = int(driver.settings.devices);
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  LLMC_ENTER;
  if (ordinal < 0 || ordinal >= int(driver.settings.devices))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  LLMC_ENTER;
  if (!name || length <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, length, "PTX emulator (sm_%u)", driver.settings.sm);
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDeviceGetUuid_v2(char *uuid, CUdevice device) {
  memset(uuid, 0x5a + device, 16);
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  LLMC_ENTER;
  *bytes = driver.memory->capacity();
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  LLMC_ENTER;
  unsigned sm = driver.settings.sm;
  static const std::pair<int, int> fixed[] = {
      {1, 1024},
      {2, 1024},
      {3, 1024},
      {4, 64}, // threads of a block, and its sides
      {5, 0x7fffffff},
      {6, 65535},
      {7, 65535}, // the grid's
      {8, 48 << 10},
      {9, 64 << 10},
      {10, 32},
      {12, 65536}, // shared, constant, warp,
                   // registers
      {13, 1980000},
      {16, 132},
      {18, 0},
      {19, 1},
      {31, 1},
      {36, 3201000},
      {37, 5120},
      {38, 50 << 20},
      {39, 2048},
      {40, 3},
      {41, 1},
      {82, 65536},
      {95, 1},
      {106, 32},
      {115, 1},
  };
  if (attribute == 75)
    *value = sm / 10;
  else if (attribute == 76)
    *value = sm % 10;
  else if (attribute == 97) // shared memory that a block may ask for
    *value = int(driver.settings.options.maxShared);
  else if (attribute == 81)
    *value = int(driver.settings.options.maxShared + 1024);
  else if (auto it = std::find_if(std::begin(fixed), std::end(fixed),
                                  [&](auto &f) { return f.first == attribute; });
           it != std::end(fixed))
    *value = it->second;
  else
    *value = 0;
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  LLMC_ENTER;
  *context = &driver.context;
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
LLMC_CUDA CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned) { return CUDA_SUCCESS; }
LLMC_CUDA CUresult cuCtxCreate_v2(CUcontext *context, unsigned, CUdevice device) {
  return cuDevicePrimaryCtxRetain(context, device);
}
LLMC_CUDA CUresult cuCtxCreate_v4(CUcontext *context, void *, unsigned, CUdevice device) {
  return cuDevicePrimaryCtxRetain(context, device);
}
LLMC_CUDA CUresult cuCtxDestroy_v2(CUcontext) { return CUDA_SUCCESS; }
LLMC_CUDA CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
LLMC_CUDA CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
LLMC_CUDA CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  if (context)
    *context = &Driver::get().context;
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = &Driver::get().context;
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuCtxSynchronize() {
  LLMC_ENTER;
  driver.flush();
  return driver.sticky;
}

static const struct {
  CUresult code;
  const char *name, *text;
} codes[] = {
#define LLMC_CODE(name, text) {name, #name, text}
    LLMC_CODE(CUDA_SUCCESS, "no error"),
    LLMC_CODE(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    LLMC_CODE(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    LLMC_CODE(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    LLMC_CODE(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    LLMC_CODE(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    LLMC_CODE(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    LLMC_CODE(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    LLMC_CODE(CUDA_ERROR_NO_BINARY_FOR_GPU,
              "no kernel image is available for execution on the device"),
    LLMC_CODE(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    LLMC_CODE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
              "the provided PTX was compiled with an unsupported toolchain"),
    LLMC_CODE(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    LLMC_CODE(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    LLMC_CODE(CUDA_ERROR_NOT_READY, "device not ready"),
    LLMC_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    LLMC_CODE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    LLMC_CODE(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    LLMC_CODE(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    LLMC_CODE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already mapped"),
    LLMC_CODE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region"),
    LLMC_CODE(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    LLMC_CODE(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    LLMC_CODE(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    LLMC_CODE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    LLMC_CODE(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
#undef LLMC_CODE
};

static CUresult describe(CUresult code, const char **out, bool name) {
  *out = nullptr;
  for (const auto &c : codes)
    if (c.code == code)
      *out = name ? c.name : c.text;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
LLMC_CUDA CUresult cuGetErrorName(CUresult code, const char **out) {
  return describe(code, out, true);
}
LLMC_CUDA CUresult cuGetErrorString(CUresult code, const char **out) {
  return describe(code, out, false);
}
