//===- Prefix.h - the first 128 bytes of an artifact ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Little endian, no padding:
//
//   offset size
//        0    8  magic: 0x89 'L' 'M' 'C' '\r' '\n' 0x1a '\n' (text-mode copies are noticed)
//        8    4  format version (kFormatVersion); others are refused as newer or older
//       12    4  zero
//       16    8  file size in bytes (a shorter file is truncated)
//       24    8  header offset
//       32    8  header size
//       40    8  XXH3_64bits of the header
//       48   72  zero
//      120    8  XXH3_64bits of bytes 0..119
//
// The checksum of a section is the XXH3_64bits of the XXH3_64bits of its pieces of
// kChecksumPiece bytes (the last may be shorter), so that several threads can
// verify it.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_SCHEMA_PREFIX_H
#define LLMC_RUNTIME_SCHEMA_PREFIX_H

#include <cstdint>

namespace llmc {

inline constexpr uint8_t kArtifactMagic[8] = {0x89, 'L', 'M', 'C', '\r', '\n', 0x1a, '\n'};
inline constexpr uint32_t kFormatVersion = 2;
/// The oldest format version that this runtime still reads.
inline constexpr uint32_t kOldestFormatVersion = 2;
inline constexpr uint64_t kSectionAlignment = 4096;
inline constexpr uint64_t kChecksumPiece = 1 << 20;

struct ArtifactPrefix {
  uint8_t magic[8];
  uint32_t formatVersion;
  uint32_t zero;
  uint64_t fileSize;
  uint64_t headerOffset;
  uint64_t headerSize;
  uint64_t headerChecksum;
  uint8_t reserved[72];
  uint64_t prefixChecksum;
};
static_assert(sizeof(ArtifactPrefix) == 128);

} // namespace llmc

#endif // LLMC_RUNTIME_SCHEMA_PREFIX_H
