//===- WarpLayout.cpp - weights as the warps of a GPU read them -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/WarpLayout.h"
#include "compiler/weights/SourceBlock.h"
#include <algorithm>
#include <cstring>

using namespace llmc;

WarpCode llmc::warpCode(unsigned bits, unsigned v) {
  if (bits >= 4)
    return {v % bits, bits * (v / bits)};
  return {v * bits / 8, v * bits % 8};
}

bool llmc::warpCodesAreSigned(const UkFormat &format) { return format.loBits == 8; }

WarpLayout llmc::warpLayout(const Encoding &encoding, uint64_t N, uint64_t K) {
  const UkFormat &f = encoding.format;
  WarpLayout layout;
  layout.tiles = (N + kWarpRows - 1) / kWarpRows;
  layout.paddedK = ukRoundUp(K, f.superGroup ? f.superGroup : int64_t(ukGroup));
  const uint64_t groups = layout.paddedK / ukGroup;
  uint64_t end = 0;
  auto add = [&](WarpStream &stream, uint64_t rowBytes, uint64_t unit) {
    if (rowBytes == 0)
      return;
    stream = {end, static_cast<uint64_t>(ukRoundUp(rowBytes, unit)), unit};
    end += stream.rowBytes * kWarpRows;
  };
  if (encoding.isFloat()) {
    add(layout.low, layout.paddedK * encoding.blockBytes, 16);
  } else {
    auto plane = [&](WarpStream &stream, uint64_t bits) {
      add(stream, groups * 4 * bits, std::min<uint64_t>(4 * bits, 16));
    };
    plane(layout.low, f.loBits);
    plane(layout.high, f.hiBits);
    const uint64_t scales = f.superGroup ? 1 : ukScalesPerRecord(f);
    const uint64_t record = ukFloatBytes(f.scaleKind) * scales * (f.minSign ? 2 : 1);
    const uint64_t length = ukScaleRecordLength(f);
    add(layout.scales, (layout.paddedK + length - 1) / length * record, record);
    if (f.superGroup) {
      const uint64_t subs = f.superGroup / f.group * (f.minSign ? 2 : 1);
      add(layout.subs, layout.paddedK / f.superGroup * subs, std::min<uint64_t>(subs, 16));
    }
  }
  layout.tileBytes = end;
  layout.totalBytes = layout.tiles * end;
  return layout;
}

namespace {

/// One row of a tile.
class TileRow {
public:
  TileRow(const Encoding &encoding, const WarpLayout &layout, uint8_t *tile, unsigned row)
      : encoding(encoding), format(encoding.format), layout(layout), tile(tile), row(row) {}

  void pack(const uint8_t *src, uint64_t K) {
    if (encoding.isFloat()) {
      for (uint64_t x = 0; x < K * encoding.blockBytes; ++x)
        at(layout.low, x) = src[x];
      return;
    }
    const unsigned elements = encoding.blockElements;
    SourceBlock block;
    for (uint64_t k = 0; k < K; k += elements) {
      readBlock(encoding, src, K, k / elements, block);
      for (unsigned e = 0; e < elements; e += 4)
        packCodes(&block.codes[e], k + e);
      packScales(block, k);
    }
  }

  float value(uint64_t k) {
    if (encoding.isFloat()) {
      uint8_t bytes[4];
      for (unsigned i = 0; i < encoding.blockBytes; ++i)
        bytes[i] = at(layout.low, k * encoding.blockBytes + i);
      return readFloat(UkFloatKind(format.floatKind), bytes);
    }
    uint8_t code = planeCode(layout.low, format.loBits, k);
    if (warpCodesAreSigned(format))
      code ^= 0x80;
    if (format.hiBits)
      code |= planeCode(layout.high, format.hiBits, k) << format.loBits;
    return applyAffine(format, affine(k), code);
  }

private:
  uint8_t &at(const WarpStream &stream, uint64_t byte) { return tile[stream.position(byte, row)]; }

  /// The byte of a plane that holds the code of element k, and the shift in it.
  std::pair<uint64_t, unsigned> place(unsigned bits, uint64_t k) {
    const WarpCode code = warpCode(bits, k % ukGroup / 4);
    return {k / ukGroup * 4 * bits + code.word * 4 + k % 4, code.shift};
  }

