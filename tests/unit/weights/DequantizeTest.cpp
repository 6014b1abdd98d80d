//===- DequantizeTest.cpp - the dequantizer against the gguf package ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/SourceBlock.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using namespace llmc;

namespace {

TEST(Encodings, LookupByNameAndType) {
  for (const Encoding &encoding : encodings()) {
    EXPECT_EQ(lookupEncoding(encoding.name), &encoding);
    EXPECT_EQ(lookupGgmlType(encoding.ggmlType), &encoding);
  }
  EXPECT_EQ(lookupEncoding("q9_9"), nullptr);
  EXPECT_EQ(lookupGgmlType(4), nullptr); // q4_2, removed from ggml
  EXPECT_EQ(lookupGgmlType(139), nullptr);
}

TEST(Encodings, RowSizes) {
  const Encoding &q4k = *lookupEncoding("q4_k");
  EXPECT_TRUE(q4k.acceptsRow(512));
  EXPECT_FALSE(q4k.acceptsRow(640));
  EXPECT_EQ(q4k.rowBytes(512), 288u);
  EXPECT_DOUBLE_EQ(q4k.bitsPerWeight(), 4.5);
}

TEST(HalfToFloat, AllBitPatterns) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float expected = exponent == 31  ? (mantissa ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(float(mantissa), -24)
                                     : std::ldexp(float(mantissa + 1024), exponent - 25);
    if (bits & 0x8000)
      expected = -expected;
    const float got = halfToFloat(bits);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(got)) << bits;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << bits;
  }
}

// See tests/data/weights/make_fixtures.py for the file.
TEST(Dequantize, EqualsGgufBitForBit) {
  std::ifstream file(LLMC_TEST_DATA "/dequant.bin", std::ios::binary);
  const std::vector<char> all((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(all.empty());
  std::set<std::string> seen;
  for (size_t at = 0; at < all.size();) {
    const char *name = &all[at];
    uint32_t header[3];
    std::memcpy(header, &all[at + 16], sizeof header);
    const auto [rows, K, sourceBytes] = header;
    const char *source = &all[at + 28], *values = source + sourceBytes;
    at += 28 + sourceBytes + size_t(rows) * K * 4;

    const Encoding *encoding = lookupEncoding(name);
    ASSERT_NE(encoding, nullptr) << name;
    ASSERT_EQ(rows * encoding->rowBytes(K), sourceBytes) << name;
    seen.insert(name);
    for (uint32_t row = 0; row < rows; ++row) {
      std::vector<float> got(K), expected(K);
      std::memcpy(expected.data(), values + size_t(row) * K * 4, K * 4);
      dequantizeRow(*encoding,
                    reinterpret_cast<const uint8_t *>(source) + row * encoding->rowBytes(K),
                    got.data(), K);
      for (uint32_t k = 0; k < K; ++k)
        ASSERT_EQ(std::bit_cast<uint32_t>(got[k]), std::bit_cast<uint32_t>(expected[k]))
            << name << " row " << row << " k " << k << ": " << got[k] << " " << expected[k];
    }
  }
  EXPECT_EQ(seen.size(), encodings().size());
}

} // namespace
