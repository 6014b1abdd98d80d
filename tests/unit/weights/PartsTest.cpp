//===- PartsTest.cpp - weights whose codes and scales lie apart -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Recipe.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <bit>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

/// One file of parts, each appended at its offset.
class Parts : public testing::Test {
protected:
  Parts() { context.loadDialect<llm::LlmDialect>(); }

  size_t add(const std::vector<uint8_t> &bytes) {
    const size_t at = file.size();
    file.append(bytes.begin(), bytes.end());
    return at;
  }
  size_t add(const std::vector<float> &values) {
    const size_t at = file.size();
    file.append(reinterpret_cast<const char *>(values.data()), values.size() * 4);
    return at;
  }

  llvm::Expected<Recipe> recipe(const std::string &text) {
    mlir::ScopedDiagnosticHandler silent(&context, [](mlir::Diagnostic &) {});
    module = mlir::parseSourceString<mlir::ModuleOp>("llm.weight @w " + text, &context);
    if (!module)
      return llvm::createStringError("does not parse: " + text);
    files.clear();
    files.push_back({"parts.bin", llvm::MemoryBuffer::getMemBuffer(file, "", false)});
    return Recipe::create(*module->getOps<llm::WeightOp>().begin(), files);
  }

  /// All rows, dequantized from the source and from the final panels; both must be the same bits.
  std::vector<std::vector<float>> rows(const std::string &text, size_t count, size_t K,
                                       const std::string &steps = "#llm.pack<\"panel16\">") {
    auto r = recipe(text + " recipe [" + steps + "]");
    if (!r) {
      ADD_FAILURE() << llvm::toString(r.takeError());
      return {};
    }
    std::vector<uint8_t> packed(r->bytes(), 0xaa);
    for (uint64_t i = 0; i < r->pieces(); ++i)
      r->evaluate(i, packed.data());
    const Encoding &encoding =
        *lookupEncoding((*module->getOps<llm::WeightOp>().begin()).getFinalEncoding());
    std::vector<std::vector<float>> all(count, std::vector<float>(K));
    std::vector<float> fromPacked(K);
    for (size_t n = 0; n < count; ++n) {
      r->dequantizeRow(n, all[n].data());
      dequantizePackedRow(encoding, packed.data(), K, n, fromPacked.data());
      EXPECT_EQ(std::memcmp(all[n].data(), fromPacked.data(), 4 * K), 0) << text << " row " << n;
    }
    return all;
  }

