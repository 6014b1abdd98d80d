//===- CubinTest.cpp - the frame of a cubin -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Cubin.h"

#include <elf.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

using llmc::rt::cuda::isWholeElf;

namespace {

/// This program itself: any ELF file will do.
std::vector<uint8_t> anElf() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Cubin, WholeFilesOnly) {
  const std::vector<uint8_t> good = anElf();
  EXPECT_TRUE(isWholeElf(good));
  EXPECT_FALSE(isWholeElf(std::span(good).first(good.size() - 1)));
  EXPECT_FALSE(isWholeElf(std::span(good).first(sizeof(Elf64_Ehdr))));
  EXPECT_FALSE(isWholeElf(std::span(good).first(10)));
  EXPECT_FALSE(isWholeElf({}));
}

TEST(Cubin, PartsBehindTheEnd) {
  const auto spoiled = [](auto spoil) {
    std::vector<uint8_t> bytes = anElf();
    spoil(*reinterpret_cast<Elf64_Ehdr *>(bytes.data()), bytes.data());
    return isWholeElf(bytes);
  };
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *) { header.e_ident[0] = 0; }));
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *) { header.e_ident[EI_CLASS] = 1; }));
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *) { header.e_shoff = UINT64_MAX - 8; }));
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *) { header.e_shentsize = 8; }));
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *) { header.e_phnum = 0xfffe; }));
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *bytes) {
    reinterpret_cast<Elf64_Shdr *>(bytes + header.e_shoff)[1].sh_size = UINT64_MAX;
  }));
  EXPECT_FALSE(spoiled([](Elf64_Ehdr &header, uint8_t *bytes) {
    reinterpret_cast<Elf64_Phdr *>(bytes + header.e_phoff)[0].p_offset = UINT64_MAX;
  }));
}

} // namespace
