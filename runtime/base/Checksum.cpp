//===- Checksum.cpp - XXH3 64-bit checksums -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Checksum.h"

#include "runtime/base/WorkerPool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t llmc::rt::checksum(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t llmc::rt::checksumInPieces(std::span<const uint8_t> bytes, size_t pieceBytes,
                                    WorkerPool *pool) {
  std::vector<uint64_t> pieces((bytes.size() + pieceBytes - 1) / pieceBytes);
  std::atomic<size_t> next{0};
  const auto work = [&](unsigned) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();)
      pieces[i] = checksum(
          bytes.subspan(i * pieceBytes, std::min(pieceBytes, bytes.size() - i * pieceBytes)));
  };
  pool ? pool->run(work) : work(0);
  static_assert(std::endian::native == std::endian::little);
  return XXH3_64bits(pieces.data(), pieces.size() * sizeof(uint64_t));
}