  void packCodes(const uint8_t *codes, uint64_t k) {
    for (unsigned i = 0; i < 4; ++i) {
      unsigned shift = 0;
      for (auto [stream, bits] :
           {std::pair(&layout.low, format.loBits), std::pair(&layout.high, format.hiBits)}) {
        if (!bits)
          continue;
        const uint8_t stored = warpCodesAreSigned(format) ? codes[i] ^ 0x80 : codes[i];
        const auto [byte, by] = place(bits, k + i);
        at(*stream, byte) |= (stored >> shift & ((1u << bits) - 1)) << by;
        shift += bits;
      }
    }
  }

  uint8_t planeCode(const WarpStream &stream, unsigned bits, uint64_t k) {
    const auto [byte, by] = place(bits, k);
    return at(stream, byte) >> by & ((1u << bits) - 1);
  }

  unsigned scaleBytes() const { return ukFloatBytes(format.scaleKind); }
  unsigned scalesPerRecord() const { return format.superGroup ? 1 : ukScalesPerRecord(format); }

  void putScale(uint64_t index, uint32_t bits) {
    for (unsigned i = 0; i < scaleBytes(); ++i)
      at(layout.scales, index * scaleBytes() + i) = bits >> (8 * i);
  }
  uint32_t getScale(uint64_t index) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < scaleBytes(); ++i)
      bits |= uint32_t(at(layout.scales, index * scaleBytes() + i)) << (8 * i);
    return bits;
  }

  void packScales(const SourceBlock &block, uint64_t k) {
    const unsigned n = scalesPerRecord(), perRecord = n * (format.minSign ? 2 : 1);
    const uint64_t first = k / ukScaleRecordLength(format) * perRecord;
    for (unsigned i = 0; i < n; ++i) {
      putScale(first + i, block.scale[i]);
      if (format.minSign)
        putScale(first + n + i, block.min[i]);
    }
    if (!format.superGroup)
      return;
    const unsigned count = format.superGroup / format.group;
    const uint64_t super = k / format.superGroup * count * (format.minSign ? 2 : 1);
    for (unsigned sub = 0; sub < count; ++sub) {
      at(layout.subs, super + sub) = static_cast<uint8_t>(block.subScale[sub]);
      if (format.minSign)
        at(layout.subs, super + count + sub) = static_cast<uint8_t>(block.subMin[sub]);
    }
  }

  Affine affine(uint64_t k) {
    const unsigned n = scalesPerRecord(), perRecord = n * (format.minSign ? 2 : 1);
    const uint64_t first = k / ukScaleRecordLength(format) * perRecord;
    const unsigned half = n == 2 ? k % ukGroup / 16 : 0;
    const uint32_t scale = getScale(first + half);
    const uint32_t min = format.minSign ? getScale(first + n + half) : 0;
    int8_t subScale = 1, subMin = 0;
    if (format.superGroup) {
      const unsigned count = format.superGroup / format.group;
      const uint64_t super = k / format.superGroup * count * (format.minSign ? 2 : 1);
      const unsigned sub = k % format.superGroup / format.group;
      subScale = static_cast<int8_t>(at(layout.subs, super + sub));
      if (format.minSign)
        subMin = static_cast<int8_t>(at(layout.subs, super + count + sub));
    }
    return affineOf(format, scale, min, subScale, subMin);
  }

  const Encoding &encoding;
  const UkFormat &format;
  const WarpLayout &layout;
  uint8_t *tile;
  unsigned row;
};

} // namespace

void llmc::packWarpTiles(const Encoding &encoding, const uint8_t *src, uint64_t N, uint64_t K,
                         uint64_t begin, uint64_t end, uint8_t *dst) {
  const WarpLayout layout = warpLayout(encoding, N, K);
  const uint64_t rowBytes = encoding.rowBytes(K);
  std::memset(dst, 0, (end - begin) * layout.tileBytes);
  for (uint64_t t = begin; t < end; ++t, dst += layout.tileBytes)
    for (unsigned r = 0; r < kWarpRows && t * kWarpRows + r < N; ++r)
      TileRow(encoding, layout, dst, r).pack(src + (t * kWarpRows + r) * rowBytes, K);
}

void llmc::dequantizeWarpRow(const Encoding &encoding, const uint8_t *packed, uint64_t K,
                             uint64_t row, float *dst) {
  const WarpLayout layout = warpLayout(encoding, row + 1, K);
  uint8_t *tile = const_cast<uint8_t *>(packed) + row / kWarpRows * layout.tileBytes;
  TileRow reader(encoding, layout, tile, row % kWarpRows);
  for (uint64_t k = 0; k < K; ++k)
    dst[k] = reader.value(k);
}
