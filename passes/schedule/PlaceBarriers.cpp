//===- PlaceBarriers.cpp - barriers where data crosses dispatches ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"

namespace llmc::schedule {
#define GEN_PASS_DEF_PLACEBARRIERSPASS
#include "passes/schedule/Passes.h.inc"
} // namespace llmc::schedule

using namespace mlir;
using namespace llmc;
using namespace llmc::sched;

namespace {

struct PlaceBarriers : schedule::impl::PlaceBarriersPassBase<PlaceBarriers> {
  void runOnOperation() override {
    llvm::DenseMap<std::pair<int, StringAttr>, Access> since;
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front())) {
      if (isa<BarrierOp>(op)) {
        since.clear();
        continue;
      }
      auto dispatch = dyn_cast<DispatchOp>(op);
      if (!dispatch)
        continue;
      auto conflicts = [&](Attribute attr) {
        auto bind = cast<BindAttr>(attr);
        auto it = since.find(key(bind));
        return it != since.end() &&
               (it->second != Access::Read || bind.getAccess() != Access::Read);
      };
      if (llvm::any_of(dispatch.getBindings(), conflicts)) {
        OpBuilder builder(dispatch);
        BarrierOp::create(builder, dispatch.getLoc());
        since.clear();
      }
      for (Attribute attr : dispatch.getBindings()) {
        auto bind = cast<BindAttr>(attr);
        auto [it, isNew] = since.try_emplace(key(bind), bind.getAccess());
        if (!isNew && bind.getAccess() != Access::Read)
          it->second = bind.getAccess();
      }
    }
  }

  /// Keys and values of one cache are different memory: kind and symbol name a place.
  static std::pair<int, StringAttr> key(BindAttr bind) {
    return {int(bind.getKind()), bind.getSymbol().getAttr()};
  }
};
} // namespace
