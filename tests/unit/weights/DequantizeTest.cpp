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
}

TEST(Encodings, GroupEncodingsByName) {
  for (const Encoding &encoding : groupEncodings()) {
    EXPECT_EQ(lookupEncoding(encoding.name), &encoding);
    EXPECT_TRUE(encoding.acceptsRow(1));
  }
  EXPECT_EQ(lookupEncoding("int4_g48"), nullptr);
  EXPECT_EQ(lookupEncoding("iq4_g32_min"), nullptr);
  const Encoding &zp = *lookupEncoding("int4_g32_zp_f32");
  EXPECT_EQ(zp.rowCodesBytes(40), 32u); // two whole groups of codes
  EXPECT_EQ(zp.rowGroups(40), 2u);
  EXPECT_EQ(zp.rowBytes(40), 48u);
  EXPECT_EQ(lookupEncoding("int8_row")->rowBytes(40), 66u);
}

/// Row bytes from codes and scales, as the comment in Format.h says, and what they mean.
std::vector<float> dequantizeGroups(const char *name, std::vector<uint8_t> codes,
                                    const std::vector<float> &scales, uint64_t K) {
  const Encoding &encoding = *lookupEncoding(name);
  for (float scale : scales) {
    if (encoding.format.scaleKind == ukF32) {
      for (unsigned i = 0; i < 4; ++i)
        codes.push_back(uint8_t(std::bit_cast<uint32_t>(scale) >> 8 * i));
    } else {
      const uint16_t bits = std::bit_cast<uint16_t>(_Float16(scale));
      codes.insert(codes.end(), {uint8_t(bits), uint8_t(bits >> 8)});
    }
  }
  EXPECT_EQ(codes.size(), encoding.rowBytes(K)) << name;
  std::vector<float> out(K);
  dequantizeRow(encoding, codes.data(), out.data(), K);
  return out;
}

// Computed by hand.
TEST(Dequantize, GroupEncodings) {
  std::vector<uint8_t> nibbles(32, 0xf0); // codes 0, 15, 0, 15, ...
  nibbles[0] = 0x9a;                      // 10, 9
  auto out = dequantizeGroups("int4_g32_f32", nibbles, {0.1f, 3.0f}, 40);
  EXPECT_EQ(out[0], 0.1f * 2);
  EXPECT_EQ(out[1], 0.1f * 1);
  EXPECT_EQ(out[2], 0.1f * -8);
  EXPECT_EQ(out[32], -24.0f);
  EXPECT_EQ(out[39], 21.0f);
  // Scales, then zero points: a product after a difference, rounded once.
  out = dequantizeGroups("int4_g16_zp_f32", nibbles, {0.1f, 2, 1, 7, 3, 0.5f}, 40);
  EXPECT_EQ(out[0], 0.1f * 3);
  EXPECT_EQ(out[1], 0.1f * 2);
  EXPECT_EQ(out[16], 2.0f * -3);
  EXPECT_EQ(out[39], 14.5f);
  // Scales, then mins.
  out = dequantizeGroups("int4_g64_min", nibbles, {0.5f, -4.0f}, 64);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[63], 3.5f);
  std::vector<uint8_t> bytes(64, 128);
  bytes[0] = 0, bytes[39] = 255;
  out = dequantizeGroups("int8_row", bytes, {0.25f}, 40);
  EXPECT_EQ(out[0], -32.0f);
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[39], 31.75f);
  // Low plane, then high plane: code 0x15 = 21, five bits, middle 16.
  std::vector<uint8_t> planes(20, 0x55);
  out = dequantizeGroups("int5_row", planes, {1.0f}, 32);
  EXPECT_EQ(out[0], 5.0f);
  EXPECT_EQ(out[1], -11.0f);
  out = dequantizeGroups("iq4_row", std::vector<uint8_t>(16, 0x0f), {1.0f}, 32);
  EXPECT_EQ(out[0], 113.0f);
  EXPECT_EQ(out[1], -127.0f);
}

TEST(Dequantize, EightBitFloats) {
  auto value = [](const char *name, uint8_t byte) {
    float out;
    dequantizeRow(*lookupEncoding(name), &byte, &out, 1);
    return out;
  };
  for (unsigned byte = 0; byte < 256; ++byte) {
    const float sign = byte & 128 ? -1 : 1;
    int exponent = byte >> 3 & 15, mantissa = byte & 7;
    float expected = sign * (exponent ? std::ldexp(8.0f + mantissa, exponent - 10)
                                      : std::ldexp(float(mantissa), -9));
    if ((byte & 127) == 127)
      EXPECT_TRUE(std::isnan(value("f8_e4m3", byte)));
    else
      EXPECT_EQ(value("f8_e4m3", byte), expected) << byte;
    exponent = byte >> 2 & 31, mantissa = byte & 3;
    expected = sign * (exponent == 31 ? INFINITY
                       : exponent     ? std::ldexp(4.0f + mantissa, exponent - 17)
                                      : std::ldexp(float(mantissa), -16));
    if (exponent == 31 && mantissa)
      EXPECT_TRUE(std::isnan(value("f8_e5m2", byte)));
    else
      EXPECT_EQ(value("f8_e5m2", byte), expected) << byte;
  }
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
