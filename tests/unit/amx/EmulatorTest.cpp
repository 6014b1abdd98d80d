//===- EmulatorTest.cpp - instructions that the handler reads -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Here the instructions are executed; on a processor with AMX by it, so that
// what the emulator makes of them is known to be right.
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include <cstring>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <thread>

using namespace llmc::test::amx;

#define TILED __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace {

const Mode mode = install();

struct Config {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};
};

/// Tiles of 16 rows of 64 bytes.
Config wholeTiles() {
  Config config;
  for (int i = 0; i < 8; ++i) {
    config.rowBytes[i] = 64;
    config.rows[i] = 16;
  }
  return config;
}
alignas(64) Config sharedConfig = wholeTiles();

class Emulator : public testing::Test {
protected:
  void SetUp() override {
    if (mode == Mode::None)
      GTEST_SKIP() << "this machine has neither AMX nor AVX-512 to emulate it";
    for (int i = 0; i < 1024; ++i) {
      a[i] = static_cast<int8_t>(i * 37 + 11);
      b[i] = static_cast<int8_t>(i * 101 + 5);
    }
  }
  alignas(64) int8_t a[1024], b[1024];
  alignas(64) int32_t c[16][16];
};

int32_t dot(const int8_t *a, const int8_t *b, int m, int n, bool aSigned, bool bSigned) {
  int32_t sum = 0;
  for (int k = 0; k < 64; ++k) {
    const int8_t left = a[64 * m + k], right = b[64 * (k / 4) + 4 * n + k % 4];
    sum += (aSigned ? left : uint8_t(left)) * (bSigned ? right : uint8_t(right));
  }
  return sum;
}

TILED void multiplyAll(const int8_t *a, const int8_t *b, int32_t (*c)[16], int which) {
  _tile_loadconfig(&sharedConfig);
  _tile_loadd(1, a, 64);
  _tile_stream_loadd(2, b, 64);
  _tile_zero(0);
  if (which == 0)
    _tile_dpbssd(0, 1, 2);
  else if (which == 1)
    _tile_dpbsud(0, 1, 2);
  else if (which == 2)
    _tile_dpbusd(0, 1, 2);
  else
    _tile_dpbuud(0, 1, 2);
  _tile_stored(0, c, 64);
  _tile_release();
}

TEST_F(Emulator, EveryByteProduct) {
  for (int which = 0; which < 4; ++which) {
    multiplyAll(a, b, c, which);
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 16; ++n)
        ASSERT_EQ(c[m][n], dot(a, b, m, n, which < 2, which % 2 == 0)) << which;
  }
}

TILED void multiplyBf16(const void *a, const void *b, void *c) {
  _tile_loadconfig(&sharedConfig);
  _tile_loadd(5, a, 64);
  _tile_loadd(6, b, 64);
  _tile_zero(7);
  _tile_dpbf16ps(7, 5, 6);
  _tile_stored(7, c, 64);
  _tile_release();
}

TEST_F(Emulator, Bf16) {
  alignas(64) uint16_t ones[512], values[512];
  alignas(64) float out[16][16];
  for (int i = 0; i < 512; ++i) {
    ones[i] = 0x3f80;                                    // 1
    values[i] = static_cast<uint16_t>(0x3f80 + (i % 8)); // 1 + (i % 8) / 128
  }
  multiplyBf16(ones, values, out);
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      float expected = 0;
      for (int k = 0; k < 16; ++k)
        expected += 2 + float((32 * k + 2 * n) % 8 + (32 * k + 2 * n + 1) % 8) / 128;
      ASSERT_EQ(out[m][n], expected);
    }
}

// Bases and indices of every kind: with and without a displacement, extended registers, scales.
TILED void copyTile(const char *from, char *to) {
  _tile_loadconfig(&sharedConfig);
  register const char *base asm("r13") = from - 0x1234;
  register int64_t half asm("r12") = 32;
  asm volatile("tileloadd 0x1234(%0,%1,2), %%tmm3" ::"r"(base), "r"(half) : "memory");
  register char *target asm("rbp") = to;
  register int64_t whole asm("r9") = 64;
  asm volatile("tilestored %%tmm3, (%0,%1,1)" ::"r"(target), "r"(whole) : "memory");
  asm volatile("tilestored %%tmm3, 8(%0,%1,1)" ::"r"(to + 1016), "r"(whole) : "memory");
  _tile_release();
}

TEST_F(Emulator, AddressingModes) {
  char out[2048];
  copyTile(reinterpret_cast<const char *>(a), out);
  EXPECT_EQ(std::memcmp(out, a, 1024), 0);
  EXPECT_EQ(std::memcmp(out + 1024, a, 1024), 0);
}

TILED void configure(Config *read) {
  // Relative to the instruction, by a symbol.
  asm volatile("ldtilecfg %0" ::"m"(sharedConfig));
  _tile_storeconfig(read);
}
TILED void releaseTiles() { _tile_release(); }

TEST_F(Emulator, StateIsTheThreads) {
  Config mine, others;
  configure(&mine);
  EXPECT_TRUE(tilesInUse());
  bool inUse = true;
  std::thread other([&] {
    inUse = tilesInUse();
    configure(&others);
    releaseTiles();
  });
  other.join();
  EXPECT_FALSE(inUse);
  EXPECT_TRUE(tilesInUse());
  releaseTiles();
  EXPECT_FALSE(tilesInUse());
  EXPECT_EQ(std::memcmp(&mine, &sharedConfig, sizeof mine), 0);
  EXPECT_EQ(std::memcmp(&others, &sharedConfig, sizeof mine), 0);
}

TEST_F(Emulator, Counts) {
  if (mode != Mode::Emulated)
    GTEST_SKIP() << "the processor does not count";
  resetCounts();
  multiplyAll(a, b, c, 0);
  const Counts n = counts();
  EXPECT_EQ(n.loadConfigs, 1u);
  EXPECT_EQ(n.releases, 1u);
  EXPECT_EQ(n.zeros, 1u);
  EXPECT_EQ(n.loads, 2u);
  EXPECT_EQ(n.stores, 1u);
  EXPECT_EQ(n.byteDots, 1u);
  EXPECT_EQ(n.bf16Dots, 0u);
}

TILED void zeroWithoutConfiguration() {
  _tile_release();
  _tile_zero(0);
}

TEST_F(Emulator, WrongUseDies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(zeroWithoutConfiguration(), mode == Mode::Emulated ? "#UD" : "");
  EXPECT_DEATH(asm volatile("ud2"), mode == Mode::Emulated ? "illegal instruction" : "");
}

} // namespace
