//===- FormDispatches.cpp - @forward becomes programs ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"
#include "passes/schedule/ProgramBuilder.h"

namespace llmc::schedule {
#define GEN_PASS_DEF_FORMDISPATCHESPASS
#include "passes/schedule/Passes.h.inc"
} // namespace llmc::schedule

using namespace mlir;
using namespace llmc;

namespace {
struct FormDispatches : schedule::impl::FormDispatchesPassBase<FormDispatches> {
  using FormDispatchesPassBase::FormDispatchesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(llm::kForwardName);
    if (!forward || forward.isExternal() || forward.getNumArguments() != 2) {
      module.emitError("has no function @forward(tokens, positions) to schedule");
      return signalPassFailure();
    }
    schedule::KernelSet kernels(module);
    // A model whose rows see all rows of the step has no next token: it has one program.
    bool isEncoder =
        forward
            .walk([](llm::AttendOp op) {
              return op.getBidirectional() ? WalkResult::interrupt() : WalkResult::advance();
            })
            .wasInterrupted();
    SmallVector<schedule::ProgramOptions> programs;
    if (isEncoder)
      programs = {{"encode", prefillRows, prefillRows, false, f32, f32Norms}};
    else
      programs = {{"decode", 1, verifyRows, true, f32, f32Norms},
                  {"verify", verifyRows, verifyRows, true, f32, f32Norms},
                  {"prefill", prefillRows, prefillRows, false, f32, f32Norms}};
    for (const schedule::ProgramOptions &options : programs)
      if (failed(schedule::buildProgram(forward, kernels, options)))
        return signalPassFailure();
    forward.erase();
  }
};
} // namespace
