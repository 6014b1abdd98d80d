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

/// N rows of K: random codes; scales and mins random finite f16 of magnitude 2^-8 .. 2^-4.
inline std::vector<uint8_t> randomWeights(const Encoding &encoding, uint64_t N, uint64_t K,
                                          unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<uint8_t> source(N * encoding.rowBytes(K));
  for (uint8_t &byte : source)
    byte = rng();
  auto half = [&] { return uint16_t((rng() & 0x83ff) | (7 + rng() % 4) << 10); };
  for (size_t at = 0; at < source.size(); at += encoding.blockBytes) {
    uint8_t *block = &source[at];
    if (encoding.isFloat()) { // a finite number of moderate size
      float value = float(int(rng() % 2001) - 1000) / 512;
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      if (encoding.format.floatKind == ukF32)
        std::memcpy(block, &bits, 4);
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
