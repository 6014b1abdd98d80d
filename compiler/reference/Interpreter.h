//===- Interpreter.h - the llm dialect, evaluated ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs @forward of an llm-dialect module, as a frontend made it or after any
// pass on the dialect, without generated code. It is the meaning of the ops:
// passes must not change what it computes, kernels are compared with it.
//
// Weights are dequantized row by row while they are used, so memory is that of
// the KV state and of the step's activations. Row products run on all cores;
// each result is computed by one thread in one order.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_REFERENCE_INTERPRETER_H
#define LLMC_COMPILER_REFERENCE_INTERPRETER_H

#include "compiler/ir/Llm.h"
#include "compiler/support/ModelSource.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace llmc {

class Interpreter {
public:
  /// `module` and `files` must outlive the interpreter. Fails where a weight's bytes or recipe
  /// are not valid or @forward is missing.
  static llvm::Expected<Interpreter> create(mlir::ModuleOp module,
                                            llvm::ArrayRef<SourceFile> files);
  Interpreter(Interpreter &&);
  ~Interpreter();

  /// Computes the tokens at positions `position`, `position + 1`, ... after those of earlier
  /// calls and returns the logits of the rows `outRows` (indices into `tokens`, all where empty):
  /// float32 [rows, vocabulary]. Fails for a token outside the vocabulary, a position that leaves
  /// a gap, or an op that has no meaning here.
  llvm::Expected<std::vector<float>> step(llvm::ArrayRef<int32_t> tokens, int64_t position,
                                          llvm::ArrayRef<int64_t> outRows = {});
  /// Forgets all positions.
  void reset();
  int64_t vocabulary() const;

private:
  class Impl;
  explicit Interpreter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace llmc

#endif // LLMC_COMPILER_REFERENCE_INTERPRETER_H
