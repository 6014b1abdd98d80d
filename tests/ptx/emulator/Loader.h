//===- Loader.h - modules on the device -------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_LOADER_H
#define LLMC_TESTS_PTX_EMULATOR_LOADER_H

#include "tests/ptx/emulator/Memory.h"
#include "tests/ptx/emulator/Program.h"

namespace llmc::ptx {

/// A module whose variables are on the device and whose kernels are decoded.
class LoadedModule {
public:
  /// Null and one line in `error` for text that is not understood, or for a full device.
  static std::unique_ptr<LoadedModule> load(DeviceMemory &memory, std::string text,
                                            std::string &error);
  ~LoadedModule();

  /// Null if there is no such kernel.
  Program *kernel(std::string_view name);
  /// Address and size of a variable; 0 if there is none.
  uint64_t variable(std::string_view name, uint64_t *size = nullptr) const;
  const Module &module() const { return *parsed; }

private:
  explicit LoadedModule(DeviceMemory &memory) : memory(memory) {}
  static std::unique_ptr<LoadedModule> loadText(DeviceMemory &memory, std::string text,
                                                std::string &error);
  bool place(std::string &error);

  DeviceMemory &memory;
  std::shared_ptr<Module> parsed;
  Symbols symbols;
  std::vector<uint64_t> allocated;
  std::map<std::string, std::unique_ptr<Program>, std::less<>> programs;
};

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_LOADER_H
