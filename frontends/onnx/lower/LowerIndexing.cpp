//===- LowerIndexing.cpp - operators that data tells where to look --------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Indices are data of the running graph: every one is clamped to the tensor before
// it is used.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;

/// An index read from data, counted from the back where it is negative.
static mlir::Value readIndex(ScalarBuilder &s, Array indices, ValueRange at, int64_t size) {
  return s.fromBack(s.toIndex(s.load(indices, at)), size);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static Error lowerGather(LowerContext &c) {
  Array x = c.input(0), indices = c.input(1);
  auto axis = c.axis(c.node().integer("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  Dims dims(x.shape().take_front(*axis));
  llvm::append_range(dims, indices.shape());
  llvm::append_range(dims, x.shape().drop_front(*axis + 1));
  if (x.elements() == 0 && elementCount(dims).value_or(1) != 0)
    return c.error("gathers from a tensor without elements");
  return c.done(c.a.generate(x.type, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at.take_front(*axis));
    source.push_back(
        readIndex(s, indices, at.slice(size_t(*axis), size_t(indices.rank())), x.dim(*axis)));
    llvm::append_range(source, at.drop_front(size_t(*axis + indices.rank())));
    return s.loadClamped(x, source);
  }));
}

static Error lowerGatherElements(LowerContext &c) {
  Array x = c.input(0), indices = c.input(1);
  auto axis = c.axis(c.node().integer("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  if (indices.rank() != x.rank())
    return c.error("has indices of another rank than its data");
  return c.done(c.a.generate(x.type, indices.shape(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    source[*axis] = readIndex(s, indices, at, x.dim(*axis));
    return s.loadClamped(x, source);
  }));
}

static Error lowerGatherNd(LowerContext &c) {
  Array x = c.input(0), indices = c.input(1);
  int64_t batch = c.node().integer("batch_dims", 0);
  if (indices.rank() == 0 || batch < 0 || batch >= indices.rank())
    return c.error("has indices that are no lists of places");
  int64_t depth = indices.shape().back();
  if (batch + depth > x.rank())
    return c.error("has places of more dimensions than its data");
  Dims dims(indices.shape().drop_back());
  llvm::append_range(dims, x.shape().drop_front(size_t(batch + depth)));
  return c.done(c.a.generate(x.type, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> place(at.take_front(size_t(indices.rank() - 1)));
    place.push_back(mlir::Value());
    SmallVector<mlir::Value> source(at.take_front(size_t(batch)));
    for (int64_t i = 0; i < depth; ++i) {
      place.back() = s.index(i);
      source.push_back(readIndex(s, indices, place, x.dim(batch + i)));
    }
    llvm::append_range(source, at.drop_front(size_t(indices.rank() - 1)));
    return s.loadClamped(x, source);
  }));
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

/// What an update does to the element that is there, by the attribute `reduction`.
static std::optional<std::function<mlir::Value(ScalarBuilder &, mlir::Value, mlir::Value)>>
updateOf(LowerContext &c, ElementType type) {
  StringRef name = c.node().text("reduction", "none");
  if (name == "none")
    return [](ScalarBuilder &, mlir::Value, mlir::Value update) { return update; };
  std::optional<Arith> op;
  if (name == "add")
    op = Arith::Add;
  else if (name == "mul")
    op = Arith::Mul;
  else if (name == "max")
    op = Arith::Max;
  else if (name == "min")
    op = Arith::Min;
  if (!op)
    return std::nullopt;
  return [=](ScalarBuilder &s, mlir::Value old, mlir::Value update) {
    mlir::Value next = s.op(*op, s.widen(old, type), s.widen(update, type), isUnsignedType(type));
    return s.narrow(next, type);
  };
}

/// Changes one element after the other; `place` gives where update number `at` goes.
static Error scatter(
    LowerContext &c, Array x, Array updates,
    llvm::function_ref<SmallVector<mlir::Value>(ScalarBuilder &, ArrayRef<mlir::Value> at)> place) {
  auto update = updateOf(c, x.type);
  if (!update)
    return c.error("reduces in a way that is not known");
  if (x.elements() == 0)
    return c.done(x);
  return c.done(c.a.loop(updates.elements(), x, [&](ScalarBuilder &s, mlir::Value i, Array now) {
    SmallVector<mlir::Value> at = s.unravel(i, updates.shape());
    SmallVector<mlir::Value> target = place(s, at);
    for (auto [d, index] : llvm::enumerate(target))
      index = s.clamp(index, s.index(0), s.index(x.dim(int64_t(d)) - 1));
    return s.store((*update)(s, s.load(now, target), s.load(updates, at)), now, target);
  }));
}

static Error lowerScatterElements(LowerContext &c) {
  Array x = c.input(0), indices = c.input(1), updates = c.input(2);
  auto axis = c.axis(c.node().integer("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  if (indices.shape() != updates.shape() || indices.rank() != x.rank())
    return c.error("has indices and updates of different shapes");
  return scatter(c, x, updates, [&](ScalarBuilder &s, ArrayRef<mlir::Value> at) {
    SmallVector<mlir::Value> target(at);
    target[*axis] = readIndex(s, indices, at, x.dim(*axis));
    return target;
  });
}

static Error lowerScatterNd(LowerContext &c) {
  Array x = c.input(0), indices = c.input(1), updates = c.input(2);
  if (indices.rank() == 0 || indices.shape().back() > x.rank())
    return c.error("has indices that are no lists of places");
  int64_t depth = indices.shape().back(), outer = indices.rank() - 1;
  Dims dims(indices.shape().drop_back());
  llvm::append_range(dims, x.shape().drop_front(size_t(depth)));
  if (updates.shape() != llvm::ArrayRef<int64_t>(dims))
    return c.error("has updates of a shape that does not go with its indices");
  return scatter(c, x, updates, [&](ScalarBuilder &s, ArrayRef<mlir::Value> at) {
    SmallVector<mlir::Value> place(at.take_front(size_t(outer)));
    place.push_back(mlir::Value());
    SmallVector<mlir::Value> target;
    for (int64_t i = 0; i < depth; ++i) {
      place.back() = s.index(i);
      target.push_back(readIndex(s, indices, place, x.dim(i)));
    }
    llvm::append_range(target, at.drop_front(size_t(outer)));
    return target;
  });
}

/// A cache: rows of the update go to consecutive places from `write_indices` on.
static Error lowerTensorScatter(LowerContext &c) {
  Array x = c.input(0), updates = c.input(1), begins = c.has(2) ? c.input(2) : Array();
  auto axis = c.axis(c.node().integer("axis", -2), x.rank());
  if (!axis)
    return axis.takeError();
  if (updates.rank() != x.rank() || x.rank() < 2 || *axis == 0)
    return c.error("has an update of another rank than its cache");
  bool circular = c.node().text("mode", "linear") == "circular";
  int64_t size = x.dim(*axis);
  return scatter(c, x, updates, [&](ScalarBuilder &s, ArrayRef<mlir::Value> at) {
    SmallVector<mlir::Value> target(at);
    mlir::Value begin = begins ? s.toIndex(s.loadClamped(begins, at.front())) : s.index(0);
    mlir::Value place = s.add(begin, at[*axis]);
    target[*axis] = circular ? s.remainder(place, std::max<int64_t>(size, 1)) : place;
    return target;
  });
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

static Error lowerOneHot(LowerContext &c) {
  Array indices = c.input(0), values = c.input(2);
  const Tensor *given = c.constant(1);
  auto axis = c.axis(c.node().integer("axis", -1), indices.rank() + 1);
  if (!axis)
    return axis.takeError();
  int64_t depth;
  if (given && given->elements() == 1) {
    depth = isFloat(given->type) ? int64_t(given->number(0)) : given->integer(0);
  } else if (std::optional<Dims> dims = c.outputShape(0)) {
    depth = (*dims)[*axis];
  } else {
    return c.needsConstant(1);
  }
  Dims dims(indices.shape());
  dims.insert(dims.begin() + *axis, depth);
  if (depth < 0 || !elementCount(dims) || values.elements() != 2)
    return c.error("has a depth or values that make no sense");
  return c.done(c.a.generate(values.type, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> place(at);
    place.erase(place.begin() + *axis);
    mlir::Value raw = s.loadWide(indices, place);
    mlir::Value index = s.toIndex(s.convert(raw, indices.type, ElementType::Int64));
    mlir::Value hot = s.test(Test::Equal, s.fromBack(index, depth), at[*axis]);
    return s.select(hot, s.load(values, s.index(1)), s.load(values, s.index(0)));
  }));
}

/// For every p below `count`, the sum over i of what `pick` says of (p, i): the gathering of the
/// one i that belongs to p.
static Array gatherByRank(LowerContext &c, Array rank, int64_t axis, int64_t count) {
  Dims dims(rank.shape());
  dims.insert(dims.begin() + axis, count);
  Array hits = c.a.generate(ElementType::Int64, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> place(at);
    place.erase(place.begin() + axis);
    mlir::Value p = s.fromIndex(at[axis], ElementType::Int64);
    mlir::Value i = s.fromIndex(at[axis + 1], ElementType::Int64);
    return s.select(s.test(Test::Equal, s.load(rank, place), p), i, s.like(i, 0));
  });
  return c.a.reduceSum(hits, {axis + 1}, false);
}

/// The rank of an element is the number of those that come before it; the k first are gathered.
static Error lowerTopK(LowerContext &c) {
  Array x = c.input(0);
  auto axis = c.axis(c.node().integer("axis", -1), x.rank());
  if (!axis)
    return axis.takeError();
  int64_t k = c.node().integer("k", -1), size = x.dim(*axis);
  if (c.node().version >= 10) {
    if (const Tensor *given = c.constant(1)) {
      k = given->elements() == 1 ? given->integer(0) : -1;
    } else if (std::optional<Dims> dims = c.outputShape(0)) {
      k = (*dims)[*axis];
    } else {
      return c.needsConstant(1);
    }
  }
  if (k < 0 || k > size)
    return c.error("takes more elements than there are");
  bool largest = c.node().integer("largest", 1), isUnsigned = isUnsignedType(x.type);
  Dims pairs(x.shape());
  pairs.insert(pairs.begin() + *axis + 1, size);
  Array before = c.a.generate(ElementType::Int64, pairs, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> mine(at), other(at);
    mine.erase(mine.begin() + *axis + 1);
    other.erase(other.begin() + *axis);
    mlir::Value u = s.loadWide(x, other), v = s.loadWide(x, mine);
    mlir::Value wins = s.test(largest ? Test::Greater : Test::Less, u, v, isUnsigned);
    mlir::Value tie =
        s.logicalAnd(s.test(Test::Equal, u, v, isUnsigned), s.less(at[*axis + 1], at[*axis]));
    return s.convert(s.logicalOr(wins, tie), ElementType::Bool, ElementType::Int64);
  });
  Array places = gatherByRank(c, c.a.reduceSum(before, {*axis + 1}, false), *axis, k);
  c.set(0, c.a.generate(x.type, places.shape(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    source[*axis] = s.toIndex(s.load(places, at));
    return s.loadClamped(x, source);
  }));
  if (c.wants(1))
    c.set(1, places);
  return Error::success();
}

/// The places of elements that are not zero, one after the other; their number is declared.
static Error lowerNonZero(LowerContext &c) {
  Array x = c.input(0);
  std::optional<Dims> dims = c.outputShape(0);
  if (!dims || dims->size() != 2)
    return c.error("gives as many places as there are elements that are not zero: how many must be "
                   "known, by the declared shape of an output");
  int64_t count = (*dims)[1], rank = std::max<int64_t>(x.rank(), 1);
  // Element 0 counts.
  Array start = c.a.full(ElementType::Int64, {1 + rank * count}, 0);
  Array flat = c.a.loop(x.elements(), start, [&](ScalarBuilder &s, mlir::Value i, Array now) {
    SmallVector<mlir::Value> at = s.unravel(i, x.shape());
    mlir::Value is = s.convert(s.loadWide(x, at), x.type, ElementType::Bool);
    mlir::Value found = s.toIndex(s.load(now, s.index(0)));
    mlir::Value more = s.logicalAnd(is, s.less(found, s.index(count)));
    auto branch = scf::IfOp::create(s.builder(), now.value.getType(), more, true);
    {
      OpBuilder::InsertionGuard guard(s.builder());
      s.builder().setInsertionPointToStart(branch.thenBlock());
      Array next = now;
      for (int64_t d = 0; d < x.rank(); ++d)
        next.value = s.store(s.fromIndex(at[d], ElementType::Int64), next,
                             s.add(s.index(1 + d * count), found));
      next.value =
          s.store(s.fromIndex(s.add(found, s.index(1)), ElementType::Int64), next, s.index(0));
      scf::YieldOp::create(s.builder(), next.value);
      s.builder().setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(s.builder(), now.value);
    }
    return branch.getResult(0);
  });
  return c.done(c.a.reshape(c.a.slice(flat, 0, 1, rank * count), {rank, count}));
}

static Error lowerCompress(LowerContext &c) {
  Array x = c.input(0), condition = c.input(1);
  int64_t axis = 0;
  if (c.node().find("axis")) {
    auto checked = c.axis(c.node().integer("axis", 0), x.rank());
    if (!checked)
      return checked.takeError();
    axis = *checked;
  } else {
    x = c.a.reshape(x, {x.elements()});
  }
  std::optional<Dims> dims = c.outputShape(0);
  if (const Tensor *given = c.constant(1)) {
    dims = Dims(x.shape());
    (*dims)[axis] = llvm::count_if(given->integers(), [](int64_t b) { return b != 0; });
  }
  if (!dims || int64_t(dims->size()) != x.rank())
    return c.needsConstant(1);
  int64_t size = std::min(condition.dim(0), x.dim(axis));
  condition = c.a.slice(condition, 0, 0, size);
  Array counts = c.a.cumulate(c.a.cast(condition, ElementType::Int64), 0, Arith::Add, true, false);
  // Elements that are not chosen have no rank.
  Array rank = c.a.map(ElementType::Int64, {condition, counts}, [](ScalarBuilder &s, ValueRange v) {
    return s.select(v[0], v[1], s.like(v[1], -1));
  });
  Array places = gatherByRank(c, rank, 0, (*dims)[axis]);
  return c.done(c.a.generate(x.type, *dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    source[axis] = s.toIndex(s.load(places, at[axis]));
    return s.loadClamped(x, source);
  }));
}

void onnx::addIndexingLowerings(OpTable<LowerFn> &table) {
  table.add("", "Compress", 1, lowerCompress);
  table.add("", "Gather", 1, lowerGather);
  table.add("", "GatherElements", 1, lowerGatherElements);
  table.add("", "GatherND", 1, lowerGatherNd);
  table.add("", "NonZero", 1, lowerNonZero);
  table.add("", "OneHot", 1, lowerOneHot);
  table.add("", "Scatter", 1, lowerScatterElements);
  table.add("", "ScatterElements", 1, lowerScatterElements);
  table.add("", "ScatterND", 1, lowerScatterNd);
  table.add("", "TensorScatter", 1, lowerTensorScatter);
  table.add("", "TopK", 1, lowerTopK);
}
