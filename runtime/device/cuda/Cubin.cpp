//===- Cubin.cpp - the frame of a cubin -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Cubin.h"

#include <cstring>
#include <elf.h>

namespace {

bool contains(uint64_t size, uint64_t offset, uint64_t length) {
  return offset <= size && length <= size - offset;
}

/// Calls `visit` for each record of a table; false where the table is not within the image, or a
/// visit says so. A section is not aligned to its records, hence the copies.
template <typename Record, typename Visit>
bool forTable(std::span<const uint8_t> image, uint64_t offset, uint64_t entrySize, uint64_t count,
              Visit visit) {
  if (count == 0)
    return true;
  if (entrySize < sizeof(Record) || !contains(image.size(), offset, entrySize * count))
    return false;
  for (uint64_t i = 0; i < count; ++i) {
    Record record;
    std::memcpy(&record, image.data() + offset + i * entrySize, sizeof record);
    if (!visit(record))
      return false;
  }
  return true;
}

} // namespace

bool llmc::rt::cuda::isWholeElf(std::span<const uint8_t> image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof header)
    return false;
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  return forTable<Elf64_Shdr>(image, header.e_shoff, header.e_shentsize, header.e_shnum,
                              [&](const Elf64_Shdr &section) {
                                return section.sh_type == SHT_NOBITS ||
                                       contains(image.size(), section.sh_offset, section.sh_size);
                              }) &&
         forTable<Elf64_Phdr>(image, header.e_phoff, header.e_phentsize, header.e_phnum,
                              [&](const Elf64_Phdr &segment) {
                                return contains(image.size(), segment.p_offset, segment.p_filesz);
                              });
}
