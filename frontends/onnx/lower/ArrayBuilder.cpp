//===- ArrayBuilder.cpp - tensor programs from NumPy-like calls -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Arrays.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;

std::optional<Dims> onnx::broadcastShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Dims result(a.begin(), a.end());
  for (size_t i = 0, offset = a.size() - b.size(); i < b.size(); ++i) {
    int64_t &x = result[offset + i];
    if (x == 1)
      x = b[i];
    else if (b[i] != 1 && b[i] != x)
      return std::nullopt;
  }
  return result;
}

Dims onnx::allAxes(int64_t rank) {
  Dims axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Type ArrayBuilder::storedType(ElementType type) {
  switch (type) {
  case ElementType::Float:
    return b.getF32Type();
  case ElementType::Double:
    return b.getF64Type();
  case ElementType::Float16:
    return b.getF16Type();
  case ElementType::Bool:
    return b.getI1Type();
  default:
    return b.getIntegerType(std::max(8u, elementBits(type)));
  }
}

/// Elements of fewer than eight bits, one to a byte, extended by their sign.
static std::vector<char> unpacked(const Tensor &tensor) {
  unsigned bits = elementBits(tensor.type);
  std::vector<char> bytes(size_t(tensor.elements()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint8_t code = tensor.bytes[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
    bool negative = isSignedInteger(tensor.type) && code >> (bits - 1);
    bytes[i] = char(negative ? code | (0xffu << bits) : code);
  }
  return bytes;
}

Array ArrayBuilder::constant(const Tensor &tensor) {
  Type element = storedType(tensor.type);
  if (tensor.elements() == 0)
    return {empty(element, tensor.dims), tensor.type};
  auto type = RankedTensorType::get(tensor.dims, element);
  std::vector<char> small;
  llvm::ArrayRef<char> raw(reinterpret_cast<const char *>(tensor.bytes.data()),
                           tensor.bytes.size());
  if (elementBits(tensor.type) < 8)
    raw = small = unpacked(tensor);
  DenseElementsAttr data;
  if (tensor.type == ElementType::Bool) {
    SmallVector<bool> truths;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      truths.push_back(tensor.bytes[size_t(i)] != 0);
    data = DenseElementsAttr::get(type, truths);
  } else {
    data = DenseElementsAttr::getFromRawBuffer(type, raw);
  }
  return {arith::ConstantOp::create(b, data), tensor.type};
}

Array ArrayBuilder::full(ElementType type, llvm::ArrayRef<int64_t> dims, double value) {
  return expand(scalar(type, value), dims);
}

mlir::Value ArrayBuilder::empty(Type type, llvm::ArrayRef<int64_t> dims) {
  return tensor::EmptyOp::create(b, dims, type);
}

Array ArrayBuilder::scalar(ElementType type, double value) {
  return constant(Tensor::ofDoubles(type, {}, {value}));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Reads an array of `dims` within loops over `to`: dimensions of one element stay at it.
static AffineMap broadcastMap(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> to,
                              MLIRContext *context) {
  SmallVector<AffineExpr> results;
  size_t offset = to.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i)
    results.push_back(dims[i] == 1 && to[offset + i] != 1
                          ? getAffineConstantExpr(0, context)
                          : getAffineDimExpr(unsigned(offset + i), context));
  return AffineMap::get(unsigned(to.size()), 0, results, context);
}

Array ArrayBuilder::map(ElementType type, llvm::ArrayRef<Array> inputs, MapFn fn, bool saturate) {
  Dims dims;
  for (const Array &input : inputs)
    dims = broadcastShape(dims, input.shape()).value();
  SmallVector<AffineMap> maps;
  SmallVector<mlir::Value> values;
  for (const Array &input : inputs) {
    values.push_back(input.value);
    maps.push_back(broadcastMap(input.shape(), dims, b.getContext()));
  }
  maps.push_back(b.getMultiDimIdentityMap(unsigned(dims.size())));
  SmallVector<utils::IteratorType> iterators(dims.size(), utils::IteratorType::parallel);
  mlir::Value out = empty(storedType(type), dims);
  auto body = [&](OpBuilder &inner, Location loc, ValueRange args) {
    ScalarBuilder s(inner, loc);
    SmallVector<mlir::Value> wide;
    for (auto [input, arg] : llvm::zip(inputs, args))
      wide.push_back(s.widen(arg, input.type));
    mlir::Value result = s.narrow(fn(s, wide), type, saturate);
    linalg::YieldOp::create(s.builder(), result);
  };
  auto generic = linalg::GenericOp::create(b, out.getType(), values, out, maps, iterators, body);
  return {generic.getResult(0), type};
}

Array ArrayBuilder::unary(Array x,
                          llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value)> fn) {
  return map(x.type, x, [&](ScalarBuilder &s, ValueRange v) { return fn(s, v[0]); });
}

Array ArrayBuilder::binary(Arith op, Array x, Array y) {
  return map(x.type, {x, y}, [&](ScalarBuilder &s, ValueRange v) {
    return s.op(op, v[0], v[1], isUnsignedType(x.type));
  });
}

Array ArrayBuilder::test(Test test, Array x, Array y) {
  return map(ElementType::Bool, {x, y}, [&](ScalarBuilder &s, ValueRange v) {
    return s.test(test, v[0], v[1], isUnsignedType(x.type));
  });
}

Array ArrayBuilder::where(Array condition, Array x, Array y) {
  return map(x.type, {condition, x, y},
             [&](ScalarBuilder &s, ValueRange v) { return s.select(v[0], v[1], v[2]); });
}

Array ArrayBuilder::cast(Array x, ElementType type, bool saturate) {
  if (x.type == type)
    return x;
  return map(
      type, x, [&](ScalarBuilder &s, ValueRange v) { return s.convert(v[0], x.type, type); },
      saturate);
}

Array ArrayBuilder::sigmoid(Array x) {
  return unary(x, [](ScalarBuilder &s, mlir::Value v) {
    mlir::Value one = s.like(v, 1);
    return s.div(one, s.add(one, s.exp(s.neg(v))));
  });
}

Array ArrayBuilder::generate(ElementType type, llvm::ArrayRef<int64_t> dims, MapFn fn) {
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(unsigned(dims.size()))};
  SmallVector<utils::IteratorType> iterators(dims.size(), utils::IteratorType::parallel);
  mlir::Value out = empty(storedType(type), dims);
  auto body = [&](OpBuilder &inner, Location loc, ValueRange) {
    ScalarBuilder s(inner, loc);
    SmallVector<mlir::Value> indices;
    for (size_t i = 0; i < dims.size(); ++i)
      indices.push_back(linalg::IndexOp::create(s.builder(), int64_t(i)));
    linalg::YieldOp::create(s.builder(), fn(s, indices));
  };
  auto generic =
      linalg::GenericOp::create(b, out.getType(), ValueRange(), out, maps, iterators, body);
  return {generic.getResult(0), type};
}

Array ArrayBuilder::loop(
    int64_t steps, Array init,
    llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value step, Array)> fn) {
  ScalarBuilder outer(b, b.getLoc());
  auto body = [&](OpBuilder &inner, Location loc, mlir::Value step, ValueRange carried) {
    ScalarBuilder s(inner, loc);
    mlir::Value next = fn(s, step, {carried[0], init.type});
    scf::YieldOp::create(s.builder(), next);
  };
  auto loop = scf::ForOp::create(b, outer.index(0), outer.index(steps), outer.index(1),
                                 ValueRange{init.value}, body);
  return {loop.getResult(0), init.type};
}

