//===- LowerMovement.cpp - operators that move elements -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an operand that says how to move is known only when the graph runs, the
// declared shape of the result stands in for it or, for places, the operand is
// read by the generated loops.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Any operator that keeps the elements in their order, with the result's shape known.
static Error lowerToShape(LowerContext &c) {
  std::optional<Dims> dims = c.outputShape(0);
  if (!dims)
    return c.needsConstant(1);
  Array x = c.input(0);
  if (elementCount(*dims) != x.elements())
    return c.error("keeps its elements in a shape that has another number of them");
  return c.done(c.a.reshape(x, *dims));
}

static Error lowerReshape(LowerContext &c) {
  auto attribute = c.node().integers("shape");
  const Tensor *given = c.constant(1);
  if (!given && attribute.empty())
    return lowerToShape(c);
  Array x = c.input(0);
  std::vector<int64_t> wanted = given ? given->integers() : attribute.vec();
  bool copyZero = !c.node().integer("allowzero", 0);
  Dims dims;
  int64_t known = 1, open = -1;
  for (auto [i, size] : llvm::enumerate(wanted)) {
    if (size == 0 && copyZero) {
      if (int64_t(i) >= x.rank())
        return c.error("copies a dimension that its input does not have");
      size = x.dim(int64_t(i));
    }
    if (size == -1 && open < 0)
      open = int64_t(i);
    else if (size < 0)
      return c.error("has a negative dimension");
    else if (__builtin_mul_overflow(known, size, &known))
      return c.error("makes a shape that is too large");
    dims.push_back(size);
  }
  if (open >= 0)
    dims[open] = known ? x.elements() / known : 0;
  if (elementCount(dims) != x.elements())
    return c.error("keeps its elements in a shape that has another number of them");
  return c.done(c.a.reshape(x, dims));
}

static Error lowerFlatten(LowerContext &c) {
  Array x = c.input(0);
  int64_t axis = c.node().integer("axis", 1), rows = 1;
  if (axis < -x.rank() || axis > x.rank())
    return c.error("has an axis that its input does not have");
  axis += axis < 0 ? x.rank() : 0;
  for (int64_t i = 0; i < axis; ++i)
    rows *= x.dim(i);
  int64_t columns = 1;
  for (int64_t i = axis; i < x.rank(); ++i)
    columns *= x.dim(i);
  return c.done(c.a.reshape(x, {rows, columns}));
}

static Error lowerSqueeze(LowerContext &c) {
  if (!c.node().find("axes") && c.has(1) && !c.constant(1))
    return lowerToShape(c);
  Array x = c.input(0);
  bool isGiven;
  auto given = c.integersOf("axes", 1, isGiven);
  if (!given)
    return given.takeError();
  auto axes = c.axes(*given, x.rank());
  if (!axes)
    return axes.takeError();
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool dropped = isGiven ? llvm::is_contained(*axes, i) : x.dim(i) == 1;
    if (dropped && x.dim(i) != 1)
      return c.error("squeezes a dimension that is not 1");
    if (!dropped)
      dims.push_back(x.dim(i));
  }
  return c.done(c.a.reshape(x, dims));
}

static Error lowerUnsqueeze(LowerContext &c) {
  if (!c.node().find("axes") && c.has(1) && !c.constant(1))
    return lowerToShape(c);
  Array x = c.input(0);
  bool isGiven;
  auto given = c.integersOf("axes", 1, isGiven);
  if (!given)
    return given.takeError();
  auto axes = c.axes(*given, x.rank() + int64_t(given->size()));
  if (!axes)
    return axes.takeError();
  llvm::sort(*axes);
  Dims dims(x.shape());
  for (int64_t axis : *axes) {
    if (axis > int64_t(dims.size()))
      return c.error("has axes that do not go together");
    dims.insert(dims.begin() + axis, 1);
  }
  return c.done(c.a.reshape(x, dims));
}

