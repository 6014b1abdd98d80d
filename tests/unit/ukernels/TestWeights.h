//===- TestWeights.h - random packed weights ------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_UKERNELS_TESTWEIGHTS_H
#define LLMC_TESTS_UNIT_UKERNELS_TESTWEIGHTS_H

#include "../weights/RandomWeights.h"
#include "TestKernels.h"

/// The fields of a UkFormat as arguments.
#define FORMAT(f)                                                                                  \
  f.loBits, f.hiBits, f.group, f.superGroup, f.zeroPoint, f.minSign, f.codebook, f.floatKind,      \
      f.scaleKind

namespace llmc::test {

/// A random weight, as source rows and packed.
struct Weight {
  Weight(const Encoding &encoding, uint64_t N, uint64_t K, unsigned seed = 1)
      : encoding(encoding), N(N), K(K), source(randomWeights(encoding, N, K, seed)),
        layout(packedLayout(encoding, N, K)), packed(layout.totalBytes) {
    pack();
  }
  void pack() { packPanels(encoding, source.data(), N, K, 0, layout.panels, packed.data()); }
  const uint8_t *row(uint64_t n) const { return &source[n * encoding.rowBytes(K)]; }

  const Encoding &encoding;
  uint64_t N, K;
  std::vector<uint8_t> source;
  PackedLayout layout;
  Aligned<uint8_t> packed;
};

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_UKERNELS_TESTWEIGHTS_H
