//===- Npy.h - writes a NumPy array row by row ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_NPY_H
#define LLMC_TOOLS_LLMCRUN_NPY_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace llmc::run {

/// A float32 matrix in NumPy's format 1.0. The file appears under its name when it is complete.
class NpyWriter {
public:
  NpyWriter(std::string path, uint64_t rows, uint64_t columns);
  ~NpyWriter();
  NpyWriter(const NpyWriter &) = delete;
  NpyWriter &operator=(const NpyWriter &) = delete;

  /// False where the file cannot be written; finish() says why.
  bool append(std::span<const float> values);
  rt::Status finish();

private:
  std::string path, partial;
  std::FILE *file;
  int error = 0;
};

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_NPY_H