static Error lowerExpand(LowerContext &c) {
  Array x = c.input(0);
  const Tensor *given = c.constant(1);
  std::optional<Dims> dims;
  if (given) {
    std::vector<int64_t> wanted = given->integers();
    dims = broadcastShape(x.shape(), wanted);
    if (!dims || llvm::any_of(*dims, [](int64_t d) { return d < 0; }))
      return c.error("expands to a shape that does not go with its input's");
  } else if (!(dims = c.outputShape(0))) {
    return c.needsConstant(1);
  }
  if (!elementCount(*dims) || broadcastShape(x.shape(), *dims) != dims)
    return c.error("expands to a shape that does not go with its input's");
  return c.done(c.a.expand(x, *dims));
}

static Error lowerTranspose(LowerContext &c) {
  Array x = c.input(0);
  Dims permutation;
  if (const onnx::Attribute *perm = c.node().find("perm")) {
    auto checked = c.axes(perm->integers, x.rank());
    if (!checked)
      return checked.takeError();
    permutation = *checked;
    if (int64_t(permutation.size()) != x.rank())
      return c.error("permutes another number of dimensions than its input has");
  } else {
    for (int64_t i = x.rank(); i-- > 0;)
      permutation.push_back(i);
  }
  return c.done(c.a.transpose(x, permutation));
}

