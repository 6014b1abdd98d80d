//===- ScalarTest.cpp - functions of math.h for generated loops -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The source itself, compiled here, against the C library in long double.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Scalar.cpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The largest error of `f` in [low, high], relative to what `exact` gives.
template <typename T>
double worst(T (*f)(T), long double (*exact)(long double), double low, double high) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(low, high);
  double most = 0;
  for (int i = 0; i < 100000; ++i) {
    const T x = T(uniform(random));
    const long double want = exact(x);
    const double error = double(std::fabs((f(x) - want) / want));
    most = error <= most ? most : error; // NaN counts
  }
  return most;
}

#define EXPECT_EXACT(name, low, high)                                                              \
  EXPECT_LT(worst<double>(uk_##name##_f64, std::name, low, high), 3e-15) << #name;                 \
  EXPECT_LT(worst<float>(uk_##name##_f32, std::name, low, high), 3e-7) << #name

TEST(Scalar, FunctionsAreExactToRounding) {
  EXPECT_EXACT(exp, -80, 80);
  EXPECT_EXACT(expm1, -2, 2);
  EXPECT_EXACT(log, 1e-5, 1e5);
  EXPECT_EXACT(log1p, -0.9, 3);
  EXPECT_EXACT(sin, -3, 3);
  EXPECT_EXACT(cos, -1.5, 1.5);
  EXPECT_EXACT(tan, -1.5, 1.5);
  EXPECT_EXACT(asin, -1, 1);
  EXPECT_EXACT(acos, -1, 0.99);
  EXPECT_EXACT(atan, -10, 10);
  EXPECT_EXACT(sinh, -5, 5);
  EXPECT_EXACT(cosh, -5, 5);
  EXPECT_EXACT(tanh, -5, 5);
  EXPECT_EXACT(asinh, -50, 50);
  EXPECT_EXACT(acosh, 1.01, 50);
  EXPECT_EXACT(atanh, -0.99, 0.99);
  EXPECT_EXACT(erf, -7, 7);
  EXPECT_LT(worst<double>(uk_exp_f64, std::exp, -700, 700), 3e-15);
  EXPECT_LT(worst<double>(uk_sin_f64, std::sin, 1000, 1003), 3e-14);
}

TEST(Scalar, Power) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> base(0, 20), exponent(-20, 20);
  for (int i = 0; i < 100000; ++i) {
    const double x = base(random), y = exponent(random), want = std::pow(x, y);
    ASSERT_NEAR(uk_pow_f64(x, y) / want, 1, 1e-13) << x << "^" << y;
  }
  EXPECT_EQ(uk_pow_f64(3, 2), 9);
  EXPECT_EQ(uk_pow_f64(-2, 3), -8);
  EXPECT_EQ(uk_pow_f64(-2, -2), 0.25);
  EXPECT_EQ(uk_pow_f64(0, -1), kInfinity);
  EXPECT_EQ(uk_pow_f64(0, 0), 1);
  EXPECT_EQ(uk_pow_f64(-kInfinity, 3), -kInfinity);
  EXPECT_EQ(uk_pow_f64(kInfinity, -2), 0);
  EXPECT_TRUE(std::isnan(uk_pow_f64(-2, 0.5)));
}

TEST(Scalar, RemainderIsExact) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::ldexp(double(int64_t(random())), int(random() % 1400) - 1100);
    const double y = std::ldexp(double(int64_t(random())), int(random() % 1400) - 1100);
    const double got = uk_fmod_f64(x, y), want = std::fmod(x, y);
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << x << " mod " << y;
  }
}

TEST(Scalar, Edges) {
  EXPECT_EQ(uk_exp_f32(float(kInfinity)), float(kInfinity));
  EXPECT_EQ(uk_exp_f32(-float(kInfinity)), 0);
  EXPECT_TRUE(std::isnan(uk_exp_f32(NAN)));
  EXPECT_EQ(uk_tanh_f32(float(kInfinity)), 1);
  EXPECT_TRUE(std::isnan(uk_tanh_f32(NAN)));
  EXPECT_EQ(uk_erf_f32(-float(kInfinity)), -1);
  EXPECT_TRUE(std::isnan(uk_erf_f32(NAN)));
  EXPECT_EQ(uk_log_f32(0), -float(kInfinity));
  EXPECT_TRUE(std::isnan(uk_log_f32(-1)));
  EXPECT_EQ(uk_log_f64(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(uk_sin_f32(float(kInfinity))));
  EXPECT_EQ(uk_asin_f64(1), std::asin(1.0));
  EXPECT_EQ(uk_acos_f64(-1), std::acos(-1.0));
  EXPECT_EQ(uk_atanh_f32(1), float(kInfinity));
}

} // namespace
