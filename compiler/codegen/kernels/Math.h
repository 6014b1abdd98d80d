//===- Math.h - exp, tanh and the activations -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Polynomials only, so that every instruction set gives the same bits. The
// coefficients are least-maximum-error fits made for these intervals; the unit
// test measures the errors.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_MATH_H
#define LLMC_COMPILER_CODEGEN_KERNELS_MATH_H

#include "compiler/codegen/kernels/Uk.h"
#include "compiler/codegen/kernels/Vec.h"

/// 1.5 * 2^23: adding it rounds a float of magnitude below 2^22 to an integer, to nearest even,
/// that then stands in the low bits.
constexpr float ukRoundMagic = 12582912.0f;
constexpr int32_t ukRoundMagicBits = 0x4b400000;

/// c[0] + c[1] x + ... by Horner.
template <int N> UK_INLINE xf polynomial(xf x, const float (&c)[N]) {
  xf y = c[N - 1];
  UK_UNROLL for (int i = N - 2; i >= 0; --i) y = fma(y, x, xf(c[i]));
  return y;
}

/// e^r for |r| <= ln 2 / 2.
UK_INLINE xf expOfReduced(xf r) {
  return polynomial(
      r, {1.0f, 1.0f, 0.5f, 1.666651815e-1f, 4.166620597e-2f, 8.368954062e-3f, 1.395059982e-3f});
}

/// e^x to 1 ulp; denormal results included, 0 below and inf above the range.
UK_INLINE xf expOf(xf x) {
  // e^x = 2^n e^r, |r| <= ln 2 / 2, n in [-151, 128], applied as two powers of two.
  x = select(x < -104.0f, xf(-104.0f), x);
  x = select(x > 89.0f, xf(89.0f), x);
  xf shifted = fma(x, xf(1.44269504f), xf(ukRoundMagic));
  xf n = shifted - ukRoundMagic;
  xf r = fma(n, xf(-0.693145752f), x);
  r = fma(n, xf(-1.42860677e-6f), r);
  xf y = expOfReduced(r);
  xi e = (xi)shifted - ukRoundMagicBits;
  xi half = e >> 1;
  return y * (xf)((half + 127) << 23) * (xf)((e - half + 127) << 23);
}

/// e^x to 1 ulp for x <= 0 (or above by a rounding); 0 where e^x would be below 2^-125.
UK_INLINE xf expOfNegative(xf x) {
  xf shifted = fma(x, xf(1.44269504f), xf(ukRoundMagic));
  xf n = shifted - ukRoundMagic;
  xf r = fma(n, xf(-0.693145752f), x);
  r = fma(n, xf(-1.42860677e-6f), r);
  // The bits of the magic number are shifted out.
  xf y = (xf)((xi)expOfReduced(r) + ((xi)shifted << 23));
  return select(x < -86.0f, xf(0.0f), y);
}

UK_INLINE xf absOf(xf x) { return (xf)((xi)x & 0x7fffffff); }
UK_INLINE xf withSign(xf magnitude, xf sign) {
  return (xf)((xi)magnitude | ((xi)sign & (int32_t)0x80000000));
}

UK_INLINE xf tanhOf(xf x) {
  xf a = absOf(x), z = x * x;
  xf small = fma(x * z,
                 polynomial(z, {-3.333328366e-1f, 1.333149076e-1f, -5.374349654e-2f,
                                2.065057866e-2f, -5.717036780e-3f}),
                 x);
  xf e = expOf(-2.0f * a);
  return select(a < 0.625f, small, withSign((1.0f - e) / (1.0f + e), x));
}

/// The normal distribution function, as erf and PyTorch's GELU define it.
UK_INLINE xf normalCdf(xf x) {
  xf t = absOf(x) * 0.707106781f, z = t * t;
  xf erf = t * polynomial(z, {1.128379107f, -3.761262596e-1f, 1.128360033e-1f, -2.685444430e-2f,
                              5.189535208e-3f, -8.020841051e-4f, 7.889119297e-5f});
  xf q = polynomial(t, {3.537089215e-4f, 1.127040029f, 6.382256150e-1f, 1.030374318e-1f,
                        -2.180535160e-2f, 2.939615631e-3f, -1.855748997e-4f});
  xf tail = select(t < 4.0f, 0.5f * expOf(-q), xf(0.0f)); // 0.5 erfc(t)
  tail = select(t < 1.0f, 0.5f - 0.5f * erf, tail);
  return select(x < 0.0f, tail, 1.0f - tail);
}

/// The activation of that kind (UkActivation, a constant).
UK_INLINE xf activate(int32_t kind, xf x) {
  if (kind == ukSilu)
    return x / (1.0f + expOf(-x));
  if (kind == ukGeluTanh) { // 0.5 x (1 + tanh y) = x / (1 + e^-2y)
    xf y = 0.797884561f * x * fma(x * x, xf(0.044715f), xf(1.0f));
    return x / (1.0f + expOf(-2.0f * y));
  }
  if (kind == ukGeluErf)
    return x * normalCdf(x);
  if (kind == ukRelu || kind == ukReluSquared) {
    xf r = maxOf(x, xf(0.0f));
    return kind == ukRelu ? r : r * r;
  }
  return x;
}

#endif // LLMC_COMPILER_CODEGEN_KERNELS_MATH_H
