//===- RandomWeights.h - random source rows of any encoding ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_WEIGHTS_RANDOMWEIGHTS_H
#define LLMC_TESTS_UNIT_WEIGHTS_RANDOMWEIGHTS_H

#include "compiler/weights/Format.h"
#include <cstring>
#include <random>
#include <vector>

namespace llmc {

inline void putHalf(uint8_t *at, uint16_t bits) { std::memcpy(at, &bits, 2); }

/// Every encoding of the tables, of the group encodings those that take every path.
inline std::vector<const char *> testedEncodings() {
  std::vector<const char *> all;
  for (const Encoding &encoding : encodings())
    all.push_back(encoding.name.data());
  for (const char *name :
       {"f8_e4m3", "f8_e5m2", "int4_g16", "int4_g32_f32", "int4_g32_zp", "int4_g64_min", "iq4_g64",
        "int4_g128_zp_f32", "int5_g64_min_f32", "int6_g128", "int8_g16_zp_f32", "int8_g256_f32",
        "int8_row_f32", "int8_row_zp"})
    all.push_back(name);
  return all;
}

/// A row length that the encoding takes; group encodings take any.
inline uint64_t stepOf(const Encoding &encoding, uint64_t ofFloats) {
  return encoding.isFloat() ? ofFloats : encoding.grouped ? 40 : encoding.blockElements;
}

/// N rows of K: random codes; scales and mins random finite f16 of magnitude 2^-8 .. 2^-4.
inline std::vector<uint8_t> randomWeights(const Encoding &encoding, uint64_t N, uint64_t K,
                                          unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<uint8_t> source(N * encoding.rowBytes(K));
  for (uint8_t &byte : source)
    byte = rng();
  auto half = [&] { return uint16_t((rng() & 0x83ff) | (7 + rng() % 4) << 10); };
  auto single = [&] { // about as large as the halves
    float value = float(int(rng() % 2001) - 1000) / 4096;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
  };
  if (encoding.grouped) {
    const unsigned size = ukFloatBytes(encoding.format.scaleKind);
    for (uint64_t row = 0; row < N; ++row)
      for (uint64_t at = encoding.rowCodesBytes(K); at < encoding.rowBytes(K); at += size) {
        const uint32_t bits = size == 4 ? single() : half();
        std::memcpy(&source[row * encoding.rowBytes(K) + at], &bits, size);
      }
    return source;
  }
  for (size_t at = 0; at < source.size(); at += encoding.blockBytes) {
    uint8_t *block = &source[at];
    if (encoding.isFloat()) { // a finite number of moderate size
      float value = float(int(rng() % 2001) - 1000) / 512;
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      if (encoding.format.floatKind == ukF32)
        std::memcpy(block, &bits, 4);
      else if (encoding.blockBytes == 1) // no infinities, no NaNs
        *block = rng() & 0xbf;
      else
        putHalf(block, encoding.format.floatKind == ukF16 ? half() : bits >> 16);
      continue;
    }
    putHalf(block + encoding.scaleOffset, half());
    if (encoding.format.minSign)
      putHalf(block + encoding.minOffset, half());
  }
  return source;
}

} // namespace llmc

#endif // LLMC_TESTS_UNIT_WEIGHTS_RANDOMWEIGHTS_H