llvm::SmallVector<Array> ArrayBuilder::repeat(
    int64_t steps, llvm::ArrayRef<Array> init,
    llvm::function_ref<llvm::SmallVector<Array>(ArrayBuilder &, mlir::Value, llvm::ArrayRef<Array>)>
        fn) {
  ScalarBuilder outer(b, b.getLoc());
  SmallVector<mlir::Value> values;
  for (const Array &array : init)
    values.push_back(array.value);
  auto body = [&](OpBuilder &inner, Location loc, mlir::Value step, ValueRange carried) {
    ArrayBuilder a(inner, loc);
    SmallVector<Array> states;
    for (auto [value, array] : llvm::zip(carried, init))
      states.push_back({value, array.type});
    SmallVector<mlir::Value> next;
    // A state is kept where it is: bufferization wants one buffer for all steps.
    for (auto [array, value] : llvm::zip(fn(a, step, states), carried))
      next.push_back(linalg::CopyOp::create(a.builder(), array.value, value).getResult(0));
    scf::YieldOp::create(a.builder(), next);
  };
  auto loop =
      scf::ForOp::create(b, outer.index(0), outer.index(steps), outer.index(1), values, body);
  SmallVector<Array> results;
  for (auto [value, array] : llvm::zip(loop.getResults(), init))
    results.push_back({value, array.type});
  return results;
}

