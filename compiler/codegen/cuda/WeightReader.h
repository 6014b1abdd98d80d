//===- WeightReader.h - reads weights of the layout warp32 ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads and arithmetic of one row of a tile (compiler/weights/WarpLayout.h). A
// thread has one reader per row that it works on. The unit of work is the group of
// 32 along K; eight of them are a chunk, the length of a super-group, so that
// within a chunk all places are constants.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_WEIGHTREADER_H
#define LLMC_COMPILER_CODEGEN_CUDA_WEIGHTREADER_H

#include "compiler/codegen/cuda/Emitter.h"
#include "compiler/weights/WarpLayout.h"

namespace llmc::cuda {

inline constexpr int64_t kGroup = 32, kChunkGroups = 8, kChunk = kGroup * kChunkGroups;

/// A matrix as kernels see it.
struct Matrix {
  const Encoding *encoding;
  int64_t rows, columns;
  WarpLayout layout;

  Matrix(llvm::StringRef encoding, int64_t rows, int64_t columns);
  Matrix(sched::SegmentAttr segment, int64_t columns)
      : Matrix(segment.getEncoding(), segment.getRows(), columns) {}
  /// Whole chunks of K, and the groups behind them.
  int64_t chunks() const { return layout.paddedK / kChunk; }
  int64_t tailGroups() const { return layout.paddedK % kChunk / kGroup; }
};

/// What a product with int8 activations needs of an activation group: d and d * sum of each half.
struct ActScales {
  Val d[2], dsum[2];
};

/// Scales of a group: of each half where groups are of 16, else one; mins or zero points likewise.
struct GroupScales {
  Val scale[2], min[2];
};

class WeightReader {
public:
  /// Reads row `row` (i32, 0..31) of the tile at `tile`.
  WeightReader(Emitter &e, const Matrix &matrix, Val tile, Val row);

  /// Whether products with this weight are made of integers where activations are.
  bool isQuantized() const { return !matrix.encoding->isFloat(); }

  /// Goes to chunk `chunk` (i32); loads of its groups follow.
  void seek(Val chunk);

  /// The eight k-vectors of group `g` (0..7) of the chunk: four signed bytes each, codes (without
  /// zero point; the codebook applied).
  Vals codes(int64_t g);
  /// Only the k-vectors `lane` and 4 + `lane`, lane an i32 in 0..3.
  std::array<Val, 2> codePair(int64_t g, Val lane);
  GroupScales scales(int64_t g);
  /// sum + the group's product, of the integer products of its halves (i32).
  Val accumulate(Val sum, const GroupScales &scales, const std::array<Val, 2> &products,
                 const ActScales &act);

  /// The 32 values of group `g`, as floats.
  Vals values(int64_t g);

private:
  struct Place {
    Val base; ///< address of the first unit of this row
    Val here; ///< of the chunk's first
  };
  /// `bytes` (a power of two, at most 16) from byte `at` of the chunk's part of a stream, as i32
  /// words, or as one i16.
  Vals words(const WarpStream &stream, const Place &place, int64_t at, int64_t bytes);
  Val high(int64_t g, unsigned v, Val word, Val highWord);
  Val lookUp(Val codes);
  Val floatOf(Val halfWord);
  /// Floats of the scale record that group g belongs to.
  Vals record(int64_t g);
  Vals subWords(int64_t first, int64_t count);
  float zeroPoint() const;

  Emitter &e;
  const Matrix &matrix;
  const UkFormat &format;
  Place low, highPlane, scaleRecords, subs;
  Val chunk;
};

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_WEIGHTREADER_H
