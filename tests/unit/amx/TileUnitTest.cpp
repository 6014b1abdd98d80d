//===- TileUnitTest.cpp - tile instructions against plain loops -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileUnit.h"
#include "runtime/base/Cpu.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace llmc::test::amx;

namespace {

struct Config {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  void shape(unsigned tile, unsigned rowCount, unsigned bytes) {
    rows[tile] = static_cast<uint8_t>(rowCount);
    rowBytes[tile] = static_cast<uint16_t>(bytes);
  }
  const uint8_t *bytes() const { return reinterpret_cast<const uint8_t *>(this); }
};
static_assert(sizeof(Config) == 64);

/// A product of m rows, n columns and k steps of 32 bits in tiles 0 = 1 x 2.
struct Product {
  unsigned m, n, k;
  std::vector<uint8_t> a, b, c;
  TileUnit unit;

  Product(unsigned m, unsigned n, unsigned k, unsigned seed)
      : m(m), n(n), k(k), a(m * 4 * k), b(k * 4 * n), c(m * 4 * n) {
    std::mt19937 rng(seed);
    for (auto *bytes : {&a, &b, &c})
      for (uint8_t &byte : *bytes)
        byte = static_cast<uint8_t>(rng());
  }
  void load() {
    Config config;
    config.shape(0, m, 4 * n);
    config.shape(1, m, 4 * k);
    config.shape(2, k, 4 * n);
    ASSERT_EQ(unit.loadConfig(config.bytes()), Fault::None);
    ASSERT_EQ(unit.load(0, c.data(), 4 * n), Fault::None);
    ASSERT_EQ(unit.load(1, a.data(), 4 * k), Fault::None);
    ASSERT_EQ(unit.load(2, b.data(), 4 * n), Fault::None);
  }
  template <typename T> std::vector<T> result() {
    std::vector<T> out(m * n);
    EXPECT_EQ(unit.store(0, reinterpret_cast<uint8_t *>(out.data()), 4 * n), Fault::None);
    return out;
  }
};

constexpr struct {
  unsigned m, n, k;
} kShapes[] = {{16, 16, 16}, {16, 16, 4}, {1, 1, 1}, {3, 16, 16}, {16, 5, 7}, {7, 2, 16}};

TEST(TileUnit, ByteProducts) {
  for (auto [m, n, k] : kShapes)
    for (bool aSigned : {false, true})
      for (bool bSigned : {false, true}) {
        Product p(m, n, k, m + n + k);
        p.load();
        ASSERT_EQ(p.unit.dotBytes(0, 1, 2, aSigned, bSigned), Fault::None);
        const auto got = p.result<int32_t>();
        for (unsigned i = 0; i < m; ++i)
          for (unsigned j = 0; j < n; ++j) {
            int32_t old;
            std::memcpy(&old, &p.c[4 * (i * n + j)], 4);
            int64_t sum = old;
            for (unsigned s = 0; s < 4 * k; ++s) {
              const uint8_t left = p.a[i * 4 * k + s];
              const uint8_t right = p.b[s / 4 * 4 * n + 4 * j + s % 4];
              sum += (aSigned ? int64_t(int8_t(left)) : left) *
                     (bSigned ? int64_t(int8_t(right)) : right);
            }
            ASSERT_EQ(got[i * n + j], static_cast<int32_t>(sum));
          }
      }
}

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
float widen(uint16_t bf16) { return std::bit_cast<float>(uint32_t(bf16) << 16); }

TEST(TileUnit, Bf16Products) {
  if (!llmc::rt::CpuFeatures::host().has("avx512f"))
    GTEST_SKIP() << "the emulator computes with AVX-512";
  for (auto [m, n, k] : kShapes)
    for (int exponent : {0, -60, -70}) { // -60: sums near the least; -70: below it
      Product p(m, n, k, 3 * m + n + k);
      std::mt19937 rng(m);
      std::normal_distribution<float> normal;
      for (auto *bytes : {&p.a, &p.b})
        for (size_t i = 0; i < bytes->size(); i += 2) {
          const float x = std::ldexp(normal(rng), exponent);
          const auto half = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
          std::memcpy(&(*bytes)[i], &half, 2);
        }
      for (size_t i = 0; i < p.c.size(); i += 4) {
        const float x = i % 16 ? std::ldexp(normal(rng), 2 * exponent) : 1e-39f; // a denormal
        std::memcpy(&p.c[i], &x, 4);
      }
      p.load();
      ASSERT_EQ(p.unit.dotBf16(0, 1, 2), Fault::None);
      const auto got = p.result<float>();
      const auto bf16 = [](const std::vector<uint8_t> &bytes, size_t i) {
        uint16_t half;
        std::memcpy(&half, &bytes[2 * i], 2);
        return flush(widen(half));
      };
      for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; ++j) {
          float sums[2] = {0, 0}, old;
          for (unsigned s = 0; s < 2 * k; ++s)
            sums[s % 2] = flush(std::fmaf(bf16(p.a, i * 2 * k + s),
                                          bf16(p.b, s / 2 * 2 * n + 2 * j + s % 2), sums[s % 2]));
          std::memcpy(&old, &p.c[4 * (i * n + j)], 4);
          const float expected = flush(flush(old) + flush(sums[0] + sums[1]));
          ASSERT_EQ(std::bit_cast<uint32_t>(got[i * n + j]), std::bit_cast<uint32_t>(expected))
              << "exponent " << exponent << ", row " << i << ", column " << j;
        }
    }
}

