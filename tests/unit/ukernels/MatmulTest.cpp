//===- MatmulTest.cpp - products with packed weights, bit for bit ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle reads the source blocks, not the packed ones, and does the float
// operations that Uk.h and PanelLayout.h promise, in their order.
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "TestWeights.h"
#include "compiler/weights/SourceBlock.h"
#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

int code(const UkFormat &f, const SourceBlock &block, unsigned e) {
  return int(codeValue(f, block.codes[e]));
}

/// One output of the int8 product.
float oracleInt8(const Weight &w, uint64_t n, const UkActGroup *act) {
  const UkFormat &f = w.encoding.format;
  const unsigned elements = w.encoding.blockElements;
  float acc = 0;
  SourceBlock block;
  for (uint64_t k = 0; k < w.K; k += 32, ++act) {
    if (k % elements == 0)
      readBlock(w.encoding, w.row(n), w.K, k / elements, block);
    const unsigned in = k % elements;
    float dot[2];
    for (unsigned h = 0; h < 2; ++h) {
      int64_t sum = 0;
      for (unsigned j = 16 * h; j < 16 * h + 16; ++j)
        sum += (code(f, block, in + j) + f.zeroPoint) * act->q[j];
      dot[h] = float(sum);
    }
    // Where both halves share a scale their products are added first.
    const bool shared = f.group >= 32;
    for (unsigned h = 0; h < (shared ? 1 : 2); ++h) {
      float t = dot[h] * act->d[h];
      if (shared)
        t = std::fmaf(dot[1], act->d[1], t);
      const float dsum = shared ? act->dsums : act->dsum[h];
      const Affine a = affineOf(f, block, in + 16 * h);
      if (f.minSign == ukZeroPoints)
        t = std::fmaf(-a.min, dsum, t);
      else if (f.zeroPoint)
        t = std::fmaf(-float(f.zeroPoint), dsum, t);
      acc = std::fmaf(t, a.scale, acc);
      if (f.minSign && f.minSign != ukZeroPoints)
        acc = std::fmaf(a.min, dsum, acc);
    }
  }
  return acc;
}

float oracleF32(const Weight &w, uint64_t n, const float *x) {
  std::vector<float> row(w.K);
  dequantizeRow(w.encoding, w.row(n), row.data(), w.K);
  float acc = 0;
  for (uint64_t k = 0; k < w.K; ++k)
    acc = std::fmaf(row[k], x[k], acc);
  return acc;
}

/// Activation rows of x[rows][K], made by `kernels`.
Aligned<char> makeActs(const Kernels &kernels, const std::vector<float> &x, uint64_t K,
                       int32_t kind) {
  const int64_t stride = ukActStride(kind, K), rows = x.size() / K;
  Aligned<char> acts(rows * stride);
  for (int64_t m = 0; m < rows; ++m)
    (kind == ukActInt8 ? kernels.uk_quantize_act
                       : kernels.uk_copy_act_f32)(&x[m * K], K, acts.data() + m * stride);
  return acts;
}

/// Runs all outputs of `w` for `rows` rows and compares them with the oracle.
void check(const Weight &w, const std::vector<float> &x, int32_t kind) {
  const UkFormat &f = w.encoding.format;
  const int64_t rows = x.size() / w.K, stride = ukActStride(kind, w.K);
  const int64_t outStride = w.layout.panels * 16 + 3;
  for (const Kernels &k : kernels()) {
    SCOPED_TRACE(k.isa);
    const Aligned<char> acts = makeActs(k, x, w.K, kind);
    std::vector<float> out(rows * outStride, NAN), single(w.layout.panels * 16, NAN);
    k.uk_tiles_begin(rows, kind);
    for (uint64_t p = 0; p < w.layout.panels; ++p)
      k.uk_matmul(w.packed.data() + p * w.layout.panelBytes, acts.data(), stride, rows, w.K, kind,
                  FORMAT(f), &out[16 * p], outStride);
    k.uk_tiles_end(rows, kind);
    k.uk_gemv(w.packed.data(), w.layout.panels, acts.data(), w.K, kind, FORMAT(f), single.data());
    EXPECT_SAME_BITS(single.data(), out.data(), w.layout.panels * 16);
    for (int64_t m = 0; m < rows; ++m)
      for (uint64_t n = 0; n < w.layout.panels * 16; ++n) {
        const float got = out[m * outStride + n];
        if (n >= w.N) {
          ASSERT_EQ(got, 0.0f) << "padding row " << n;
          continue;
        }
        const char *act = acts.data() + m * stride;
        const float expected = kind == ukActInt8
                                   ? oracleInt8(w, n, reinterpret_cast<const UkActGroup *>(act))
                                   : oracleF32(w, n, &x[m * w.K]);
        ASSERT_EQ(got, expected) << "m " << m << " n " << n;
      }
  }
}

