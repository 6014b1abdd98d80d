//===- Writer.h - writes a compiled artifact --------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is made beside its final name, mapped, filled in parallel (weights
// are evaluated straight into the mapping) and renamed when it is complete. A
// failure leaves nothing behind.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_ARTIFACT_WRITER_H
#define LLMC_COMPILER_ARTIFACT_WRITER_H

#include "compiler/ir/Sched.h"
#include "compiler/support/ModelSource.h"
#include "compiler/weights/Quantize.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <array>
#include <functional>
#include <optional>

namespace llmc {

/// What a CUDA variant has besides; of a kernel's launches, the one of a program of `maxRows` rows.
struct ArtifactLaunch {
  std::array<int64_t, 3> grid = {1, 1, 1};
  int64_t block = 1, sharedBytes = 0;
};
struct ArtifactCuda {
  unsigned computeCapability;
  std::string ptx;
  int64_t counterBytes = 0;
  std::function<ArtifactLaunch(llvm::StringRef kernel, int64_t maxRows)> launch;
  /// Kernel that is launched behind a program.
  std::string pickKernel;
};

/// Code of one target for the programs of the module.
struct ArtifactVariant {
  std::string target, triple;
  std::vector<std::string> features;
  /// An ELF shared object, or a cubin (may be empty).
  std::string code;
  /// Kernel names in the order of the code object's table.
  std::vector<std::string> kernels;
  llvm::StringMap<int64_t> scratchBytes;
  /// Whether prefill's bits may differ from decode's.
  bool fast = false;
  /// Layout of the weights that it reads (llm.pack).
  std::string layout = "panel16";
  std::optional<ArtifactCuda> cuda;
};

/// Facts about the model that are not in the module.
struct ArtifactModel {
  std::string name, architecture, source, activations, numerics;
  /// A program of tensors in and tensors out, without tokens.
  bool isGraph = false;
  /// A sentence encoder: rows of `width` features, pooled ("none", "mean", "cls", "last") and
  /// normalized or not.
  bool isEncoder = false, normalize = false;
  int64_t width = 0;
  std::string pooling = "none";
  int64_t vocab = 0, hidden = 0, layers = 0, context = 0, trainContext = 0;
  std::vector<std::pair<std::string, std::string>> properties;
};

struct ArtifactContents {
  ArtifactModel model;
  const TokenizerData *tokenizer = nullptr;
  std::string chatTemplate;
  /// Scheduled module with llm.weight, llm.kv and sched.program; null for a vocabulary only.
  mlir::ModuleOp module;
  llvm::ArrayRef<SourceFile> files;
  std::vector<ArtifactVariant> variants;
};

/// Where a weight ends up in its section, which is the one of a layout.
struct PlacedWeight {
  llm::WeightOp op;
  unsigned section;
  uint64_t offset = 0, size = 0, checksum = 0;
  QuantizeError error = {};
};

/// Called from worker threads with bytes done and bytes in all.
using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

/// `errors`, where given, gets the error of each weight that is quantized, by name.
llvm::Error writeArtifact(llvm::StringRef path, const ArtifactContents &contents,
                          const ProgressFn &progress = nullptr,
                          llvm::StringMap<QuantizeError> *errors = nullptr);

/// The header as flatbuffer bytes. `sections` are {name, kind, offset, size, checksum} in order.
struct PlacedSection {
  std::string name;
  int kind;
  uint64_t offset, size, checksum;
};
std::string buildHeader(const ArtifactContents &contents, llvm::ArrayRef<PlacedWeight> weights,
                        llvm::ArrayRef<PlacedSection> sections);

/// The layouts of the variants, each once: their weights are the first sections. One, though
/// unused, where there are no variants.
std::vector<std::string> weightLayouts(const ArtifactContents &contents);

} // namespace llmc

#endif // LLMC_COMPILER_ARTIFACT_WRITER_H
