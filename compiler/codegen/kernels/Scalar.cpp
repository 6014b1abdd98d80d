//===- Scalar.cpp - functions of math.h for generated loops ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops that no micro-kernel knows (sched.tensor_kernel) call these, one value
// at a time. exp, tanh and erf of a float are free of branches, so that a loop
// around them becomes vector code; everything else is computed in double, from
// series and fractions whose error is below 1e-14 relative to the result's
// scale, and rounded.
//
//===----------------------------------------------------------------------===//

#include <stdint.h>

#define UK_SCALAR extern "C"
#define UK_FAST extern "C" __attribute__((always_inline))

namespace {

constexpr double kPi = 3.14159265358979323846, kInf = __builtin_inf();

inline uint64_t bitsOf(double x) { return __builtin_bit_cast(uint64_t, x); }
inline double fromBits(uint64_t x) { return __builtin_bit_cast(double, x); }
inline float scaleOf(int32_t e) { return __builtin_bit_cast(float, (e + 127) << 23); }
inline double powerOfTwo(int64_t e) { return fromBits(uint64_t(e + 1023) << 52); }

template <typename T, int N> inline T horner(T x, const T (&c)[N]) {
  T y = c[N - 1];
  for (int i = N - 2; i >= 0; --i)
    y = y * x + c[i];
  return y;
}

/// e^x = 2^n e^r with |r| <= ln 2 / 2, the second factor by Taylor's series.
double expOf(double x) {
  if (x != x)
    return x;
  if (x > 710)
    return kInf;
  if (x < -746)
    return 0;
  double n = __builtin_rint(x * 1.44269504088896340736);
  double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double y = 1;
  for (int i = 14; i > 0; --i)
    y = 1 + y * r / i;
  int64_t e = int64_t(n), half = e >> 1;
  return y * powerOfTwo(half) * powerOfTwo(e - half);
}

/// log x = e ln 2 + 2 artanh((m - 1) / (m + 1)), m in [sqrt 1/2, sqrt 2].
double logOf(double x) {
  if (!(x > 0))
    return x == 0 ? -kInf : __builtin_nan("");
  if (x == kInf)
    return x;
  int64_t e = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0; // 2^54
    e = -54;
  }
  uint64_t bits = bitsOf(x);
  e += int64_t(bits >> 52) - 1023;
  double m = fromBits((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++e;
  }
  double s = (m - 1) / (m + 1), z = s * s, sum = 0;
  for (int i = 23; i >= 1; i -= 2)
    sum = sum * z + 1.0 / i;
  return double(e) * 6.93147180369123816490e-01 +
         (2 * s * sum + double(e) * 1.90821492927058770002e-10);
}

double log1pOf(double x) {
  double u = 1 + x;
  // The rounding of u is taken back.
  return u == 1 || u == kInf ? x : logOf(u) * x / (u - 1);
}

double expm1Of(double x) {
  if (__builtin_fabs(x) > 0.3)
    return expOf(x) - 1;
  double y = 1;
  for (int i = 14; i > 1; --i)
    y = 1 + y * x / i;
  return x * y;
}

/// x minus the nearest multiple of pi / 2, in three parts; the quadrant in `quadrant`. Exact in
/// double for |x| < 2^20, and as good as x itself says where beyond.
double reduce(double x, int64_t &quadrant) {
  double n = __builtin_rint(x * (2 / kPi));
  if (!(__builtin_fabs(n) < 9007199254740992.0)) {
    quadrant = 0;
    return __builtin_fabs(x) == kInf ? __builtin_nan("") : x * 0 + (x != x ? x : 0);
  }
  quadrant = int64_t(n);
  double r = x - n * 1.57079632673412561417e+00;
  r -= n * 6.07710050630396597660e-11;
  return r - n * 2.02226624879595063154e-21;
}

double sinSeries(double r) {
  double z = r * r, y = 1;
  for (int i = 18; i > 1; i -= 2)
    y = 1 - y * z / (i * (i + 1));
  return r * y;
}
double cosSeries(double r) {
  double z = r * r, y = 1;
  for (int i = 19; i > 0; i -= 2)
    y = 1 - y * z / (i * (i + 1));
  return y;
}
double sinOf(double x, int64_t shift) {
  int64_t quadrant;
  double r = reduce(x, quadrant);
  quadrant += shift;
  double y = quadrant & 1 ? cosSeries(r) : sinSeries(r);
  return quadrant & 2 ? -y : y;
}

double atanOf(double x) {
  if (x != x)
    return x;
  double a = __builtin_fabs(x), base = 0;
  bool inverse = a > 1;
  if (inverse)
    a = 1 / a;
  if (a > 0.41421356237309504880) { // tan(pi / 8)
    base = kPi / 4;
    a = (a - 1) / (a + 1);
  }
  double z = a * a, sum = 0;
  for (int i = 45; i >= 1; i -= 2)
    sum = 1.0 / i - sum * z;
  double y = base + a * sum;
  return __builtin_copysign(inverse ? kPi / 2 - y : y, x);
}

double sinhOf(double x) {
  double a = __builtin_fabs(x);
  if (a < 0.5) {
    double z = x * x, y = 1;
    for (int i = 18; i > 1; i -= 2)
      y = 1 + y * z / (i * (i + 1));
    return x * y;
  }
  double h = expOf(a / 2); // e^a may overflow before e^a / 2 does
  return __builtin_copysign(a > 40 ? 0.5 * h * h : 0.5 * (h * h - 1 / (h * h)), x);
}
double coshOf(double x) {
  double h = expOf(__builtin_fabs(x) / 2);
  return x != x ? x : 0.5 * h * h + 0.5 / (h * h);
}
double tanhOf(double x) {
  double a = __builtin_fabs(x);
  if (a < 0.5) {
    double e = expm1Of(2 * a);
    return __builtin_copysign(e / (e + 2), x);
  }
  return x != x ? x : __builtin_copysign(1 - 2 / (expOf(2 * a) + 1), x);
}
double asinhOf(double x) {
  double a = __builtin_fabs(x);
  double y = a > 1e150 ? logOf(a) + 0.69314718055994530942
                       : log1pOf(a + a * a / (1 + __builtin_sqrt(a * a + 1)));
  return x != x ? x : __builtin_copysign(y, x);
}
double acoshOf(double x) {
  if (x > 1e150)
    return logOf(x) + 0.69314718055994530942;
  double t = x - 1;
  return log1pOf(t + __builtin_sqrt(t * (t + 2)));
}

/// The series with positive terms where it is short, else the continued fraction of erfc.
double erfOf(double x) {
  if (x != x)
    return x;
  double a = __builtin_fabs(x);
  if (a > 6)
    return __builtin_copysign(1.0, x);
  if (a < 2.5) {
    double term = 1, sum = 1;
    for (int i = 1; i < 60; ++i) {
      term *= 2 * a * a / (2 * i + 1);
      sum += term;
    }
    return 2 / 1.77245385090551602730 * x * expOf(-x * x) * sum;
  }
  double fraction = a;
  for (int i = 60; i > 0; --i)
    fraction = a + 0.5 * i / fraction;
  return __builtin_copysign(1 - expOf(-a * a) / (1.77245385090551602730 * fraction), x);
}

double powOf(double x, double y) {
  if (y == 0 || x == 1)
    return 1;
  if (x != x || y != y)
    return x + y;
  double magnitude = __builtin_fabs(x);
  bool whole = __builtin_trunc(y) == y;
  bool odd = whole && __builtin_fabs(y) < 9007199254740992.0 && (int64_t(y) & 1);
  if (magnitude == 1)
    return x > 0 || __builtin_fabs(y) == kInf ? 1 : whole ? (odd ? -1 : 1) : __builtin_nan("");
  if (x < 0 && magnitude != kInf && !whole)
    return __builtin_nan("");
  // Small whole powers exactly, as people expect of squares.
  double result = 1;
  if (whole && __builtin_fabs(y) <= 64) {
    uint64_t n = uint64_t(__builtin_fabs(y));
    for (double p = magnitude; n; n >>= 1, p *= p)
      if (n & 1)
        result *= p;
    result = y < 0 ? 1 / result : result;
  } else {
    result = expOf(y * logOf(magnitude));
  }
  return odd && __builtin_signbit(x) ? -result : result;
}

/// The remainder with the sign of x, exactly: long division, bit by bit.
double fmodOf(double x, double y) {
  if (x != x || y != y || y == 0 || __builtin_fabs(x) == kInf)
    return __builtin_nan("");
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  if (a < b || b == kInf)
    return x;
  // Denormals count from one exponent.
  auto split = [](double v, int64_t &e) {
    uint64_t bits = bitsOf(v);
    e = int64_t(bits >> 52);
    uint64_t m = bits & 0xfffffffffffff;
    if (e)
      return m | 0x10000000000000;
    e = 1;
    return m;
  };
  int64_t ea, eb;
  uint64_t ma = split(a, ea), mb = split(b, eb);
  for (;; --ea) {
    // Denormal divisors make the first quotients long: keep ma below 2 mb by whole remainders.
    ma = ma >= mb ? ma % mb : ma;
    if (ea == eb)
      break;
    ma <<= 1;
  }
  if (ma == 0)
    return __builtin_copysign(0.0, x);
  while (!(ma & 0x10000000000000) && eb > 1) {
    ma <<= 1;
    --eb;
  }
  uint64_t bits = ma & 0x10000000000000 ? (ma & 0xfffffffffffff) | uint64_t(eb) << 52 : ma;
  return __builtin_copysign(fromBits(bits), x);
}

/// As Math.h computes it for a vector.
inline float fastExp(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  float shifted = __builtin_fmaf(x, 1.44269504f, 12582912.0f);
  float n = shifted - 12582912.0f;
  float r = __builtin_fmaf(n, -0.693145752f, x);
  r = __builtin_fmaf(n, -1.42860677e-6f, r);
  float y = horner(
      r, {1.0f, 1.0f, 0.5f, 1.666651815e-1f, 4.166620597e-2f, 8.368954062e-3f, 1.395059982e-3f});
  int32_t e = __builtin_bit_cast(int32_t, shifted) - 0x4b400000;
  e = x == x ? e : 0;
  int32_t half = e >> 1;
  return y * scaleOf(half) * scaleOf(e - half);
}

} // namespace

