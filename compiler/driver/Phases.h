//===- Phases.h - the phases of a compilation -------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One enum for the command line (--compile-to), the dumps (--dump-ir) and the
// tests. A phase is a pass pipeline; `import` and `emit` are the two ends.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_PHASES_H
#define LLMC_COMPILER_DRIVER_PHASES_H

#include "mlir/Pass/PassManager.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc {

enum class Phase { Import, Fuse, Prune, Quantize, PlanKv, Schedule, Codegen, Emit };
inline constexpr Phase kPhases[] = {Phase::Import, Phase::Fuse,     Phase::Prune,   Phase::Quantize,
                                    Phase::PlanKv, Phase::Schedule, Phase::Codegen, Phase::Emit};

/// "import", "fuse", "prune", "quantize", "plan-kv", "schedule", "codegen", "emit".
llvm::StringRef phaseName(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);

/// What the pipelines depend on.
struct PipelineOptions {
  bool f32Activations = false;
  int64_t context = 4096;
  int64_t prefillRows = 512;
  int64_t verifyRows = 16;
  /// Of the pass llmc-quantize-weights.
  std::string quantScheme = "none";
  std::vector<std::string> quantOverrides;
  bool quantizes() const { return quantScheme != "none" || !quantOverrides.empty(); }
  /// Layouts of packed weights (llm.pack), one per kind of device.
  std::vector<std::string> layouts = {"panel16"};
  /// The module is @graph on tensors, not @forward in the llm dialect.
  bool graph = false;
  /// Of quantized activations: what comes out of a norm stays float32.
  bool f32Norms = false;
};

/// Adds the passes of `phase`; nothing for import, codegen and emit.
void buildPhasePipeline(mlir::OpPassManager &pm, Phase phase, const PipelineOptions &options);

/// Registers every pass of the project and a pipeline `llmc-PHASE` for each phase.
void registerLlmcPasses();
/// Registers every dialect that the phases use.
void registerLlmcDialects(mlir::DialectRegistry &registry);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_PHASES_H
