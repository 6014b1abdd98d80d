//===- Sched.cpp - the sched dialect --------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Sched.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::sched;

#include "compiler/ir/SchedDialect.cpp.inc"

#include "compiler/ir/SchedEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/ir/SchedAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/ir/SchedOps.cpp.inc"

void SchedDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/ir/SchedAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/ir/SchedOps.cpp.inc"
      >();
}

static LogicalResult checkSegments(Operation *op, ArrayAttr segments) {
  if (segments.empty())
    return op->emitOpError("has no segments");
  for (Attribute segment : segments)
    if (!isa<SegmentAttr>(segment))
      return op->emitOpError("has ") << segment << " where a segment is expected";
  return success();
}

/// A sum is made by the kernels that normalize it.
template <typename Op> static LogicalResult checkAddNorm(Op op) {
  if (op.getAddNormAttr() && op.getPrologue() != Prologue::Norm)
    return op.emitOpError("adds to an input that it does not normalize");
  if (op.getKeepSum() && !op.getAddNormAttr())
    return op.emitOpError("keeps a sum that it does not make");
  return success();
}

LogicalResult LinearKernelOp::verify() {
  if (failed(checkSegments(*this, getSegments())))
    return failure();
  if (getGated()) {
    auto gate = cast<SegmentAttr>(getSegments()[0]);
    if (getSegments().size() != 2 ||
        cast<SegmentAttr>(getSegments()[1]).getRows() != gate.getRows())
      return emitOpError("is gated: it needs two segments of equal rows");
  }
  if ((getPrologue() == Prologue::Norm) != bool(getNormAttr()))
    return emitOpError("needs a norm exactly when its prologue is norm");
  if (getPrologue() == Prologue::Merge && getMergeHeads() == 0)
    return emitOpError("merges partials of no heads");
  return checkAddNorm(*this);
}

LogicalResult QkvKernelOp::verify() {
  if (failed(checkSegments(*this, getSegments())))
    return failure();
  if (getSegments().size() != 3)
    return emitOpError("has ") << getSegments().size() << " segments; query, key, value expected";
  if (getHeadDim() % kPanelRows)
    return emitOpError("has heads of ")
           << getHeadDim() << " features, no multiple of " << kPanelRows;
  return checkAddNorm(*this);
}

LogicalResult TensorKernelOp::verify() {
  auto arguments = getBody().front().getArguments();
  if (arguments.size() < 2 || !llvm::all_of(arguments.take_back(2), [](BlockArgument tile) {
        return tile.getType().isIndex();
      }))
    return emitOpError("does not end its arguments with the first and the last tile");
  for (BlockArgument binding : arguments.drop_back(2)) {
    auto type = dyn_cast<MemRefType>(binding.getType());
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
      return emitOpError("binds ")
             << binding.getType() << " where a memref of static shape is expected";
  }
  return success();
}

LogicalResult BufferOp::verify() {
  if (getOffset() && *getOffset() % 64)
    return emitOpError("is at ") << *getOffset() << ", which is no multiple of 64";
  return success();
}

LogicalResult DispatchOp::verify() {
  for (Attribute binding : getBindings())
    if (!isa<BindAttr>(binding))
      return emitOpError("has ") << binding << " where a binding is expected";
  if (getTiles().getBase() <= 0)
    return emitOpError("has no tiles");
  return success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *module = (*this)->getParentOp()->getParentOp();
  Operation *kernel = symbols.lookupSymbolIn(module, getKernelAttr());
  if (!kernel || kernel->getDialect() != (*this)->getDialect() || isa<ProgramOp>(kernel))
    return emitOpError("runs ") << getKernelAttr() << ", which is no kernel";
  for (Attribute attr : getBindings()) {
    auto bind = cast<BindAttr>(attr);
    bool buffer = bind.getKind() == BindKind::Buffer;
    Operation *scope = buffer ? (*this)->getParentOp() : module;
    Operation *target = symbols.lookupSymbolIn(scope, bind.getSymbol());
    bool matches = target && (buffer                               ? isa<BufferOp>(target)
                              : bind.getKind() == BindKind::Weight ? isa<llm::WeightOp>(target)
                                                                   : isa<llm::KvOp>(target));
    if (!matches)
      return emitOpError("binds ") << bind.getSymbol() << " as "
                                   << stringifyBindKind(bind.getKind()) << ", which it is not";
  }
  return success();
}