/// The shape itself is data; it is known here.
static Error lowerShape(LowerContext &c) {
  Array x = c.input(0);
  auto bound = [&](StringRef name, int64_t otherwise) {
    int64_t at = c.node().integer(name, otherwise);
    at += at < 0 ? x.rank() : 0;
    return std::clamp<int64_t>(at, 0, x.rank());
  };
  int64_t begin = bound("start", 0), end = std::max(begin, bound("end", x.rank()));
  llvm::ArrayRef<int64_t> part = x.shape().slice(size_t(begin), size_t(end - begin));
  return c.done(c.a.constant(Tensor::ofIntegers(ElementType::Int64, {int64_t(part.size())}, part)));
}
static Error lowerSize(LowerContext &c) {
  return c.done(c.a.constant(Tensor::ofIntegers(ElementType::Int64, {}, {c.input(0).elements()})));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static Error lowerConcat(LowerContext &c) {
  auto inputs = c.inputs();
  if (!inputs)
    return inputs.takeError();
  int64_t rank = inputs->front().rank();
  auto axis = c.axis(c.node().integer("axis", c.node().version < 4 ? 1 : 0), rank);
  if (!axis)
    return axis.takeError();
  for (const Array &part : *inputs)
    for (int64_t i = 0; i < rank; ++i)
      if (part.rank() != rank || (i != *axis && part.dim(i) != inputs->front().dim(i)))
        return c.error("joins tensors of shapes that do not go together");
  return c.done(c.a.concat(*inputs, *axis));
}

static Error lowerSplit(LowerContext &c) {
  Array x = c.input(0);
  auto axis = c.axis(c.node().integer("axis", 0), x.rank());
  if (!axis)
    return axis.takeError();
  int64_t count = int64_t(c.outputCount()), size = x.dim(*axis);
  std::vector<int64_t> sizes;
  if (c.has(1) && !c.constant(1)) {
    for (int64_t i = 0; i < count; ++i) {
      std::optional<Dims> dims = c.outputShape(size_t(i));
      if (!dims)
        return c.needsConstant(1);
      sizes.push_back((*dims)[*axis]);
    }
  } else {
    bool isGiven;
    auto given = c.integersOf("split", 1, isGiven);
    if (!given)
      return given.takeError();
    sizes = *given;
    int64_t each = (size + count - 1) / count; // the last may be smaller
    if (!isGiven)
      for (int64_t i = 0; i < count; ++i)
        sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  int64_t at = 0;
  for (int64_t part : sizes)
    at += part < 0 ? size + 1 : std::min(part, size + 1);
  if (at != size || int64_t(sizes.size()) != count)
    return c.error("splits into parts that are not its input");
  at = 0;
  for (auto [i, part] : llvm::enumerate(sizes)) {
    c.set(i, c.a.slice(x, *axis, at, part));
    at += part;
  }
  return Error::success();
}

/// Where a slice begins and its step, for every dimension, as numbers of the running graph.
static Error lowerDynamicSlice(LowerContext &c) {
  Array x = c.input(0);
  std::optional<Dims> dims = c.outputShape(0);
  if (!dims)
    return c.needsConstant(c.constant(1) ? 2 : 1);
  Array starts = c.input(1), axes = c.has(3) ? c.input(3) : Array(),
        steps = c.has(4) ? c.input(4) : Array();
  int64_t count = starts.rank() == 1 ? starts.dim(0) : -1;
  for (const Array &list : {axes, steps})
    if (list && (list.rank() != 1 || list.dim(0) != count))
      count = -1;
  if (count < 0 || count > x.rank() || int64_t(dims->size()) != x.rank())
    return c.error("has starts, axes and steps of lengths that make no sense");
  return c.done(c.a.generate(x.type, *dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    for (int64_t j = 0; j < count; ++j) {
      mlir::Value step = steps ? s.toIndex(s.load(steps, s.index(j))) : s.index(1);
      mlir::Value start = s.toIndex(s.load(starts, s.index(j)));
      mlir::Value axis =
          axes ? s.fromBack(s.toIndex(s.load(axes, s.index(j))), x.rank()) : s.index(j);
      for (int64_t d = 0; d < x.rank(); ++d) {
        mlir::Value size = s.index(x.dim(d));
        mlir::Value begin = s.fromBack(start, x.dim(d));
        // A step down begins at the last element at most.
        mlir::Value down = s.less(step, s.index(0));
        mlir::Value most = s.select(down, s.sub(size, s.index(1)), size);
        begin = s.clamp(begin, s.index(0), most);
        mlir::Value moved = s.add(begin, s.mul(at[d], step));
        source[d] = s.select(s.test(Test::Equal, axis, s.index(d)), moved, source[d]);
      }
    }
    return s.loadClamped(x, source);
  }));
}

static Error lowerSlice(LowerContext &c) {
  Array x = c.input(0);
  if (c.node().version >= 10)
    for (size_t i = 1; i < c.inputCount(); ++i)
      if (c.has(i) && !c.constant(i))
        return lowerDynamicSlice(c);
  bool isGiven, hasAxes, hasSteps;
  auto starts = c.integersOf("starts", 1, isGiven), ends = c.integersOf("ends", 2, isGiven);
  auto axes = c.integersOf("axes", 3, hasAxes), steps = c.integersOf("steps", 4, hasSteps);
  for (auto *list : {&starts, &ends, &axes, &steps})
    if (!*list) {
      for (auto *other : {&starts, &ends, &axes, &steps})
        if (other != list && !*other)
          llvm::consumeError(other->takeError());
      return list->takeError();
    }
  if (!hasAxes)
    for (size_t i = 0; i < starts->size(); ++i)
      axes->push_back(int64_t(i));
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      (hasSteps && steps->size() != starts->size()))
    return c.error("has starts, ends, axes and steps of different lengths");
  auto checked = c.axes(*axes, x.rank());
  if (!checked)
    return checked.takeError();
  Dims dims(x.shape()), begins(x.rank(), 0), by(x.rank(), 1);
  for (auto [i, axis] : llvm::enumerate(*checked)) {
    int64_t size = x.dim(axis), step = hasSteps ? (*steps)[i] : 1;
    if (step == 0)
      return c.error("has a step of 0");
    auto bound = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp<int64_t>(at < 0 && at >= -size ? at + size : at < 0 ? low : at, low, high);
    };
    int64_t begin = bound((*starts)[i], 0, step < 0 ? size - 1 : size);
    int64_t end = bound((*ends)[i], step < 0 ? -1 : 0, size);
    int64_t distance = step > 0 ? end - begin : begin - end;
    uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
    dims[axis] = distance <= 0 ? 0 : int64_t((uint64_t(distance) - 1) / stride) + 1;
    begins[axis] = begin;
    by[axis] = dims[axis] > 1 ? step : 1;
  }
  if (llvm::all_of(by, [](int64_t step) { return step == 1; })) {
    for (int64_t i = 0; i < x.rank(); ++i)
      if (dims[i] != x.dim(i))
        x = c.a.slice(x, i, begins[i], dims[i]);
    return c.done(x);
  }
  return c.done(c.a.generate(x.type, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source;
    for (int64_t i = 0; i < x.rank(); ++i)
      source.push_back(s.add(s.index(begins[i]), s.mul(at[i], s.index(by[i]))));
    return s.load(x, source);
  }));
}

