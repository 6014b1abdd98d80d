//===- Quantize.cpp - floats into group encodings -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Quantize.h"
#include "compiler/weights/SourceBlock.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <vector>

using namespace llmc;
using llvm::support::endian::write16le;
using llvm::support::endian::write32le;

double QuantizeError::relative() const { return norm > 0 ? std::sqrt(error / norm) : 0; }
double QuantizeError::relativeToRest() const { return rest > 0 ? std::sqrt(error / rest) : 0; }

bool llmc::sameGrid(const Encoding &a, const Encoding &b) {
  return !a.isFloat() && std::memcmp(&a.format, &b.format, sizeof(UkFormat)) == 0;
}

const Encoding *llmc::quantizationTarget(const Encoding &encoding) {
  if (encoding.isFloat() || encoding.format.minSign == ukZeroPoints)
    return nullptr;
  for (const Encoding &candidate : groupEncodings())
    if (sameGrid(candidate, encoding))
      return &candidate;
  return nullptr;
}

// One clone per instruction set. They do the same operations in the same order.
#if defined(__x86_64__) && defined(__linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

namespace {

constexpr int kLanes = 16;
typedef float Floats __attribute__((vector_size(4 * kLanes)));

/// A group: its elements and their weights, filled up with weights of 0.
struct Problem {
  const float *x, *w;
  uint64_t size; ///< a multiple of kLanes
};

/// What codes stand for: whole numbers from lo to hi, or a codebook.
struct Grid {
  float lo, hi;
  bool codebook;
  float values[16];
};

/// A scale and a min, and how much smaller than without them the weighted error is.
struct Fit {
  float scale, min, gain;
};

} // namespace

// Vectors go in and out by reference: by value they would change the ABI between clones.

INLINE void fill(Floats &v, float value) { v = value + Floats{}; }
INLINE void load(Floats &v, const float *p) { std::memcpy(&v, p, sizeof v); }
/// Halves, quarters, ...: one fixed tree.
INLINE float sum(const Floats &v) {
  Floats a =
      v + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
  a += __builtin_shufflevector(a, a, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3);
  return a[0] + a[1];
}

/// Replaces each y by the nearest value of the grid.
INLINE void round(const Grid &grid, Floats &y) {
  Floats bound;
  if (grid.codebook) {
    Floats v;
    fill(v, grid.values[0]);
    for (int i = 1; i < 16; ++i) {
      Floats value;
      fill(value, grid.values[i]);
      fill(bound, 0.5f * (grid.values[i - 1] + grid.values[i]));
      v = y > bound ? value : v;
    }
    y = v;
    return;
  }
  fill(bound, grid.lo);
  y = y < bound ? bound : y;
  fill(bound, grid.hi);
  y = y > bound ? bound : y;
  fill(bound, 0x1.8p23f); // rounds to nearest even below 2^22
  y = (y + bound) - bound;
}

/// Codes from scale `inverse`, then the best scale for these codes.
INLINE Fit fitScale(const Problem &p, const Grid &grid, float inverse) {
  Floats xv = {}, vv = {};
  for (uint64_t i = 0; i < p.size; i += kLanes) {
    Floats x, wv;
    load(x, p.x + i);
    load(wv, p.w + i);
    Floats v = x * inverse;
    round(grid, v);
    wv *= v;
    xv += wv * x;
    vv += wv * v;
  }
  const float a = sum(xv), b = sum(vv);
  return b > 0 ? Fit{a / b, 0, a * (a / b)} : Fit{0, 0, 0};
}

