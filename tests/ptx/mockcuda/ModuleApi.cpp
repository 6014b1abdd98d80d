//===- ModuleApi.cpp - modules and functions of the mock driver -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/State.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace llmc::mock;

/// Size of an ELF file in memory, from its section headers; 0 if that makes no sense.
static uint64_t elfSize(const uint8_t *image) {
  uint64_t offset;
  uint16_t entry, count;
  memcpy(&offset, image + 0x28, 8);
  memcpy(&entry, image + 0x3a, 2);
  memcpy(&count, image + 0x3c, 2);
  return offset > (uint64_t(1) << 32) ? 0 : offset + uint64_t(entry) * count;
}

static uint64_t fnv(const uint8_t *data, uint64_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < size; ++i)
    hash = (hash ^ data[i]) * 0x100000001b3;
  return hash;
}

/// The PTX that a cubin was made of: the file HASH.ptx in the folder of the settings, where HASH is
/// FNV-1a of the image in 16 hexadecimal digits.
static std::string ptxOfCubin(const Driver &driver, const uint8_t *image) {
  if (driver.settings.cubins.empty())
    return {};
  char hash[24];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)fnv(image, elfSize(image)));
  std::ifstream in(driver.settings.cubins + "/" + hash + ".ptx");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

LLMC_CUDA CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  LLMC_ENTER;
  if (!out || !image)
    return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  if (!memcmp(image,
              "\x7f"
              "ELF",
              4)) {
    text = ptxOfCubin(driver, static_cast<const uint8_t *>(image));
    if (text.empty()) // as if it were for another device: no mistake
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
  } else {
    text = static_cast<const char *>(image);
  }
  std::string error;
  auto module = std::make_unique<CUmod_st>();
  module->loaded = llmc::ptx::LoadedModule::load(*driver.memory, std::move(text), error);
  if (!module->loaded)
    return driver.complain(CUDA_ERROR_INVALID_PTX, "PTX " + error);
  const auto &parsed = module->loaded->module();
  unsigned sm = unsigned(strtoul(parsed.target.c_str() + 3, nullptr, 10));
  bool exact = parsed.target.back() == 'a' || parsed.target.back() == 'f';
  if (sm > driver.settings.sm || (exact && sm != driver.settings.sm))
    return driver.complain(CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX for " + parsed.target +
                                                             " on a device of sm_" +
                                                             std::to_string(driver.settings.sm));
  if (parsed.major > 9)
    return driver.complain(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "PTX of a later version");
  *out = module.release();
  driver.modules.insert(*out);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned, int *, void **) {
  return cuModuleLoadData(out, image);
}

LLMC_CUDA CUresult cuModuleUnload(CUmodule module) {
  LLMC_ENTER;
  driver.flush();
  if (!driver.modules.erase(module))
    return CUDA_ERROR_INVALID_HANDLE;
  delete module;
  return driver.sticky;
}

LLMC_CUDA CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  LLMC_ENTER;
  if (!driver.modules.count(module))
    return CUDA_ERROR_INVALID_HANDLE;
  auto &slot = module->functions[name];
  if (!slot) {
    llmc::ptx::Program *program = module->loaded->kernel(name);
    if (!program) {
      module->functions.erase(name);
      return CUDA_ERROR_NOT_FOUND;
    }
    slot = std::make_unique<CUfunc_st>();
    slot->module = module;
    slot->program = program;
  }
  *out = slot.get();
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module,
                                        const char *name) {
  LLMC_ENTER;
  if (!driver.modules.count(module))
    return CUDA_ERROR_INVALID_HANDLE;
  uint64_t bytes = 0, at = module->loaded->variable(name, &bytes);
  if (!at)
    return CUDA_ERROR_NOT_FOUND;
  if (address)
    *address = at;
  if (size)
    *size = bytes;
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f) {
  LLMC_ENTER;
  const auto &p = *f->program;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = p.maxThreads ? int(p.maxThreads) : 1024;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = int(p.sharedBytes);
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = int(p.localBytes);
    break;
  // What ptxas would give is not known here.
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 0;
    break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = 0;
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = int(driver.settings.sm);
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = int(f->maxDynamicShared);
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value) {
  LLMC_ENTER;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return attribute >= 0 && attribute < 16 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (value < 0 || uint64_t(value) + f->program->sharedBytes > driver.settings.options.maxShared)
    return CUDA_ERROR_INVALID_VALUE;
  f->maxDynamicShared = unsigned(value);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuFuncSetCacheConfig(CUfunction, int) { return CUDA_SUCCESS; }

LLMC_CUDA CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f,
                                                               int threads, size_t dynamicShared) {
  LLMC_ENTER;
  if (threads <= 0 || threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t shared = f->program->sharedBytes + dynamicShared + 1024;
  uint64_t byShared = (driver.settings.options.maxShared + 1024) / shared;
  *blocks = int(std::min<uint64_t>({2048u / unsigned(threads), byShared, 32}));
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size) {
  LLMC_ENTER;
  if (index >= f->program->params.size())
    return CUDA_ERROR_INVALID_VALUE;
  *offset = f->program->params[index].offset;
  if (size)
    *size = f->program->params[index].size;
  return CUDA_SUCCESS;
}
