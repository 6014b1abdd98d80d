//===- Bf16Test.cpp - bf16 tile products, bit for bit ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle dequantizes the source blocks and does the float operations that
// Uk.h promises, in their order.
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"
#include <bit>
#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

/// To the nearest bf16, ties away from zero.
float toBf16(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x8000) & 0xffff0000);
}

float oracle(const std::vector<float> &w, const float *x) {
  float sum = 0;
  for (size_t k = 0; k < w.size(); k += 32) {
    float parts[2] = {0, 0};
    for (size_t i = k; i < std::min(k + 32, w.size()); ++i)
      parts[i % 2] = flush(std::fmaf(flush(toBf16(w[i])), flush(toBf16(x[i])), parts[i % 2]));
    sum = flush(sum + flush(parts[0] + parts[1]));
  }
  return sum;
}

void check(const Weight &w, int64_t rows, float deviation) {
  const int64_t K = w.K, stride = ukActStride(ukActBf16, K), room = ukRoundUp(rows, 16);
  const auto x = randomFloats(rows * K, unsigned(rows), deviation);
  std::vector<std::vector<float>> weights(w.N, std::vector<float>(K));
  for (uint64_t n = 0; n < w.N; ++n)
    dequantizeRow(w.encoding, w.row(n), weights[n].data(), K);
  for (const Kernels &k : kernels()) {
    const Bf16Kernels *bf16 = bf16Kernels(k.isa);
    if (!bf16)
      continue;
    const int64_t panels = w.layout.panels, outStride = 16 * panels;
    Aligned<char> acts(room * stride), expanded(panels * ukBf16PanelBytes(K));
    for (int64_t m = 0; m < rows; ++m)
      bf16->uk_bf16_act(&x[m * K], K, acts.data() + m * stride);
    bf16->uk_bf16_panels(w.packed.data(), int32_t(panels), K, FORMAT(w.encoding.format),
                         expanded.data());
    Aligned<float> out(room * outStride);
    k.uk_tiles_begin(int32_t(rows), ukActBf16);
    for (int64_t p = 0; p < panels; p += 2)
      bf16->uk_bf16_matmul(expanded.data() + p * ukBf16PanelBytes(K),
                           int32_t(std::min<int64_t>(2, panels - p)), acts.data(), stride,
                           int32_t(rows), K, out.data() + 16 * p, outStride);
    k.uk_tiles_end(int32_t(rows), ukActBf16);
    for (int64_t m = 0; m < rows; ++m)
      for (uint64_t n = 0; n < uint64_t(outStride); ++n) {
        const float expected = n < w.N ? oracle(weights[n], &x[m * K]) : 0.0f;
        ASSERT_EQ(out[m * outStride + n], expected) << "m " << m << " n " << n;
      }
  }
}

class Bf16 : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    if (kernels().empty() || !bf16Kernels(kernels().back().isa))
      GTEST_SKIP() << "no tile instructions, nor AVX-512 to emulate them";
  }
  const Encoding &encoding = *lookupEncoding(GetParam());
  uint64_t step() const { return encoding.isFloat() ? 9 : encoding.blockElements; }
};

// One and two panels, one and two blocks of rows, and what is left of each.
TEST_P(Bf16, EqualsTheOracle) {
  for (uint64_t N : {16, 19, 45})
    for (int64_t rows : {1, 15, 16, 17, 33}) {
      SCOPED_TRACE(std::to_string(N) + " outputs, rows " + std::to_string(rows));
      check(Weight(encoding, N, step()), rows, 1);
    }
}

TEST_P(Bf16, EveryLengthEqualsTheOracle) {
  for (uint64_t blocks : {2, 3, 5})
    check(Weight(encoding, 16, blocks * step(), unsigned(blocks)), 16, 20);
}

std::vector<const char *> names() {
  std::vector<const char *> all;
  for (const Encoding &encoding : encodings())
    all.push_back(encoding.name.data());
  return all;
}
INSTANTIATE_TEST_SUITE_P(Encodings, Bf16, testing::ValuesIn(names()),
                         [](const auto &info) { return std::string(info.param); });

// Rounding, and lengths that fill no vector.
TEST(Bf16Act, EqualsTheOracle) {
  for (const Kernels &k : kernels()) {
    const Bf16Kernels *bf16 = bf16Kernels(k.isa);
    if (!bf16)
      continue;
    for (int64_t K : {32, 576, 1, 15, 17, 31, 33, 100}) {
      auto x = randomFloats(K, unsigned(K), 40);
      x[0] = std::bit_cast<float>(0x3f808000u); // a tie
      Aligned<uint16_t> row(ukActStride(ukActBf16, K) / 2);
      bf16->uk_bf16_act(x.data(), K, row.data());
      for (size_t i = 0; i < row.size(); ++i)
        ASSERT_EQ(row[i], i < x.size() ? std::bit_cast<uint32_t>(toBf16(x[i])) >> 16 : 0u) << i;
    }
  }
}

} // namespace
