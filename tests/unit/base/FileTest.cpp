//===- FileTest.cpp - mapped files, page buffers, checksums, CPU features -===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Checksum.h"
#include "runtime/base/Cpu.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/WorkerPool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace llmc::rt;

namespace {

std::string writeFile(const std::string &text) {
  std::string path = testing::TempDir() + "llmc-file-test-" +
                     testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string textOf(const MappedFile &file) { return {file.bytes().begin(), file.bytes().end()}; }

TEST(MappedFile, BothWaysGiveTheBytes) {
  const std::string path = writeFile("some text");
  for (FileAccess access : {FileAccess::Map, FileAccess::Read}) {
    auto file = MappedFile::open(path, access);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(textOf(file.value()), "some text");
    EXPECT_EQ(file.value().isMapped(), access == FileAccess::Map);
    MappedFile moved = file.take();
    EXPECT_EQ(textOf(moved), "some text");
  }
}

TEST(MappedFile, EmptyAndMissing) {
  auto empty = MappedFile::open(writeFile(""));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty.value().bytes().empty());
  EXPECT_NE(MappedFile::open("/no/such").status().message().find("/no/such"), std::string::npos);
  EXPECT_EQ(MappedFile::open("/dev/zero").status().code(), StatusCode::InvalidArgument);
}

TEST(PageBuffer, IsZeroAndLazy) {
  auto buffer = PageBuffer::reserve(uint64_t(1) << 36, "test");
  ASSERT_TRUE(buffer.ok()) << buffer.status().message();
  EXPECT_EQ(buffer.value().data()[uint64_t(1) << 35], 0);
  EXPECT_EQ(PageBuffer::reserve(uint64_t(1) << 62, "test").status().code(),
            StatusCode::ResourceExhausted);
  EXPECT_EQ(PageBuffer::reserve(0, "test").value().size(), 0u);
}

TEST(Checksum, IsXxh3) { EXPECT_EQ(checksum({}), 0x2d06800538d394c2u); }

TEST(Checksum, InPiecesSeesEveryByteWhoeverComputesIt) {
  std::vector<uint8_t> bytes(10 * 64 + 7);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 37);
  auto pool = WorkerPool::create(3);
  ASSERT_TRUE(pool.ok());
  const uint64_t expected = checksumInPieces(bytes, 64);
  EXPECT_EQ(checksumInPieces(bytes, 64, pool.value().get()), expected);
  for (uint8_t &byte : bytes) {
    ++byte;
    EXPECT_NE(checksumInPieces(bytes, 64), expected);
    --byte;
  }
  uint64_t pieces[2] = {checksum(std::span(bytes).first(64)),
                        checksum(std::span(bytes).subspan(64, 9))};
  EXPECT_EQ(checksumInPieces(std::span(bytes).first(73), 64),
            checksum({reinterpret_cast<const uint8_t *>(pieces), sizeof pieces}));
}

TEST(CpuFeatures, SetsAndNames) {
  const std::string_view names[] = {
#if defined(__x86_64__)
      "avx2", "avx512vnni",
#else
      "neon", "dotprod",
#endif
      "no-such-feature"};
  const CpuFeatures set = CpuFeatures::of(names);
  EXPECT_TRUE(set.has(names[0]));
  EXPECT_FALSE(set.has("no-such-feature"));
  EXPECT_FALSE(CpuFeatures().has(names[0]));
  EXPECT_EQ(set.toString(), std::string(names[0]) + " " + std::string(names[1]));
}

#if defined(__x86_64__)
TEST(CpuFeatures, HostAgreesWithTheCompilersRuntime) {
  __builtin_cpu_init();
  const CpuFeatures host = CpuFeatures::host();
  EXPECT_EQ(host.has("avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(host.has("fma"), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(host.has("avx512f"), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(host.has("avx512bw"), bool(__builtin_cpu_supports("avx512bw")));
  EXPECT_EQ(host.has("avx512vl"), bool(__builtin_cpu_supports("avx512vl")));
  EXPECT_EQ(host.has("avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(host.has("popcnt"), bool(__builtin_cpu_supports("popcnt")));
}
#endif

} // namespace