Array ArrayBuilder::take(Array x, mlir::Value index) {
  return generate(x.type, x.shape().drop_front(), [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source{index};
    llvm::append_range(source, at);
    return s.load(x, source);
  });
}

Array ArrayBuilder::put(Array x, mlir::Value index, Array entry) {
  SmallVector<OpFoldResult> offsets(x.rank(), b.getIndexAttr(0)), sizes,
      strides(x.rank(), b.getIndexAttr(1));
  for (int64_t size : x.shape())
    sizes.push_back(b.getIndexAttr(size));
  offsets[0] = index;
  sizes[0] = b.getIndexAttr(1);
  return {
      tensor::InsertSliceOp::create(b, unsqueeze(entry, 0).value, x.value, offsets, sizes, strides),
      x.type};
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Array ArrayBuilder::reduce(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims, double init,
                           MapFn fn, ElementType type, ElementType accumulate) {
  Dims kept, full;
  SmallVector<AffineExpr> results;
  SmallVector<utils::IteratorType> iterators;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool reduced = llvm::is_contained(axes, i);
    iterators.push_back(reduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    full.push_back(reduced ? 1 : x.dim(i));
    if (reduced)
      continue;
    kept.push_back(x.dim(i));
    results.push_back(b.getAffineDimExpr(unsigned(i)));
  }
  ScalarBuilder outer(b, b.getLoc());
  Type computed = outer.computedType(accumulate);
  mlir::Value start = outer.constant(computed, init);
  mlir::Value filled =
      linalg::FillOp::create(b, ValueRange(start), ValueRange(empty(computed, kept))).getResult(0);
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(unsigned(x.rank())),
                              AffineMap::get(unsigned(x.rank()), 0, results, b.getContext())};
  auto body = [&](OpBuilder &inner, Location loc, ValueRange args) {
    ScalarBuilder s(inner, loc);
    mlir::Value element = s.convert(s.widen(args[0], x.type), x.type, accumulate);
    linalg::YieldOp::create(s.builder(), fn(s, {args[1], element}));
  };
  auto generic =
      linalg::GenericOp::create(b, filled.getType(), x.value, filled, maps, iterators, body);
  // Accumulators are in the computed form of their type, which small floats are not stored in.
  ElementType computedAs =
      isFloat(accumulate) && accumulate != ElementType::Double ? ElementType::Float : accumulate;
  Array result = cast({generic.getResult(0), computedAs}, type);
  return keepDims ? reshape(result, full) : result;
}

Array ArrayBuilder::reduceSum(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  return reduce(
      x, axes, keepDims, 0, [](ScalarBuilder &s, ValueRange v) { return s.add(v[0], v[1]); },
      x.type, x.type);
}

