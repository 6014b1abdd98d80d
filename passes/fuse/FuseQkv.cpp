//===- FuseQkv.cpp - head norms, rope and KV write join the projection ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/fuse/Passes.h"

namespace llmc::fuse {
#define GEN_PASS_DEF_FUSEQKVPASS
#include "passes/fuse/Passes.h.inc"
} // namespace llmc::fuse

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

/// Rows of a weight panel; a head must be whole panels to be one tile.
static constexpr int64_t kHeadDimMultiple = 16;

namespace {
/// What stands between a projection's result and the attention.
struct HeadPath {
  LinearOp linear;
  unsigned result = 0;
  NormAttr norm;
  FlatSymbolRefAttr rope;
};

/// Walks from an attention operand up to its projection: rope, then head norm, each optional.
FailureOr<HeadPath> walk(Value value, int64_t heads, Value positions) {
  HeadPath path;
  auto step = [&](Operation *op) -> bool { return op && op->hasOneUse(); };
  if (auto rope = value.getDefiningOp<RopeOp>()) {
    if (!step(rope) || int64_t(rope.getHeads()) != heads || rope.getPositions() != positions)
      return failure();
    path.rope = rope.getTableAttr();
    value = rope.getInput();
  }
  if (auto norm = value.getDefiningOp<NormOp>()) {
    if (!step(norm) || int64_t(norm.getGroups()) != heads ||
        norm.getNorm().getKind() != NormKind::Rms)
      return failure();
    path.norm = norm.getNorm();
    value = norm.getInput();
  }
  path.linear = value.getDefiningOp<LinearOp>();
  if (!path.linear || !value.hasOneUse())
    return failure();
  path.result = cast<OpResult>(value).getResultNumber();
  return path;
}

struct AttentionToQkv : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    auto kv = SymbolTable::lookupNearestSymbolFrom<KvOp>(op, op.getKvAttr());
    if (!kv || kv.getHeadDim() % kHeadDimMultiple)
      return failure();
    auto q = walk(op.getQuery(), op.getHeads(), op.getPositions());
    auto k = walk(op.getKey(), kv.getHeads(), op.getPositions());
    auto v = walk(op.getValue(), kv.getHeads(), op.getPositions());
    if (failed(q) || failed(k) || failed(v))
      return failure();
    LinearOp linear = q->linear;
    if (k->linear != linear || v->linear != linear || linear->getNumResults() != 3 ||
        q->result != 0 || k->result != 1 || v->result != 2 || !linear.hasPlainEpilogue() ||
        q->rope != k->rope || v->rope || v->norm)
      return failure();

    auto qkv = QkvOp::create(rewriter, linear.getLoc(), op.getQuery().getType(), linear.getInput(),
                             op.getPositions(), linear.getWeightsAttr(), linear.getBiasesAttr(),
                             linear.getNormAttr(), q->norm, k->norm, q->rope, op.getKvAttr(),
                             op.getHeadsAttr());
    qkv->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
    auto attend = AttendOp::create(rewriter, op.getLoc(), op.getType(), qkv, op.getPositions(),
                                   op.getKvAttr(), op.getHeadsAttr(), op.getScaleAttr(),
                                   op.getSoftcapAttr(), op.getBidirectionalAttr());
    attend->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.replaceOp(op, attend);
    return success();
  }
};

struct FuseQkv : fuse::impl::FuseQkvPassBase<FuseQkv> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fuse::populateFuseQkvPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void fuse::populateFuseQkvPatterns(RewritePatternSet &patterns) {
  patterns.add<AttentionToQkv>(patterns.getContext());
}
