//===- Vec.h - vectors of the micro-kernels -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two widths. v* are native vectors (ukLanes): matmul, where a lane is a weight
// row and lanes never mix. x* have 16 lanes everywhere and clang splits them:
// norms and attention, where the order of a reduction over lanes must not
// depend on the machine.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_VEC_H
#define LLMC_COMPILER_CODEGEN_KERNELS_VEC_H

#include "compiler/codegen/kernels/Isa.h"

#define UK_UNROLL _Pragma("clang loop unroll(full)")
#define UK_NO_UNROLL _Pragma("clang loop unroll(disable)")

typedef UkVec<ukLanes>::F vf;
typedef UkVec<16>::F xf;
typedef UkVec<16>::I xi;
enum { xLanes = 16 };

/// An unaligned load of V from elements of type E, converted lane by lane.
template <typename V, typename E> UK_INLINE V load(const void *p) {
  typedef E Raw __attribute__((ext_vector_type(sizeof(V) / 4)));
  typedef Raw Unaligned __attribute__((aligned(1)));
  return __builtin_convertvector(*(const Unaligned *)p, V);
}
template <typename V> UK_INLINE V loadAs(const void *p) {
  typedef V Unaligned __attribute__((aligned(1)));
  return *(const Unaligned *)p;
}
template <typename V> UK_INLINE void store(void *p, V v) {
  typedef V Unaligned __attribute__((aligned(1)));
  *(Unaligned *)p = v;
}

/// bf16 widened to f32.
template <typename V> UK_INLINE V loadBf16(const void *p) {
  typedef uint32_t U __attribute__((ext_vector_type(sizeof(V) / 4)));
  return (V)(load<U, uint16_t>(p) << 16);
}

/// The first n < 16 lanes of p, the rest 0.
UK_INLINE xf loadTail(const float *p, int64_t n) {
  xf v = 0;
  UK_UNROLL for (int i = 0; i < xLanes; ++i) if (i < n) v[i] = p[i];
  return v;
}
UK_INLINE void storeTail(float *p, xf v, int64_t n) {
  UK_UNROLL for (int i = 0; i < xLanes; ++i) if (i < n) p[i] = v[i];
}

template <typename V> UK_INLINE V fma(V a, V b, V c) { return __builtin_elementwise_fma(a, b, c); }
UK_INLINE xf select(xi mask, xf a, xf b) { return mask ? a : b; }
UK_INLINE xf maxOf(xf a, xf b) { return select(a < b, b, a); }
UK_INLINE xf minOf(xf a, xf b) { return select(b < a, b, a); }

/// Reductions over lanes in one fixed tree: halves, quarters, ...
template <typename Op> UK_INLINE float reduce(xf v, Op op) {
  xf a = op(
      v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
  a = op(a, __builtin_shufflevector(a, a, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
  a = op(a, __builtin_shufflevector(a, a, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
  a = op(a, __builtin_shufflevector(a, a, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  return a[0];
}
UK_INLINE float sumOf(xf v) {
  return reduce(v, [](xf a, xf b) __attribute__((always_inline)) { return a + b; });
}
UK_INLINE float maxOf(xf v) {
  return reduce(v, [](xf a, xf b) __attribute__((always_inline)) { return maxOf(a, b); });
}

/// Calls body(i, load, store) for whole vectors and once for the tail of [0, n).
template <typename Body> UK_INLINE void forEachVector(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + xLanes <= n; i += xLanes)
    body(
        i, [](const float *p) __attribute__((always_inline)) { return loadAs<xf>(p); },
        [](float *p, xf v) __attribute__((always_inline)) { store(p, v); });
  if (int64_t rest = n - i)
    body(
        i, [=](const float *p) __attribute__((always_inline)) { return loadTail(p, rest); },
        [=](float *p, xf v) __attribute__((always_inline)) { storeTail(p, v, rest); });
}

#endif // LLMC_COMPILER_CODEGEN_KERNELS_VEC_H
