//===- Phases.cpp - the phases of a compilation ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Phases.h"
#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/codegen/cuda/CodeObject.h"
#include "compiler/ir/Sched.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"
#include "passes/fuse/Passes.h"
#include "passes/kv/Passes.h"
#include "passes/quantize/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/tensor/Passes.h"

using namespace llmc;

llvm::StringRef llmc::phaseName(Phase phase) {
  switch (phase) {
  case Phase::Import:
    return "import";
  case Phase::Fuse:
    return "fuse";
  case Phase::Prune:
    return "prune";
  case Phase::Quantize:
    return "quantize";
  case Phase::PlanKv:
    return "plan-kv";
  case Phase::Schedule:
    return "schedule";
  case Phase::Codegen:
    return "codegen";
  case Phase::Emit:
    return "emit";
  }
  llvm_unreachable("all phases are named");
}

std::optional<Phase> llmc::parsePhase(llvm::StringRef name) {
  for (Phase phase : kPhases)
    if (phaseName(phase) == name)
      return phase;
  return std::nullopt;
}

static void addProgramPasses(mlir::OpPassManager &pm) {
  mlir::OpPassManager &programs = pm.nest<sched::ProgramOp>();
  programs.addPass(schedule::createPlaceBarriersPass());
  programs.addPass(schedule::createPlanBuffersPass());
}

void llmc::buildPhasePipeline(mlir::OpPassManager &pm, Phase phase,
                              const PipelineOptions &options) {
  if (options.graph) {
    if (phase != Phase::Schedule)
      return;
    tensors::buildTensorPipeline(pm);
    addProgramPasses(pm);
    return;
  }
  switch (phase) {
  case Phase::Fuse:
    pm.addPass(mlir::createCanonicalizerPass());
    pm.addPass(mlir::createCSEPass());
    pm.addPass(fuse::createMergeProjectionsPass());
    pm.addPass(fuse::createFuseNormPass());
    pm.addPass(fuse::createFuseEpiloguePass());
    pm.addPass(fuse::createFuseQkvPass());
    pm.addPass(fuse::createSplitAttentionPass());
    pm.addPass(fuse::createSelectOutRowsPass());
    return;
  case Phase::Quantize: {
    quantize::QuantizeWeightsPassOptions quantize;
    quantize.scheme = options.quantScheme;
    for (const std::string &rule : options.quantOverrides)
      quantize.overrides.push_back(rule);
    pm.addPass(quantize::createQuantizeWeightsPass(quantize));
    return;
  }
  case Phase::PlanKv: {
    kv::PlanKvPassOptions plan;
    plan.context = options.context;
    plan.maxRows = options.prefillRows;
    if (options.f32Activations)
      plan.encoding = "f32";
    pm.addPass(kv::createPlanKvPass(plan));
    return;
  }
  case Phase::Schedule: {
    schedule::FormDispatchesPassOptions form;
    form.f32 = options.f32Activations;
    form.f32Norms = options.f32Norms;
    form.prefillRows = options.prefillRows;
    form.verifyRows = options.verifyRows;
    schedule::PackWeightsPassOptions pack;
    for (const std::string &layout : options.layouts)
      pack.layouts.push_back(layout);
    pm.addPass(schedule::createPackWeightsPass(pack));
    pm.addPass(schedule::createFormDispatchesPass(form));
    addProgramPasses(pm);
    return;
  }
  default:
    return;
  }
}

namespace {
struct PhaseOptions : mlir::PassPipelineOptions<PhaseOptions> {
  Option<bool> f32{*this, "f32", llvm::cl::desc("float activations"), llvm::cl::init(false)};
  Option<int64_t> context{*this, "context", llvm::cl::desc("positions"), llvm::cl::init(4096)};
  Option<int64_t> prefillRows{*this, "prefill-rows", llvm::cl::desc("rows of a prefill step"),
                              llvm::cl::init(512)};
  Option<bool> graph{*this, "graph", llvm::cl::desc("@graph on tensors"), llvm::cl::init(false)};
  Option<int64_t> verifyRows{*this, "verify-rows", llvm::cl::desc("rows of a verify step"),
                             llvm::cl::init(16)};
};
} // namespace

void llmc::registerLlmcPasses() {
  fuse::registerLlmcFusePasses();
  kv::registerLlmcKvPasses();
  quantize::registerLlmcQuantizePasses();
  schedule::registerLlmcSchedulePasses();
  tensors::registerLlmcTensorPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  for (Phase phase : {Phase::Fuse, Phase::PlanKv, Phase::Schedule})
    mlir::PassPipelineRegistration<PhaseOptions>(
        ("llmc-phase-" + phaseName(phase)).str(), ("the passes of phase " + phaseName(phase)).str(),
        [phase](mlir::OpPassManager &pm, const PhaseOptions &o) {
          buildPhasePipeline(
              pm, phase,
              {o.f32, o.context, o.prefillRows, o.verifyRows, "none", {}, {"panel16"}, o.graph});
        });
}

void llmc::registerLlmcDialects(mlir::DialectRegistry &registry) {
  registry.insert<llm::LlmDialect, sched::SchedDialect, mlir::func::FuncDialect>();
  tensors::registerTensorDialects(registry);
  cpu::registerCodegenDialects(registry);
  cuda::registerCodegenDialects(registry);
}