static double leastOf(ElementType type) {
  if (isFloat(type))
    return -INFINITY;
  return isUnsignedType(type) ? 0 : -std::ldexp(1, int(elementBits(type)) - 1);
}

Array ArrayBuilder::reduceMax(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  bool isUnsigned = isUnsignedType(x.type);
  return reduce(
      x, axes, keepDims, leastOf(x.type),
      [&](ScalarBuilder &s, ValueRange v) { return s.op(Arith::Max, v[0], v[1], isUnsigned); },
      x.type, x.type);
}

Array ArrayBuilder::reduceMin(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  bool isUnsigned = isUnsignedType(x.type);
  // All ones are the largest unsigned number.
  double most = isFloat(x.type) ? INFINITY : isUnsigned ? -1 : -(leastOf(x.type) + 1);
  if (x.type == ElementType::Int64) // which no double is one less of
    return unary(
        reduceMax(unary(x, [](ScalarBuilder &s,
                              mlir::Value v) { return s.op(Arith::Xor, v, s.like(v, -1)); }),
                  axes, keepDims),
        [](ScalarBuilder &s, mlir::Value v) { return s.op(Arith::Xor, v, s.like(v, -1)); });
  return reduce(
      x, axes, keepDims, most,
      [&](ScalarBuilder &s, ValueRange v) { return s.op(Arith::Min, v[0], v[1], isUnsigned); },
      x.type, x.type);
}

Array ArrayBuilder::reduceMean(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= x.dim(axis);
  // The sum of many small floats is kept in 32 bits until it is divided.
  ElementType wide = isFloat(x.type) && x.type != ElementType::Double ? ElementType::Float : x.type;
  Array sum = reduce(
      x, axes, keepDims, 0, [](ScalarBuilder &s, ValueRange v) { return s.add(v[0], v[1]); }, wide,
      wide);
  return cast(div(sum, scalar(wide, double(count))), x.type);
}

Array ArrayBuilder::softmax(Array x, int64_t axis) {
  Array e = exp(sub(x, reduceMax(x, {axis}, true)));
  return div(e, reduceSum(e, {axis}, true));
}

