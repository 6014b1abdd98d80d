//===- Checksum.h - XXH3 64-bit checksums -----------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_CHECKSUM_H
#define LLMC_RUNTIME_BASE_CHECKSUM_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace llmc::rt {

class WorkerPool;

/// XXH3_64bits of `bytes` with seed 0.
uint64_t checksum(std::span<const uint8_t> bytes);

/// XXH3_64bits of the XXH3_64bits of all pieces of `pieceBytes` bytes, the last of which may be
/// shorter; little endian, 8 bytes each. The workers of `pool`, which may be null, share the work.
uint64_t checksumInPieces(std::span<const uint8_t> bytes, size_t pieceBytes,
                          WorkerPool *pool = nullptr);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_CHECKSUM_H
