//===- Passes.td - from llm to sched ---------------------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_SCHEDULE_PASSES_TD
#define LLMC_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormDispatchesPass : Pass<"llmc-form-dispatches", "::mlir::ModuleOp"> {
  let summary = "turn @forward into programs of dispatches";
  let description = [{
    Makes the programs `@decode` (one row), `@verify` (a draft's rows) and
    `@prefill` (a chunk of the prompt) and the kernels they run, then removes
    `@forward`. Kernels that say the same are one. With few rows every worker
    normalizes and quantizes the input itself (a linear's prologue) and attention
    is split over KV chunks; in prefill `prepare` dispatches do it once.
    Matrices that kernels read must be packed (`llmc-pack-weights`).
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::llmc::sched::SchedDialect"];
  let options = [
    Option<"f32", "f32", "bool", "false", "float activations (the reference mode)">,
    Option<"f32Norms", "f32-norms", "bool", "false", "float activations behind norms">,
    Option<"verifyRows", "verify-rows", "int64_t", "16", "rows of the verify program">,
    Option<"prefillRows", "prefill-rows", "int64_t", "512", "rows of the prefill program">];
}

def PackWeightsPass : Pass<"llmc-pack-weights", "::mlir::ModuleOp"> {
  let summary = "append the steps that lay weights out for kernels";
  let description = [{
    Matrices of linear, qkv and embed get a pack step with the layouts of all
    devices that are compiled for. Vectors (norms, biases) become f32. A weight
    that is used as both is refused.
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
  let options = [
    ListOption<"layouts", "layouts", "std::string", "layouts of matrices (panel16)">];
}

def PlaceBarriersPass : Pass<"llmc-place-barriers", "::llmc::sched::ProgramOp"> {
  let summary = "put barriers where data crosses dispatches";
  let description = [{
    A barrier stands before a dispatch that reads or writes what a dispatch since
    the last barrier wrote, or writes what one read.
  }];
  let dependentDialects = ["::llmc::sched::SchedDialect"];
}

def PlanBuffersPass : Pass<"llmc-plan-buffers", "::llmc::sched::ProgramOp"> {
  let summary = "give every buffer its place in the arena";
  let description = [{
    Buffers that are never needed at the same time share bytes. A buffer lives
    from the first dispatch that binds it to the last; where two dispatches may
    run at the same time (no barrier between them), their buffers do not share.
    Those of ports share with none.
    Largest first, lowest offset that is free, multiples of 64 bytes.
  }];
  let dependentDialects = ["::llmc::sched::SchedDialect"];
}

#endif // LLMC_PASSES_SCHEDULE_PASSES_TD
