//===- StreamApi.cpp - launches, streams and events of the mock driver ----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/Launch.h"

#include <chrono>
#include <cstring>

using namespace llmc::mock;
using llmc::ptx::LaunchConfig;

namespace llmc::mock {

CUresult gatherParams(CUfunction f, void **params, void **extra, LaunchConfig &config) {
  const auto &p = *f->program;
  config.params.assign(p.paramBytes, 0);
  if (extra) {
    // POINTER, p, SIZE, s, END
    const void *data = nullptr;
    size_t size = 0;
    for (; extra[0]; extra += 2) {
      if (extra[0] == reinterpret_cast<void *>(1))
        data = extra[1];
      else if (extra[0] == reinterpret_cast<void *>(2))
        size = *static_cast<size_t *>(extra[1]);
      else
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!data || size < p.paramBytes)
      return CUDA_ERROR_INVALID_VALUE;
    memcpy(config.params.data(), data, p.paramBytes);
    return CUDA_SUCCESS;
  }
  if (!p.params.empty() && !params)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < p.params.size(); ++i)
    memcpy(config.params.data() + p.params[i].offset, params[i], p.params[i].size);
  return CUDA_SUCCESS;
}

} // namespace llmc::mock

LLMC_CUDA CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params,
                                    void **extra) {
  LLMC_ENTER;
  if (!c || !f)
    return CUDA_ERROR_INVALID_VALUE;
  LaunchConfig config;
  setDims(config, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
          c->sharedMemBytes);
  if (CUresult r = driver.checkLaunch(f, config, c->attrs, c->numAttrs))
    return r;
  if (CUresult r = gatherParams(f, params, extra, config))
    return r;
  driver.enqueue([&driver, f, config] { driver.run(f, config); });
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                  unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                  void **params, void **extra) {
  CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, nullptr, 0};
  return cuLaunchKernelEx(&c, f, params, extra);
}
LLMC_CUDA CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                             unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                             CUstream stream, void **params) {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.number = 1;
  CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, &attribute, 1};
  return cuLaunchKernelEx(&c, f, params, nullptr);
}

LLMC_CUDA CUresult cuStreamCreate(CUstream *stream, unsigned) {
  LLMC_ENTER;
  *stream = new CUstream_st;
  driver.streams.insert(*stream);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
LLMC_CUDA CUresult cuStreamDestroy_v2(CUstream stream) {
  LLMC_ENTER;
  driver.flush();
  if (!driver.streams.erase(stream))
    return CUDA_ERROR_INVALID_HANDLE;
  delete stream;
  return driver.sticky;
}
LLMC_CUDA CUresult cuStreamSynchronize(CUstream stream) {
  LLMC_ENTER;
  if (stream && uint64_t(stream) > 2 && !driver.streams.count(stream))
    return CUDA_ERROR_INVALID_HANDLE;
  driver.flush();
  return driver.sticky;
}
LLMC_CUDA CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }
LLMC_CUDA CUresult cuStreamWaitEvent(CUstream, CUevent event, unsigned) {
  LLMC_ENTER;
  return driver.events.count(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

LLMC_CUDA CUresult cuEventCreate(CUevent *event, unsigned) {
  LLMC_ENTER;
  *event = new CUevent_st;
  driver.events.insert(*event);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuEventDestroy_v2(CUevent event) {
  LLMC_ENTER;
  driver.flush();
  if (!driver.events.erase(event))
    return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return driver.sticky;
}
LLMC_CUDA CUresult cuEventRecord(CUevent event, CUstream) {
  LLMC_ENTER;
  if (!driver.events.count(event))
    return CUDA_ERROR_INVALID_HANDLE;
  event->recorded = true;
  event->done = false;
  driver.enqueue([event] {
    using namespace std::chrono;
    event->done = true;
    event->time = duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
  });
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuEventSynchronize(CUevent event) {
  LLMC_ENTER;
  if (!driver.events.count(event))
    return CUDA_ERROR_INVALID_HANDLE;
  driver.flush();
  return driver.sticky;
}
LLMC_CUDA CUresult cuEventQuery(CUevent event) {
  LLMC_ENTER;
  if (!driver.events.count(event))
    return CUDA_ERROR_INVALID_HANDLE;
  // Asked often enough, work gets done.
  bool done = !event->recorded || event->done;
  driver.flush();
  return driver.sticky ? driver.sticky : done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
LLMC_CUDA CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to) {
  LLMC_ENTER;
  if (!driver.events.count(from) || !driver.events.count(to))
    return CUDA_ERROR_INVALID_HANDLE;
  if (!from->done || !to->done)
    return CUDA_ERROR_NOT_READY;
  *ms = float(to->time - from->time);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  return cuEventElapsedTime_v2(ms, from, to);
}
LLMC_CUDA CUresult cuLaunchHostFunc(CUstream, void (*function)(void *), void *data) {
  LLMC_ENTER;
  driver.enqueue([=] { function(data); });
  return CUDA_SUCCESS;
}
