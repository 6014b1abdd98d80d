//===- Probe.h - running parts of a graph on chosen numbers -----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters write one and the same function in many forms. What a small part of the
// graph *is*, a causal mask, a rotation by position, a GELU, is found out by running it:
// the folds of the operator registry compute it for a step of chosen length after a past
// of chosen length, with chosen numbers for the rows it works on. What does not behave
// as the function is supposed to is not taken for it, whatever it looks like.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_RAISE_PROBE_H
#define LLMC_FRONTENDS_ONNX_RAISE_PROBE_H

#include "frontends/onnx/OpRegistry.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc::onnx {

/// What the graph's inputs stand for.
struct Roles {
  Value *ids = nullptr;
  std::vector<Value *> positions; ///< of the rows: past, past + 1, ...
  std::vector<Value *> masks;     ///< ones: everything is visible
  std::vector<Value *> types;     ///< zeros: all tokens are of the first segment
  std::vector<Value *> pasts;     ///< keys or values of earlier positions
  unsigned sequenceSymbol = 0, pastSymbol = 0;
};

class Probe {
public:
  Probe(const Model &model, const Roles &roles, int64_t sequence, int64_t past)
      : model(model), roles(roles), sequence(sequence), past(past) {}

  int64_t rows() const { return sequence; }
  int64_t firstPosition() const { return past; }
  /// The size of a dimension in this step; nothing where it depends on anything else.
  std::optional<int64_t> size(const Dim &dim) const;
  std::optional<Dims> dims(const Value &value) const;

  using Given = std::pair<const Value *, const Tensor *>;
  /// Computes a value from masks, positions, constants and what is given. Fails where it depends
  /// on anything else, or on an operator without a fold.
  llvm::Expected<Tensor> evaluate(const Value &value, llvm::ArrayRef<Given> given = {});

private:
  llvm::Expected<Tensor> leaf(const Value &value);

  const Model &model;
  const Roles &roles;
  int64_t sequence, past;
  llvm::DenseMap<const Value *, Tensor> known; ///< what depends on nothing given
};

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_RAISE_PROBE_H
