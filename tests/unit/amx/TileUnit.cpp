//===- TileUnit.cpp - the tile instructions of AMX, in software -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileUnit.h"
#include <cstring>
#include <immintrin.h>

using namespace llmc::test::amx;

// The operand of ldtilecfg: palette, start row, 14 zeros, sixteen row lengths of 16 bits, sixteen
// numbers of rows. Palette 1 has eight tiles; what describes more must be zero.
Fault TileUnit::loadConfig(const uint8_t *config) {
  if (config[0] == 0) {
    release();
    return Fault::None;
  }
  if (config[0] != 1)
    return Fault::GeneralProtection;
  uint16_t lengths[16];
  std::memcpy(lengths, config + 16, sizeof lengths);
  const uint8_t *counts = config + 48;
  for (unsigned i = 2; i < 16; ++i)
    if (config[i])
      return Fault::GeneralProtection;
  for (unsigned i = 0; i < 16; ++i) {
    const bool beyond = i >= kTiles && (lengths[i] || counts[i]);
    if (beyond || lengths[i] > kRowBytes || counts[i] > kRows || !lengths[i] != !counts[i])
      return Fault::GeneralProtection;
  }
  palette = 1;
  startRow = config[1];
  std::memcpy(rowBytes, lengths, sizeof rowBytes);
  std::memcpy(rows, counts, sizeof rows);
  std::memset(data, 0, sizeof data);
  return Fault::None;
}

Fault TileUnit::storeConfig(uint8_t *config) const {
  std::memset(config, 0, kConfigBytes);
  config[0] = palette;
  config[1] = startRow;
  std::memcpy(config + 16, rowBytes, sizeof rowBytes);
  std::memcpy(config + 48, rows, sizeof rows);
  return Fault::None;
}

void TileUnit::release() { *this = TileUnit(); }

void TileUnit::clearOutside(unsigned tile) {
  for (unsigned r = 0; r < kRows; ++r) {
    const unsigned from = r < rows[tile] ? rowBytes[tile] : 0;
    std::memset(data[tile][r] + from, 0, kRowBytes - from);
  }
}

Fault TileUnit::zero(unsigned tile) {
  if (!usable(tile))
    return Fault::InvalidOpcode;
  std::memset(data[tile], 0, sizeof data[tile]);
  startRow = 0;
  return Fault::None;
}

Fault TileUnit::load(unsigned tile, const uint8_t *base, int64_t stride) {
  if (!usable(tile))
    return Fault::InvalidOpcode;
  for (unsigned r = startRow; r < rows[tile]; ++r)
    std::memcpy(data[tile][r], base + r * stride, rowBytes[tile]);
  clearOutside(tile);
  startRow = 0;
  return Fault::None;
}

Fault TileUnit::store(unsigned tile, uint8_t *base, int64_t stride) {
  if (!usable(tile))
    return Fault::InvalidOpcode;
  for (unsigned r = startRow; r < rows[tile]; ++r)
    std::memcpy(base + r * stride, data[tile][r], rowBytes[tile]);
  startRow = 0;
  return Fault::None;
}

Fault TileUnit::checkDot(unsigned dst, unsigned a, unsigned b) const {
  const bool fits = usable(dst) && usable(a) && usable(b) && dst != a && dst != b && a != b &&
                    rows[dst] == rows[a] && rowBytes[dst] == rowBytes[b] &&
                    rowBytes[a] == 4 * rows[b] && rowBytes[b] % 4 == 0;
  return fits ? Fault::None : Fault::InvalidOpcode;
}

Fault TileUnit::dotBytes(unsigned dst, unsigned a, unsigned b, bool aSigned, bool bSigned) {
  if (Fault fault = checkDot(dst, a, b); fault != Fault::None)
    return fault;
  const auto value = [](uint8_t byte, bool isSigned) -> int32_t {
    return isSigned ? static_cast<int8_t>(byte) : byte;
  };
  for (unsigned m = 0; m < rows[dst]; ++m) {
    uint32_t sums[kRowBytes / 4];
    std::memcpy(sums, data[dst][m], sizeof sums);
    for (unsigned k = 0; k < rows[b]; ++k)
      for (unsigned i = 0; i < 4; ++i) {
        const int32_t left = value(data[a][m][4 * k + i], aSigned);
        for (unsigned n = 0; n < kRowBytes / 4; ++n)
          sums[n] += uint32_t(left * value(data[b][k][4 * n + i], bSigned));
      }
    std::memcpy(data[dst][m], sums, sizeof sums);
  }
  clearOutside(dst);
  startRow = 0;
  return Fault::None;
}

// Per row, the sums of the even and of the odd elements grow by FMAs over k, are added, and their
// sum is added to the destination. The processor itself does the arithmetic, told to flush.
__attribute__((target("avx512f"))) Fault TileUnit::dotBf16(unsigned dst, unsigned a, unsigned b) {
  if (Fault fault = checkDot(dst, a, b); fault != Fault::None)
    return fault;
  constexpr unsigned nearestFlushingMasked = 0x9fc0; // MXCSR: FTZ, DAZ, no exceptions, to nearest
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(nearestFlushingMasked);
  const __m512i upper = _mm512_set1_epi32(int(0xffff0000));
  for (unsigned m = 0; m < rows[dst]; ++m) {
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
    for (unsigned k = 0; k < rows[b]; ++k) {
      uint32_t pair;
      std::memcpy(&pair, data[a][m] + 4 * k, 4);
      const __m512i left = _mm512_set1_epi32(int(pair)), right = _mm512_load_si512(data[b][k]);
      even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(left, 16)),
                             _mm512_castsi512_ps(_mm512_slli_epi32(right, 16)), even);
      odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(left, upper)),
                            _mm512_castsi512_ps(_mm512_and_si512(right, upper)), odd);
    }
    const __m512 sum = _mm512_add_ps(even, odd), old = _mm512_load_ps(data[dst][m]);
    _mm512_store_ps(data[dst][m], _mm512_add_ps(old, sum));
  }
  _mm_setcsr(saved);
  clearOutside(dst);
  startRow = 0;
  return Fault::None;
}
