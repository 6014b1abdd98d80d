//===- EntryPoints.cpp - names of the driver's entry points ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/Abi.h"

#include <cstring>
#include <string>

// All that cuGetProcAddress gives out, under the names of the symbols. A name without a version
// means the newest that is here.

namespace declared {
#define LLMC_ENTRY(name) LLMC_CUDA CUresult name(...);
#include "tests/ptx/mockcuda/EntryPoints.inc"
#undef LLMC_ENTRY
} // namespace declared

static void *find(const std::string &name) {
  static const struct {
    const char *name;
    void *address;
  } table[] = {
#define LLMC_ENTRY(name) {#name, reinterpret_cast<void *>(&declared::name)},
#include "tests/ptx/mockcuda/EntryPoints.inc"
#undef LLMC_ENTRY
  };
  for (const auto &row : table)
    if (name == row.name)
      return row.address;
  return nullptr;
}

LLMC_CUDA CUresult cuGetProcAddress_v2(const char *symbol, void **function, int, uint64_t,
                                       int *status) {
  if (!symbol || !function)
    return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  std::string name = symbol;
  if (name == "cuGetProcAddress")
    *function = reinterpret_cast<void *>(&cuGetProcAddress_v2);
  for (const char *version : {"_v4", "_v3", "_v2", ""})
    if (!*function)
      *function = find(name + version);
  // "instantiate" is a macro's name for the one with flags.
  if (!*function && name == "cuGraphInstantiate")
    *function = find("cuGraphInstantiateWithFlags");
  if (status)
    *status = *function ? 0 : 1;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
LLMC_CUDA CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                    uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
