//===- Report.h - what a compilation did, as JSON ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `llmc compile --report FILE.json`:
//
//   {"source", "artifact", "artifact_bytes",
//    "phases":   [{"name", "seconds"}],
//    "weights":  [{"name", "rows", "columns", "from", "to", "bits_per_weight", "error",
//                  "rest_error", "calibrated"}],
//    "fidelity": {"perplexity", "source_perplexity", "mean_kld", "same_top", "tokens"},
//    "programs": [{"name", "max_rows", "dispatches", "barriers", "barriers_per_layer",
//                  "arena_bytes"}],
//    "variants": [{"target", "numerics", "kernels", "code_bytes"}]}
//
// "error" is 0 for a weight whose numbers did not change, else the root of the mean
// square error relative to the weight's; "fidelity" is there where any did.
// "rest_error": the error relative to the weight without the largest element of each
// group, which shows what outliers do to all others.
// "calibrated": whether errors of a quantized weight were weighed by its inputs.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_REPORT_H
#define LLMC_COMPILER_DRIVER_REPORT_H

#include "compiler/artifact/Writer.h"
#include "compiler/driver/Fidelity.h"
#include <chrono>

namespace llmc {

/// The quantize step of a weight, or null.
llm::QuantizeAttr quantizeStep(llm::WeightOp weight);
/// Lines on matrices that did not become what --quant says; `calibrated`: they should have been.
std::vector<std::string> describeQuantized(mlir::ModuleOp module, bool calibrated);

class CompileReport {
public:
  /// Ends the running phase and starts `name`.
  void beginPhase(llvm::StringRef name);
  /// Writes the report of a finished compilation to `path`.
  llvm::Error write(llvm::StringRef path, const ArtifactContents &contents,
                    llvm::StringRef artifact);

  /// Matrices whose rest_error stands out among those of the same encoding, as a line; empty where
  /// there are none.
  std::string describeOutliers(mlir::ModuleOp module) const;

  /// Of a lossy compilation, before write(): the errors of quantized weights, and what they cost.
  llvm::StringMap<QuantizeError> errors;
  std::optional<Fidelity> fidelity;

private:
  void endPhase();

  struct PhaseTime {
    std::string name;
    double seconds;
  };
  std::vector<PhaseTime> phases;
  std::string running;
  std::chrono::steady_clock::time_point start;
};

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_REPORT_H
