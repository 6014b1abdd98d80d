//===- FormTensorDispatches.cpp - loops over buffers become dispatches ----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/tensor/Passes.h"

namespace llmc::tensors {
#define GEN_PASS_DEF_FORMTENSORDISPATCHESPASS
#include "passes/tensor/Passes.h.inc"
} // namespace llmc::tensors

using namespace mlir;
using namespace llmc;
using namespace llmc::sched;

/// What a view shows a part of: an argument, an allocation or a constant.
static Value rootOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// The most bytes that a program's buffers may have together; see the runtime's checks.
static constexpr int64_t kMostBytes = int64_t(1) << 40;

static int64_t byteSize(MemRefType type) {
  const Type element = type.getElementType();
  int64_t bytes = element.isIndex() ? 8 : std::max(8u, element.getIntOrFloatBitWidth()) / 8;
  for (int64_t size : type.getShape())
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kMostBytes)
      return kMostBytes + 1;
  // A buffer of no elements has an address all the same.
  return std::max<int64_t>(1, bytes);
}

/// Buffers of loops live as long as the program: there is no allocator.
static void hoistAllocations(func::FuncOp func) {
  SmallVector<memref::AllocOp> inner;
  Block &entry = func.getBody().front();
  func.walk([&](memref::AllocOp alloc) {
    if (alloc->getBlock() != &entry && alloc.getDynamicSizes().empty())
      inner.push_back(alloc);
  });
  for (memref::AllocOp alloc : inner)
    alloc->moveBefore(&entry, entry.begin());
}

/// What is computed into a buffer only to be copied to an output is computed there.
static void computeInPlace(func::FuncOp func) {
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
    auto copy = dyn_cast<memref::CopyOp>(op);
    if (!copy || !isa<BlockArgument>(copy.getTarget()) || !copy.getTarget().hasOneUse())
      continue;
    auto alloc = copy.getSource().getDefiningOp<memref::AllocOp>();
    if (!alloc || alloc.getType() != copy.getTarget().getType())
      continue;
    Value target = copy.getTarget();
    copy.erase();
    alloc.getResult().replaceAllUsesWith(target);
    alloc.erase();
  }
}

/// A number that an op between the loops computes goes through a buffer of its own: who needs it
/// reads it there. The op and the store are one piece of work; gives the loads behind it.
static llvm::DenseSet<Operation *> keepNumbers(func::FuncOp func) {
  Block &entry = func.getBody().front();
  SmallVector<Operation *> makers;
  for (Operation &op : entry) {
    auto isNumber = [](OpResult result) {
      return result.getType().isIntOrIndexOrFloat() && !result.use_empty();
    };
    if (!isMemoryEffectFree(&op) && llvm::any_of(op.getResults(), isNumber))
      makers.push_back(&op);
  }
  llvm::DenseSet<Operation *> loads;
  for (Operation *op : makers) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
    auto once = scf::ForOp::create(b, zero, one, one);
    op->moveBefore(once.getBody()->getTerminator());
    for (OpResult result : op->getResults()) {
      if (!result.getType().isIntOrIndexOrFloat() || result.use_empty())
        continue;
      b.setInsertionPointToStart(&entry);
      Value place = memref::AllocOp::create(b, MemRefType::get({}, result.getType()));
      b.setInsertionPointAfter(once);
      auto load = memref::LoadOp::create(b, place);
      result.replaceAllUsesWith(load);
      b.setInsertionPoint(once.getBody()->getTerminator());
      memref::StoreOp::create(b, result, place);
      loads.insert(load);
    }
  }
  return loads;
}