  std::string error(const std::string &text) {
    auto r = recipe(text);
    return r ? "" : llvm::toString(r.takeError());
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string file;
  std::vector<SourceFile> files;
};

std::string at(size_t offset) { return std::to_string(offset); }

// MatMulNBits: K = 1024, every code 9, default zero point, scale 0.25. Any block gives 0.25.
TEST_F(Parts, EveryBlockSize) {
  const size_t codes = add(std::vector<uint8_t>(3 * 512, 0x99));
  const size_t scales = add(std::vector<float>(3 * 64, 0.25f));
  for (int block : {16, 32, 64, 128, 256, 512, 1024}) {
    const int groups = 1024 / block;
    const auto all =
        rows("[3, 1024] \"int4_g" + at(block) + "_f32\" from 0 at " + at(codes) +
                 " parts <codes = \"u4\", stride = 1024, scales = <\"f32\" from 0 at " +
                 at(scales) + " stride " + at(groups) + ">>",
             3, 1024);
    for (const auto &row : all)
      EXPECT_EQ(row, std::vector<float>(1024, 0.25f)) << block;
  }
}

// K = 40 in two blocks of 32: rows are 32 bytes, the nibbles behind K say nothing.
TEST_F(Parts, RowsEndWithinABlock) {
  std::vector<uint8_t> bytes;
  for (uint8_t n = 0; n < 3; ++n) {
    bytes.insert(bytes.end(), 20, uint8_t((9 + n) * 0x11));
    bytes.insert(bytes.end(), 12, 0xff);
  }
  const size_t codes = add(bytes), scales = add(std::vector<float>(6, 1.0f));
  // Zero points of a row: two nibbles in a byte.
  const size_t zeros = add(std::vector<uint8_t>{0x88, 0x87, 0x29});
  const std::string start = "\" from 0 at " + at(codes) +
                            " parts <codes = \"u4\", stride = 64, "
                            "scales = <\"f32\" from 0 at " +
                            at(scales) + " stride 2>";
  auto all = rows("[3, 40] \"int4_g32_f32" + start + ">", 3, 40);
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(all[n], std::vector<float>(40, 1.0f + n));
  all = rows("[3, 40] \"int4_g32_zp_f32" + start + ", offsets = <\"u4\" from 0 at " + at(zeros) +
                 " stride 2>>",
             3, 40);
  EXPECT_EQ(all[0], std::vector<float>(40, 1.0f));
  EXPECT_EQ(all[1][31], 3.0f);
  EXPECT_EQ(all[1][32], 2.0f);
  EXPECT_EQ(all[2][0], 2.0f);
  EXPECT_EQ(all[2][39], 9.0f);
}

// DequantizeLinear keeps W as [K][N]; int8 codes, one scale and zero point per channel.
TEST_F(Parts, TransposedChannels) {
  const size_t N = 37, K = 21;
  std::mt19937 rng(1);
  std::vector<uint8_t> bytes(N * K), zeros(N);
  std::vector<float> factors(N);
  for (uint8_t &b : bytes)
    b = rng();
  for (size_t n = 0; n < N; ++n)
    zeros[n] = uint8_t(int8_t(n) - 18), factors[n] = 0.001f * float(n + 1);
  const size_t codes = add(bytes), scales = add(factors), offsets = add(zeros);
  const std::string start = "[37, 21] \"int8_row_zp_f32\" from 0 at " + at(codes) +
                            " parts <codes = \"i8\", stride = 37, scales = <\"f32\" from 0 at " +
                            at(scales) + " stride 37>";
  auto all = rows(start + ", offsets = <\"i8\" from 0 at " + at(offsets) +
                      " stride 37>, transposed = true>",
                  N, K);
  auto symmetric = rows(start + ", transposed = true>", N, K);
  auto slice =
      rows(start + ", transposed = true>", 2, K, "#llm.slice_rows<30, 2>, #llm.pack<\"panel16\">");
  for (size_t n = 0; n < N; ++n)
    for (size_t k = 0; k < K; ++k) {
      const int code = int8_t(bytes[k * N + n]);
      EXPECT_EQ(all[n][k], factors[n] * float(code - (int(n) - 18)));
      EXPECT_EQ(symmetric[n][k], factors[n] * float(code));
    }
  EXPECT_EQ(slice[0], symmetric[30]);
  EXPECT_EQ(slice[1], symmetric[31]);
}

// Four-bit elements of [N][K] follow each other without regard for rows; one scale for all.
TEST_F(Parts, RowsThatBeginInTheMiddleOfAByte) {
  const size_t codes = add(std::vector<uint8_t>{0x10, 0x32, 0x54, 0x76, 0x98});
  const size_t scales = add(std::vector<float>{0.5f});
  const std::string rest = " parts <codes = \"i4\", stride = 3, scales = <\"f32\" from 0 at " +
                           at(scales) + " stride 0>>";
  auto all = rows("[3, 3] \"int4_row_f32\" from 0 at " + at(codes) + rest, 3, 3);
  EXPECT_EQ(all[0], (std::vector<float>{0, 0.5f, 1}));
  EXPECT_EQ(all[1], (std::vector<float>{1.5f, 2, 2.5f}));
  EXPECT_EQ(all[2], (std::vector<float>{3, 3.5f, -4}));
}

// Scales keep every bit: halves as halves, bfloats as floats. Zero points may be floats.
TEST_F(Parts, KindsOfScales) {
  const size_t codes = add(std::vector<uint8_t>(16, 0xf0));
  const size_t half = add(std::vector<uint8_t>{0x55, 0x35, 0x00, 0x4c}); // 0.33325, 16
  const size_t bfloat = add(std::vector<uint8_t>{0xab, 0x3e});           // 0.333984375
  const std::string start =
      "\" from 0 at " + at(codes) + " parts <codes = \"u4\", stride = 32, scales = <\"";
  auto all =
      rows("[1, 32] \"int4_g32" + start + "f16\" from 0 at " + at(half) + " stride 1>>", 1, 32);
  EXPECT_EQ(all[0][0], -8 * 0.333251953125f);
  all = rows("[1, 32] \"int4_g32_f32" + start + "bf16\" from 0 at " + at(bfloat) + " stride 1>>", 1,
             32);
  EXPECT_EQ(all[0][1], 7 * 0.333984375f);
  all = rows("[1, 32] \"int4_g32_zp" + start + "f16\" from 0 at " + at(half) +
                 " stride 1>, offsets = <\"f16\" from 0 at " + at(half + 2) + " stride 1>>",
             1, 32);
  EXPECT_EQ(all[0][1], -1 * 0.333251953125f);
}

// A quantize step makes final rows from whatever the source is, parts too, and may weigh columns.
TEST_F(Parts, QuantizeSteps) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(40 * 64), weights(64, 1.0f);
  for (float &v : values)
    v = normal(rng);
  for (size_t k = 0; k < 64; k += 2)
    weights[k] = 1000;
  const size_t at = add(values), importance = add(weights);
  auto error = [&](const std::string &step) {
    auto r = recipe("[40, 64] \"f32\" from 0 at " + ::at(at) + " recipe [" + step +
                    ", #llm.pack<\"panel16\">]");
    if (!r) {
      ADD_FAILURE() << llvm::toString(r.takeError());
      return 0.0;
    }
    EXPECT_TRUE(r->isLossy());
    std::vector<uint8_t> packed(r->bytes());
    for (uint64_t i = 0; i < r->pieces(); ++i)
      EXPECT_GT(r->evaluate(i, packed.data()).relative(), 0);
    std::vector<float> row(64);
    double sum = 0;
    for (size_t n = 0; n < 40; ++n) {
      dequantizePackedRow(*lookupEncoding("int4_g32"), packed.data(), 64, n, row.data());
      for (size_t k = 0; k < 64; k += 2)
        sum += (row[k] - values[n * 64 + k]) * (row[k] - values[n * 64 + k]);
    }
    return sum;
  };
  const double plain = error("#llm.quantize<\"int4_g32\">");
  EXPECT_GT(plain, 0);
  EXPECT_LT(error("#llm.quantize<\"int4_g32\", importance = <\"f32\" from 0 at " +
                  ::at(importance) + " stride 0>>"),
            0.95 * plain);
  for (const char *step :
       {"#llm.quantize<\"q4_k\">", "#llm.quantize<\"int4_g32_zp\">", "#llm.quantize<\"f16\">",
        "#llm.quantize<\"int4_g32\", importance = <\"f16\" from 0 at 0 stride 0>>",
        "#llm.quantize<\"int4_g32\", importance = <\"f32\" from 0 at 10400 stride 0>>",
        "#llm.quantize<\"int4_g32\", importance = <\"f32\" from 1 at 0 stride 0>>"}) {
    auto r = recipe("[40, 64] \"f32\" from 0 at " + ::at(at) + " recipe [" + step + "]");
    EXPECT_FALSE(bool(r)) << step;
    llvm::consumeError(r.takeError());
  }
}

