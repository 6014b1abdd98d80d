//===- Harness.cpp - what tests of the emulator share ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace llmc::ptx {

Harness::Harness(Options options, uint64_t capacity) : memory(capacity), machine(memory, options) {}

std::string Harness::loadError(const std::string &text) {
  std::string error;
  module = nullptr;
  module = LoadedModule::load(memory, text, error);
  return error;
}

void Harness::load(const std::string &text) {
  std::string error = loadError(text);
  ASSERT_EQ(error, "");
  ASSERT_TRUE(module);
}

uint64_t Harness::uploadBytes(const void *data, uint64_t size) {
  uint64_t address = memory.allocate(size);
  memcpy(reinterpret_cast<void *>(address), data, size);
  memory.find(address)->init.setRange(0, size);
  return address;
}

void Harness::put(LaunchConfig &config, const Program &program, size_t index, const void *value,
                  size_t size) {
  ASSERT_LT(index, program.params.size());
  ASSERT_EQ(program.params[index].size, size);
  memcpy(config.params.data() + program.params[index].offset, value, size);
}

std::string ptx(const std::string &body, const char *target) {
  return std::string(".version 8.7\n.target ") + target + "\n.address_size 64\n" + body;
}

static std::string read(const std::filesystem::path &path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// What `compiler options -o OUT IN` makes of the source; empty if there is no such compiler.
static std::string compile(const std::string &compiler, const std::string &options,
                           const char *inputName, const std::string &source) {
  std::string probe = compiler + " --version >/dev/null 2>&1";
  if (system(probe.c_str()) != 0)
    return {};
  auto folder = std::filesystem::temp_directory_path() / ("llmc-ptx-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / inputName) << source;
  std::string command = compiler + " " + options + " -o " + (folder / "kernel.ptx").string() + " " +
                        (folder / inputName).string() + " 2>" + (folder / "log").string();
  bool ok = system(command.c_str()) == 0;
  std::string text = ok ? read(folder / "kernel.ptx") : "no kernel";
  if (!ok)
    ADD_FAILURE() << command << ": " << read(folder / "log");
  std::filesystem::remove_all(folder);
  return text;
}

std::string nvcc(const std::string &source, const char *arch) {
  const char *given = getenv("NVCC");
  return compile(given ? given : "nvcc", std::string("-std=c++17 --ptx -arch=") + arch, "kernel.cu",
                 source);
}

std::string llc(const std::string &source, const char *arch) {
  return compile(LLMC_LLC, std::string("-mattr=+ptx87 -mcpu=") + arch, "kernel.ll", source);
}

std::vector<Options> allOptions() {
  std::vector<Options> all;
  for (uint64_t seed : {1, 2, 3})
    for (bool late : {false, true}) {
      Options o;
      o.seed = seed;
      o.lateCopies = late;
      all.push_back(o);
    }
  return all;
}

} // namespace llmc::ptx
