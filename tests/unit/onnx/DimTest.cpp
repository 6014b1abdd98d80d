//===- DimTest.cpp - sizes that are known up to symbols -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Dim.h"
#include "frontends/onnx/ElementType.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;

TEST(Dim, SumsAndProductsHaveOneForm) {
  SymbolTable s;
  Dim past = s.named("past"), seq = s.named("seq");
  EXPECT_EQ(past + seq, seq + past);
  EXPECT_EQ((past + seq) * Dim(2), past + seq + seq + past);
  EXPECT_EQ(past - past, Dim(0));
  EXPECT_NE(past, seq);
  EXPECT_EQ((past + seq * Dim(3) + Dim(2)).text(s), "past + 3*seq + 2");
  EXPECT_EQ(s.parse("past+ seq"), past + seq);
  EXPECT_EQ(s.parse("2*seq"), seq * Dim(2));
  EXPECT_EQ(s.parse("a b (c)").asSymbol().has_value(), true);
}

TEST(Dim, DivisionComesOutEvenOrIsASymbol) {
  SymbolTable s;
  Dim n = s.named("n"), m = s.named("m");
  EXPECT_EQ((n * Dim(64)).dividedBy(Dim(32)), n * Dim(2));
  EXPECT_EQ((n * m * Dim(6)).dividedBy(n * Dim(2)), m * Dim(3));
  EXPECT_FALSE((n + Dim(1)).dividedBy(Dim(2)));
  EXPECT_EQ(s.quotient(n, Dim(2)), s.quotient(n, Dim(2)));
  auto value = [](int64_t of) { return [of](unsigned) { return std::optional<int64_t>(of); }; };
  EXPECT_EQ(s.evaluate(s.quotient(n, Dim(2)) + Dim(1), value(7)), 4);
  EXPECT_EQ(s.larger(n + Dim(1), n), n + Dim(1));
  EXPECT_EQ(s.smaller(n, Dim(0)), Dim(0));
}

TEST(Dim, SignsAreKnownOnlyWhereTheyHoldForAllSizes) {
  SymbolTable s;
  Dim n = s.named("n");
  EXPECT_TRUE(n.isNonNegative());
  EXPECT_FALSE(n.isPositive());
  EXPECT_TRUE((n + Dim(1)).isPositive());
  EXPECT_FALSE((n - Dim(1)).isNonNegative());
}

TEST(Dim, WhatGrowsTooLargeIsUnknown) {
  SymbolTable s;
  Dim sum;
  for (int i = 0; i < 100; ++i)
    sum = sum + s.fresh("n");
  EXPECT_TRUE(sum.isUnknown());
  EXPECT_NE(sum, sum);
  EXPECT_TRUE((sum * sum).isUnknown());
}

TEST(ElementType, SmallFloatsRoundTrip) {
  for (ElementType type : {ElementType::Float16, ElementType::BFloat16, ElementType::Float8E4M3FN,
                           ElementType::Float8E4M3FNUZ, ElementType::Float8E5M2,
                           ElementType::Float8E5M2FNUZ, ElementType::Float4E2M1})
    for (uint64_t bits = 0; bits < uint64_t(1) << elementBits(type); ++bits) {
      double value = floatFromBits(type, bits);
      uint64_t back = floatToBits(type, value, /*saturate=*/false);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(floatFromBits(type, back))) << bits;
      else
        EXPECT_EQ(back, bits) << elementTypeName(type).str();
    }
}

TEST(ElementType, RoundsToNearestEven) {
  EXPECT_EQ(floatToBits(ElementType::Float8E4M3FN, 17.0),
            floatToBits(ElementType::Float8E4M3FN, 16.0));
  EXPECT_EQ(floatFromBits(ElementType::Float8E4M3FN, floatToBits(ElementType::Float8E4M3FN, 1e9)),
            448);
  EXPECT_EQ(floatFromBits(ElementType::BFloat16, floatToBits(ElementType::BFloat16, 1.00390625)),
            1.0);
  EXPECT_TRUE(
      std::isinf(floatFromBits(ElementType::Float16, floatToBits(ElementType::Float16, 65520))));
}
