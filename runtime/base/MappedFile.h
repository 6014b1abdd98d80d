//===- MappedFile.h - a read-only view of a file ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_MAPPEDFILE_H
#define LLMC_RUNTIME_BASE_MAPPEDFILE_H

#include "runtime/base/Memory.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace llmc::rt {

/// How MappedFile gets at the bytes. Map falls back to Read where the file system cannot map.
enum class FileAccess { Map, Read };

/// A whole regular file in memory, read-only and page-aligned: mapped (clean, shared pages of the
/// page cache) or, as the fallback, read into anonymous memory.
class MappedFile {
public:
  MappedFile() = default;
  static StatusOr<MappedFile> open(const std::string &path, FileAccess access = FileAccess::Map);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return view; }
  bool isMapped() const { return mapped; }

private:
  std::span<const uint8_t> view;
  PageBuffer copy;
  bool mapped = false;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_MAPPEDFILE_H