TEST_F(Parts, Refusals) {
  const size_t codes = add(std::vector<uint8_t>(128, 0)), scales = add(std::vector<float>(4, 1));
  auto text = [&](const std::string &encoding, const std::string &kind, const std::string &stride,
                  const std::string &scale, const std::string &more = "") {
    return "[2, 64] \"" + encoding + "\" from 0 at " + at(codes) + " parts <codes = \"" + kind +
           "\", stride = " + stride + ", scales = <\"" + scale + "\" from 0 at " + at(scales) +
           " stride 2>" + more + ">";
  };
  EXPECT_EQ(error(text("int4_g32_f32", "u4", "64", "f32")), "");
  const std::pair<std::string, const char *> cases[] = {
      {text("q4_0", "u4", "64", "f32"), "encoding 'q4_0' cannot be made of"},
      {text("int5_g32_f32", "u4", "64", "f32"), "cannot be made of"},
      {text("int4_g32_f32", "u8", "64", "f32"), "codes of 'u8', which int4_g32_f32 cannot hold"},
      {text("int4_g32_f32", "u3", "64", "f32"), "elements 'u3'"},
      {text("int4_g32", "u4", "64", "f32"), "scales of 'f32', which the f16 of int4_g32"},
      {text("int4_g32_f32", "u4", "64", "u8"), "which are no floats"},
      {text("int4_g32_f32", "u4", "2000", "f32"), "behind the end of 'parts.bin'"},
      {text("int4_g32_f32", "u4", "9223372036854775807", "f32"), "behind the end"},
      {text("int4_g32_f32", "u4", "-1", "f32"), "negative"},
      {text("int4_g16_f32", "u4", "64", "f32"), "behind the end"},
      {text("int4_g32_min_f32", "u4", "64", "f32"), "has no offsets"},
      {text("int4_g32_f32", "u4", "64", "f32", ", offsets = <\"u4\" from 0 at 0 stride 2>"),
       "which int4_g32_f32 does not have"},
      {text("int4_g32_zp_f32", "u4", "64", "f32", ", offsets = <\"i4\" from 0 at 0 stride 2>"),
       "offsets of 'i4' for codes of 'u4'"},
      {text("int4_g32_min_f32", "u4", "64", "f32", ", offsets = <\"u4\" from 0 at 0 stride 2>"),
       "which are no mins"},
      {text("int4_g32_zp_f32", "u4", "64", "f32", ", offsets = <\"u4\" from 3 at 0 stride 2>"),
       "not given"},
  };
  for (const auto &[input, expected] : cases)
    EXPECT_NE(error(input).find(expected), std::string::npos) << input << ": " << error(input);
}

} // namespace
