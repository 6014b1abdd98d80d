//===- Npy.cpp - writes a NumPy array row by row --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Npy.h"

#include <cerrno>
#include <cstring>

using namespace llmc::run;
using llmc::rt::Status;

NpyWriter::NpyWriter(std::string name, uint64_t rows, uint64_t columns)
    : path(std::move(name)), partial(path + ".partial"), file(std::fopen(partial.c_str(), "wb")) {
  // Magic, version, length of the dictionary; together a multiple of 64 bytes.
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  constexpr size_t fixed = 10, alignment = 64;
  header.resize((fixed + header.size() + alignment) / alignment * alignment - fixed, ' ');
  header.back() = '\n';
  const char prefix[fixed] = {'\x93',
                              'N',
                              'U',
                              'M',
                              'P',
                              'Y',
                              1,
                              0,
                              static_cast<char>(header.size() & 0xff),
                              static_cast<char>(header.size() >> 8)};
  if (!file || std::fwrite(prefix, 1, fixed, file) != fixed ||
      std::fwrite(header.data(), 1, header.size(), file) != header.size())
    error = errno;
}

NpyWriter::~NpyWriter() {
  if (file) {
    std::fclose(file);
    std::remove(partial.c_str());
  }
}

bool NpyWriter::append(std::span<const float> values) {
  if (!error && std::fwrite(values.data(), sizeof(float), values.size(), file) != values.size())
    error = errno;
  return !error;
}

Status NpyWriter::finish() {
  if (!error && std::fflush(file) != 0)
    error = errno;
  if (!error && std::rename(partial.c_str(), path.c_str()) != 0)
    error = errno;
  if (error)
    return rt::notFound("cannot write " + path + ": " + std::strerror(error));
  std::fclose(file);
  file = nullptr;
  return {};
}
