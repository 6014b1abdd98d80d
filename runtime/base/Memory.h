//===- Memory.h - page-aligned anonymous memory -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_MEMORY_H
#define LLMC_RUNTIME_BASE_MEMORY_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace llmc::rt {

/// Zeroed, page-aligned memory that becomes resident page by page as it is touched, so that a large
/// reservation (a KV area for the whole context) costs only what is used.
class PageBuffer {
public:
  PageBuffer() = default;
  /// Reserves `size` bytes (0 gives an empty buffer); `what` names the memory in the error message.
  static StatusOr<PageBuffer> reserve(uint64_t size, const char *what);

  PageBuffer(PageBuffer &&other) noexcept
      : base(std::exchange(other.base, nullptr)), bytes(std::exchange(other.bytes, 0)) {}
  PageBuffer &operator=(PageBuffer &&other) noexcept {
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~PageBuffer();

  uint8_t *data() const { return base; }
  size_t size() const { return bytes; }

private:
  uint8_t *base = nullptr;
  size_t bytes = 0;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_MEMORY_H
