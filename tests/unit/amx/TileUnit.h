//===- TileUnit.h - the tile instructions of AMX, in software ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one thread's tile registers hold and what each instruction does to them,
// as Intel's Software Developer's Manual says (volume 2, "TDPBF16PS" and its
// neighbours; palette 1). Nothing of it is taken from the kernels under test.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_AMX_TILEUNIT_H
#define LLMC_TESTS_UNIT_AMX_TILEUNIT_H

#include <cstdint>

namespace llmc::test::amx {

/// What an instruction raises instead of doing its work.
enum class Fault { None, InvalidOpcode, GeneralProtection };

class TileUnit {
public:
  static constexpr unsigned kTiles = 8, kRows = 16, kRowBytes = 64, kConfigBytes = 64;

  Fault loadConfig(const uint8_t *config);
  Fault storeConfig(uint8_t *config) const;
  /// Back to the initial state, in which the operating system saves nothing.
  void release();
  bool configured() const { return palette != 0; }

  Fault zero(unsigned tile);
  /// Row r of the tile is at base + r * stride.
  Fault load(unsigned tile, const uint8_t *base, int64_t stride);
  Fault store(unsigned tile, uint8_t *base, int64_t stride);
  /// dst[m][n] += sum of four products per 32 bits of `a`'s row m and `b`'s column n.
  Fault dotBytes(unsigned dst, unsigned a, unsigned b, bool aSigned, bool bSigned);
  /// The same for pairs of bf16: FMAs, denormals count as 0 and are flushed to 0.
  Fault dotBf16(unsigned dst, unsigned a, unsigned b);

private:
  bool usable(unsigned tile) const { return palette && tile < kTiles && rows[tile]; }
  Fault checkDot(unsigned dst, unsigned a, unsigned b) const;
  void clearOutside(unsigned tile);

  uint8_t palette = 0, startRow = 0;
  uint16_t rowBytes[kTiles] = {};
  uint8_t rows[kTiles] = {};
  alignas(64) uint8_t data[kTiles][kRows][kRowBytes] = {};
};

} // namespace llmc::test::amx

#endif // LLMC_TESTS_UNIT_AMX_TILEUNIT_H
