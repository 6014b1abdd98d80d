//===- ChainModel.h - a hand-made artifact with a known continuation *- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes artifacts without the compiler: the chain model of ChainKernels.c with
// any vocabulary, and with any field of the header spoiled.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_SUPPORT_CHAINMODEL_H
#define LLMC_TESTS_UNIT_SUPPORT_CHAINMODEL_H

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace llmc::test {

struct ChainVariant {
  std::string target = "any";
  std::vector<std::string> features;
  uint32_t computeCapability = 0; ///< 90 and the like: PTX for a CUDA device; 0: code for a CPU
};

/// Fields of CUDA variants.
struct ChainLaunch {
  uint32_t gridX = 0; ///< 0: what is needed
  uint32_t gridY = 1;
  uint32_t block = 8;
  uint32_t shared = 0;
};

struct ChainModel {
  /// next[t] is the token that follows t; its size is the vocabulary's.
  std::vector<int32_t> next;
  /// Token texts; "t0 ", "t1 ", ... where empty. A tokenizer is written if `withTokenizer`.
  std::vector<std::string> pieces;
  bool withTokenizer = true;
  std::vector<int32_t> endTokens;
  int32_t bos = -1;
  bool addBos = false;
  std::string chatTemplate;
  size_t tokenizerSize = 0; ///< 0: as many tokens as the model has
  bool fast = false;        ///< prefill's bits may differ from decode's
  /// A sentence encoder: what is else the logits behind the last token is a text's embedding.
  bool encoder = false;

  uint32_t context = 64;
  uint32_t window = 0;
  uint32_t capacity = 0; ///< 0: the context
  uint32_t verifyRows = 4;
  uint32_t prefillRows = 16;
  std::vector<ChainVariant> variants = {ChainVariant()};
  /// Storing and looking back are layer 0, the logits are layer 1, and the program may change
  /// devices between them. Else nothing belongs to a layer.
  bool layered = false;

  // Fields that a test may spoil.
  uint32_t kernel = 2;
  uint32_t kernelCount = 3;
  uint32_t codeSection = 1;
  uint64_t hashOffset = 0;
  uint64_t arenaSize = 4096;
  uint64_t scratchSize = 64;
  uint64_t weightsOffset = 4096;
  uint64_t codeOffset = 0; ///< 0: where the code is
  uint64_t codeBytes = 0;  ///< 0: all of it
  uint64_t kvSize = 0;     ///< 0: what is needed
  uint32_t tilesBase = 0;  ///< 0: what is needed
  std::string decodeName = "decode";
  uint64_t weightBinding = 0;
  ChainLaunch storeLaunch;
  uint32_t counterBytes = 4;
  uint32_t pickKernel = 3;
  uint32_t cudaWeightsSection = 2;
  uint32_t listedWeightsSection = 2; ///< of the one weight in the header's list
  uint32_t ptxSection = 4;
  uint32_t deviceKind = 1;
  uint32_t boundary = 2;   ///< dispatch
  uint64_t liveOffset = 0; ///< added to where the hashes are
  std::string ptx;         ///< empty: ChainKernels.ptx
  std::string cubin;
  std::string encodeName = "encode";
  uint32_t encodeRows = 0;  ///< 0: the context
  uint32_t outputWidth = 0; ///< of an encoder; 0: as many as there are logits
  uint8_t pooling = 3;      ///< of an encoder: fb::Pooling::Last

  /// t -> t + 1, the last token -> 0.
  static ChainModel counting(int32_t vocab);

  /// The file's bytes.
  std::vector<uint8_t> build() const;
  /// build(), written to a new file in the test's temporary folder; gives its path.
  std::string write() const;
};

/// Writes `bytes` to a new file in the test's temporary folder.
std::string writeTemporary(std::span<const uint8_t> bytes);

/// Makes the checksums of the header and the prefix right again after a test has patched bytes.
void fixChecksums(std::vector<uint8_t> &bytes);

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_SUPPORT_CHAINMODEL_H
