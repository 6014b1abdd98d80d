//===- CodeObject.h - native kernels of an artifact, loaded -----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CPU_CODEOBJECT_H
#define LLMC_RUNTIME_DEVICE_CPU_CODEOBJECT_H

#include "llmc/kernel_abi.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace llmc::rt {

/// A shared object that was loaded from memory. Its kernels are valid as long as it lives.
class CodeObject {
public:
  CodeObject() = default;
  /// Loads `image`, an ELF shared object that must hold exactly `kernelCount` kernels. `name`
  /// stands in error messages.
  static StatusOr<CodeObject> load(std::span<const uint8_t> image, size_t kernelCount,
                                   const std::string &name);

  CodeObject(CodeObject &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)), file(std::exchange(other.file, -1)),
        table(std::exchange(other.table, {})) {}
  CodeObject &operator=(CodeObject &&other) noexcept {
    std::swap(handle, other.handle);
    std::swap(file, other.file);
    std::swap(table, other.table);
    return *this;
  }
  ~CodeObject();

  std::span<const llmc_kernel_fn_t> kernels() const { return table; }

private:
  /// Loads the image from a file in memory or, where that cannot be had, a temporary one.
  Status open(std::span<const uint8_t> image, bool inMemory);

  void *handle = nullptr;
  /// Stays open: the loader takes equal paths for the same object, and the path has this number.
  int file = -1;
  std::span<const llmc_kernel_fn_t> table;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_CPU_CODEOBJECT_H