TEST(TileUnit, LoadsAndStoresHaveStrides) {
  TileUnit unit;
  Config config;
  config.shape(3, 5, 12);
  ASSERT_EQ(unit.loadConfig(config.bytes()), Fault::None);
  std::vector<uint8_t> in(5 * 100), out(5 * 20, 0xee);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<uint8_t>(i * 7);
  ASSERT_EQ(unit.load(3, in.data(), 100), Fault::None);
  ASSERT_EQ(unit.store(3, out.data(), 20), Fault::None);
  for (unsigned r = 0; r < 5; ++r)
    for (unsigned i = 0; i < 20; ++i)
      EXPECT_EQ(out[20 * r + i], i < 12 ? in[100 * r + i] : 0xee);
}

TEST(TileUnit, WrongConfigurationsAreRefused) {
  TileUnit unit;
  const auto refused = [&](auto change) {
    Config config;
    config.shape(0, 16, 64);
    change(config);
    return unit.loadConfig(config.bytes()) == Fault::GeneralProtection;
  };
  EXPECT_FALSE(refused([](Config &) {}));
  EXPECT_TRUE(refused([](Config &c) { c.palette = 2; }));
  EXPECT_TRUE(refused([](Config &c) { c.reserved[13] = 1; }));
  EXPECT_TRUE(refused([](Config &c) { c.rows[0] = 17; }));
  EXPECT_TRUE(refused([](Config &c) { c.rowBytes[0] = 65; }));
  EXPECT_TRUE(refused([](Config &c) { c.rows[0] = 0; }));
  EXPECT_TRUE(refused([](Config &c) { c.rowBytes[0] = 0; }));
  EXPECT_TRUE(refused([](Config &c) { c.shape(8, 1, 4); }));
}

TEST(TileUnit, WrongUsesAreRefused) {
  TileUnit unit;
  uint8_t memory[1024] = {};
  EXPECT_EQ(unit.zero(0), Fault::InvalidOpcode) << "not configured";
  Config config;
  config.shape(0, 16, 64);
  config.shape(1, 16, 64);
  config.shape(2, 16, 64);
  config.shape(3, 8, 64);
  ASSERT_EQ(unit.loadConfig(config.bytes()), Fault::None);
  EXPECT_EQ(unit.dotBytes(0, 1, 2, true, true), Fault::None);
  EXPECT_EQ(unit.dotBytes(0, 0, 2, true, true), Fault::InvalidOpcode) << "the same tile twice";
  EXPECT_EQ(unit.dotBytes(0, 1, 3, true, true), Fault::InvalidOpcode) << "shapes";
  EXPECT_EQ(unit.dotBytes(3, 1, 2, true, true), Fault::InvalidOpcode) << "shapes";
  EXPECT_EQ(unit.load(4, memory, 64), Fault::InvalidOpcode) << "a tile without a shape";
  unit.release();
  EXPECT_EQ(unit.store(0, memory, 64), Fault::InvalidOpcode) << "released";
}

TEST(TileUnit, TheConfigurationCanBeRead) {
  TileUnit unit;
  uint8_t read[64];
  const Config none = [] {
    Config c;
    c.palette = 0;
    return c;
  }();
  ASSERT_EQ(unit.storeConfig(read), Fault::None);
  EXPECT_EQ(std::memcmp(read, none.bytes(), 64), 0);
  Config config;
  config.shape(0, 16, 64);
  config.shape(7, 2, 8);
  ASSERT_EQ(unit.loadConfig(config.bytes()), Fault::None);
  ASSERT_EQ(unit.storeConfig(read), Fault::None);
  EXPECT_EQ(std::memcmp(read, config.bytes(), 64), 0);
}

} // namespace
