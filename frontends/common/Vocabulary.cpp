//===- Vocabulary.cpp - as many logits as there are tokens ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Vocabulary.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace llmc;

static mlir::func::FuncOp forwardOf(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>(llm::kForwardName);
}

bool llmc::isEncoder(mlir::ModuleOp module) {
  mlir::func::FuncOp forward = forwardOf(module);
  return forward && forward
                        .walk([](mlir::Operation *op) {
                          auto attention = llvm::dyn_cast<llm::AttentionOp>(op);
                          auto attend = llvm::dyn_cast<llm::AttendOp>(op);
                          return (attention && attention.getBidirectional()) ||
                                         (attend && attend.getBidirectional())
                                     ? mlir::WalkResult::interrupt()
                                     : mlir::WalkResult::advance();
                        })
                        .wasInterrupted();
}

int64_t llmc::vocabularyOf(mlir::ModuleOp module) {
  mlir::func::FuncOp forward = forwardOf(module);
  if (!isEncoder(module))
    return llvm::cast<mlir::RankedTensorType>(forward.getResultTypes()[0]).getDimSize(1);
  int64_t rows = 0;
  forward.walk([&](llm::EmbedOp embed) {
    if (embed.getTokens() == forward.getArgument(0))
      rows = mlir::SymbolTable::lookupNearestSymbolFrom<llm::WeightOp>(embed, embed.getWeightAttr())
                 .getRows();
  });
  return rows;
}

bool llmc::dropPaddedLogits(mlir::ModuleOp module, int64_t tokens) {
  mlir::func::FuncOp forward = forwardOf(module);
  mlir::Operation *end = forward.getBody().front().getTerminator();
  // Scales and soft-caps may follow the head.
  llvm::SmallVector<mlir::Operation *> chain;
  mlir::Operation *op = end->getOperand(0).getDefiningOp();
  while (llvm::isa_and_present<llm::ScaleOp, llm::SoftcapOp>(op)) {
    chain.push_back(op);
    op = op->getOperand(0).getDefiningOp();
  }
  auto head = llvm::dyn_cast_or_null<llm::LinearOp>(op);
  if (!head || head.getNumResults() != 1 || head.getBiases() || tokens <= 0 ||
      tokens >= llm::features(head.getResult(0)))
    return false;
  chain.push_back(head);
  mlir::SymbolTable symbols(module);
  auto weight = symbols.lookup<llm::WeightOp>(head.getWeight(0).getValue());
  llm::WeightOp part = weight.clone();
  part.setSymName("output.weight");
  part.appendStep(llm::SliceRowsAttr::get(module.getContext(), 0, tokens));
  mlir::StringAttr name = symbols.insert(part, forward->getIterator());
  mlir::Builder b(module.getContext());
  head.setWeightsAttr(b.getArrayAttr({mlir::FlatSymbolRefAttr::get(name)}));
  for (mlir::Operation *changed : chain) {
    auto type = llvm::cast<mlir::RankedTensorType>(changed->getResult(0).getType());
    changed->getResult(0).setType(type.clone({type.getDimSize(0), tokens}));
  }
  forward.setFunctionType(
      b.getFunctionType(forward.getArgumentTypes(), {end->getOperand(0).getType()}));
  if (mlir::SymbolTable::symbolKnownUseEmpty(weight, module))
    weight.erase();
  return true;
}
