//===- Loader.cpp - modules on the device ---------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Loader.h"

#include "tests/ptx/emulator/Access.h"

#include <cstring>

namespace llmc::ptx {

/// Messages quote the text, which may hold anything.
static void oneLine(std::string &message) {
  for (char &c : message)
    if (uint8_t(c) < 32 || uint8_t(c) > 126)
      c = '?';
}

std::unique_ptr<LoadedModule> LoadedModule::load(DeviceMemory &memory, std::string text,
                                                 std::string &error) {
  auto module = loadText(memory, std::move(text), error);
  if (!module)
    oneLine(error);
  return module;
}

std::unique_ptr<LoadedModule> LoadedModule::loadText(DeviceMemory &memory, std::string text,
                                                     std::string &error) {
  std::unique_ptr<LoadedModule> m(new LoadedModule(memory));
  m->parsed = parse(std::move(text), error);
  if (!m->parsed || !m->place(error))
    return nullptr;
  for (const Function &f : m->parsed->functions) {
    if (!f.isEntry || f.isDeclaration)
      continue;
    auto program = decode(m->parsed, f, m->symbols, error);
    if (!program)
      return nullptr;
    m->programs[std::string(f.name)] = std::move(program);
  }
  return m;
}

bool LoadedModule::place(std::string &error) {
  for (const Variable &v : parsed->variables) {
    if (v.space == Space::Shared || v.isExtern)
      continue;
    uint64_t size = std::max<uint64_t>(v.size, 1);
    uint64_t address = memory.allocate(size, v.align);
    if (!address) {
      error = "line " + std::to_string(v.line) + ": no memory for '" + std::string(v.name) + "'";
      return false;
    }
    allocated.push_back(address);
    symbols[v.name] = address;
    memset(reinterpret_cast<void *>(address), 0, size);
    if (!v.init.empty())
      memcpy(reinterpret_cast<void *>(address), v.init.data(), v.init.size());
    Allocation *a = memory.find(address);
    a->init.setRange(0, size);
    a->readOnly = v.space == Space::Const;
  }
  for (const Variable &v : parsed->variables)
    for (const Relocation &r : v.relocations) {
      auto it = symbols.find(r.symbol);
      if (it == symbols.end()) {
        error = "line " + std::to_string(v.line) + ": no variable '" +
                std::string(r.symbol.substr(0, 80)) + "' to point to";
        return false;
      }
      uint64_t value = it->second + r.addend;
      memcpy(reinterpret_cast<void *>(symbols[v.name] + r.at), &value, 8);
    }
  return true;
}

LoadedModule::~LoadedModule() {
  for (uint64_t address : allocated)
    memory.free(address);
}

Program *LoadedModule::kernel(std::string_view name) {
  auto it = programs.find(name);
  return it == programs.end() ? nullptr : it->second.get();
}

uint64_t LoadedModule::variable(std::string_view name, uint64_t *size) const {
  auto it = symbols.find(name);
  if (it == symbols.end())
    return 0;
  if (size)
    *size = parsed->variables[parsed->variableIndex.at(name)].size;
  return it->second;
}

} // namespace llmc::ptx
