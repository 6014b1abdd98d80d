//===- Rope.cpp - rotary position embedding -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Uk.h"
#include "compiler/codegen/kernels/Vec.h"

namespace {

typedef double xd __attribute__((ext_vector_type(8)));
typedef int64_t xl __attribute__((ext_vector_type(8)));
typedef float f8 __attribute__((ext_vector_type(8)));

template <int N> UK_INLINE xd polynomial(xd z, const double (&c)[N]) {
  xd y = c[N - 1];
  UK_UNROLL for (int i = N - 2; i >= 0; --i) y = fma(y, z, xd(c[i]));
  return y;
}

/// cos and sin of an angle below 2^30, to 1e-11: reduction to |r| <= pi / 4, Taylor polynomials.
UK_INLINE void cosSin(xd angle, xd &cos, xd &sin) {
  const double magic = 6755399441055744.0; // 1.5 * 2^52: the nearest integer in the low bits
  xd shifted = fma(angle, xd(0.63661977236758134308), xd(magic));
  xd n = shifted - magic;
  xd r = fma(n, xd(-0x1.921fb54442d18p+0), angle); // pi / 2 in two parts
  r = fma(n, xd(-0x1.1a62633145c07p-54), r);
  xd z = r * r;
  xd s = r * polynomial(z, {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800});
  xd c = polynomial(
      z, {1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600});
  // Quadrant n mod 4: odd swaps, the sine is negative in 2 and 3, the cosine in 1 and 2.
  xl quadrant = (xl)shifted;
  xl odd = (quadrant & 1) != 0;
  xl negateSin = (quadrant & 2) << 62, negateCos = ((quadrant + 1) & 2) << 62;
  cos = (xd)((xl)(odd ? s : c) ^ negateCos);
  sin = (xd)((xl)(odd ? c : s) ^ negateSin);
}

} // namespace

UK_EXPORT void uk_rope_table(int32_t position, const float *inv_freq, int64_t pairs, float mscale,
                             float *cos_sin) {
  for (int64_t i = 0; i < pairs; i += 8) {
    f8 frequency = 0.0f;
    UK_UNROLL for (int j = 0; j < 8; ++j) if (i + j < pairs) frequency[j] = inv_freq[i + j];
    // The product is exact in double: 24 and 31 bits.
    xd angle = __builtin_convertvector(frequency, xd) * double(position);
    xd cos, sin;
    cosSin(angle, cos, sin);
    f8 c = __builtin_convertvector(cos * double(mscale), f8);
    f8 s = __builtin_convertvector(sin * double(mscale), f8);
    UK_UNROLL for (int j = 0; j < 8; ++j) if (i + j < pairs) {
      cos_sin[i + j] = c[j];
      cos_sin[pairs + i + j] = s[j];
    }
  }
}

UK_EXPORT void uk_rope(float *x, const float *cos_sin, int64_t rotary_dims, int32_t interleaved) {
  const int64_t pairs = rotary_dims / 2;
  const float *cos = cos_sin, *sin = cos_sin + pairs;
  const int64_t second = interleaved ? 1 : pairs, step = interleaved ? 2 : 1;
  _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < pairs; ++i) {
    float *p = x + step * i;
    const float a = p[0], b = p[second];
    p[0] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
    p[second] = __builtin_fmaf(b, cos[i], a * sin[i]);
  }
}