static Error lowerTile(LowerContext &c) {
  Array x = c.input(0);
  Dims dims;
  if (const Tensor *repeats = c.constant(1)) {
    if (repeats->elements() != x.rank())
      return c.error("repeats another number of dimensions than its input has");
    for (auto [i, times] : llvm::enumerate(repeats->integers())) {
      int64_t size;
      if (times < 0 || __builtin_mul_overflow(times, x.dim(int64_t(i)), &size))
        return c.error("repeats too often");
      dims.push_back(size);
    }
  } else if (auto declared = c.outputShape(0)) {
    dims = *declared;
  } else {
    return c.needsConstant(1);
  }
  if (!elementCount(dims))
    return c.error("makes a shape that is too large");
  return c.done(c.a.generate(x.type, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source;
    for (int64_t i = 0; i < x.rank(); ++i)
      source.push_back(s.remainder(at[i], std::max<int64_t>(x.dim(i), 1)));
    return s.load(x, source);
  }));
}

/// The place in x of an element that may lie outside, for the modes other than constant.
static mlir::Value wrapPlace(ScalarBuilder &s, mlir::Value at, int64_t size, StringRef mode) {
  int64_t last = std::max<int64_t>(size - 1, 0);
  if (mode == "wrap")
    return s.op(Arith::Mod, at, s.index(std::max<int64_t>(size, 1)));
  if (mode == "reflect" && last > 0) {
    // Back and forth with a period of twice the distance.
    mlir::Value m = s.op(Arith::Mod, at, s.index(2 * last));
    return s.op(Arith::Min, m, s.sub(s.index(2 * last), m));
  }
  return s.clamp(at, s.index(0), s.index(last)); // edge
}

static Error lowerPad(LowerContext &c) {
  Array x = c.input(0);
  bool old = c.node().version < 11;
  StringRef mode = c.node().text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return c.error("pads in a mode that is not known");
  std::vector<int64_t> pads;
  Array dynamic;
  std::optional<Dims> dims = Dims(x.shape());
  std::vector<int64_t> axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (!old && c.has(3)) {
    auto given = c.integers(3);
    if (!given)
      return given.takeError();
    auto checked = c.axes(*given, x.rank());
    if (!checked)
      return checked.takeError();
    axes.assign(checked->begin(), checked->end());
  }
  if (old) {
    llvm::ArrayRef<int64_t> given = c.node().integers("pads");
    pads = given.empty() ? c.node().integers("paddings").vec() : given.vec();
  } else if (const Tensor *given = c.constant(1)) {
    pads = given->integers();
  } else {
    dynamic = c.input(1);
    if (!(dims = c.outputShape(0)))
      return c.needsConstant(1);
  }
  int64_t half = int64_t(axes.size());
  if (dynamic ? dynamic.elements() != 2 * half : int64_t(pads.size()) != 2 * half)
    return c.error("does not pad both sides of each axis");
  if (!dynamic)
    for (auto [i, axis] : llvm::enumerate(axes)) {
      int64_t &size = (*dims)[axis];
      if (__builtin_add_overflow(size, pads[i], &size) ||
          __builtin_add_overflow(size, pads[i + half], &size) || size < 0)
        return c.error("makes a shape that is too large or negative");
    }
  if (!elementCount(*dims))
    return c.error("makes a shape that is too large");
  Array value = !old && c.has(2) ? c.a.reshape(c.input(2), {})
                                 : c.a.scalar(x.type, c.node().number("value", 0));
  return c.done(c.a.generate(x.type, *dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    mlir::Value inside = s.truth(true);
    for (auto [i, axis] : llvm::enumerate(axes)) {
      mlir::Value before =
          dynamic ? s.toIndex(s.load(dynamic, s.index(int64_t(i)))) : s.index(pads[i]);
      mlir::Value place = s.sub(at[axis], before);
      if (mode == "constant") {
        inside = s.logicalAnd(inside, s.test(Test::GreaterOrEqual, place, s.index(0)));
        inside = s.logicalAnd(inside, s.less(place, s.index(x.dim(axis))));
        source[axis] = place;
      } else {
        source[axis] = wrapPlace(s, place, x.dim(axis), mode);
      }
    }
    if (x.elements() == 0)
      return s.load(value, {});
    return s.select(inside, s.loadClamped(x, source), s.load(value, {}));
  }));
}

