//===- PtxCheck.cpp - is a PTX text understood? ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// ptx-check FILE...: does the emulator understand these texts? One line per kernel, or the first
// error.

#include "tests/ptx/emulator/Loader.h"

#include <cstdio>
#include <fstream>
#include <sstream>

using namespace llmc::ptx;

int main(int argc, char **argv) {
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i]);
    std::stringstream text;
    text << in.rdbuf();
    std::string error;
    DeviceMemory memory(uint64_t(1) << 30);
    auto module = LoadedModule::load(memory, text.str(), error);
    if (!module) {
      printf("%s: %s\n", argv[i], error.c_str());
      ++failures;
      continue;
    }
    for (const Function &f : module->module().functions)
      if (Program *p = f.isEntry && !f.isDeclaration ? module->kernel(f.name) : nullptr)
        printf("%s: %s: %zu instructions, %u bytes shared, %u local\n", argv[i], p->name.c_str(),
               p->code.size(), p->sharedBytes, p->localBytes);
  }
  return failures != 0;
}
