//===- CodeObject.cpp - native kernels of an artifact, loaded -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CodeObject.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace llmc::rt;

namespace {

Status failure(const char *action, const std::string &path) {
  return Status(StatusCode::ResourceExhausted,
                std::string("cannot ") + action + " " + path + ": " + std::strerror(errno));
}

bool writeAll(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR)
      return false;
    bytes = bytes.subspan(put < 0 ? 0 : static_cast<size_t>(put));
  }
  return true;
}

std::string temporaryTemplate() {
  const char *folder = std::getenv("TMPDIR");
  return std::string(folder && *folder ? folder : "/tmp") + "/llmc-code-XXXXXX";
}

} // namespace

Status CodeObject::open(std::span<const uint8_t> image, bool inMemory) {
  std::string path = inMemory ? "memory" : temporaryTemplate();
  file = inMemory ? memfd_create("llmc-code", MFD_CLOEXEC) : mkostemp(path.data(), O_CLOEXEC);
  if (file < 0)
    return failure("create", path);
  if (inMemory)
    path = "/proc/self/fd/" + std::to_string(file);
  Status status;
  if (!writeAll(file, image))
    status = failure("write", path);
  else if (!(handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)))
    status = internalError(dlerror());
  if (!inMemory)
    unlink(path.c_str());
  return status;
}

StatusOr<CodeObject> CodeObject::load(std::span<const uint8_t> image, size_t kernelCount,
                                      const std::string &name) {
  CodeObject code;
  if (Status status = code.open(image, /*inMemory=*/true); !status.ok()) {
    // A sandbox without memfd_create or /proc still has a temporary folder.
    code = CodeObject();
    if (status = code.open(image, /*inMemory=*/false); !status.ok())
      return corrupt("cannot load " + name + ": " + status.message());
  }
  auto query = reinterpret_cast<llmc_query_fn_t>(dlsym(code.handle, LLMC_QUERY_SYMBOL));
  if (!query)
    return corrupt(name + " does not export " LLMC_QUERY_SYMBOL);
  const llmc_library_t *library = query(LLMC_KERNEL_ABI_VERSION);
  if (!library || library->abi_version != LLMC_KERNEL_ABI_VERSION)
    return unsupported(name + " does not speak kernel ABI version " +
                       std::to_string(LLMC_KERNEL_ABI_VERSION) + "; compile the model again");
  if (library->kernel_count != kernelCount)
    return corrupt(name + " holds " + std::to_string(library->kernel_count) +
                   " kernels where the header lists " + std::to_string(kernelCount));
  code.table = {library->kernels, kernelCount};
  for (llmc_kernel_fn_t kernel : code.table)
    if (!kernel)
      return corrupt(name + " has an empty entry in its kernel table");
  return code;
}

CodeObject::~CodeObject() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}