/// Doubling: after step k every element holds the sum of the last 2^k up to it.
Array ArrayBuilder::cumulate(Array x, int64_t axis, Arith op, bool exclusive, bool reverse) {
  int64_t size = x.dim(axis);
  double neutral = op == Arith::Mul ? 1 : 0;
  // The element `distance` before (behind, in reverse), or the neutral one.
  auto shifted = [&](Array from, int64_t distance) {
    return generate(from.type, from.shape(), [&](ScalarBuilder &s, ValueRange at) {
      SmallVector<mlir::Value> source(at);
      mlir::Value moved =
          reverse ? s.add(at[axis], s.index(distance)) : s.sub(at[axis], s.index(distance));
      source[axis] = moved;
      mlir::Value inside =
          reverse ? s.less(moved, s.index(size)) : s.test(Test::GreaterOrEqual, moved, s.index(0));
      mlir::Value none = s.narrow(s.constant(s.computedType(from.type), neutral), from.type);
      return s.select(inside, s.loadClamped(from, source), none);
    });
  };
  if (exclusive)
    x = shifted(x, 1);
  for (int64_t distance = 1; distance < size; distance *= 2)
    x = binary(op, x, shifted(x, distance));
  return x;
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

Array ArrayBuilder::reshape(Array x, llvm::ArrayRef<int64_t> dims) {
  if (x.shape() == dims)
    return x;
  auto type = RankedTensorType::get(dims, storedType(x.type));
  if (x.elements() == 0) // which nothing can be collapsed from
    return {empty(storedType(x.type), dims), x.type};
  mlir::Value flat = x.value;
  if (x.rank() != 1) {
    SmallVector<ReassociationIndices> all;
    if (x.rank() > 0)
      all.push_back(ReassociationIndices(llvm::to_vector<2>(llvm::seq<int64_t>(0, x.rank()))));
    auto flatType = RankedTensorType::get({x.elements()}, storedType(x.type));
    flat = x.rank() > 0 ? mlir::Value(tensor::CollapseShapeOp::create(b, flatType, flat, all))
                        : mlir::Value(tensor::ExpandShapeOp::create(b, flatType, flat, all));
  }
  if (dims.size() == 1)
    return {flat, x.type};
  SmallVector<ReassociationIndices> all;
  if (!dims.empty())
    all.push_back(
        ReassociationIndices(llvm::to_vector<2>(llvm::seq<int64_t>(0, int64_t(dims.size())))));
  mlir::Value result = dims.empty()
                           ? mlir::Value(tensor::CollapseShapeOp::create(b, type, flat, all))
                           : mlir::Value(tensor::ExpandShapeOp::create(b, type, flat, all));
  return {result, x.type};
}

Array ArrayBuilder::transpose(Array x, llvm::ArrayRef<int64_t> permutation) {
  Dims dims;
  for (int64_t axis : permutation)
    dims.push_back(x.dim(axis));
  // Loops over the result; dimension permutation[i] of x is dimension i of it.
  SmallVector<AffineExpr> results(x.rank());
  for (auto [i, axis] : llvm::enumerate(permutation))
    results[axis] = b.getAffineDimExpr(unsigned(i));
  SmallVector<AffineMap> maps{AffineMap::get(unsigned(x.rank()), 0, results, b.getContext()),
                              b.getMultiDimIdentityMap(unsigned(x.rank()))};
  SmallVector<utils::IteratorType> iterators(x.rank(), utils::IteratorType::parallel);
  mlir::Value out = empty(storedType(x.type), dims);
  auto body = [](OpBuilder &inner, Location loc, ValueRange args) {
    linalg::YieldOp::create(inner, loc, args[0]);
  };
  auto generic = linalg::GenericOp::create(b, out.getType(), x.value, out, maps, iterators, body);
  return {generic.getResult(0), x.type};
}

Array ArrayBuilder::expand(Array x, llvm::ArrayRef<int64_t> dims) {
  if (x.shape() == dims)
    return x;
  SmallVector<AffineMap> maps{broadcastMap(x.shape(), dims, b.getContext()),
                              b.getMultiDimIdentityMap(unsigned(dims.size()))};
  SmallVector<utils::IteratorType> iterators(dims.size(), utils::IteratorType::parallel);
  mlir::Value out = empty(storedType(x.type), dims);
  auto body = [](OpBuilder &inner, Location loc, ValueRange args) {
    linalg::YieldOp::create(inner, loc, args[0]);
  };
  auto generic = linalg::GenericOp::create(b, out.getType(), x.value, out, maps, iterators, body);
  return {generic.getResult(0), x.type};
}

Array ArrayBuilder::slice(Array x, int64_t axis, int64_t begin, int64_t count) {
  if (count == 0) { // which no view can show
    Dims dims(x.shape());
    dims[axis] = 0;
    return {empty(storedType(x.type), dims), x.type};
  }
  SmallVector<OpFoldResult> offsets(x.rank(), b.getIndexAttr(0)), sizes,
      strides(x.rank(), b.getIndexAttr(1));
  for (int64_t i = 0; i < x.rank(); ++i)
    sizes.push_back(b.getIndexAttr(i == axis ? count : x.dim(i)));
  offsets[axis] = b.getIndexAttr(begin);
  return {tensor::ExtractSliceOp::create(b, x.value, offsets, sizes, strides), x.type};
}

Array ArrayBuilder::concat(llvm::ArrayRef<Array> parts, int64_t axis) {
  Dims dims(parts[0].shape());
  dims[axis] = 0;
  for (const Array &part : parts)
    dims[axis] += part.dim(axis);
  mlir::Value result = empty(storedType(parts[0].type), dims);
  int64_t at = 0;
  for (const Array &part : parts) {
    if (part.elements() == 0)
      continue;
    SmallVector<OpFoldResult> offsets(dims.size(), b.getIndexAttr(0)), sizes,
        strides(dims.size(), b.getIndexAttr(1));
    for (int64_t size : part.shape())
      sizes.push_back(b.getIndexAttr(size));
    offsets[axis] = b.getIndexAttr(at);
    result = tensor::InsertSliceOp::create(b, part.value, result, offsets, sizes, strides);
    at += part.dim(axis);
  }
  return {result, parts[0].type};
}

Array ArrayBuilder::unsqueeze(Array x, int64_t axis) {
  Dims dims(x.shape());
  dims.insert(dims.begin() + axis, 1);
  return reshape(x, dims);
}
Array ArrayBuilder::squeeze(Array x, int64_t axis) {
  Dims dims(x.shape());
  dims.erase(dims.begin() + axis);
  return reshape(x, dims);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Array ArrayBuilder::matmul(Array x, Array y) { return matmul(x, y, x.type, x.type); }

Array ArrayBuilder::matmul(Array x, Array y, ElementType type, ElementType accumulate) {
  llvm::ArrayRef<int64_t> a = x.shape(), c = y.shape();
  Dims dims = broadcastShape(a.drop_back(2), c.drop_back(2)).value();
  unsigned batch = unsigned(dims.size());
  dims.push_back(a[a.size() - 2]);
  dims.push_back(c.back());
  // Loops: batch, m, k, n. The innermost runs along rows of y and of the result.
  MLIRContext *context = b.getContext();
  auto mapOf = [&](llvm::ArrayRef<int64_t> own, std::initializer_list<unsigned> last) {
    SmallVector<AffineExpr> results;
    size_t offset = batch - (own.size() - 2);
    for (size_t i = 0; i + 2 < own.size(); ++i)
      results.push_back(own[i] == 1 ? getAffineConstantExpr(0, context)
                                    : getAffineDimExpr(unsigned(offset + i), context));
    for (unsigned loop : last)
      results.push_back(getAffineDimExpr(batch + loop, context));
    return AffineMap::get(batch + 3, 0, results, context);
  };
  Dims whole(dims);
  SmallVector<AffineExpr> results;
  for (unsigned i = 0; i < batch; ++i)
    results.push_back(getAffineDimExpr(i, context));
  results.push_back(getAffineDimExpr(batch, context));
  results.push_back(getAffineDimExpr(batch + 2, context));
  SmallVector<AffineMap> maps{mapOf(a, {0, 1}), mapOf(c, {1, 2}),
                              AffineMap::get(batch + 3, 0, results, context)};
  SmallVector<utils::IteratorType> iterators(batch + 3, utils::IteratorType::parallel);
  iterators[batch + 1] = utils::IteratorType::reduction;

  ScalarBuilder outer(b, b.getLoc());
  Type computed = outer.computedType(accumulate);
  mlir::Value zero = outer.constant(computed, 0);
  mlir::Value filled =
      linalg::FillOp::create(b, ValueRange(zero), ValueRange(empty(computed, whole))).getResult(0);
  auto body = [&](OpBuilder &inner, Location loc, ValueRange args) {
    ScalarBuilder s(inner, loc);
    mlir::Value u = s.convert(s.widen(args[0], x.type), x.type, accumulate);
    mlir::Value v = s.convert(s.widen(args[1], y.type), y.type, accumulate);
    linalg::YieldOp::create(s.builder(), s.add(args[2], s.mul(u, v)));
  };
  auto generic = linalg::GenericOp::create(b, filled.getType(), ValueRange{x.value, y.value},
                                           ValueRange{filled}, maps, iterators, body);
  ElementType computedAs =
      isFloat(accumulate) && accumulate != ElementType::Double ? ElementType::Float : accumulate;
  return cast({generic.getResult(0), computedAs}, type);
}