/// Loops for all linalg ops. One without loops of its own gets one of a single step, so that what
/// it does stays together.
static LogicalResult expandLoops(func::FuncOp func) {
  SmallVector<linalg::LinalgOp> ops;
  func.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  IRRewriter rewriter(func.getContext());
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    if (op.getNumLoops() == 0) {
      Location loc = op.getLoc();
      Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
      Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
      auto once = scf::ForOp::create(rewriter, loc, zero, one, one);
      op->moveBefore(once.getBody()->getTerminator());
      rewriter.setInsertionPoint(op);
    }
    if (failed(linalg::linalgOpToParallelLoops(rewriter, op)))
      return op.emitOpError("cannot be written as loops");
    rewriter.eraseOp(op);
  }
  return success();
}

/// Copies as loops: generated code has no library to call.
static void expandCopies(func::FuncOp func) {
  SmallVector<memref::CopyOp> copies;
  func.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    ImplicitLocOpBuilder b(copy.getLoc(), copy);
    auto type = cast<MemRefType>(copy.getSource().getType());
    SmallVector<Value> zeros, extents, ones;
    for (int64_t dim : type.getShape()) {
      zeros.push_back(arith::ConstantIndexOp::create(b, 0));
      extents.push_back(arith::ConstantIndexOp::create(b, dim));
      ones.push_back(arith::ConstantIndexOp::create(b, 1));
    }
    auto move = [&](OpBuilder &builder, Location loc, ValueRange at) {
      Value element = memref::LoadOp::create(builder, loc, copy.getSource(), at);
      memref::StoreOp::create(builder, loc, element, copy.getTarget(), at);
    };
    if (zeros.empty())
      move(b, b.getLoc(), {});
    else
      scf::ParallelOp::create(b, zeros, extents, ones, move);
    copy.erase();
  }
}

namespace {

/// Cuts one function into dispatches.
class Outliner {
public:
  Outliner(ModuleOp module, func::FuncOp graph)
      : module(module), graph(graph), builder(graph.getLoc(), graph) {}

  LogicalResult run() {
    program = ProgramOp::create(builder, "main", 1, IntegerAttr());
    program.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&program.getBody().front());
    if (failed(addPorts()))
      return failure();
    hoistAllocations(graph);
    computeInPlace(graph);
    expandCopies(graph);
    if (failed(expandLoops(graph)))
      return failure();
    numbers = keepNumbers(graph);
    SmallVector<Operation *> work;
    for (Operation &op : graph.getBody().front()) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
        roots[alloc.getResult()] = bufferOf(alloc.getType());
        continue;
      }
      if (isa<func::ReturnOp, memref::DeallocOp>(op) || canRepeat(&op))
        continue;
      work.push_back(&op);
    }
    if (totalBytes > kMostBytes)
      return graph.emitError("needs more than ") << kMostBytes << " bytes for its values";
    for (Operation *op : work)
      if (failed(outline(op)))
        return failure();
    graph.erase();
    return success();
  }