UK_FAST float uk_exp_f32(float x) { return fastExp(x); }

UK_FAST float uk_tanh_f32(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float small = x + x * z *
                        horner(z, {-3.333328366e-1f, 1.333149076e-1f, -5.374349654e-2f,
                                   2.065057866e-2f, -5.717036780e-3f});
  float e = fastExp(-2.0f * a);
  float large = __builtin_copysignf((1.0f - e) / (1.0f + e), x);
  return a < 0.625f ? small : large;
}

UK_FAST float uk_erf_f32(float x) {
  float t = __builtin_fabsf(x), z = t * t;
  float small = t * horner(z, {1.128379107f, -3.761262596e-1f, 1.128360033e-1f, -2.685444430e-2f,
                               5.189535208e-3f, -8.020841051e-4f, 7.889119297e-5f});
  float q = horner(t, {3.537089215e-4f, 1.127040029f, 6.382256150e-1f, 1.030374318e-1f,
                       -2.180535160e-2f, 2.939615631e-3f, -1.855748997e-4f});
  float tail = t < 4.0f ? 1.0f - fastExp(-q) : 1.0f;
  float y = t < 1.0f ? small : tail;
  return x != x ? x : __builtin_copysignf(y, x);
}

#define UK_UNARY(name, call)                                                                       \
  UK_SCALAR double uk_##name##_f64(double x) { return call; }
