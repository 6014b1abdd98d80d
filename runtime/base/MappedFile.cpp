//===- MappedFile.cpp - a read-only view of a file ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llmc::rt;

namespace {

struct FileDescriptor {
  int fd;
  ~FileDescriptor() {
    if (fd >= 0)
      close(fd);
  }
};

Status readAll(int fd, const std::string &path, uint8_t *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = pread(fd, data + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return notFound("cannot read " + path + ": " + std::strerror(errno));
    if (got == 0)
      return corrupt(path + " became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return {};
}

} // namespace

StatusOr<MappedFile> MappedFile::open(const std::string &path, FileAccess access) {
  FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0)
    return notFound("cannot open " + path + ": " + std::strerror(errno));
  struct stat info;
  if (fstat(file.fd, &info) != 0)
    return notFound("cannot open " + path + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return invalidArgument(path + " is not a regular file");

  MappedFile result;
  size_t size = static_cast<size_t>(info.st_size);
  if (size == 0)
    return result;
  if (access == FileAccess::Map) {
    void *base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (base != MAP_FAILED) {
      result.view = {static_cast<const uint8_t *>(base), size};
      result.mapped = true;
      return result;
    }
  }
  LLMC_ASSIGN_OR_RETURN(result.copy, PageBuffer::reserve(size, "file contents"));
  LLMC_RETURN_IF_ERROR(readAll(file.fd, path, result.copy.data(), size));
  mprotect(result.copy.data(), size, PROT_READ);
  result.view = {result.copy.data(), size};
  return result;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : view(std::exchange(other.view, {})), copy(std::move(other.copy)),
      mapped(std::exchange(other.mapped, false)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(view, other.view);
  std::swap(copy, other.copy);
  std::swap(mapped, other.mapped);
  return *this;
}

MappedFile::~MappedFile() {
  if (mapped)
    munmap(const_cast<uint8_t *>(view.data()), view.size());
}
