//===- Compile.h - from a model file to an artifact -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_COMPILE_H
#define LLMC_COMPILER_DRIVER_COMPILE_H

#include "compiler/driver/Phases.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc {

/// Whether prefill gives the bits of decode. Default: strict for targets where that costs less than
/// 1.3 times the time of prefill, else fast (docs/design/numerics.md).
enum class Numerics { Default, Strict, Fast };

/// How activations reach the products: with 8 bits, in float32 (the reference mode), or mixed: what
/// comes out of norms stays float32. Default: mixed for encoders, whose embeddings are compared
/// with those of others, else int8.
enum class Activations { Default, Int8, Mixed, F32 };

struct CompileOptions {
  std::string input;
  /// Empty: the input's name with the extension .llmc, in the current folder.
  std::string output;
  std::vector<std::string> targets = {"native"};
  Activations activations = Activations::Default;
  Numerics numerics = Numerics::Default;
  /// Positions that a sequence may have; 0: as the model was trained.
  int64_t context = 0;
  /// Folder of the tokenizer.json that replaces the model's own tokenizer; empty: none.
  std::string tokenizer;
  /// Of a sentence encoder: none, mean, cls or last; empty: as the model says, else mean.
  std::string pooling;
  /// Whether a result gets length 1; nothing: as the model says.
  std::optional<bool> normalize;
  /// A scheme or an encoding of llmc-quantize-weights, and its overrides PATTERN=ENCODING.
  std::string quant = "none";
  std::vector<std::string> quantOverrides;
  /// A text on which the inputs of matrices are measured, so that quantizing weighs their errors.
  std::string calibrate;
  /// A lossy compilation fails, and writes nothing, where the mean KL is larger; negative: never.
  double maxKl = -1;
  /// Compare a lossy artifact with one of the source.
  bool measure = true;
  /// Of an ONNX graph: "NAME=2x128" and "NAME=FILE.pb" (GraphImportOptions).
  std::vector<std::string> shapes, constants;
  /// Replaces the pre-tokenizer that the file names.
  std::string preTokenizer;
  /// Last phase to run; before `emit`, its IR is printed to stdout and nothing is written.
  Phase compileTo = Phase::Emit;
  /// Where IR is written after every phase; empty: nowhere.
  std::string dumpDir;
  /// Where the report (Report.h) goes; empty: nowhere.
  std::string reportPath;
  bool quiet = false;
  /// Compile fast rather than make fast code.
  bool quick = false;
};

/// Compiles as asked; the error is one line that names the file, the place and the remedy.
llvm::Error compile(const CompileOptions &options);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_COMPILE_H
