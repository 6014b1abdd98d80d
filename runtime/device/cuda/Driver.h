//===- Driver.h - the CUDA driver, loaded at run time -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_DRIVER_H
#define LLMC_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "runtime/base/Status.h"
#include "runtime/device/cuda/DriverApi.h"

namespace llmc::rt::cuda {

/// The driver's entry points. There is one per process; it stays loaded, since it has threads of
/// its own.
class Driver {
public:
  /// Loads libcuda.so.1 and initialises it, the first time. Unsupported, with the reason, where
  /// there is no driver, no device, or one that is too old.
  static StatusOr<const Driver *> get();

#define LLMC_CUDA_DECLARE(field, symbol, parameters) CUresult(*field) parameters = nullptr;
  LLMC_CUDA_ENTRIES(LLMC_CUDA_DECLARE)
  LLMC_CUDA_OPTIONAL_ENTRIES(LLMC_CUDA_DECLARE)
#undef LLMC_CUDA_DECLARE

  /// 12030 is CUDA 12.3.
  int version() const { return apiVersion; }
  /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory) while DOING".
  Status failure(CUresult result, const std::string &doing) const;

private:
  Status load();

  int apiVersion = 0;
};

/// Calls an entry point; a failure returns from the function around it with what it was `doing`.
#define LLMC_CUDA_RETURN_IF_ERROR(driver, call, doing)                                             \
  do {                                                                                             \
    if (::llmc::rt::cuda::CUresult llmcResult = (driver).call;                                     \
        llmcResult != ::llmc::rt::cuda::CUDA_SUCCESS)                                              \
      return (driver).failure(llmcResult, doing);                                                  \
  } while (false)

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_DRIVER_H
