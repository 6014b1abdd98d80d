//===- Uk.h - the micro-kernels: C signatures -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Freestanding inner loops, compiled to bitcode once per instruction set and
// inlined into generated code. They call nothing and keep no state.
//
// Generated code passes constants for K, strides, the activation kind and the
// format; after inlining every branch on them folds. `rows`, `panels`,
// positions and pointers are run-time values. No pointers may overlap unless
// said so. Rows, panels and activations are laid out as in PanelLayout.h; all
// of `w`, `act` and the KV heads are 64-byte aligned, float arrays are not.
//
// Results are the same bits on every instruction set, for every split of rows
// and panels over calls: each output element is computed by one fixed sequence
// of float operations, in which integer sums are exact.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_UK_H
#define LLMC_COMPILER_CODEGEN_KERNELS_UK_H

#include "compiler/weights/PanelLayout.h"
#include <stdint.h>

#ifndef UK_EXPORT
#define UK_EXPORT extern "C" __attribute__((always_inline))
#endif

/// The fields of UkFormat, as arguments.
#define UK_FORMAT_ARGS                                                                             \
  int32_t loBits, int32_t hiBits, int32_t group, int32_t superGroup, int32_t zeroPoint,            \
      int32_t minSign, int32_t codebook, int32_t floatKind, int32_t scaleKind

//===- Matmul.cpp: products with packed weights ---------------------------===//

/// One panel at `w`: out[m * out_stride + r] = sum_k W[r][k] act[m][k], m < rows, r < 16.
/// `act_kind` is a UkActKind and must be ukActF32 for float weights. Strides: bytes, floats.
UK_EXPORT void uk_matmul(const void *w, const void *act, int64_t act_stride, int32_t rows,
                         int64_t K, int32_t act_kind, UK_FORMAT_ARGS, float *out,
                         int64_t out_stride);

/// One activation row times `panels` consecutive panels: out[16 * panels]. Same bits as uk_matmul.
UK_EXPORT void uk_gemv(const void *w, int32_t panels, const void *act, int64_t K, int32_t act_kind,
                       UK_FORMAT_ARGS, float *out);

/// Around the calls of a dispatch that multiply `rows` rows in all, on the thread that makes them:
/// configures and releases matrix tiles, where the instruction set has them and they are of use.
/// uk_matmul of 16 rows and more and uk_bf16_matmul must stand between the two.
UK_EXPORT void uk_tiles_begin(int32_t rows, int32_t act_kind);
UK_EXPORT void uk_tiles_end(int32_t rows, int32_t act_kind);

/// Row `row` of a packed weight (`w`: its panel 0) to out[K], exactly.
UK_EXPORT void uk_dequant_row(const void *w, int64_t row, int64_t K, UK_FORMAT_ARGS, float *out);

//===- Tiles.cpp: bf16 products -------------------------------------------===//
//
// Only where Ukernels.h says `bf16Tiles`; other arithmetic than uk_matmul's, but
// likewise one fixed sequence per output: weights are dequantized, weights and
// activations rounded to bf16 (to nearest, ties away from zero), and per 32 k the
// sums of even and of odd k, each in order by fused float operations, are added
// to one another and then to the result; denormals count as 0.

/// x[K] to a bf16 activation row.
UK_EXPORT void uk_bf16_act(const float *x, int64_t K, void *act_row);
/// `panels` packed panels of any format to `panels` bf16 panels.
UK_EXPORT void uk_bf16_panels(const void *w, int32_t panels, int64_t K, UK_FORMAT_ARGS, void *out);
/// out[m * out_stride + 16 p + r], p < `panels` (1 or 2) bf16 panels at `b`, m < rows. Rows are
/// computed sixteen at a time: as many are read at `act` and written at `out`.
UK_EXPORT void uk_bf16_matmul(const void *b, int32_t panels, const void *act, int64_t act_stride,
                              int32_t rows, int64_t K, float *out, int64_t out_stride);

//===- Elementwise.cpp: activations, norms --------------------------------===//

/// x[K] to an int8 activation row (64-byte aligned); elements past K count as 0.
UK_EXPORT void uk_quantize_act(const float *x, int64_t K, void *act_row);
/// x[K] to a float activation row.
UK_EXPORT void uk_copy_act_f32(const float *x, int64_t K, void *act_row);

