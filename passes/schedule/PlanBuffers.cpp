//===- PlanBuffers.cpp - places of buffers in the arena -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace llmc::schedule {
#define GEN_PASS_DEF_PLANBUFFERSPASS
#include "passes/schedule/Passes.h.inc"
} // namespace llmc::schedule

using namespace mlir;
using namespace llmc;
using namespace llmc::sched;

static constexpr int64_t kAlignment = 64;

namespace {
/// A buffer is live in the regions [first, last]; a region is what runs between two barriers.
struct Life {
  BufferOp buffer;
  int64_t bytes;
  int first = -1, last = -1;
  int64_t offset = 0;

  bool overlaps(const Life &other) const { return first <= other.last && other.first <= last; }
};

struct PlanBuffers : schedule::impl::PlanBuffersPassBase<PlanBuffers> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    Builder builder(program);
    SmallVector<Life> lives;
    llvm::DenseMap<StringAttr, unsigned> index;
    int region = 0;
    for (Operation &op : program.getBody().front()) {
      if (auto buffer = dyn_cast<BufferOp>(op)) {
        index[buffer.getSymNameAttr()] = lives.size();
        lives.push_back({buffer, int64_t(llvm::alignTo(buffer.getBytes(), kAlignment))});
      } else if (auto port = dyn_cast<PortOp>(op)) {
        // The caller fills it before the program runs or reads it afterwards.
        Life &life = lives[index.lookup(port.getBufferAttr().getAttr())];
        life.first = 0;
        life.last = std::numeric_limits<int>::max();
      } else if (isa<BarrierOp>(op)) {
        ++region;
      } else if (auto dispatch = dyn_cast<DispatchOp>(op)) {
        for (Attribute attr : dispatch.getBindings()) {
          auto bind = cast<BindAttr>(attr);
          if (bind.getKind() != BindKind::Buffer)
            continue;
          Life &life = lives[index.lookup(bind.getSymbol().getAttr())];
          if (life.first < 0)
            life.first = region;
          life.last = std::max(life.last, region);
        }
      }
    }

    SmallVector<Life *> order;
    for (Life &life : lives) {
      if (life.first < 0)
        life.buffer.erase();
      else
        order.push_back(&life);
    }
    // `lives` is in the program's order, so addresses break ties deterministically.
    llvm::sort(order,
               [](Life *a, Life *b) { return a->bytes != b->bytes ? a->bytes > b->bytes : a < b; });

    int64_t arena = 0;
    SmallVector<Life *> placed; // by offset
    for (Life *life : order) {
      int64_t offset = 0;
      for (Life *other : placed) {
        if (!life->overlaps(*other))
          continue;
        if (offset + life->bytes <= other->offset)
          break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      life->offset = offset;
      life->buffer.setOffsetAttr(builder.getI64IntegerAttr(offset));
      arena = std::max(arena, offset + life->bytes);
      placed.insert(llvm::upper_bound(placed, offset,
                                      [](int64_t at, Life *other) { return at < other->offset; }),
                    life);
    }
    program.setArenaSizeAttr(builder.getI64IntegerAttr(arena));
  }
};
} // namespace