/// The same with a min: the least squares of x = scale * v + min. `wx` and `w` are sums.
INLINE Fit fitAffine(const Problem &p, const Grid &grid, float inverse, float min, float wx,
                     float w) {
  Floats xv = {}, vv = {}, v1 = {};
  for (uint64_t i = 0; i < p.size; i += kLanes) {
    Floats x, wv;
    load(x, p.x + i);
    load(wv, p.w + i);
    Floats v = (x - min) * inverse;
    round(grid, v);
    wv *= v;
    xv += wv * x;
    vv += wv * v;
    v1 += wv;
  }
  const float sxv = sum(xv), svv = sum(vv), sv = sum(v1);
  const float determinant = w * svv - sv * sv;
  if (!(determinant > 1e-6f * w * svv))
    return w > 0 ? Fit{0, wx / w, wx * (wx / w)} : Fit{0, 0, 0};
  const float scale = (w * sxv - sv * wx) / determinant;
  const float offset = (svv * wx - sv * sxv) / determinant;
  return {scale, offset, scale * sxv + offset * wx};
}

static float rounded(UkFloatKind kind, float v) {
  if (kind == ukF32)
    return v;
  // What an f16 cannot hold is clamped: an infinity would ruin the group.
  return float(_Float16(std::fmin(std::fmax(v, -65504.0f), 65504.0f)));
}

/// Searches scale and min of one group; `inverse` candidates are spread around what just fits.
CLONES static Fit search(const Problem &p, const Grid &grid, bool affine) {
  float low = 0, high = 0, wx = 0, w = 0;
  {
    low = high = p.x[0];
    Floats lows, highs, swx = {}, sw = {};
    fill(lows, low);
    fill(highs, high);
    for (uint64_t i = 0; i < p.size; i += kLanes) {
      Floats x, weight;
      load(x, p.x + i);
      load(weight, p.w + i);
      lows = x < lows ? x : lows;
      highs = x > highs ? x : highs;
      swx += weight * x;
      sw += weight;
    }
    for (int i = 0; i < kLanes; ++i) {
      low = lows[i] < low ? lows[i] : low;
      high = highs[i] > high ? highs[i] : high;
    }
    wx = sum(swx);
    w = sum(sw);
  }
  const float range = affine ? high - low : std::max(std::fabs(high), std::fabs(low));
  if (!(range > 0)) // all are the same; symmetric codes: all are zero
    return {0, affine ? high : 0, 0};
  Fit best = {0, 0, -1};
  auto take = [&](const Fit &fit) {
    if (fit.gain > best.gain)
      best = fit;
  };
  // Many codes have little to gain.
  const int steps = grid.hi - grid.lo > 63 && !grid.codebook ? 2 : 10;
  for (int step = -steps; step <= steps; ++step) {
    // From a fifth too narrow to a fifth too wide.
    const float stretch = 1 + 0.02f * float(step);
    if (affine) {
      take(fitAffine(p, grid, grid.hi * stretch / range, low, wx, w));
      if (step < 0) // shrunk from both ends
        take(fitAffine(p, grid, grid.hi / (range * (1 + 0.02f * float(step))),
                       low - 0.01f * float(step) * range, wx, w));
    } else {
      // The largest element may sit on either end of the codes.
      take(fitScale(p, grid, stretch * grid.lo / range));
      take(fitScale(p, grid, -stretch * grid.lo / range));
    }
  }
  for (int round = 0; round < 3 && best.scale != 0; ++round) {
    const float before = best.gain;
    take(affine ? fitAffine(p, grid, 1 / best.scale, best.min, wx, w)
                : fitScale(p, grid, 1 / best.scale));
    if (best.gain == before)
      break;
  }
  return best;
}

/// Rounds to codes for a scale and min as they are stored: the values of the grid go to `v`, errors
/// are added.
CLONES static void assign(const Problem &p, const Grid &grid, float scale, float min, float *v,
                          double &error, double &norm) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (uint64_t i = 0; i < p.size; i += kLanes) {
    Floats x, w;
    load(x, p.x + i);
    load(w, p.w + i);
    Floats value = (x - min) * inverse;
    round(grid, value);
    const Floats off = x - (value * scale + min);
    error += sum(w * off * off);
    norm += sum(w * x * x);
    std::memcpy(v + i, &value, sizeof value);
  }
}

