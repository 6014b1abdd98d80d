//===- Calibrate.h - what matrices are multiplied with ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How much an error in column k of a matrix costs depends on feature k of its
// inputs: y - y' = sum_k (w_k - w'_k) x_k, so that with features independent of each
// other the mean square of it is sum_k (w_k - w'_k)^2 mean(x_k^2). The means are
// taken over a text, by running the model in its reference mode: prefill makes a
// record of float32 features for every product, which a StepObserver reads.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_CALIBRATE_H
#define LLMC_COMPILER_DRIVER_CALIBRATE_H

#include "compiler/support/ModelSource.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <vector>

namespace llmc {

struct Calibration {
  /// Per matrix, by its name: the mean square of each input feature. Matrices are missing that no
  /// input reached, whose inputs were zero or not finite, and that are the embedding table, too.
  llvm::StringMap<std::vector<float>> meanSquares;
  uint64_t tokens = 0;
};

/// Runs the artifact `model`, made with float activations, over the first windows of `text`.
llvm::Expected<Calibration> calibrate(const std::string &model, llvm::StringRef text,
                                      const std::function<void(uint64_t, uint64_t)> &progress);

/// Gives the matrices of `module` their `llm.importance` and returns the file, number `file`, that
/// it is in.
SourceFile setImportance(mlir::ModuleOp module, const Calibration &calibration, int64_t file);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_CALIBRATE_H
