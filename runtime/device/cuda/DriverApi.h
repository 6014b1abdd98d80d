//===- DriverApi.h - the part of the CUDA driver API that is used *- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, values and layouts are the driver's own, as of CUDA 12.0 (edges with
// data: 12.3). Building needs no toolkit, running needs libcuda.so.1 only. A
// symbol's suffix is the version of its interface: what is declared here is what
// that very symbol takes.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_DRIVERAPI_H
#define LLMC_RUNTIME_DEVICE_CUDA_DRIVERAPI_H

#include <cstddef>
#include <cstdint>

namespace llmc::rt::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphNode = struct CUgraphNode_st *;
using CUgraphExec = struct CUgraphExec_st *;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;

inline constexpr int CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36;       // kHz
inline constexpr int CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37; // bits
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
inline constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;

inline constexpr int CU_JIT_ERROR_LOG_BUFFER = 5;
inline constexpr int CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6;

inline void *const CU_LAUNCH_PARAM_END = nullptr;
inline void *const CU_LAUNCH_PARAM_BUFFER_POINTER = reinterpret_cast<void *>(1);
inline void *const CU_LAUNCH_PARAM_BUFFER_SIZE = reinterpret_cast<void *>(2);

/// cuGraphAddKernelNode_v2 and later.
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams;
  void **extra;
  void *kern;
  CUcontext ctx;
};

inline constexpr int CU_MEMORYTYPE_HOST = 1;
inline constexpr int CU_MEMORYTYPE_DEVICE = 2;
struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray, *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray, *reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
inline constexpr unsigned char CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1;
inline constexpr unsigned char CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1;

/// Every entry point: field of Driver, symbol of the library, parameters.
#define LLMC_CUDA_ENTRIES(ENTRY)                                                                   \
  ENTRY(cuInit, cuInit, (unsigned flags))                                                          \
  ENTRY(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                    \
  ENTRY(cuGetErrorName, cuGetErrorName, (CUresult error, const char **name))                       \
  ENTRY(cuGetErrorString, cuGetErrorString, (CUresult error, const char **text))                   \
  ENTRY(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                          \
  ENTRY(cuDeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                                \
  ENTRY(cuDeviceGetName, cuDeviceGetName, (char *name, int length, CUdevice device))               \
  ENTRY(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))  \
  ENTRY(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                                        \
        (CUcontext * context, CUdevice device))                                                    \
  ENTRY(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                \
  ENTRY(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                                \
  ENTRY(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * context))                                \
  ENTRY(cuMemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                              \
  ENTRY(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t size))                           \
  ENTRY(cuMemFree, cuMemFree_v2, (CUdeviceptr address))                                            \
  ENTRY(cuMemHostAlloc, cuMemHostAlloc, (void **address, size_t size, unsigned flags))             \
  ENTRY(cuMemFreeHost, cuMemFreeHost, (void *address))                                             \
  ENTRY(cuMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size))            \
  ENTRY(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                   \
        (CUdeviceptr to, const void *from, size_t size, CUstream stream))                          \
  ENTRY(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                   \
        (void *to, CUdeviceptr from, size_t size, CUstream stream))                                \
  ENTRY(cuMemsetD8Async, cuMemsetD8Async,                                                          \
        (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                      \
  ENTRY(cuModuleLoadDataEx, cuModuleLoadDataEx,                                                    \
        (CUmodule * module, const void *image, unsigned count, int *options, void **values))       \
  ENTRY(cuModuleUnload, cuModuleUnload, (CUmodule module))                                         \
  ENTRY(cuModuleGetFunction, cuModuleGetFunction,                                                  \
        (CUfunction * function, CUmodule module, const char *name))                                \
  ENTRY(cuFuncSetAttribute, cuFuncSetAttribute, (CUfunction function, int attribute, int value))   \
  ENTRY(cuStreamCreate, cuStreamCreate, (CUstream * stream, unsigned flags))                       \
  ENTRY(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                    \
  ENTRY(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                               \
  ENTRY(cuEventCreate, cuEventCreate, (CUevent * event, unsigned flags))                           \
  ENTRY(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                        \
  ENTRY(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                            \
  ENTRY(cuEventElapsedTime, cuEventElapsedTime, (float *milliseconds, CUevent from, CUevent to))   \
  ENTRY(cuLaunchKernel, cuLaunchKernel,                                                            \
        (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,     \
         unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream, void **params,   \
         void **extra))                                                                            \
  ENTRY(cuGraphCreate, cuGraphCreate, (CUgraph * graph, unsigned flags))                           \
  ENTRY(cuGraphDestroy, cuGraphDestroy, (CUgraph graph))                                           \
  ENTRY(cuGraphAddKernelNode, cuGraphAddKernelNode_v2,                                             \
        (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,                \
         const CUDA_KERNEL_NODE_PARAMS *params))                                                   \
  ENTRY(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode,                                                \
        (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,                \
         const CUDA_MEMCPY3D *copy, CUcontext context))                                            \
  ENTRY(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                           \
        (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                             \
  ENTRY(cuGraphUpload, cuGraphUpload, (CUgraphExec exec, CUstream stream))                         \
  ENTRY(cuGraphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                         \
  ENTRY(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec))

/// Those that an older driver may lack.
#define LLMC_CUDA_OPTIONAL_ENTRIES(ENTRY)                                                          \
  ENTRY(cuGraphAddDependencies, cuGraphAddDependencies_v2,                                         \
        (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,                            \
         const CUgraphEdgeData *edges, size_t count))

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_DRIVERAPI_H