//===----------------------------------------------------------------------===//
// Made from nothing
//===----------------------------------------------------------------------===//

static Error lowerConstantOfShape(LowerContext &c) {
  std::optional<Dims> dims = c.outputShape(0);
  if (const Tensor *given = c.constant(0)) {
    std::vector<int64_t> sizes = given->integers();
    dims = Dims(sizes.begin(), sizes.end());
  }
  if (!dims)
    return c.needsConstant(0);
  if (!elementCount(*dims))
    return c.error("makes a shape that is too large or negative");
  const onnx::Attribute *value = c.node().find("value");
  Array one = value && value->tensor ? c.a.reshape(c.a.constant(*value->tensor), {})
                                     : c.a.scalar(ElementType::Float, 0);
  return c.done(c.a.expand(one, *dims));
}

static Error lowerRange(LowerContext &c) {
  std::optional<Dims> dims = c.outputShape(0);
  if (!dims || dims->size() != 1)
    return c.needsConstant(c.constant(0) ? 1 : 0);
  Array start = c.a.reshape(c.input(0), {}), delta = c.a.reshape(c.input(2), {});
  return c.done(c.a.generate(start.type, *dims, [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value i =
        s.convert(s.fromIndex(at[0], ElementType::Int64), ElementType::Int64, start.type);
    return s.narrow(s.add(s.loadWide(start, {}), s.mul(i, s.loadWide(delta, {}))), start.type);
  }));
}

static Error lowerEyeLike(LowerContext &c) {
  Array x = c.input(0);
  if (x.rank() != 2)
    return c.error("makes a matrix like a tensor that is none");
  ElementType type = c.outputType(0);
  int64_t k = c.node().integer("k", 0);
  return c.done(c.a.generate(type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value is = s.test(Test::Equal, s.sub(at[1], at[0]), s.index(k));
    return s.narrow(s.convert(is, ElementType::Bool, type), type);
  }));
}

static Error lowerTrilu(LowerContext &c) {
  Array x = c.input(0), k = c.has(1) ? c.a.reshape(c.input(1), {}) : Array();
  if (x.rank() < 2)
    return c.error("takes a triangle of a tensor that has no rows and columns");
  bool upper = c.node().integer("upper", 1);
  return c.done(c.a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value shift = k ? s.toIndex(s.load(k, {})) : s.index(0);
    mlir::Value distance = s.sub(at[x.rank() - 1], at[x.rank() - 2]);
    mlir::Value keeps = s.test(upper ? Test::GreaterOrEqual : Test::LessOrEqual, distance, shift);
    mlir::Value zero = s.narrow(s.constant(s.computedType(x.type), 0), x.type);
    return s.select(keeps, s.load(x, at), zero);
  }));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static Error lowerDepthToSpace(LowerContext &c) {
  Array x = c.input(0);
  int64_t b = c.node().integer("blocksize", 0);
  if (x.rank() != 4 || b <= 0 || x.dim(1) % (b * b))
    return c.error("moves depth of a shape that its blocks do not divide");
  int64_t n = x.dim(0), depth = x.dim(1) / (b * b), h = x.dim(2), w = x.dim(3);
  bool columns = c.node().text("mode", "DCR") == "CRD";
  Array y = columns ? c.a.transpose(c.a.reshape(x, {n, depth, b, b, h, w}), {0, 1, 4, 2, 5, 3})
                    : c.a.transpose(c.a.reshape(x, {n, b, b, depth, h, w}), {0, 3, 4, 1, 5, 2});
  return c.done(c.a.reshape(y, {n, depth, h * b, w * b}));
}

