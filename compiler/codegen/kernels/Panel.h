//===- Panel.h - reading packed panels ------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every product with packed weights shares: codes out of their bit planes,
// scales out of their records, and the float operations that turn a group's
// integer dot products into its contribution. A lane is a weight row; where a
// native vector has fewer than 16 lanes, h numbers the parts.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_KERNELS_PANEL_H
#define LLMC_COMPILER_CODEGEN_KERNELS_PANEL_H

#include "compiler/codegen/kernels/Vec.h"
#include "compiler/weights/PanelLayout.h"

constexpr int halves = int(ukPanelRows) / int(ukLanes), nativeBytes = 4 * ukLanes;

/// Adds a plane of `bits`, shifted left by `shift`, to the k-vectors w[8] of half h.
UK_INLINE void unpackPlane(const uint8_t *plane, int bits, int shift, int h, vb (&w)[8]) {
  UK_UNROLL for (int v = 0; v < 8; ++v) {
    if (v >= bits)
      break;
    const vb raw = loadAs<vb>(plane + 64 * v + nativeBytes * h);
    UK_UNROLL for (int f = 0; f < 8; ++f) {
      if (v + bits * f >= 8)
        break;
      const int left = shift - bits * f;
      const vb moved = left >= 0 ? raw << left : raw >> -left;
      w[v + bits * f] |= moved & (((1 << bits) - 1) << shift);
    }
  }
}

/// The eight k-vectors of half h of a group: codes, after the codebook.
UK_INLINE void unpack(const UkFormat &f, const uint8_t *codes, int h, vb (&w)[8]) {
  UK_UNROLL for (int j = 0; j < 8; ++j) w[j] = 0;
  unpackPlane(codes, f.loBits, 0, h, w);
  if (f.hiBits)
    unpackPlane(codes + 64 * f.loBits, f.hiBits, f.loBits, h, w);
  if (f.codebook == ukCodebookIq4) {
    UK_UNROLL for (int j = 0; j < 8; ++j) w[j] = lookup16(ukIq4Codes, w[j]);
  }
}

/// Scales (and mins, signed as they are added, or zero points) of half h of one group of 32; two of
/// each where the format has a scale per 16.
struct GroupScales {
  vf scale[2];
  vf min[2];
};

UK_INLINE vf loadScale(const UkFormat &f, const uint8_t *p) {
  return f.scaleKind == ukF32 ? loadAs<vf>(p) : load<vf, _Float16>(p);
}

/// `record` is the scale record, `g` the group's index in it.
UK_INLINE GroupScales loadScales(const UkFormat &f, const uint8_t *record, int64_t g, int h) {
  GroupScales s;
  const int64_t size = ukFloatBytes(f.scaleKind), perRecord = ukScalesPerRecord(f);
  const uint8_t *p = record + size * ukLanes * h;
  if (!f.superGroup) {
    UK_UNROLL for (int i = 0; i < 2; ++i) {
      if (i >= perRecord)
        break;
      s.scale[i] = loadScale(f, p + size * ukPanelRows * i);
      s.min[i] = f.minSign ? loadScale(f, p + size * ukPanelRows * (perRecord + i)) : vf(0.0f);
    }
    return s;
  }
  const vf d = loadScale(f, p);
  const vf dmin = f.minSign ? loadScale(f, p + size * ukPanelRows) : vf(0.0f);
  const int perGroup = ukGroup / f.group;
  const int count = f.superGroup / f.group;
  const uint8_t *subs = record + 2 * ukPanelRows * (f.minSign ? 2 : 1) + ukLanes * h;
  UK_UNROLL for (int i = 0; i < 2; ++i) {
    if (i >= perGroup)
      break;
    const int64_t sub = g * perGroup + i;
    s.scale[i] = d * load<vf, int8_t>(subs + sub * ukPanelRows);
    if (f.minSign)
      s.min[i] = -(dmin * load<vf, int8_t>(subs + (count + sub) * ukPanelRows));
  }
  return s;
}

UK_INLINE vf toFloat(vi v) { return __builtin_convertvector(v, vf); }

/// d * dot, less what the zero point adds to it.
UK_INLINE vf subtractZero(const UkFormat &f, const GroupScales &s, int h, float dsum, vf t) {
  if (f.minSign == ukZeroPoints)
    return fma(-s.min[h], vf(dsum), t);
  return f.zeroPoint ? fma(vf(-f.zeroPoint), vf(dsum), t) : t;
}

/// True where a scale record holds mins that are added.
UK_INLINE bool addsMin(const UkFormat &f) { return f.minSign && f.minSign != ukZeroPoints; }

/// Adds one group's contribution to a row's sum, from the dot products of its halves:
///   sum of scale * (d * dot - zero point * dsum) + min * dsum
/// over the group, or over each half where the weights have a scale per 16.
UK_INLINE void addDots(const UkFormat &f, const GroupScales &s, const UkActGroup &a, vf dot0,
                       vf dot1, vf &sum) {
  if (f.group >= ukGroup) {
    vf t = fma(dot1, vf(a.d[1]), dot0 * a.d[0]);
    t = subtractZero(f, s, 0, a.dsums, t);
    sum = fma(t, s.scale[0], sum);
    if (addsMin(f))
      sum = fma(s.min[0], vf(a.dsums), sum);
    return;
  }
  UK_UNROLL for (int h = 0; h < 2; ++h) {
    vf t = subtractZero(f, s, h, a.dsum[h], (h ? dot1 : dot0) * a.d[h]);
    sum = fma(t, s.scale[h], sum);
    if (addsMin(f))
      sum = fma(s.min[h], vf(a.dsum[h]), sum);
  }
}

/// Both eight-bit kinds are the upper half of an f16, e4m3 with an exponent less by 8.
UK_INLINE vf loadF8(int32_t kind, const uint8_t *p) {
  typedef uint16_t U __attribute__((ext_vector_type(ukLanes)));
  typedef _Float16 H __attribute__((ext_vector_type(ukLanes)));
  typedef uint8_t B __attribute__((ext_vector_type(ukLanes), aligned(1)));
  const U bits = __builtin_convertvector(*(const B *)p, U);
  if (kind == ukF8E5M2)
    return __builtin_convertvector((H)(bits << 8), vf);
  const vf v = __builtin_convertvector((H)((bits & 128) << 8 | (bits & 127) << 7), vf) * 256.0f;
  return __builtin_convertvector((bits & 127) == 127, vi) ? vf(__builtin_nanf("")) : v;
}

UK_INLINE vf loadFloats(const UkFormat &f, const uint8_t *p) {
  if (f.floatKind >= ukF8E4M3)
    return loadF8(f.floatKind, p);
  if (f.floatKind == ukF16)
    return load<vf, _Float16>(p);
  if (f.floatKind == ukBF16)
    return loadBf16<vf>(p);
  return loadAs<vf>(p);
}

/// The dequantized column i of a k-vector: as ggml, the product and the sum are rounded apart.
UK_INLINE vf dequantColumn(const UkFormat &f, vb w, int i, const GroupScales &s, int sub) {
  vi code = (vi)w >> (8 * i) & 255;
  if (f.minSign == ukZeroPoints)
    return (toFloat(code) - s.min[sub]) * s.scale[sub];
  vf v = toFloat(code - f.zeroPoint) * s.scale[sub];
  return f.minSign ? v + s.min[sub] : v;
}

#endif // LLMC_COMPILER_CODEGEN_KERNELS_PANEL_H
