//===- WeightReader.cpp - reads weights of the layout warp32 --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/WeightReader.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// Vectors of four codes in a group.
static constexpr unsigned kVectors = 8;

Matrix::Matrix(StringRef name, int64_t rows, int64_t columns)
    : encoding(lookupEncoding(name)), rows(rows), columns(columns) {
  assert(encoding && "the scheduler names encodings that there are");
  layout = warpLayout(*encoding, rows, columns);
}

WeightReader::WeightReader(Emitter &e, const Matrix &matrix, Val tile, Val row)
    : e(e), matrix(matrix), format(matrix.encoding->format) {
  auto start = [&](Place &place, const WarpStream &stream) {
    if (stream.rowBytes)
      place.base = e.at(e.at(tile, int64_t(stream.offset)), row * int64_t(stream.unit));
  };
  start(low, matrix.layout.low);
  start(highPlane, matrix.layout.high);
  start(scaleRecords, matrix.layout.scales);
  start(subs, matrix.layout.subs);
}

void WeightReader::seek(Val to) {
  chunk = to;
  auto advance = [&](Place &place, Val rowBytes) {
    place.here = e.at(place.base, rowBytes * int64_t(kWarpRows));
  };
  if (!isQuantized()) {
    advance(low, chunk * (kChunk * int64_t(matrix.encoding->blockBytes)));
    return;
  }
  constexpr int64_t bitBytes = kChunk / 8;
  advance(low, chunk * (bitBytes * format.loBits));
  if (format.hiBits)
    advance(highPlane, chunk * (bitBytes * format.hiBits));
  int64_t record = matrix.layout.scales.unit, length = ukScaleRecordLength(format);
  advance(scaleRecords, length > kChunk ? chunk / (length / kChunk) * record
                                        : chunk * (kChunk / length * record));
  if (format.superGroup)
    advance(subs, chunk * int64_t(kChunk / format.group * (format.minSign ? 2 : 1)));
}

Vals WeightReader::words(const WarpStream &stream, const Place &place, int64_t at, int64_t bytes) {
  int64_t unit = stream.unit;
  Val address = e.at(place.here, at / unit * (unit * int64_t(kWarpRows)) + at % unit);
  assert(at % unit + bytes <= unit && "a load stays in its unit");
  if (bytes == 2)
    return {e.load(e.getBuilder().getI16Type(), address, true)};
  if (bytes == 4)
    return {e.load(e.i32Type(), address, true)};
  return e.loadVector(e.i32Type(), bytes / 4, address, true);
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

float WeightReader::zeroPoint() const {
  bool isSigned = warpCodesAreSigned(format) || format.codebook != ukCodebookNone;
  return float(format.zeroPoint - (isSigned ? 128 : 0));
}

/// The word whose bytes have `bits` bits, moved from bit `shift` to bit `to`.
static Val field(Val word, unsigned bits, unsigned shift, unsigned to) {
  uint32_t mask = ((1u << bits) - 1) * 0x01010101u << to;
  Val moved = shift > to ? word >> int64_t(shift - to) : word << int64_t(to - shift);
  return bits == 8 ? moved : moved & int64_t(int32_t(mask));
}

/// The values of four codes of IQ4: its table has 16 bytes, a byte permutation reads eight.
Val WeightReader::lookUp(Val codes) {
  auto table = [&](unsigned first) {
    uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i)
      word |= uint32_t(uint8_t(ukIq4Codes[first + i] ^ 0x80)) << (8 * i);
    return e.i32(int32_t(word));
  };
  Val pairs = codes | (codes >> 4);
  Val selector = e.permute(pairs, e.i32(0), e.i32(0x4420));
  Val inTable = selector & 0x7777;
  Val lower = e.permute(table(0), table(4), inTable);
  Val upper = e.permute(table(8), table(12), inTable);
  Val isUpper = ((codes >> 3) & 0x01010101) * 255;
  return (upper & isUpper) | (lower & (isUpper ^ -1));
}

static Val vectorOf(const Vals &lowWords, const Vals &highWords, const UkFormat &format,
                    unsigned v) {
  WarpCode place = warpCode(format.loBits, v);
  Val codes = field(lowWords[place.word], format.loBits, place.shift, 0);
  if (!format.hiBits)
    return codes;
  WarpCode upper = warpCode(format.hiBits, v);
  return codes | field(highWords[upper.word], format.hiBits, upper.shift, format.loBits);
}