#define UK_ROUNDED(name, call)                                                                     \
  UK_UNARY(name, call)                                                                             \
  UK_SCALAR float uk_##name##_f32(float f) {                                                       \
    double x = f;                                                                                  \
    return float(call);                                                                            \
  }

UK_UNARY(exp, expOf(x))
UK_UNARY(tanh, tanhOf(x))
UK_UNARY(erf, erfOf(x))
UK_ROUNDED(expm1, expm1Of(x))
UK_ROUNDED(log, logOf(x))
UK_ROUNDED(log1p, log1pOf(x))
UK_ROUNDED(sin, sinOf(x, 0))
UK_ROUNDED(cos, sinOf(x, 1))
UK_ROUNDED(tan, sinOf(x, 0) / sinOf(x, 1))
UK_ROUNDED(atan, atanOf(x))
UK_ROUNDED(asin, atanOf(x / __builtin_sqrt((1 - x) * (1 + x))))
UK_ROUNDED(acos, 2 * atanOf(__builtin_sqrt((1 - x) / (1 + x))))
UK_ROUNDED(sinh, sinhOf(x))
UK_ROUNDED(cosh, coshOf(x))
UK_ROUNDED(asinh, asinhOf(x))
UK_ROUNDED(acosh, acoshOf(x))
UK_ROUNDED(atanh,
           __builtin_copysign(0.5 * log1pOf(2 * __builtin_fabs(x) / (1 - __builtin_fabs(x))), x))

UK_SCALAR double uk_pow_f64(double x, double y) { return powOf(x, y); }
UK_SCALAR float uk_pow_f32(float x, float y) { return float(powOf(x, y)); }
UK_SCALAR double uk_fmod_f64(double x, double y) { return fmodOf(x, y); }
UK_SCALAR float uk_fmod_f32(float x, float y) { return float(fmodOf(x, y)); }
