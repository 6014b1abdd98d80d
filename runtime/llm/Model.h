//===- Model.h - an artifact with its code loaded ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_MODEL_H
#define LLMC_RUNTIME_LLM_MODEL_H

#include "runtime/base/Cpu.h"
#include "runtime/device/cpu/CodeObject.h"
#include "runtime/llm/Artifact.h"
#include "runtime/text/Tokenizer.h"

#include <memory>
#include <string>

namespace llmc::rt {

struct ModelOptions {
  /// The target of the variant to use; empty: the first one that this CPU can execute.
  std::string variant = {};
  /// What this CPU can execute.
  CpuFeatures features = CpuFeatures::host();
  FileAccess access = FileAccess::Map;
};

/// What all sessions on one artifact share. Immutable after load().
class Model {
public:
  static StatusOr<std::shared_ptr<const Model>> load(const std::string &path,
                                                     const ModelOptions &options = {});

  const Artifact &artifact() const { return file; }
  const fb::Model &info() const { return *file.header().model(); }
  /// False for an artifact that holds a vocabulary only: it has no variant and no code.
  bool canCompute() const { return chosen; }
  /// True for a program of named tensors (GraphSession.h), false for a language model (Session.h).
  bool isGraph() const { return info().kind() == fb::ModelKind::Graph; }
  const fb::Variant &variant() const { return *chosen; }
  const CodeObject &code() const { return object; }
  /// Null for an artifact without a vocabulary.
  const Tokenizer *tokenizer() const { return text.get(); }
  uint32_t vocabSize() const { return info().vocab_size(); }

private:
  Model(Artifact artifact) : file(std::move(artifact)) {}
  Status loadCode(const ModelOptions &options);

  Artifact file;
  const fb::Variant *chosen = nullptr;
  CodeObject object;
  std::unique_ptr<Tokenizer> text;
};

/// The variant named `name`, or the first of `header` that a CPU with `features` can execute. The
/// error says which feature is missing.
StatusOr<const fb::Variant *> chooseVariant(const fb::Artifact &header, const std::string &name,
                                            const CpuFeatures &features);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_MODEL_H
