//===- Checksum.cpp - XXH3 64-bit checksums -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t llmc::rt::checksum(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
