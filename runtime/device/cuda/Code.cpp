//===- Code.cpp - which device runs a variant, and its kernels ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Code.h"

#include "runtime/device/cuda/Cubin.h"
#include "runtime/schema/llmc_generated.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::rt::cuda;

namespace {

constexpr int kEdgeDataVersion = 12030; // of programmatic edges in graphs
constexpr uint32_t kOverlapCapability = 90;

/// A cubin runs on devices of its generation that are not older.
bool runsCubin(const VariantCode &code, uint32_t capability) {
  const uint32_t made = code.variant->compute_capability();
  return !code.cubin.empty() && capability / 10 == made / 10 && capability >= made;
}

bool runsPtx(const VariantCode &code, uint32_t capability) {
  return !code.ptx.empty() && capability >= code.variant->compute_capability();
}

/// What a device must be for `code`.
std::string needs(const VariantCode &code) {
  const uint32_t made = code.variant->compute_capability();
  return code.variant->target()->str() + " needs compute capability " + capabilityText(made) +
         (code.ptx.empty() ? " to " + capabilityText(made / 10 * 10 + 9) : " or later");
}

/// The driver's log on one line.
std::string firstLines(const char *log) {
  std::string text(log);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  for (size_t at; (at = text.find('\n')) != std::string::npos;)
    text.replace(at, 1, "; ");
  return text;
}

StatusOr<Module> loadModule(const std::shared_ptr<const Device> &device, const VariantCode &code) {
  const Driver &driver = device->driver();
  const std::string name =
      "the code for " + code.variant->target()->str() + " on " + device->name();
  CUmodule module = nullptr;
  if (runsCubin(code, device->computeCapability())) {
    if (!isWholeElf(code.cubin))
      return corrupt(name + " is no whole ELF file");
    const CUresult result =
        driver.cuModuleLoadDataEx(&module, code.cubin.data(), 0, nullptr, nullptr);
    if (result == CUDA_SUCCESS)
      return Module(device, module);
    if (result != CUDA_ERROR_NO_BINARY_FOR_GPU || code.ptx.empty())
      return driver.failure(result, "loading " + name);
  }
  // The section need not end with a zero, the driver's text must.
  const std::string text(code.ptx.begin(), code.ptx.end());
  char log[2048] = {};
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(uintptr_t(sizeof log - 1))};
  const CUresult result =
      driver.cuModuleLoadDataEx(&module, text.c_str(), std::size(options), options, values);
  if (result == CUDA_SUCCESS)
    return Module(device, module);
  const std::string said = firstLines(log);
  return driver.failure(result, "compiling " + name + (said.empty() ? "" : ": " + said));
}

/// The most dynamic shared memory that each kernel is launched with.
std::vector<uint32_t> greatestShared(const fb::Variant &variant) {
  std::vector<uint32_t> most(variant.kernels()->size());
  most[variant.pick_kernel()] = variant.pick_launch()->shared_bytes();
  for (const fb::Program *program : *variant.programs())
    for (const fb::Dispatch *dispatch : *program->dispatches())
      most[dispatch->kernel()] =
          std::max(most[dispatch->kernel()], dispatch->launch()->shared_bytes());
  return most;
}

} // namespace

StatusOr<Code> Code::load(std::shared_ptr<const Device> device, const VariantCode &from) {
  const fb::Variant &variant = *from.variant;
  const Driver &driver = device->driver();
  const Current current(*device);
  Code code;
  LLMC_ASSIGN_OR_RETURN(code.module, loadModule(device, from));
  for (const flatbuffers::String *name : *variant.kernels())
    LLMC_CUDA_RETURN_IF_ERROR(
        driver,
        cuModuleGetFunction(&code.functions.emplace_back(), code.module.get(), name->c_str()),
        "looking for the kernel '" + name->str() + "' of " + variant.target()->str());
  code.overlap = device->computeCapability() >= kOverlapCapability &&
                 variant.compute_capability() >= kOverlapCapability &&
                 driver.version() >= kEdgeDataVersion && driver.cuGraphAddDependencies;
  code.owner = std::move(device);
  LLMC_RETURN_IF_ERROR(code.permitShared(variant));
  return code;
}

/// More than 48 KiB of shared memory must be asked for.
Status Code::permitShared(const fb::Variant &variant) {
  constexpr uint32_t always = 48 << 10;
  const std::vector<uint32_t> most = greatestShared(variant);
  for (uint32_t kernel = 0; kernel < functions.size(); ++kernel) {
    const uint32_t bytes = most[kernel];
    if (bytes <= always)
      continue;
    const std::string name = "'" + variant.kernels()->GetAsString(kernel)->str() + "'";
    if (bytes > owner->sharedLimit())
      return unsupported("the kernel " + name + " needs " + std::to_string(bytes) +
                         " bytes of shared memory, and a block on " + owner->name() + " has " +
                         std::to_string(owner->sharedLimit()));
    LLMC_CUDA_RETURN_IF_ERROR(owner->driver(),
                              cuFuncSetAttribute(functions[kernel],
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 static_cast<int>(bytes)),
                              "reserving shared memory for the kernel " + name);
  }
  return {};
}

StatusOr<Placement> llmc::rt::cuda::place(std::span<const VariantCode> variants, int ordinal) {
  LLMC_ASSIGN_OR_RETURN(const Driver *driver, Driver::get());
  int count = 0;
  LLMC_CUDA_RETURN_IF_ERROR(*driver, cuDeviceGetCount(&count), "counting CUDA devices");
  if (ordinal >= count || count == 0)
    return unsupported(count == 0 ? "there is no CUDA device"
                                  : "there is no CUDA device " + std::to_string(ordinal) +
                                        ", only " + std::to_string(count));
  std::vector<VariantCode> sorted(variants.begin(), variants.end());
  std::sort(sorted.begin(), sorted.end(), [](const VariantCode &a, const VariantCode &b) {
    return a.variant->compute_capability() > b.variant->compute_capability();
  });
  std::string wanted, have;
  for (const VariantCode &code : sorted)
    wanted += (wanted.empty() ? "" : ", ") + needs(code);
  for (int i = std::max(ordinal, 0); i < (ordinal < 0 ? count : ordinal + 1); ++i) {
    LLMC_ASSIGN_OR_RETURN(std::shared_ptr<const Device> device, Device::open(*driver, i));
    const uint32_t capability = device->computeCapability();
    have += (have.empty() ? "" : ", ") + device->name() + " has " + capabilityText(capability);
    for (const VariantCode &code : sorted) {
      if (!runsCubin(code, capability) && !runsPtx(code, capability))
        continue;
      LLMC_ASSIGN_OR_RETURN(Code loaded, Code::load(std::move(device), code));
      return Placement{std::move(loaded), code.variant};
    }
  }
  return unsupported(wanted + "; " + have);
}
