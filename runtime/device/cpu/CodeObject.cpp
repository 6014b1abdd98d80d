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

/// A nameless file that dlopen can read through its descriptor.
struct ImageFile {
  int fd = -1;
  std::string path;
  bool temporary = false;

  ~ImageFile() {
    if (temporary)
      unlink(path.c_str());
    if (fd >= 0)
      close(fd);
  }

  Status create(std::span<const uint8_t> image, bool inMemory);
};

Status ImageFile::create(std::span<const uint8_t> image, bool inMemory) {
  if (inMemory) {
    fd = memfd_create("llmc-code", MFD_CLOEXEC);
    path = "/proc/self/fd/" + std::to_string(fd);
  } else {
    const char *folder = std::getenv("TMPDIR");
    path = std::string(folder && *folder ? folder : "/tmp") + "/llmc-code-XXXXXX";
    fd = mkostemp(path.data(), O_CLOEXEC);
    temporary = fd >= 0;
  }
  if (fd < 0)
    return Status(StatusCode::ResourceExhausted,
                  std::string("cannot create ") + path + ": " + std::strerror(errno));
  for (size_t done = 0; done < image.size();) {
    ssize_t put = write(fd, image.data() + done, image.size() - done);
    if (put < 0 && errno != EINTR)
      return Status(StatusCode::ResourceExhausted,
                    std::string("cannot write ") + path + ": " + std::strerror(errno));
    done += put < 0 ? 0 : static_cast<size_t>(put);
  }
  return {};
}

StatusOr<void *> openImage(std::span<const uint8_t> image, bool inMemory) {
  ImageFile file;
  LLMC_RETURN_IF_ERROR(file.create(image, inMemory));
  if (void *handle = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL))
    return handle;
  return internalError(dlerror());
}

} // namespace

StatusOr<CodeObject> CodeObject::load(std::span<const uint8_t> image, size_t kernelCount,
                                      const std::string &name) {
  // A sandbox without memfd_create or /proc still has a temporary folder.
  StatusOr<void *> handle = openImage(image, /*inMemory=*/true);
  if (!handle.ok())
    handle = openImage(image, /*inMemory=*/false);
  if (!handle.ok())
    return corrupt("cannot load " + name + ": " + handle.status().message());

  CodeObject code;
  code.handle = handle.value();
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
}