/// Writes the codes of 32 elements in the planes of a group encoding.
static void writeCodes(const UkFormat &format, const uint8_t *codes, unsigned count,
                       uint8_t *block) {
  unsigned shift = 0;
  std::memset(block, 0, 4 * (format.loBits + format.hiBits));
  for (unsigned bits : {format.loBits, format.hiBits}) {
    if (bits == 0)
      continue;
    const unsigned perByte = 8 / bits, mask = (1u << bits) - 1;
    for (unsigned e = 0; e < count; ++e)
      block[e / perByte] |= ((codes[e] >> shift) & mask) << (e % perByte * bits);
    block += 4 * bits;
    shift += bits;
  }
}

static Grid gridOf(const UkFormat &format) {
  Grid grid = {};
  if (format.codebook) {
    grid.codebook = true;
    for (int i = 0; i < 16; ++i)
      grid.values[i] = codeValue(format, i);
    grid.lo = grid.values[0];
    grid.hi = grid.values[15];
  } else {
    grid.lo = float(-format.zeroPoint);
    grid.hi = float((1 << (format.loBits + format.hiBits)) - 1 - format.zeroPoint);
  }
  return grid;
}

static uint8_t codeOf(const Grid &grid, float value) {
  if (!grid.codebook)
    return uint8_t(int(value - grid.lo));
  uint8_t code = 0;
  while (code < 15 && grid.values[code] != value)
    ++code;
  return code;
}

QuantizeError llmc::quantizeRow(const Encoding &encoding, const float *x, uint64_t K,
                                const float *importance, uint8_t *row) {
  const UkFormat &format = encoding.format;
  const Grid grid = gridOf(format);
  const auto scaleKind = UkFloatKind(format.scaleKind);
  const bool affine = format.minSign == ukMinAdded;
  const uint64_t length = std::min<uint64_t>(format.group, llvm::alignTo(K, ukGroup));
  std::vector<float> xs(length), ws(length), values(length);
  std::vector<uint8_t> codes(llvm::alignTo(K, ukGroup));
  uint8_t *scales = row + encoding.rowCodesBytes(K);
  uint8_t *mins = scales + encoding.rowGroups(K) * ukFloatBytes(scaleKind);
  auto put = [&](uint8_t *&at, float v) {
    if (scaleKind == ukF32)
      write32le(at, llvm::bit_cast<uint32_t>(v));
    else
      write16le(at, llvm::bit_cast<uint16_t>(_Float16(v)));
    at += ukFloatBytes(scaleKind);
  };
  QuantizeError total;
  for (uint64_t k = 0; k < K; k += length) {
    const uint64_t count = std::min(length, K - k), padded = llvm::alignTo(count, kLanes);
    float heaviest = 0;
    for (uint64_t i = 0; i < padded; ++i) {
      const float value = x[k + (i < count ? i : 0)]; // what fills up must not widen the range
      xs[i] = std::isfinite(value) ? value : 0;
      ws[i] = i >= count ? 0 : importance ? importance[k + i] : 1;
      heaviest = std::max(heaviest, ws[i]);
    }
    // Columns that were never used in calibration are rounded all the same.
    for (uint64_t i = 0; i < count; ++i)
      ws[i] = heaviest > 0 ? std::max(ws[i], 1e-6f * heaviest) : 1;
    const Problem problem = {xs.data(), ws.data(), padded};
    const Fit fit = search(problem, grid, affine);
    const float scale = rounded(scaleKind, fit.scale), min = rounded(scaleKind, fit.min);
    const double before = total.norm;
    assign(problem, grid, scale, min, values.data(), total.error, total.norm);
    float largest = 0;
    for (uint64_t i = 0; i < padded; ++i)
      largest = std::max(largest, ws[i] * xs[i] * xs[i]);
    total.rest += total.norm - before - double(largest);
    for (uint64_t i = 0; i < count; ++i)
      codes[k + i] = codeOf(grid, values[i]);
    put(scales, scale);
    if (affine)
      put(mins, min);
  }
  for (uint64_t k = 0; k < K; k += ukGroup)
    writeCodes(format, &codes[k], std::min<uint64_t>(ukGroup, K - k),
               row + k / ukGroup * encoding.blockBytes);
  return total;
}
