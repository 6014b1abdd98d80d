//===- Isa.h - what differs per instruction set ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The whole seam between the micro-kernels and a machine: the width of its
// vectors, the tile sizes its registers hold, and a few byte operations that
// clang's vector types cannot say. A new instruction set adds a block here and
// a row in CMakeLists.txt.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_ISA_H
#define LLMC_COMPILER_CODEGEN_KERNELS_ISA_H

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <stdint.h>

#define UK_INLINE static inline __attribute__((always_inline))

// Every instruction set gives: ukLanes, the f32 lanes of a native vector; tile sizes
// (activation rows per weight tile, of which ukDotRows advance together; query rows and 16-slot
// blocks per attention tile), and
//   spread4(q, j): q[4 j .. 4 j + 4) in every lane
//   dot4<bits>(acc, u, s): acc[l] += sum_i u[4 l + i] * s[4 l + i], exact; u < 2^bits. A sum over
//     the sixteen q starts at dotStart<bits>(q) and takes dot4 of spread4(q, 0 .. 3).
//   lookup16(table, index): table[index] per byte, index < 16

template <int N> struct UkVec {
  typedef float F __attribute__((ext_vector_type(N)));
  typedef int32_t I __attribute__((ext_vector_type(N)));
  typedef uint32_t U __attribute__((ext_vector_type(N)));
  typedef uint8_t B __attribute__((ext_vector_type(4 * N)));
};

#if defined(__x86_64__)
#define UK_X86_ACTIVATIONS                                                                         \
  template <int bits> UK_INLINE vi dotStart(const int8_t *) { return 0; }                          \
  UK_INLINE vi spread4(const int8_t *q, int j) {                                                   \
    typedef int32_t Four __attribute__((aligned(1), may_alias));                                   \
    return vi(*(const Four *)(q + 4 * j));                                                         \
  }
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

enum { ukLanes = 16, ukMatmulRows = 16, ukDotRows = 8, ukAttendRows = 8, ukAttendSums = 16 };
typedef UkVec<ukLanes>::I vi;
typedef UkVec<ukLanes>::B vb;
UK_X86_ACTIVATIONS

template <int bits> UK_INLINE vi dot4(vi acc, vb u, vi s) {
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)u, (__m512i)s);
}
UK_INLINE vb lookup16(const uint8_t *table, vb index) {
  __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
  return (vb)_mm512_shuffle_epi8(t, (__m512i)index);
}

#elif defined(__AVX2__)

enum { ukLanes = 8, ukMatmulRows = 4, ukDotRows = 2, ukAttendRows = 4, ukAttendSums = 4 };
typedef UkVec<ukLanes>::I vi;
typedef UkVec<ukLanes>::B vb;
UK_X86_ACTIVATIONS

template <int bits> UK_INLINE vi dot4(vi acc, vb u, vi s) {
  const __m256i a = (__m256i)u, b = (__m256i)s;
  if constexpr (bits < 8) // pairs stay below 2 * 127 * 128: vpmaddubsw cannot saturate
    return acc + (vi)_mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1));
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i low = _mm256_maddubs_epi16(_mm256_and_si256(a, nibble), b);
  __m256i high = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(a, 4), nibble), b);
  return acc + (vi)_mm256_madd_epi16(low, _mm256_set1_epi16(1)) +
         (vi)_mm256_madd_epi16(high, _mm256_set1_epi16(16));
}
UK_INLINE vb lookup16(const uint8_t *table, vb index) {
  __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
  return (vb)_mm256_shuffle_epi8(t, (__m256i)index);
}

#elif defined(__ARM_FEATURE_DOTPROD)

enum { ukLanes = 4, ukMatmulRows = 4, ukDotRows = 2, ukAttendRows = 4, ukAttendSums = 4 };
typedef UkVec<ukLanes>::I vi;
typedef UkVec<ukLanes>::B vb;

UK_INLINE int8x16_t loadSixteen(const int8_t *q) { return vld1q_s8(q); }
// All sixteen are loaded: products take the four of a lane without spreading them.
UK_INLINE vi spread4(const int8_t *q, int j) {
  const vi all = (vi)loadSixteen(q);
  return vi(all[j]);
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
template <int bits> UK_INLINE vi dotStart(const int8_t *) { return 0; }
template <int bits> UK_INLINE vi dot4(vi acc, vb u, vi s) {
  return (vi)vusdotq_s32((int32x4_t)acc, (uint8x16_t)u, (int8x16_t)s);
}
#else
// Both factors are signed. Codes of 8 bits are multiplied less 128, and 128 times the sum of the
// activations stands in the sum from its start.
template <int bits> UK_INLINE vi dotStart(const int8_t *q) {
  if constexpr (bits < 8)
    return 0;
  const int8x16_t all = loadSixteen(q), sixtyFour = vdupq_n_s8(64);
  int32x4_t sum = vdotq_s32(vdotq_s32(vdupq_n_s32(0), all, sixtyFour), all, sixtyFour);
  sum = vpaddq_s32(sum, sum);
  return (vi)vpaddq_s32(sum, sum);
}
template <int bits> UK_INLINE vi dot4(vi acc, vb u, vi s) {
  const vb code = bits < 8 ? u : u ^ 128;
  return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)code, (int8x16_t)s);
}
#endif
UK_INLINE vb lookup16(const uint8_t *table, vb index) {
  return (vb)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)index);
}

#else
#error "no micro-kernels for this instruction set"
#endif

// Functions that use matrix tiles (Tiles.h) say so themselves: no other code gets the feature.
#if defined(UK_AMX)
enum { ukTileRows = 16 };
#define UK_TILED __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#else
enum { ukTileRows = 0 };
#define UK_TILED
#endif

#endif // LLMC_COMPILER_CODEGEN_KERNELS_ISA_H
