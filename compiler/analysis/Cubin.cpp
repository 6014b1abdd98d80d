//===- Cubin.cpp - what a cubin says of its kernels -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cubin is an ELF file. Its section .nv.info is a list of attributes: a byte
// that says how the value is stored, one that says what it is, and 16 bits that are
// the value or, for kSized, the length of what follows. The attributes wanted here
// are a symbol's index and a number.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Cubin.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"

using namespace llmc;
using llvm::object::ELF64LE;

static constexpr uint8_t kSized = 4, kFrameSize = 0x11, kRegisterCount = 0x2f;

llvm::Expected<llvm::StringMap<CubinKernel>> llmc::readCubin(llvm::StringRef bytes) {
  llvm::StringMap<CubinKernel> kernels;
  auto file = llvm::object::ELFFile<ELF64LE>::create(bytes);
  if (!file)
    return file.takeError();
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  const ELF64LE::Shdr *symbolTable = nullptr;
  llvm::ArrayRef<uint8_t> info;
  for (const ELF64LE::Shdr &section : *sections) {
    auto name = file->getSectionName(section);
    if (!name)
      return name.takeError();
    if (section.sh_type == llvm::ELF::SHT_SYMTAB)
      symbolTable = &section;
    if (*name != ".nv.info")
      continue;
    auto contents = file->getSectionContents(section);
    if (!contents)
      return contents.takeError();
    info = *contents;
  }
  if (!symbolTable)
    return llvm::createStringError("the cubin has no symbols");
  auto symbols = file->symbols(symbolTable);
  if (!symbols)
    return symbols.takeError();
  auto names = file->getStringTableForSymtab(*symbolTable);
  if (!names)
    return names.takeError();

  while (info.size() >= 4) {
    uint8_t form = info[0], attribute = info[1];
    size_t size = form == kSized ? llvm::support::endian::read16le(&info[2]) : 0;
    info = info.drop_front(4);
    if (size > info.size())
      return llvm::createStringError("an attribute of the cubin is cut off");
    if (size == 8 && (attribute == kFrameSize || attribute == kRegisterCount)) {
      uint32_t index = llvm::support::endian::read32le(&info[0]);
      uint32_t value = llvm::support::endian::read32le(&info[4]);
      if (index >= symbols->size())
        return llvm::createStringError("an attribute of the cubin names no symbol");
      auto name = (*symbols)[index].getName(*names);
      if (!name)
        return name.takeError();
      CubinKernel &kernel = kernels[*name];
      (attribute == kFrameSize ? kernel.stackBytes : kernel.registers) = value;
    }
    info = info.drop_front(size);
  }
  return kernels;
}