static Error lowerSpaceToDepth(LowerContext &c) {
  Array x = c.input(0);
  int64_t b = c.node().integer("blocksize", 0);
  if (x.rank() != 4 || b <= 0 || x.dim(2) % b || x.dim(3) % b)
    return c.error("moves space of a shape that its blocks do not divide");
  int64_t n = x.dim(0), depth = x.dim(1), h = x.dim(2) / b, w = x.dim(3) / b;
  bool columns = c.node().text("mode", "DCR") == "CRD";
  Array y = c.a.reshape(x, {n, depth, h, b, w, b});
  y = c.a.transpose(y, columns ? Dims{0, 1, 3, 5, 2, 4} : Dims{0, 3, 5, 1, 2, 4});
  return c.done(c.a.reshape(y, {n, depth * b * b, h, w}));
}

static Error lowerReverseSequence(LowerContext &c) {
  Array x = c.input(0), lengths = c.input(1);
  auto time = c.axis(c.node().integer("time_axis", 0), x.rank());
  if (!time)
    return time.takeError();
  auto batch = c.axis(c.node().integer("batch_axis", 1), x.rank());
  if (!batch)
    return batch.takeError();
  return c.done(c.a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value length = s.toIndex(s.loadClamped(lengths, at[*batch]));
    SmallVector<mlir::Value> source(at);
    mlir::Value mirrored = s.sub(s.sub(length, s.index(1)), at[*time]);
    source[*time] = s.select(s.less(at[*time], length), mirrored, at[*time]);
    return s.loadClamped(x, source);
  }));
}

static Error lowerCenterCropPad(LowerContext &c) {
  Array x = c.input(0);
  std::optional<Dims> dims = c.outputShape(0);
  const Tensor *given = c.constant(1);
  if (given) {
    Dims axes = allAxes(x.rank());
    if (c.node().find("axes")) {
      auto checked = c.axes(c.node().integers("axes"), x.rank());
      if (!checked)
        return checked.takeError();
      axes = *checked;
    }
    dims = Dims(x.shape());
    if (given->elements() != int64_t(axes.size()))
      return c.error("has another number of sizes than of axes");
    for (auto [i, axis] : llvm::enumerate(axes))
      (*dims)[axis] = given->integer(int64_t(i));
  }
  if (!dims)
    return c.needsConstant(1);
  if (!elementCount(*dims))
    return c.error("makes a shape that is too large or negative");
  return c.done(c.a.generate(x.type, *dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source;
    mlir::Value inside = s.truth(true);
    for (int64_t i = 0; i < x.rank(); ++i) {
      int64_t more = (*dims)[i] - x.dim(i), before = more >= 0 ? more / 2 : -(-more / 2);
      mlir::Value place = s.sub(at[i], s.index(before));
      inside = s.logicalAnd(inside, s.test(Test::GreaterOrEqual, place, s.index(0)));
      inside = s.logicalAnd(inside, s.less(place, s.index(x.dim(i))));
      source.push_back(place);
    }
    mlir::Value zero = s.narrow(s.constant(s.computedType(x.type), 0), x.type);
    return s.select(inside, s.loadClamped(x, source), zero);
  }));
}

void onnx::addMovementLowerings(OpTable<LowerFn> &table) {
  table.add("", "CenterCropPad", 1, lowerCenterCropPad);
  table.add("", "Concat", 1, lowerConcat);
  table.add("", "ConstantOfShape", 1, lowerConstantOfShape);
  table.add("", "DepthToSpace", 1, lowerDepthToSpace);
  table.add("", "Expand", 1, lowerExpand);
  table.add("", "EyeLike", 1, lowerEyeLike);
  table.add("", "Flatten", 1, lowerFlatten);
  table.add("", "Pad", 1, lowerPad);
  table.add("", "Range", 1, lowerRange);
  table.add("", "Reshape", 1, lowerReshape);
  table.add("", "ReverseSequence", 1, lowerReverseSequence);
  table.add("", "Shape", 1, lowerShape);
  table.add("", "Size", 1, lowerSize);
  table.add("", "Slice", 1, lowerSlice);
  table.add("", "SpaceToDepth", 1, lowerSpaceToDepth);
  table.add("", "Split", 1, lowerSplit);
  table.add("", "Squeeze", 1, lowerSqueeze);
  table.add("", "Tile", 1, lowerTile);
  table.add("", "Transpose", 1, lowerTranspose);
  table.add("", "Trilu", 1, lowerTrilu);
  table.add("", "Unsqueeze", 1, lowerUnsqueeze);
}