class Matmul : public testing::TestWithParam<const char *> {
protected:
  const Encoding &encoding = *lookupEncoding(GetParam());
  uint64_t step() const { return stepOf(encoding, 9); }
};

// Every tile size and its remainders, more than one panel, padding rows.
TEST_P(Matmul, EveryRowCountEqualsTheOracle) {
  const Weight w(encoding, 19, 2 * step());
  for (int rows : {1, 2, 3, 7, 8, 9, 15, 16, 17, 33}) {
    SCOPED_TRACE(rows);
    const auto x = randomFloats(rows * w.K, rows);
    if (!encoding.isFloat())
      check(w, x, ukActInt8);
    check(w, x, ukActF32);
  }
}

TEST_P(Matmul, EveryLengthEqualsTheOracle) {
  for (uint64_t blocks : {1, 3, 5}) {
    const Weight w(encoding, 16, blocks * step(), unsigned(blocks));
    const auto x = randomFloats(5 * w.K, 3);
    if (!encoding.isFloat())
      check(w, x, ukActInt8);
    check(w, x, ukActF32);
  }
}

// All code bits set and activations at the ends of int8: no partial sum may saturate.
TEST_P(Matmul, ExtremeCodesAreExact) {
  if (encoding.isFloat())
    GTEST_SKIP() << "float weights have no codes";
  for (int bits : {0x00, 0xff}) {
    Weight w(encoding, 16, 2 * step());
    for (uint64_t row = 0; encoding.grouped && row < w.N; ++row) // scales stay: finite
      std::memset(&w.source[row * encoding.rowBytes(w.K)], bits, encoding.rowCodesBytes(w.K));
    for (size_t at = 0; !encoding.grouped && at < w.source.size(); at += encoding.blockBytes) {
      std::memset(&w.source[at], bits, encoding.blockBytes);
      putHalf(&w.source[at + encoding.scaleOffset], 0x3c00);
      if (encoding.format.minSign)
        putHalf(&w.source[at + encoding.minOffset], 0x3c00);
    }
    w.pack();
    for (int pattern = 0; pattern < 3; ++pattern) {
      std::vector<float> x(w.K);
      for (uint64_t k = 0; k < w.K; ++k)
        x[k] = pattern == 0 ? 127 : pattern == 1 ? -127 : k % 2 ? 127 : -127;
      check(w, x, ukActInt8);
    }
  }
}

// 32 equal large activations times equal weights: the product is exact up to one rounding.
TEST_P(Matmul, LargeEqualActivations) {
  const Weight w(encoding, 16, step() * (encoding.isFloat() ? 32 : 1));
  check(w, std::vector<float>(w.K, 3000.0f), encoding.isFloat() ? ukActF32 : ukActInt8);
}

TEST_P(Matmul, DequantRowEqualsTheDequantizer) {
  const Weight w(encoding, 21, 3 * step());
  std::vector<float> expected(w.K), got(w.K);
  for (const Kernels &k : kernels())
    for (uint64_t n = 0; n < w.N; ++n) {
      dequantizeRow(encoding, w.row(n), expected.data(), w.K);
      k.uk_dequant_row(w.packed.data(), n, w.K, FORMAT(encoding.format), got.data());
      for (uint64_t i = 0; i < w.K; ++i)
        ASSERT_EQ(got[i], expected[i]) << k.isa << " row " << n << " k " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Encodings, Matmul, testing::ValuesIn(testedEncodings()),
                         [](const auto &info) { return std::string(info.param); });

TEST(QuantizeAct, EqualsTheOracle) {
  for (const Kernels &k : kernels())
    for (int64_t K : {32, 64, 576, 1, 31, 33, 100}) {
      auto x = randomFloats(K, unsigned(K), 40);
      if (K >= 64)
        std::fill_n(x.begin(), 32, 0.0f);
      Aligned<UkActGroup> row((K + 31) / 32);
      k.uk_quantize_act(x.data(), K, row.data());
      x.resize((K + 31) / 32 * 32);
      for (size_t g = 0; g < x.size() / 32; ++g) {
        for (int h = 0; h < 2; ++h) {
          const float *half = &x[32 * g + 16 * h];
          float amax = 0;
          for (int i = 0; i < 16; ++i)
            amax = std::max(amax, std::fabs(half[i]));
          const float inverse = amax == 0 ? 0 : 127.0f / amax;
          EXPECT_EQ(row[g].d[h], amax / 127.0f);
          int sum = 0;
          for (int i = 0; i < 16; ++i) {
            const int q = int(std::nearbyint(double(half[i]) * inverse));
            EXPECT_EQ(row[g].q[16 * h + i], q) << k.isa << " K " << K << " i " << i;
            sum += q;
          }
          EXPECT_EQ(row[g].dsum[h], row[g].d[h] * float(sum));
        }
        EXPECT_EQ(row[g].dsums, row[g].dsum[0] + row[g].dsum[1]);
      }
    }
}

} // namespace
