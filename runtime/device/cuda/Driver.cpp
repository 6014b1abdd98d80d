//===- Driver.cpp - the CUDA driver, loaded at run time -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Driver.h"

#include <dlfcn.h>

using namespace llmc::rt;
using namespace llmc::rt::cuda;

namespace {

constexpr const char *kLibrary = "libcuda.so.1";
constexpr int kOldestVersion = 12000;

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

} // namespace

StatusOr<const Driver *> Driver::get() {
  struct Loaded {
    Driver driver;
    Status status = driver.load();
  };
  static const Loaded *const loaded = new Loaded; // never destroyed: see above
  if (loaded->status.ok())
    return &loaded->driver;
  return Status(loaded->status.code(), loaded->status.message());
}

Status Driver::load() {
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return unsupported(std::string("there is no CUDA driver: ") + dlerror());
  const char *missing = nullptr;
  const auto find = [&](const char *symbol) {
    void *address = dlsym(library, symbol);
    if (!address && !missing)
      missing = symbol;
    return address;
  };
  // Optional ones first: what they lack is forgotten.
#define LLMC_CUDA_FIND(field, symbol, parameters)                                                  \
  field = reinterpret_cast<CUresult(*) parameters>(find(#symbol));
  LLMC_CUDA_OPTIONAL_ENTRIES(LLMC_CUDA_FIND)
  missing = nullptr;
  LLMC_CUDA_ENTRIES(LLMC_CUDA_FIND)
#undef LLMC_CUDA_FIND
  const bool tellsVersion =
      cuDriverGetVersion && cuDriverGetVersion(&apiVersion) == CUDA_SUCCESS && apiVersion > 0;
  if (tellsVersion && apiVersion < kOldestVersion)
    return unsupported("the CUDA driver is one of CUDA " + versionText(apiVersion) + "; " +
                       versionText(kOldestVersion) + " or later is needed");
  if (missing)
    return unsupported(std::string(kLibrary) + " has no " + missing);
  if (CUresult result = cuInit(0))
    return Status(StatusCode::Unsupported, failure(result, "starting the CUDA driver").message());
  return {};
}

Status Driver::failure(CUresult result, const std::string &doing) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  std::string message = name ? name : "CUDA error " + std::to_string(result);
  if (text)
    message += std::string(" (") + text + ")";
  const auto code =
      result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::ResourceExhausted : StatusCode::Internal;
  return Status(code, message + " while " + doing);
}
