//===- Elementwise.cpp - norms, activations, activation rows --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Math.h"

UK_EXPORT void uk_quantize_act(const float *x, int64_t K, void *act_row) {
  auto *group = (UkActGroup *)act_row;
  for (int64_t k = 0; k < K; k += ukGroup, ++group) {
    xf v[2];
    UK_UNROLL for (int h = 0; h < 2; ++h) {
      const int64_t left = K - k - xLanes * h;
      v[h] = left >= xLanes ? loadAs<xf>(x + k + xLanes * h) : loadTail(x + k + xLanes * h, left);
    }
    UK_UNROLL for (int h = 0; h < 2; ++h) {
      const float amax = maxOf(absOf(v[h]));
      const bool tiny = amax < 1e-30f; // 127 / amax would overflow
      const float d = tiny ? 0.0f : amax / 127.0f, inverse = tiny ? 0.0f : 127.0f / amax;
      xf shifted = fma(v[h], xf(inverse), xf(ukRoundMagic));
      store(group->q + xLanes * h, __builtin_convertvector((xi)shifted - ukRoundMagicBits, int8_t
                                                           __attribute__((ext_vector_type(16)))));
      group->d[h] = d;
      group->dsum[h] = d * sumOf(shifted - ukRoundMagic);
    }
    group->dsums = group->dsum[0] + group->dsum[1];
    UK_UNROLL for (float &unused : group->pad) unused = 0.0f;
  }
}

UK_EXPORT void uk_copy_act_f32(const float *x, int64_t K, void *act_row) {
  auto *row = (float *)act_row;
  forEachVector(K, [=](int64_t i, auto load, auto store)
                       __attribute__((always_inline)) { store(row + i, load(x + i)); });
}

namespace {

/// sum over i < n of f(x[i]): four accumulators of 16 lanes, then one tree. f(0) need not be 0.
template <typename F> UK_INLINE float sumOver(const float *x, int64_t n, F f) {
  xf acc[4] = {};
  int64_t i = 0;
  for (; i + 4 * xLanes <= n; i += 4 * xLanes)
    UK_UNROLL for (int a = 0; a < 4; ++a) acc[a] += f(loadAs<xf>(x + i + xLanes * a));
  for (; i + xLanes <= n; i += xLanes)
    acc[0] += f(loadAs<xf>(x + i));
  if (i < n) {
    const xi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    acc[1] += select(lane < int32_t(n - i), f(loadTail(x + i, n - i)), xf(0.0f));
  }
  return sumOf((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

} // namespace

UK_EXPORT void uk_rms_norm(const float *x, const float *weight, int64_t n, float eps, float *out) {
  const float squares = sumOver(x, n, [](xf v) __attribute__((always_inline)) { return v * v; });
  const float scale = 1.0f / __builtin_sqrtf(squares / float(n) + eps);
  forEachVector(n, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    xf v = load(x + i) * scale;
    store(out + i, weight ? v * load(weight + i) : v);
  });
}

UK_EXPORT void uk_layer_norm(const float *x, const float *weight, const float *bias, int64_t n,
                             float eps, float *out) {
  const float mean =
      sumOver(x, n, [](xf v) __attribute__((always_inline)) { return v; }) / float(n);
  const float squares = sumOver(x, n, [=](xf v) __attribute__((always_inline)) {
    xf centered = v - mean;
    return centered * centered;
  });
  const float scale = 1.0f / __builtin_sqrtf(squares / float(n) + eps);
  forEachVector(n, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    xf v = (load(x + i) - mean) * scale;
    if (weight)
      v *= load(weight + i);
    if (bias)
      v += load(bias + i);
    store(out + i, v);
  });
}

UK_EXPORT void uk_add(const float *x, const float *y, float scale_y, int64_t n, float *out) {
  forEachVector(n, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    store(out + i, fma(load(y + i), xf(scale_y), load(x + i)));
  });
}

UK_EXPORT void uk_scale(const float *x, float s, int64_t n, float *out) {
  forEachVector(n, [=](int64_t i, auto load, auto store)
                       __attribute__((always_inline)) { store(out + i, load(x + i) * s); });
}

UK_EXPORT void uk_act(int32_t kind, float *x, int64_t n) {
  forEachVector(n, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    store(x + i, activate(kind, load(x + i)));
  });
}

UK_EXPORT void uk_glu(int32_t kind, const float *g, const float *u, int64_t n, float *out) {
  forEachVector(n, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    store(out + i, activate(kind, load(g + i)) * load(u + i));
  });
}

UK_EXPORT void uk_block_max(const float *x, int64_t n, float *out) {
  const xf least = -__builtin_inff();
  int64_t i = 0;
  for (; i + xLanes <= n; i += xLanes)
    *out++ = maxOf(maxOf(least, loadAs<xf>(x + i)));
  if (i < n) {
    float best = least[0];
    for (; i < n; ++i)
      best = best < x[i] ? x[i] : best;
    *out = best;
  }
}

UK_EXPORT void uk_softcap(float *x, float cap, int64_t n) {
  forEachVector(n, [=](int64_t i, auto load, auto store) __attribute__((always_inline)) {
    store(x + i, cap * tanhOf(load(x + i) / cap));
  });
}
