//===- Memory.cpp - page-aligned anonymous memory -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Memory.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

using namespace llmc::rt;

StatusOr<PageBuffer> PageBuffer::reserve(uint64_t size, const char *what) {
  PageBuffer buffer;
  if (size == 0)
    return buffer;
  void *base = size > SIZE_MAX ? MAP_FAILED
                               : mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return Status(StatusCode::ResourceExhausted, "cannot reserve " + std::to_string(size) +
                                                     " bytes for the " + what + ": " +
                                                     std::strerror(errno));
  buffer.base = static_cast<uint8_t *>(base);
  buffer.bytes = size;
  return buffer;
}

PageBuffer::~PageBuffer() {
  if (base)
    munmap(base, bytes);
}
