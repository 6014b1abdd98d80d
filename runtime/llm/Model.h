//===- Model.h - an artifact with its code loaded ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_MODEL_H
#define LLMC_RUNTIME_LLM_MODEL_H

#include "runtime/base/Cpu.h"
#include "runtime/device/Executor.h"
#include "runtime/device/cpu/CodeObject.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/llm/Artifact.h"
#include "runtime/text/Tokenizer.h"

#include <memory>
#include <optional>
#include <string>

namespace llmc::rt {

enum class DeviceKind {
  Auto, ///< a CUDA device where the artifact has code for it and there is one, else the CPU
  Cpu,
  Cuda
};

struct ModelOptions {
  /// The target of the variant to use; empty: the best that the device can execute.
  std::string variant = {};
  DeviceKind device = DeviceKind::Auto;
  int ordinal = -1; ///< of the CUDA device; -1: the first that can execute the model
  /// How many of the first layers a CUDA device computes; unset: all of them, and what follows.
  std::optional<uint32_t> gpuLayers = {};
  bool textOnly = false; ///< the vocabulary is wanted, and nothing will be computed
  /// What this CPU can execute.
  CpuFeatures features = CpuFeatures::host();
  FileAccess access = FileAccess::Map;
};

/// Reads "auto", "cpu", "cuda" or "cuda:N" into `options`.
Status parseDevice(std::string_view text, ModelOptions &options);

/// What all sessions on one artifact share. Immutable after load().
class Model {
public:
  static StatusOr<std::shared_ptr<const Model>> load(const std::string &path,
                                                     const ModelOptions &options = {});

  const Artifact &artifact() const { return file; }
  const fb::Model &info() const { return *file.header().model(); }
  /// False for an artifact that holds a vocabulary only, and with textOnly: there is no code.
  bool canCompute() const { return cpu || gpu; }
  /// A program of named tensors (GraphSession.h).
  bool isGraph() const { return info().kind() == fb::ModelKind::Graph; }
  /// One that embeds texts (Encoder.h). What is neither is a language model (Session.h).
  bool isEncoder() const { return info().kind() == fb::ModelKind::Encoder; }

  /// What computes steps: one of both, or both, the first layers then on the CUDA device.
  const fb::Variant *cpuVariant() const { return cpu; }
  std::shared_ptr<const CudaModel> cuda() const { return gpu; }
  const CodeObject &code() const { return object; }
  std::span<const uint8_t> cpuWeights() const { return file.section(cpu->weights_section()); }
  /// Where the programs go on on the CPU, where both compute.
  const PerPhase<const fb::Boundary *> &boundaries() const { return ends; }
  /// Bytes of the KV area that the CUDA device needs: where both compute, up to its last layer's.
  uint64_t cudaKvBytes() const;
  /// The one variant, or that of the first layers.
  const fb::Variant &variant() const { return gpu ? *gpu->variant : *cpu; }
  /// "x86-64-v4", "sm90", or both.
  std::string target() const;
  /// "cpu", or the CUDA device's name.
  std::string device() const;
  /// Why the CPU computes although there is code for CUDA devices, else empty.
  const std::string &fallback() const { return reason; }
  /// Whether prefill's bits may differ from decode's.
  bool isFast() const { return (cpu && cpu->fast()) || (gpu && gpu->variant->fast()); }

  /// Null for an artifact without a vocabulary.
  const Tokenizer *tokenizer() const { return text.get(); }
  uint32_t vocabSize() const { return info().vocab_size(); }

private:
  Model(Artifact artifact) : file(std::move(artifact)) {}
  Status loadCode(const ModelOptions &options);
  Status loadCpu(const ModelOptions &options);
  Status loadCuda(const ModelOptions &options);
  Status loadWeights(CudaModel &model);
  Status setBoundaries(const fb::Variant &variant, uint32_t layers);

  Artifact file;
  const fb::Variant *cpu = nullptr;
  CodeObject object;
  std::shared_ptr<const CudaModel> gpu;
  PerPhase<const fb::Boundary *> ends = {};
  uint32_t gpuLayers = 0;
  std::string reason;
  std::unique_ptr<Tokenizer> text;
};

/// The CPU variant named `name`, or the first of `header` that a CPU with `features` can execute.
/// The error says which feature is missing.
StatusOr<const fb::Variant *> chooseVariant(const fb::Artifact &header, const std::string &name,
                                            const CpuFeatures &features);

/// The variant's program of each phase; null where there is none.
PerPhase<const fb::Program *> programsOf(const fb::Variant &variant);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_MODEL_H
