//===- PlanKv.cpp - capacity and place of KV caches -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Sched.h"
#include "passes/kv/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace llmc::kv {
#define GEN_PASS_DEF_PLANKVPASS
#include "passes/kv/Passes.h.inc"
} // namespace llmc::kv

using namespace mlir;
using namespace llmc;

static constexpr int64_t kPage = 4096;

namespace {
struct PlanKv : kv::impl::PlanKvPassBase<PlanKv> {
  using PlanKvPassBase::PlanKvPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(module);
    if (context <= 0 || maxRows <= 0) {
      module.emitError("plan-kv needs a positive context and max-rows, has ")
          << context.getValue() << " and " << maxRows.getValue();
      return signalPassFailure();
    }
    if (!encoding.empty() && encoding != "f16" && encoding != "f32") {
      module.emitError("KV encoding '") << encoding.getValue() << "' is not known; use f16 or f32";
      return signalPassFailure();
    }
    int64_t all = llvm::alignTo(context, sched::kKvChunk), next = 0;
    for (auto cache : module.getOps<llm::KvOp>()) {
      int64_t capacity = all;
      if (cache.getWindow()) {
        // The first and the last visible chunk may both be partly used.
        int64_t visible = cache.getWindow() + maxRows - 1;
        capacity =
            std::min(all, int64_t(llvm::alignTo(visible, sched::kKvChunk)) + sched::kKvChunk);
      }
      if (!encoding.empty())
        cache.setEncoding(encoding);
      int64_t bytes =
          cache.getHeads() * cache.getHeadDim() * capacity * (cache.getEncoding() == "f32" ? 4 : 2);
      cache.setCapacityAttr(builder.getI64IntegerAttr(capacity));
      cache.setKOffsetAttr(builder.getI64IntegerAttr(next));
      next += llvm::alignTo(bytes, kPage);
      cache.setVOffsetAttr(builder.getI64IntegerAttr(next));
      next += llvm::alignTo(bytes, kPage);
    }
    module->setAttr("llm.kv_bytes", builder.getI64IntegerAttr(next));
  }
};
} // namespace
