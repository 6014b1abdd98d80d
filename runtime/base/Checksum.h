//===- Checksum.h - XXH3 64-bit checksums -----------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_CHECKSUM_H
#define LLMC_RUNTIME_BASE_CHECKSUM_H

#include <cstdint>
#include <span>

namespace llmc::rt {

/// XXH3_64bits of `bytes` with seed 0.
uint64_t checksum(std::span<const uint8_t> bytes);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_CHECKSUM_H