/// out = x / sqrt(mean(x^2) + eps) * weight; `weight` may be null; out may be x.
UK_EXPORT void uk_rms_norm(const float *x, const float *weight, int64_t n, float eps, float *out);
/// out = (x - mean) / sqrt(var + eps) * weight + bias; weight and bias may be null; out may be x.
UK_EXPORT void uk_layer_norm(const float *x, const float *weight, const float *bias, int64_t n,
                             float eps, float *out);

/// out = x + scale_y * y; out may be x or y.
UK_EXPORT void uk_add(const float *x, const float *y, float scale_y, int64_t n, float *out);
/// out = s * x; out may be x.
UK_EXPORT void uk_scale(const float *x, float s, int64_t n, float *out);

enum UkActivation : int32_t {
  ukIdentity = 0,
  ukSilu = 1,
  ukGeluTanh = 2,
  ukGeluErf = 3,
  ukRelu = 4,
  ukReluSquared = 5,
};
/// x = f(x), f a UkActivation.
UK_EXPORT void uk_act(int32_t kind, float *x, int64_t n);
/// out = f(g) * u; out may be g or u.
UK_EXPORT void uk_glu(int32_t kind, const float *g, const float *u, int64_t n, float *out);
/// x = cap * tanh(x / cap).
UK_EXPORT void uk_softcap(float *x, float cap, int64_t n);

/// out[i] = the greatest of x[16 i .. min(16 i + 16, n)); not a number counts as -infinity.
UK_EXPORT void uk_block_max(const float *x, int64_t n, float *out);

//===- Rope.cpp: rotary positions -----------------------------------------===//

/// cos_sin[0 .. pairs) = mscale * cos(position * inv_freq[i]), [pairs .. 2 pairs) the sines.
/// Correct to float rounding for positions up to 2^20.
UK_EXPORT void uk_rope_table(int32_t position, const float *inv_freq, int64_t pairs, float mscale,
                             float *cos_sin);
/// Rotates x[rotary_dims] in place: pairs (i, i + rotary_dims / 2), or (2 i, 2 i + 1) where
/// `interleaved`.
UK_EXPORT void uk_rope(float *x, const float *cos_sin, int64_t rotary_dims, int32_t interleaved);

//===- Attention.cpp: KV cache and attention ------------------------------===//
//
// The cache of one KV head, elements f16 (or f32 where kv_f32):
//   K: [slot / 16][head_dim][16]; slot s is lane s % 16 of block s / 16
//   V: [slot][head_dim]
// A chunk is ukChunk slots; a head's cache is a whole number of chunks.

enum { ukChunk = 256 };

/// Write k[head_dim], or v[head_dim], to `slot`; f16 is rounded to nearest even.
UK_EXPORT void uk_k_store(const float *k, int64_t head_dim, int64_t slot, int32_t kv_f32,
                          void *k_head);
UK_EXPORT void uk_v_store(const float *v, int64_t head_dim, int64_t slot, int32_t kv_f32,
                          void *v_head);

/// out[count] = the f16 elements of a cache, exactly.
UK_EXPORT void uk_kv_widen(const void *f16, int64_t count, float *out);

/// Attention of `rows` query rows (row r at q + r * q_stride floats) over one chunk; `k_chunk` and
/// `v_chunk` point at the chunk's first slot. Row r sees the slots lo[r] <= s < hi[r], relative to
/// the chunk (0 <= lo, hi <= 256). s = (q . k) * scale, then softcap (0: none). Partial results
/// per row: m[r] = max s, l[r] = sum exp(s - m), o[r * o_stride + d] = sum exp(s - m) v[d];
/// m = -inf, l = 0, o = 0 where the row sees nothing. K is read in blocks of 16 slots, V never
/// beyond the highest hi.
UK_EXPORT void uk_attend_chunk(const float *q, int64_t q_stride, int32_t rows, const int32_t *lo,
                               const int32_t *hi, const void *k_chunk, const void *v_chunk,
                               int64_t head_dim, int32_t kv_f32, float scale, float softcap,
                               float *m, float *l, float *o, int64_t o_stride);

/// Merges partial b into the running (m, l, o[head_dim]) of one row. Starting from m = -inf, l = 0
/// the result is exactly b, whatever o holds.
UK_EXPORT void uk_attend_merge(float *m, float *l, float *o, const float *mb, const float *lb,
                               const float *ob, int64_t head_dim);

/// out[head_dim] = o / l; zeros where l is 0. out may be o.
UK_EXPORT void uk_attend_finish(const float *o, const float *l, int64_t head_dim, float *out);

#endif // LLMC_COMPILER_CODEGEN_KERNELS_UK_H
