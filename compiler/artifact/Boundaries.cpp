//===- Boundaries.cpp - where a program may change devices ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Boundaries.h"
#include "llvm/ADT/SetVector.h"

using namespace llmc;

/// The buffers that `dispatch` reads or (`writes`) writes, in the order of its bindings.
template <typename Visit>
static void forBuffers(sched::DispatchOp dispatch, bool writes, Visit visit) {
  auto other = writes ? sched::Access::Read : sched::Access::Write;
  for (mlir::Attribute attr : dispatch.getBindings()) {
    auto bind = llvm::cast<sched::BindAttr>(attr);
    if (bind.getKind() == sched::BindKind::Buffer && bind.getAccess() != other)
      visit(bind.getSymbol().getAttr());
  }
}

/// What is written before dispatch `at` and read from there on, as it was then.
static llvm::SmallVector<sched::BufferOp>
liveBuffers(sched::ProgramOp program, llvm::ArrayRef<sched::DispatchOp> dispatches, size_t at) {
  llvm::SmallSetVector<mlir::StringAttr, 8> written, read, replaced;
  for (sched::DispatchOp dispatch : dispatches.take_front(at))
    forBuffers(dispatch, /*writes=*/true, [&](mlir::StringAttr name) { written.insert(name); });
  for (sched::DispatchOp dispatch : dispatches.drop_front(at)) {
    forBuffers(dispatch, /*writes=*/false, [&](mlir::StringAttr name) {
      if (written.contains(name) && !replaced.contains(name))
        read.insert(name);
    });
    forBuffers(dispatch, /*writes=*/true, [&](mlir::StringAttr name) { replaced.insert(name); });
  }
  llvm::SmallVector<sched::BufferOp> live;
  for (mlir::StringAttr name : read)
    live.push_back(llvm::cast<sched::BufferOp>(mlir::SymbolTable::lookupSymbolIn(program, name)));
  return live;
}

std::vector<LayerBoundary> llmc::layerBoundaries(sched::ProgramOp program) {
  llvm::SmallVector<sched::DispatchOp> dispatches(
      program.getBody().front().getOps<sched::DispatchOp>());
  // The least layer of what follows a dispatch; what belongs to none ends nothing.
  llvm::SmallVector<int64_t> least(dispatches.size() + 1, std::numeric_limits<int64_t>::max());
  for (size_t i = dispatches.size(); i-- > 0;) {
    int64_t layer = dispatches[i].getLayer();
    least[i] = layer < 0 ? least[i + 1] : std::min(layer, least[i + 1]);
  }
  std::vector<LayerBoundary> boundaries;
  int64_t greatest = -1; // of the dispatches so far
  for (auto [i, dispatch] : llvm::enumerate(dispatches)) {
    int64_t layer = dispatch.getLayer();
    if (layer > greatest && greatest >= 0 && least[i] == layer)
      boundaries.push_back({layer, i, liveBuffers(program, dispatches, i)});
    greatest = std::max(greatest, layer);
  }
  return boundaries;
}
