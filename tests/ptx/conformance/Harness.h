//===- Harness.h - what tests of the emulator share -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_CONFORMANCE_HARNESS_H
#define LLMC_TESTS_PTX_CONFORMANCE_HARNESS_H

#include "tests/ptx/emulator/Loader.h"
#include "tests/ptx/emulator/Machine.h"

#include <cstring>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

namespace llmc::ptx {

/// A device with one module, as tests want it.
class Harness {
public:
  explicit Harness(Options options = {}, uint64_t capacity = 64 << 20);

  /// Loads PTX text; the test fails if it is refused.
  void load(const std::string &text);
  /// The error of loading, empty if there is none.
  std::string loadError(const std::string &text);

  template <class T> uint64_t upload(const std::vector<T> &values) {
    return uploadBytes(values.data(), values.size() * sizeof(T));
  }
  uint64_t uploadBytes(const void *data, uint64_t size);
  /// Memory without values.
  uint64_t allocate(uint64_t size) { return memory.allocate(size); }
  template <class T> std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> out(count);
    memcpy(out.data(), reinterpret_cast<void *>(address), count * sizeof(T));
    return out;
  }

  /// Launches with arguments of their C types.
  template <class... Args>
  Error launch(const char *kernel, uint32_t grid, uint32_t block, Args... args) {
    LaunchConfig config;
    config.grid[0] = grid;
    config.block[0] = block;
    return launchWith(kernel, config, args...);
  }
  template <class... Args> Error launchWith(const char *kernel, LaunchConfig config, Args... args) {
    Program *program = module->kernel(kernel);
    if (!program) {
      Error error;
      error.kind = ErrorKind::Unsupported;
      error.message = std::string("no kernel ") + kernel;
      return error;
    }
    config.params.resize(program->paramBytes);
    size_t i = 0;
    (..., put(config, *program, i++, &args, sizeof(args)));
    return machine.launch(*program, config);
  }

  DeviceMemory memory;
  Machine machine;
  std::unique_ptr<LoadedModule> module;

private:
  static void put(LaunchConfig &config, const Program &program, size_t index, const void *value,
                  size_t size);
};

/// The header that PTX written in a test begins with.
std::string ptx(const std::string &body, const char *target = "sm_90");

/// Compiles CUDA C++ with nvcc; empty if nvcc is not there (the test is then skipped).
std::string nvcc(const std::string &source, const char *arch = "sm_80");
/// Compiles LLVM IR with llc; empty if that is not there.
std::string llc(const std::string &source, const char *arch = "sm_80");
#define LLMC_NEEDS_NVCC(text)                                                                      \
  if ((text).empty())                                                                              \
  GTEST_SKIP() << "nvcc is not there"

/// Options of one run of every kind: each seed, and copies that land early and late.
std::vector<Options> allOptions();

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_CONFORMANCE_HARNESS_H
