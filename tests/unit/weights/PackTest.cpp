//===- PackTest.cpp - packing loses nothing -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomWeights.h"
#include "compiler/weights/WarpLayout.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

class Pack : public testing::TestWithParam<const char *> {
protected:
  const Encoding &encoding = *lookupEncoding(GetParam());
};

TEST_P(Pack, PackedRowsDequantizeToTheSameBits) {
  for (uint64_t N : {1, 15, 16, 17, 33})
    for (uint64_t blocks : {1, 2, 3}) {
      const uint64_t K = stepOf(encoding, 7) * blocks;
      const auto source = randomWeights(encoding, N, K, unsigned(N * 8 + blocks));
      const PackedLayout layout = packedLayout(encoding, N, K);
      std::vector<uint8_t> packed(layout.totalBytes, 0xaa);
      packPanels(encoding, source.data(), N, K, 0, layout.panels, packed.data());
      std::vector<float> expected(K), got(K);
      for (uint64_t row = 0; row < N; ++row) {
        dequantizeRow(encoding, &source[row * encoding.rowBytes(K)], expected.data(), K);
        dequantizePackedRow(encoding, packed.data(), K, row, got.data());
        ASSERT_EQ(std::memcmp(got.data(), expected.data(), K * 4), 0)
            << "N " << N << " K " << K << " row " << row;
      }
    }
}

TEST_P(Pack, RowsOfWarpTilesDequantizeToTheSameBits) {
  for (uint64_t N : {1, 31, 32, 33, 65})
    for (uint64_t blocks : {1, 2, 3}) {
      const uint64_t K = stepOf(encoding, 7) * blocks;
      const auto source = randomWeights(encoding, N, K, unsigned(N * 8 + blocks));
      const WarpLayout layout = warpLayout(encoding, N, K);
      std::vector<uint8_t> packed(layout.totalBytes, 0xaa);
      packWarpTiles(encoding, source.data(), N, K, 0, 1, packed.data());
      packWarpTiles(encoding, source.data(), N, K, 1, layout.tiles, &packed[layout.tileBytes]);
      std::vector<float> expected(K), got(K);
      for (uint64_t row = 0; row < N; ++row) {
        dequantizeRow(encoding, &source[row * encoding.rowBytes(K)], expected.data(), K);
        dequantizeWarpRow(encoding, packed.data(), K, row, got.data());
        ASSERT_EQ(std::memcmp(got.data(), expected.data(), K * 4), 0)
            << "N " << N << " K " << K << " row " << row;
      }
    }
}

TEST_P(Pack, StreamsOfWarpTilesAreWholeUnits) {
  for (uint64_t K : {256u, 512u, 768u}) {
    const WarpLayout layout = warpLayout(encoding, 33, K);
    EXPECT_EQ(layout.tiles, 2u);
    EXPECT_EQ(layout.totalBytes, 2 * layout.tileBytes);
    for (const WarpStream &stream : {layout.low, layout.high, layout.scales, layout.subs}) {
      EXPECT_EQ(stream.offset % 64, 0u);
      EXPECT_EQ(stream.rowBytes % stream.unit, 0u);
      EXPECT_EQ(16 % stream.unit, 0u);
    }
  }
}

TEST_P(Pack, PanelRangesMakeTheWhole) {
  const uint64_t N = 50, K = 2 * std::max<uint64_t>(encoding.blockElements, 32);
  const auto source = randomWeights(encoding, N, K, 5);
  const PackedLayout layout = packedLayout(encoding, N, K);
  std::vector<uint8_t> whole(layout.totalBytes, 0x55), parts(layout.totalBytes, 0xaa);
  packPanels(encoding, source.data(), N, K, 0, layout.panels, whole.data());
  for (auto [begin, end] : {std::pair{3, 4}, {0, 1}, {1, 3}})
    packPanels(encoding, source.data(), N, K, begin, end, &parts[begin * layout.panelBytes]);
  EXPECT_EQ(whole, parts);
}

TEST_P(Pack, RegionsAreAligned) {
  for (uint64_t K : {256u, 512u, 768u}) {
    const PackedLayout layout = packedLayout(encoding, 17, K);
    EXPECT_EQ(layout.panels, 2u);
    EXPECT_EQ(layout.codesBytes % 64, 0u);
    EXPECT_EQ(layout.panelBytes % 64, 0u);
    EXPECT_EQ(layout.totalBytes, layout.panels * layout.panelBytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, Pack, testing::ValuesIn(testedEncodings()),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
