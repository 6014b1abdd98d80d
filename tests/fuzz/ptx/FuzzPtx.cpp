//===- FuzzPtx.cpp - any bytes as PTX -------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a PTX text. It is refused with one line, or its kernels are run for a while, where
// whatever they do is an error of the launch.

#include "tests/ptx/emulator/Loader.h"
#include "tests/ptx/emulator/Machine.h"

#include <cstdio>
#include <cstdlib>

using namespace llmc::ptx;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: " #condition " does not hold\n", __LINE__);                        \
      abort();                                                                                     \
    }                                                                                              \
  } while (false)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DeviceMemory memory(1 << 20);
  std::string error;
  auto module =
      LoadedModule::load(memory, std::string(reinterpret_cast<const char *>(data), size), error);
  if (!module) {
    CHECK(!error.empty() && error.find('\n') == std::string::npos);
    return 0;
  }
  Options options;
  options.maxInstructions = 2000;
  options.seed = size;
  options.lateCopies = size & 1;
  Machine machine(memory, options);
  uint64_t buffer = memory.allocate(4096);
  for (const Function &f : module->module().functions) {
    Program *program = f.isEntry && !f.isDeclaration ? module->kernel(f.name) : nullptr;
    if (!program || program->registerBytes > 1 << 20 || program->localBytes > 1 << 16)
      continue;
    LaunchConfig config;
    config.block[0] = 40;
    config.grid[0] = 2;
    config.params.resize(program->paramBytes);
    for (const KernelParam &p : program->params)
      if (p.size == 8)
        __builtin_memcpy(config.params.data() + p.offset, &buffer, 8);
    Error e = machine.launch(*program, config);
    CHECK(!e || !e.message.empty());
  }
  return 0;
}
