//===- Npy.h - NumPy's files ------------------------------------*- C++ -*-===//
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
#include <vector>

namespace llmc::run {

/// What an .npy file holds: little endian, row-major.
struct NpyArray {
  std::string type; ///< NumPy's name: "<f4", "|b1", ...
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
};

/// Reads formats 1 to 3. Errors name the file and what is wrong with it.
rt::StatusOr<NpyArray> readNpy(const std::string &path);
/// Writes format 1.0. The file appears under its name when it is complete.
rt::Status writeNpy(const std::string &path, const std::string &type,
                    std::span<const uint64_t> shape, std::span<const uint8_t> bytes);

/// NumPy's name of an element type of a graph ("float": "<f4"). Types that NumPy lacks are raw
/// bytes
/// ("<V2"), as ml_dtypes saves them.
std::string npyType(std::string_view element);
/// Whether a file of `type` can be an input of type `element`.
bool acceptsNpyType(std::string_view element, std::string_view type);

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