private:
  struct Place {
    BindKind kind;
    FlatSymbolRefAttr symbol;
  };

  Place bufferOf(MemRefType type) {
    std::string name = "b" + std::to_string(bufferCount++);
    int64_t bytes = byteSize(type);
    totalBytes = std::min(totalBytes + bytes, kMostBytes + 1);
    BufferOp::create(builder, name, bytes, IntegerAttr());
    return {BindKind::Buffer, FlatSymbolRefAttr::get(builder.getContext(), name)};
  }

  /// Arguments are, in order: inputs and weights, then outputs.
  LogicalResult addPorts() {
    auto inputs = graph->getAttrOfType<ArrayAttr>("llm.inputs");
    auto outputs = graph->getAttrOfType<ArrayAttr>("llm.outputs");
    if (!inputs || !outputs)
      return graph.emitError("does not name its inputs and outputs");
    unsigned input = 0, output = 0;
    for (BlockArgument arg : graph.getArguments()) {
      auto type = dyn_cast<MemRefType>(arg.getType());
      if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
        return graph.emitError("has an argument of type ")
               << arg.getType() << " where a buffer of static shape is expected";
      if (auto weight =
              graph.getArgAttrOfType<FlatSymbolRefAttr>(arg.getArgNumber(), "llm.weight")) {
        roots[arg] = {BindKind::Weight, weight};
        continue;
      }
      bool isInput = input < inputs.size();
      ArrayAttr ports = isInput ? inputs : outputs;
      unsigned &index = isInput ? input : output;
      if (index >= ports.size())
        return graph.emitError("has more arguments than inputs and outputs");
      auto port = cast<DictionaryAttr>(ports[index++]);
      Place place = bufferOf(type);
      roots[arg] = place;
      PortOp::create(builder, isInput ? PortKind::Input : PortKind::Output,
                     port.getAs<StringAttr>("name").getValue(), place.symbol.getValue(),
                     port.getAs<StringAttr>("element").getValue(), type.getShape());
    }
    if (input != inputs.size() || output != outputs.size())
      return graph.emitError("has fewer arguments than inputs and outputs");
    return success();
  }

  /// True for what any kernel may compute again for itself.
  bool canRepeat(Operation *op) { return isMemoryEffectFree(op) || numbers.contains(op); }

  /// Adds what `value` is computed from outside of `op`: roots, and ops to repeat in their order.
  LogicalResult collect(Value value, SetVector<Value> &found, SetVector<Operation *> &pure) {
    if (roots.contains(value)) {
      found.insert(value);
      return success();
    }
    Operation *def = value.getDefiningOp();
    if (!def || !canRepeat(def))
      return graph.emitError("has a value between loops that no kernel can compute again: ")
             << value;
    for (Value operand : def->getOperands())
      if (failed(collect(operand, found, pure)))
        return failure();
    SetVector<Value> inner;
    getUsedValuesDefinedAbove(def->getRegions(), inner);
    for (Value operand : inner)
      if (failed(collect(operand, found, pure)))
        return failure();
    pure.insert(def);
    return success();
  }

  LogicalResult outline(Operation *op) {
    SetVector<Value> used(op->operand_begin(), op->operand_end()), found;
    getUsedValuesDefinedAbove(op->getRegions(), used);
    SetVector<Operation *> pure;
    for (Value value : used)
      if (failed(collect(value, found, pure)))
        return failure();

    llvm::SmallDenseMap<Value, Access> access;
    auto note = [&](Value memory, Access what) {
      auto [it, isNew] = access.try_emplace(rootOf(memory), what);
      if (!isNew && it->second != what)
        it->second = Access::Update;
    };
    op->walk([&](Operation *inner) {
      if (auto load = dyn_cast<memref::LoadOp>(inner))
        note(load.getMemRef(), Access::Read);
      else if (auto store = dyn_cast<memref::StoreOp>(inner))
        note(store.getMemRef(), Access::Write);
    });

    OpBuilder::InsertionGuard guard(builder);
    auto parallel = dyn_cast<scf::ParallelOp>(op);
    std::optional<unsigned> tiled;
    int64_t tiles = 1;
    if (parallel) {
      for (auto [lower, upper] : llvm::zip(parallel.getLowerBound(), parallel.getUpperBound()))
        if (getConstantIntValue(upper) <= getConstantIntValue(lower))
          return success();
      tiled = tiledLoop(parallel, tiles);
    }

    builder.setInsertionPoint(program);
    builder.setLoc(op->getLoc());
    auto kernel = TensorKernelOp::create(builder, "kernel" + std::to_string(kernelCount));
    Block &body = kernel.getBody().emplaceBlock();
    IRMapping mapping;
    SmallVector<Attribute> bindings;
    for (Value root : found) {
      mapping.map(root, body.addArgument(root.getType(), op->getLoc()));
      auto it = access.find(root);
      // A root that only views stand on is not touched.
      Access what = it == access.end() ? Access::Read : it->second;
      Place place = roots[root];
      bindings.push_back(BindAttr::get(builder.getContext(), what, place.kind, place.symbol));
    }
    Value begin = body.addArgument(builder.getIndexType(), op->getLoc());
    Value end = body.addArgument(builder.getIndexType(), op->getLoc());
    builder.setInsertionPointToStart(&body);
    for (Operation *def : pure)
      builder.clone(*def, mapping);
    if (tiled)
      emitLoops(parallel, *tiled, begin, end, mapping);
    else
      builder.clone(*op, mapping);

    builder.setInsertionPointToEnd(&program.getBody().front());
    DispatchOp::create(builder, share(kernel),
                       TilesAttr::get(builder.getContext(), tiles, 0, 0, 0, false),
                       builder.getArrayAttr(bindings), nameOf(op->getLoc()), -1);
    return success();
  }

  /// The loop whose steps are tiles: the first with more than one, where loops count 0, 1, ...
  static std::optional<unsigned> tiledLoop(scf::ParallelOp op, int64_t &tiles) {
    std::optional<unsigned> chosen;
    for (unsigned i = 0; i < op.getNumLoops(); ++i) {
      auto upper = getConstantIntValue(op.getUpperBound()[i]);
      if (!upper || getConstantIntValue(op.getLowerBound()[i]) != 0 ||
          getConstantIntValue(op.getStep()[i]) != 1)
        return std::nullopt;
      if (!chosen && *upper > 1) {
        chosen = i;
        tiles = *upper;
      }
    }
    return chosen;
  }

  void emitLoops(scf::ParallelOp op, unsigned tiled, Value begin, Value end, IRMapping &mapping) {
    Value one = arith::ConstantIndexOp::create(builder, 1);
    auto enter = [&](unsigned i, Value from, Value to) {
      auto loop = scf::ForOp::create(builder, from, to, one);
      mapping.map(op.getInductionVars()[i], loop.getInductionVar());
      builder.setInsertionPointToStart(loop.getBody());
    };
    enter(tiled, begin, end);
    for (unsigned i = 0; i < op.getNumLoops(); ++i)
      if (i != tiled)
        enter(i, mapping.lookup(op.getLowerBound()[i]), mapping.lookup(op.getUpperBound()[i]));
    for (Operation &inner : op.getBody()->without_terminator())
      builder.clone(inner, mapping);
  }

  /// The kernel that says the same if there is one, else this one.
  StringRef share(TensorKernelOp kernel) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    StringAttr name = kernel.getSymNameAttr();
    kernel.setSymName("");
    kernel->print(stream);
    kernel.setSymNameAttr(name);
    auto [it, isNew] = kernels.try_emplace(text, name);
    if (isNew)
      ++kernelCount;
    else
      kernel.erase();
    return it->second.getValue();
  }

  static StringRef nameOf(Location loc) {
    if (auto fused = dyn_cast<FusedLoc>(loc))
      return nameOf(fused.getLocations().back());
    if (auto named = dyn_cast<NameLoc>(loc))
      return named.getName();
    return "tensor";
  }

  ModuleOp module;
  func::FuncOp graph;
  ImplicitLocOpBuilder builder;
  ProgramOp program;
  llvm::DenseMap<Value, Place> roots;
  llvm::DenseSet<Operation *> numbers; ///< loads of what keepNumbers() has put into buffers
  llvm::StringMap<StringAttr> kernels;
  unsigned bufferCount = 0, kernelCount = 0;
  int64_t totalBytes = 0;
};

struct FormTensorDispatches : tensors::impl::FormTensorDispatchesPassBase<FormTensorDispatches> {
  void runOnOperation() override {
    auto graph = getOperation().lookupSymbol<func::FuncOp>("graph");
    if (!graph || graph.isExternal() || !llvm::hasSingleElement(graph.getBody())) {
      getOperation().emitError("has no function @graph of one block to schedule");
      return signalPassFailure();
    }
    if (failed(Outliner(getOperation(), graph).run()))
      signalPassFailure();
  }
};
} // namespace