Vals WeightReader::codes(int64_t g) {
  int64_t bytes = 4 * format.loBits, unit = matrix.layout.low.unit;
  Vals lowWords, highWords;
  for (int64_t i = 0; i < bytes; i += unit)
    llvm::append_range(lowWords, words(matrix.layout.low, low, g * bytes + i, unit));
  if (format.hiBits)
    highWords = words(matrix.layout.high, highPlane, g * 4 * format.hiBits, 4 * format.hiBits);
  Vals result;
  for (unsigned v = 0; v < kVectors; ++v) {
    Val codes = vectorOf(lowWords, highWords, format, v);
    result.push_back(format.codebook == ukCodebookIq4 ? lookUp(codes) : codes);
  }
  return result;
}

std::array<Val, 2> WeightReader::codePair(int64_t g, Val lane) {
  // The word of k-vector `lane` has a variable place or a variable shift, never both.
  auto plane = [&](const WarpStream &stream, const Place &place, unsigned bits, unsigned v) {
    int64_t bytes = 4 * bits, unit = stream.unit;
    WarpCode first = warpCode(bits, v);
    Val base = e.at(place.here, g * bytes / unit * (unit * int64_t(kWarpRows)) + g * bytes % unit);
    if (bits >= 4) {
      // Word v % bits; of eight words, the last four are in the next unit.
      int64_t at = int64_t(first.word) * 4;
      Val address = e.at(base, at / unit * (unit * int64_t(kWarpRows)) + at % unit);
      return e.load(e.i32Type(), e.at(address, lane * 4), true) >> int64_t(first.shift);
    }
    Val word = e.load(e.i32Type(), e.at(base, int64_t(first.word) * 4), true);
    return word >> (lane * int64_t(bits) + int64_t(first.shift));
  };
  std::array<Val, 2> pair;
  for (unsigned half = 0; half < 2; ++half) {
    Val codes = field(plane(matrix.layout.low, low, format.loBits, 4 * half), format.loBits, 0, 0);
    if (format.hiBits)
      codes = codes | field(plane(matrix.layout.high, highPlane, format.hiBits, 4 * half),
                            format.hiBits, 0, format.loBits);
    pair[half] = format.codebook == ukCodebookIq4 ? lookUp(codes) : codes;
  }
  return pair;
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

Vals WeightReader::record(int64_t g) {
  int64_t unit = matrix.layout.scales.unit, length = ukScaleRecordLength(format);
  Vals raw = words(matrix.layout.scales, scaleRecords,
                   length >= kChunk ? 0 : g * kGroup / length * unit, unit);
  Vals floats;
  for (Val word : raw) {
    if (format.scaleKind == ukF32) {
      floats.push_back(e.bitcast(word, e.f32Type()));
    } else if (word.type().isInteger(16)) {
      floats.push_back(e.toF32(e.bitcast(word, e.f16Type())));
    } else {
      Val halves = e.bitcast(word, e.vectorType(e.f16Type(), 2));
      for (int64_t i = 0; i < 2; ++i)
        floats.push_back(e.toF32(
            e.wrap(LLVM::ExtractElementOp::create(e.getBuilder(), halves.value, e.i32(i).value))));
    }
  }
  return floats;
}

GroupScales WeightReader::scales(int64_t g) {
  GroupScales result;
  Vals floats = record(g);
  int64_t halves = format.group < kGroup ? 2 : 1;
  bool hasMin = format.minSign != ukNoMin;
  if (!format.superGroup) {
    for (int64_t h = 0; h < halves; ++h) {
      result.scale[h] = floats[h];
      if (hasMin)
        result.min[h] = floats[halves + h];
    }
  } else {
    int64_t count = format.superGroup / format.group, unit = matrix.layout.subs.unit;
    auto sub = [&](int64_t index) {
      // The whole unit is loaded once; what is not used of it costs nothing.
      Vals loaded = words(matrix.layout.subs, subs, index / unit * unit, unit);
      return e.toF32(e.byte(loaded[index % unit / 4], index % 4, true));
    };
    for (int64_t h = 0; h < halves; ++h) {
      result.scale[h] = floats[0] * sub(g * halves + h);
      if (hasMin)
        result.min[h] = floats[1] * sub(count + g * halves + h);
    }
  }
  if (format.minSign == ukMinSubtracted)
    for (int64_t h = 0; h < halves; ++h)
      result.min[h] = e.negate(result.min[h]);
  return result;
}

Val WeightReader::accumulate(Val sum, const GroupScales &scales, const std::array<Val, 2> &products,
                             const ActScales &act) {
  bool zeroPoints = format.minSign == ukZeroPoints;
  bool mins = format.minSign == ukMinAdded || format.minSign == ukMinSubtracted;
  float zero = zeroPoint();
  // scale * (product - zero point * sum of activations) + min * sum of activations
  auto add = [&](Val dot, Val actSum, int h) {
    if (zero != 0)
      dot = e.fma(e.f32(-zero), actSum, dot);
    if (zeroPoints)
      dot = e.fma(e.negate(scales.min[h]), actSum, dot);
    sum = e.fma(scales.scale[h], dot, sum);
    if (mins)
      sum = e.fma(scales.min[h], actSum, sum);
  };
  Val first = act.d[0] * e.toF32(products[0]);
  if (format.group < kGroup) {
    add(first, act.dsum[0], 0);
    add(act.d[1] * e.toF32(products[1]), act.dsum[1], 1);
  } else {
    bool needsSum = zero != 0 || zeroPoints || mins;
    add(e.fma(act.d[1], e.toF32(products[1]), first), needsSum ? act.dsum[0] + act.dsum[1] : Val(),
        0);
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Of a byte in an i32.
static Val float8(Emitter &e, UkFloatKind kind, Val byte) {
  auto half = [&](Val bits) {
    Val narrow =
        e.wrap(LLVM::TruncOp::create(e.getBuilder(), e.getBuilder().getI16Type(), bits.value));
    return e.toF32(e.bitcast(narrow, e.f16Type()));
  };
  if (kind == ukF8E5M2)
    return half(byte << 8);
  // The exponent's bias is 7, a half's 15; 0x7f is not a number.
  Val magnitude = byte & 0x7f;
  Val value = half(((byte & 0x80) << 8) | (magnitude << 7)) * e.f32(256);
  return e.select(magnitude == 0x7f, e.bitcast(e.i32(0x7fc00000), e.f32Type()), value);
}

Vals WeightReader::values(int64_t g) {
  Vals result;
  if (isQuantized()) {
    GroupScales scale = scales(g);
    Vals vectors = codes(g);
    bool mins = format.minSign == ukMinAdded || format.minSign == ukMinSubtracted;
    for (unsigned k = 0; k < kGroup; ++k) {
      int h = format.group < kGroup && k >= 16;
      Val q = e.toF32(e.byte(vectors[k / 4], k % 4, true));
      if (float zero = zeroPoint())
        q = q - e.f32(zero);
      if (format.minSign == ukZeroPoints)
        q = q - scale.min[h];
      Val value = scale.scale[h] * q;
      result.push_back(mins ? value + scale.min[h] : value);
    }
    return result;
  }
  int64_t size = matrix.encoding->blockBytes;
  auto kind = UkFloatKind(format.floatKind);
  for (int64_t at = 0; at < kGroup * size; at += 16)
    for (Val word : words(matrix.layout.low, low, g * kGroup * size + at, 16)) {
      switch (size) {
      case 4:
        result.push_back(e.bitcast(word, e.f32Type()));
        break;
      case 2:
        if (kind == ukBF16) {
          result.push_back(e.bitcast(word << 16, e.f32Type()));
          result.push_back(e.bitcast(word & int64_t(int32_t(0xffff0000u)), e.f32Type()));
          break;
        }
        for (int64_t i = 0; i < 2; ++i)
          result.push_back(e.toF32(e.wrap(LLVM::ExtractElementOp::create(
              e.getBuilder(), e.bitcast(word, e.vectorType(e.f16Type(), 2)).value,
              e.i32(i).value))));
        break;
      default:
        for (unsigned i = 0; i < 4; ++i)
          result.push_back(float8(e, kind, e.byte(word, i, false)));
      }
    }
  return result;
}
