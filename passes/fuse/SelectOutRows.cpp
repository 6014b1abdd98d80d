//===- SelectOutRows.cpp - logits of the wanted rows only ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/fuse/Passes.h"

namespace llmc::fuse {
#define GEN_PASS_DEF_SELECTOUTROWSPASS
#include "passes/fuse/Passes.h.inc"
} // namespace llmc::fuse

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

/// True if row i of the result depends on row i of operand 0 alone.
static bool isRowWise(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return !linear.getResidual() && linear->getNumResults() == 1;
  return isa<NormOp, ActOp, ScaleOp, SoftcapOp>(op);
}

namespace {
struct SelectOutRows : fuse::impl::SelectOutRowsPassBase<SelectOutRows> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(kForwardName);
    if (!forward || forward.isExternal())
      return;
    auto ret = dyn_cast<func::ReturnOp>(forward.front().getTerminator());
    if (!ret || ret->getNumOperands() != 1)
      return;
    OpOperand *at = &ret->getOpOperand(0);
    if (at->get().getDefiningOp<OutRowsOp>())
      return;
    while (Operation *op = at->get().getDefiningOp()) {
      if (!isRowWise(op) || !op->hasOneUse())
        break;
      at = &op->getOpOperand(0);
      if (at->get().getDefiningOp<OutRowsOp>())
        return;
    }
    OpBuilder builder(at->getOwner());
    at->set(OutRowsOp::create(builder, at->getOwner()->getLoc(), at->get().getType(), at->get()));
  }
};
} // namespace
