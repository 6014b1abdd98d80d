//===- Shape.cpp - operators that make and change shapes ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <numeric>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Constant, ConstantOfShape, Shape, Size, Range
//===----------------------------------------------------------------------===//

static FoldResult foldConstant(const FoldContext &context) {
  const Node &node = context.node();
  using Kind = Attribute::Kind;
  for (const Attribute &a : node.attributes) {
    if (a.name == "value" && a.tensor)
      return one(*a.tensor);
    if (a.name == "value_int" && a.kind == Kind::Int)
      return one(Tensor::ofIntegers(ElementType::Int64, {}, {a.integer}));
    if (a.name == "value_ints")
      return one(Tensor::ofIntegers(ElementType::Int64, {int64_t(a.integers.size())}, a.integers));
    if (a.name == "value_float" && a.kind == Kind::Float)
      return one(Tensor::ofDoubles(ElementType::Float, {}, {double(a.number)}));
    if (a.name == "value_floats")
      return one(Tensor::ofDoubles(ElementType::Float, {int64_t(a.numbers.size())},
                                   std::vector<double>(a.numbers.begin(), a.numbers.end())));
    if (a.name == "value_string" && a.kind == Kind::String)
      return one(Tensor::ofStrings({}, {a.text.str()}));
    if (a.name == "value_strings")
      return one(Tensor::ofStrings({int64_t(a.texts.size())},
                                   std::vector<std::string>(a.texts.begin(), a.texts.end())));
  }
  return context.error("has no value that can be read");
}

static Error inferConstant(InferContext &context) {
  if (const Attribute *value = context.node().find("value"); value && value->tensor)
    context.set(0, value->tensor->type,
                Shape(value->tensor->dims.begin(), value->tensor->dims.end()));
  return Error::success();
}

static Error inferConstantOfShape(InferContext &context) {
  const Attribute *value = context.node().find("value");
  ElementType type = value && value->tensor ? value->tensor->type : ElementType::Float;
  std::optional<Shape> shape;
  if (std::optional<Contents> dims = context.contents(0))
    shape.emplace(dims->values.begin(), dims->values.end());
  else if (context.shape(0) && context.shape(0)->size() == 1)
    if (std::optional<int64_t> rank = (*context.shape(0))[0].constant(); rank && *rank <= 32) {
      shape.emplace();
      for (int64_t i = 0; i < *rank; ++i)
        shape->push_back(context.symbols().fresh("size"));
    }
  context.set(0, type, std::move(shape));
  return Error::success();
}

static FoldResult foldConstantOfShape(const FoldContext &context) {
  std::vector<int64_t> given = context.input(0).integers();
  Dims dims(given.begin(), given.end());
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  const Attribute *value = context.node().find("value");
  Tensor filler =
      value && value->tensor ? *value->tensor : Tensor::ofDoubles(ElementType::Float, {}, {0.0});
  if (filler.elements() != 1)
    return context.error("has a value of " + Twine(filler.elements()) + " elements; one expected");
  return one(gatherElements(filler, dims, std::vector<int64_t>(size_t(*elementCount(dims)), 0)));
}

/// The range of dimensions that Shape is asked for.
static std::pair<int64_t, int64_t> shapeRange(const Node &node, int64_t rank) {
  auto clamp = [&](int64_t i) {
    return std::min(std::max<int64_t>(i < 0 ? i + rank : i, 0), rank);
  };
  int64_t begin = clamp(node.integer("start", 0));
  return {begin, std::max(begin, clamp(node.integer("end", rank)))};
}

static Error inferShape(InferContext &context) {
  const Shape *shape = context.shape(0);
  if (!shape) {
    context.set(0, ElementType::Int64, Shape{context.symbols().fresh("rank")});
    return Error::success();
  }
  auto [begin, end] = shapeRange(context.node(), int64_t(shape->size()));
  context.set(0, ElementType::Int64, Shape{Dim(end - begin)});
  Contents contents;
  contents.dims = {end - begin};
  contents.values.assign(shape->begin() + begin, shape->begin() + end);
  context.setContents(0, std::move(contents));
  return Error::success();
}

static FoldResult foldShape(const FoldContext &context) {
  const Dims &dims = context.input(0).dims;
  auto [begin, end] = shapeRange(context.node(), int64_t(dims.size()));
  return one(Tensor::ofIntegers(ElementType::Int64, {end - begin},
                                llvm::ArrayRef<int64_t>(dims).slice(begin, end - begin)));
}

static Error inferSize(InferContext &context) {
  context.set(0, ElementType::Int64, Shape());
  if (const Shape *shape = context.shape(0))
    context.setContents(0, {{}, {product(*shape)}});
  return Error::success();
}
static FoldResult foldSize(const FoldContext &context) {
  return one(Tensor::ofIntegers(ElementType::Int64, {}, {context.input(0).elements()}));
}

static Error inferRange(InferContext &context) {
  std::optional<Contents> begin = context.contents(0), end = context.contents(1),
                          step = context.contents(2);
  Dim size = context.symbols().fresh("range");
  if (begin && end && step && begin->values.size() == 1 && end->values.size() == 1 &&
      step->values.size() == 1) {
    std::optional<int64_t> by = step->values[0].constant();
    Dim span = end->values[0] - begin->values[0];
    if (by && *by > 0 && span.isNonNegative())
      size = context.symbols().quotient(span + Dim(*by - 1), Dim(*by));
    else if (by && *by != 0 && span.constant())
      size = Dim(std::max<int64_t>(0, (*span.constant() + *by + (*by > 0 ? -1 : 1)) / *by));
  }
  context.set(0, context.type(0), Shape{size});
  return Error::success();
}

static FoldResult foldRange(const FoldContext &context) {
  for (size_t i = 0; i < 3; ++i)
    if (context.input(i).elements() != 1)
      return context.error("needs three numbers");
  const Tensor &begin = context.input(0);
  double b = begin.number(0), e = context.input(1).number(0), s = context.input(2).number(0);
  double count = std::max(0.0, std::ceil((e - b) / s));
  if (!(count <= double(kLargestFold)) || s == 0)
    return context.error("is a range of " + Twine(std::to_string(count)) + " numbers");
  std::vector<double> values;
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < int64_t(count); ++i)
    if (isFloat(begin.type))
      values.push_back(b + double(i) * s);
    else
      integers.push_back(begin.integer(0) + i * context.input(2).integer(0));
  return one(isFloat(begin.type) ? Tensor::ofDoubles(begin.type, {int64_t(count)}, values)
                                 : Tensor::ofIntegers(begin.type, {int64_t(count)}, integers));
}

//===----------------------------------------------------------------------===//
// Reshape, Flatten, Squeeze, Unsqueeze
//===----------------------------------------------------------------------===//

static Error inferReshape(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Contents> target;
  if (const Attribute *attribute = context.node().find("shape")) {
    target.emplace();
    target->values.assign(attribute->integers.begin(), attribute->integers.end());
  } else {
    target = context.contents(1);
  }
  std::optional<Shape> result;
  if (target) {
    bool allowZero = context.node().integer("allowzero", 0) != 0;
    result.emplace();
    std::optional<size_t> open;
    for (auto [i, dim] : llvm::enumerate(target->values)) {
      if (dim.constant() == 0 && !allowZero) {
        if (from && i < from->size())
          result->push_back((*from)[i]);
        else if (from)
          return context.error("keeps dimension " + Twine(i) + " of a tensor with " +
                               Twine(from->size()));
        else
          result->push_back(context.symbols().fresh("size"));
      } else if (dim.constant() == -1) {
        if (open)
          return context.error("leaves two dimensions open");
        open = i;
        result->push_back(Dim(1));
      } else if (dim.constant() && *dim.constant() < 0) {
        return context.error("asks for the dimension " + Twine(*dim.constant()));
      } else {
        result->push_back(dim);
      }
    }
    if (open) {
      std::optional<Dim> rest;
      if (from)
        rest = product(*from).dividedBy(product(*result));
      std::optional<int64_t> total = from ? product(*from).constant() : std::nullopt,
                             known = product(*result).constant();
      if (!rest && total && known && *total == 0)
        rest = Dim(0);
      if (!rest && total && known)
        return context.error("makes " + Twine(*known) + " times something of " + Twine(*total) +
                             " elements");
      (*result)[*open] = rest ? *rest : context.symbols().fresh("size");
    } else if (from) {
      std::optional<int64_t> have = product(*from).constant(), want = product(*result).constant();
      if (have && want && *have != *want)
        return context.error("makes " + Twine(*want) + " elements of " + Twine(*have));
    }
  } else if (context.shape(1) && context.shape(1)->size() == 1) {
    if (std::optional<int64_t> rank = (*context.shape(1))[0].constant(); rank && *rank <= 32) {
      result.emplace();
      for (int64_t i = 0; i < *rank; ++i)
        result->push_back(context.symbols().fresh("size"));
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldReshape(const FoldContext &context) {
  bool isGiven;
  std::vector<int64_t> target = context.integersOf("shape", 1, isGiven);
  const Tensor &input = context.input(0);
  bool allowZero = context.node().integer("allowzero", 0) != 0;
  std::optional<size_t> open;
  Dims dims(target.begin(), target.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allowZero) {
      if (i >= input.dims.size())
        return context.error("keeps a dimension that is not there");
      dims[i] = input.dims[i];
    } else if (dims[i] == -1) {
      if (open)
        return context.error("leaves two dimensions open");
      open = i;
      dims[i] = 1;
    }
  }
  std::optional<int64_t> known = elementCount(dims);
  int64_t have = input.elements();
  if (open && known && *known > 0) {
    dims[*open] = have / *known;
    known = elementCount(dims);
  }
  if (!known || *known != have)
    return context.error("makes a shape of another number of elements than its input's " +
                         Twine(have));
  return one(withDims(input, dims));
}

static Error inferFlatten(InferContext &context) {
  const Shape *from = context.shape(0);
  if (!from) {
    context.set(0, context.type(0),
                Shape{context.symbols().fresh("size"), context.symbols().fresh("size")});
    return Error::success();
  }
  int64_t rank = int64_t(from->size()), axis = context.node().integer("axis", 1);
  if (axis < -rank || axis > rank)
    return context.error("has the axis " + Twine(axis) + " of a tensor with " + Twine(rank) +
                         " dimensions");
  axis += axis < 0 ? rank : 0;
  llvm::ArrayRef<Dim> dims = *from;
  context.set(0, context.type(0),
              Shape{product(dims.take_front(axis)), product(dims.drop_front(axis))});
  return Error::success();
}

static FoldResult foldFlatten(const FoldContext &context) {
  const Tensor &input = context.input(0);
  int64_t rank = int64_t(input.dims.size()), axis = context.node().integer("axis", 1);
  if (axis < -rank || axis > rank)
    return context.error("has an axis that is not there");
  axis += axis < 0 ? rank : 0;
  llvm::ArrayRef<int64_t> dims = input.dims;
  return one(withDims(
      input, {*elementCount(dims.take_front(axis)), *elementCount(dims.drop_front(axis))}));
}

/// Axes, counted from the front, sorted and without repetition.
template <typename Context>
static Expected<std::vector<int64_t>> sortedAxes(Context &context, llvm::ArrayRef<int64_t> given,
                                                 int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis : given) {
    Expected<int64_t> a = context.axis(axis, rank);
    if (!a)
      return a.takeError();
    axes.push_back(*a);
  }
  llvm::sort(axes);
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return context.error("names an axis twice");
  return axes;
}

static Error inferSqueeze(InferContext &context) {
  bool isGiven;
  std::optional<std::vector<int64_t>> axes = context.integersOf("axes", 1, isGiven);
  const Shape *from = context.shape(0);
  std::optional<Shape> result;
  if (from && axes) {
    Expected<std::vector<int64_t>> dropped = sortedAxes(context, *axes, int64_t(from->size()));
    if (!dropped)
      return dropped.takeError();
    result.emplace();
    for (auto [i, dim] : llvm::enumerate(*from)) {
      bool drop = isGiven ? llvm::is_contained(*dropped, int64_t(i)) : dim.constant() == 1;
      if (drop && dim.constant() && *dim.constant() != 1)
        return context.error("drops a dimension of " + Twine(*dim.constant()));
      if (!drop)
        result->push_back(dim);
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldSqueeze(const FoldContext &context) {
  bool isGiven;
  std::vector<int64_t> axes = context.integersOf("axes", 1, isGiven);
  const Tensor &input = context.input(0);
  Expected<std::vector<int64_t>> dropped = sortedAxes(context, axes, int64_t(input.dims.size()));
  if (!dropped)
    return dropped.takeError();
  Dims dims;
  for (auto [i, dim] : llvm::enumerate(input.dims)) {
    bool drop = isGiven ? llvm::is_contained(*dropped, int64_t(i)) : dim == 1;
    if (drop && dim != 1)
      return context.error("drops a dimension of " + Twine(dim));
    if (!drop)
      dims.push_back(dim);
  }
  return one(withDims(input, dims));
}

static Error inferUnsqueeze(InferContext &context) {
  bool isGiven;
  std::optional<std::vector<int64_t>> axes = context.integersOf("axes", 1, isGiven);
  const Shape *from = context.shape(0);
  std::optional<Shape> result;
  if (from && axes) {
    if (axes->size() > 32)
      return context.error("adds more than 32 dimensions");
    int64_t rank = int64_t(from->size() + axes->size());
    Expected<std::vector<int64_t>> added = sortedAxes(context, *axes, rank);
    if (!added)
      return added.takeError();
    result.emplace();
    size_t next = 0;
    for (int64_t i = 0; i < rank; ++i)
      result->push_back(llvm::is_contained(*added, i) ? Dim(1) : (*from)[next++]);
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldUnsqueeze(const FoldContext &context) {
  bool isGiven;
  std::vector<int64_t> axes = context.integersOf("axes", 1, isGiven);
  const Tensor &input = context.input(0);
  if (axes.size() > 32)
    return context.error("adds more than 32 dimensions");
  int64_t rank = int64_t(input.dims.size() + axes.size());
  Expected<std::vector<int64_t>> added = sortedAxes(context, axes, rank);
  if (!added)
    return added.takeError();
  Dims dims;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back(llvm::is_contained(*added, i) ? 1 : input.dims[next++]);
  return one(withDims(input, dims));
}

//===----------------------------------------------------------------------===//
// Transpose, Expand, Tile, Concat
//===----------------------------------------------------------------------===//

/// The permutation of a Transpose; empty where it is none of so many axes.
static std::vector<int64_t> permutation(const Node &node, size_t rank) {
  std::vector<int64_t> perm(node.integers("perm"));
  if (perm.empty() && !node.find("perm")) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  std::vector<bool> seen(rank, false);
  for (int64_t &axis : perm) {
    axis += axis < 0 ? int64_t(rank) : 0;
    if (axis < 0 || size_t(axis) >= rank || seen[size_t(axis)] || perm.size() != rank)
      return {};
    seen[size_t(axis)] = true;
  }
  return perm;
}

static Error inferTranspose(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Shape> result;
  if (from) {
    std::vector<int64_t> perm = permutation(context.node(), from->size());
    if (perm.size() != from->size())
      return context.error("has a perm that is no permutation of " + Twine(from->size()) + " axes");
    result.emplace();
    for (int64_t axis : perm)
      result->push_back((*from)[size_t(axis)]);
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldTranspose(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<int64_t> perm = permutation(context.node(), input.dims.size());
  if (perm.size() != input.dims.size())
    return context.error("has a perm that is no permutation of its input's axes");
  Dims strides = stridesOf(input.dims), dims, moved;
  for (int64_t axis : perm) {
    dims.push_back(input.dims[size_t(axis)]);
    moved.push_back(strides[size_t(axis)]);
  }
  std::vector<int64_t> source;
  for (Odometer at(dims, {moved}); !at.atEnd(); at.next())
    source.push_back(at.offset(0));
  return one(gatherElements(input, dims, source));
}

static Error inferExpand(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Contents> target = context.contents(1);
  std::optional<Shape> result;
  if (from && target) {
    for (const Dim &dim : target->values)
      if (dim.constant() && *dim.constant() < 0)
        return context.error("expands to the dimension " + Twine(*dim.constant()));
    Expected<Shape> shape = context.broadcast(*from, target->values);
    if (!shape)
      return shape.takeError();
    result = std::move(*shape);
  } else if (context.shape(1) && context.shape(1)->size() == 1 && from) {
    if (std::optional<int64_t> rank = (*context.shape(1))[0].constant(); rank && *rank <= 32) {
      result.emplace();
      for (int64_t i = 0; i < std::max<int64_t>(*rank, int64_t(from->size())); ++i)
        result->push_back(context.symbols().fresh("size"));
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldExpand(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<int64_t> target = context.input(1).integers();
  Tensor shaped;
  shaped.dims.assign(target.begin(), target.end());
  Expected<Dims> dims = broadcastDims(context, {&input, &shaped});
  if (!dims)
    return dims.takeError();
  std::vector<int64_t> source;
  for (Odometer at(*dims, {broadcastStrides(input.dims, *dims)}); !at.atEnd(); at.next())
    source.push_back(at.offset(0));
  return one(gatherElements(input, *dims, source));
}

static Error inferTile(InferContext &context) {
  const Shape *from = context.shape(0);
  std::optional<Shape> result;
  if (from) {
    std::optional<Contents> repeats = context.contents(1);
    result = *from;
    for (auto [i, dim] : llvm::enumerate(*result))
      dim = repeats && i < repeats->values.size() ? dim * repeats->values[i]
                                                  : context.symbols().fresh("size");
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldTile(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<int64_t> repeats = context.input(1).integers();
  if (repeats.size() != input.dims.size())
    return context.error("has " + Twine(repeats.size()) + " repeats for " +
                         Twine(input.dims.size()) + " dimensions");
  Dims dims, strides = stridesOf(input.dims);
  for (size_t i = 0; i < repeats.size(); ++i) {
    int64_t size;
    if (repeats[i] < 0 || __builtin_mul_overflow(input.dims[i], repeats[i], &size))
      return context.error("repeats too often");
    dims.push_back(size);
  }
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  std::vector<int64_t> source;
  Dims index(dims.size(), 0);
  for (int64_t n = *elementCount(dims); n > 0; --n) {
    int64_t at = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      at += index[i] % input.dims[i] * strides[i];
    source.push_back(at);
    for (size_t i = dims.size(); i-- > 0;) {
      if (++index[i] < dims[i])
        break;
      index[i] = 0;
    }
  }
  return one(gatherElements(input, dims, source));
}

static Error inferConcat(InferContext &context) {
  const Shape *first = context.shape(0);
  std::optional<Shape> result;
  if (first) {
    Expected<int64_t> axis =
        context.axis(context.node().integer("axis", 0), int64_t(first->size()));
    if (!axis)
      return axis.takeError();
    result = *first;
    for (size_t i = 1; result && i < context.inputCount(); ++i) {
      const Shape *next = context.shape(i);
      if (!next) {
        (*result)[size_t(*axis)] = context.symbols().fresh("size");
        continue;
      }
      if (next->size() != first->size())
        return context.error("joins tensors of " + Twine(first->size()) + " and " +
                             Twine(next->size()) + " dimensions");
      for (size_t k = 0; k < next->size(); ++k) {
        Dim &have = (*result)[k];
        const Dim &want = (*next)[k];
        if (k == size_t(*axis)) {
          have = have + want;
        } else if (!have.isConstant()) {
          have = want;
        } else if (want.isConstant() && have != want) {
          return context.error("joins tensors of shapes " + shapeText(*result, context.symbols()) +
                               " and " + shapeText(*next, context.symbols()));
        }
      }
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldConcat(const FoldContext &context) {
  const Tensor &first = context.input(0);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", 0), int64_t(first.dims.size()));
  if (!axis)
    return axis.takeError();
  Dims dims = first.dims;
  for (size_t i = 1; i < context.inputCount(); ++i) {
    const Tensor &next = context.input(i);
    if (next.type != first.type || next.dims.size() != first.dims.size())
      return context.error("joins tensors that do not go together");
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k == size_t(*axis))
        dims[k] += next.dims[k];
      else if (dims[k] != next.dims[k])
        return context.error("joins tensors that do not go together");
    }
  }
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  // All inputs one after the other, then picked in the order of the result.
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < dims.size(); ++k)
    (k < size_t(*axis) ? outer : inner) *= k == size_t(*axis) ? 1 : dims[k];
  if (elementBits(first.type) >= 8) {
    size_t unit = elementBits(first.type) / 8 * size_t(inner);
    std::vector<uint8_t> bytes;
    for (int64_t o = 0; o < outer; ++o)
      for (size_t i = 0; i < context.inputCount(); ++i) {
        size_t run = unit * size_t(context.input(i).dims[size_t(*axis)]);
        llvm::ArrayRef<uint8_t> part = context.input(i).bytes.slice(size_t(o) * run, run);
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
    return one(Tensor::ofBytes(first.type, dims, std::move(bytes)));
  }
  std::vector<std::string> strings;
  std::vector<int64_t> numbers;
  for (int64_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < context.inputCount(); ++i) {
      const Tensor &part = context.input(i);
      int64_t run = inner * part.dims[size_t(*axis)];
      for (int64_t k = o * run; k < (o + 1) * run; ++k)
        if (first.type == ElementType::String)
          strings.push_back((*part.strings)[size_t(k)]);
        else
          numbers.push_back(part.integer(k));
    }
  return one(first.type == ElementType::String ? Tensor::ofStrings(dims, std::move(strings))
                                               : Tensor::ofIntegers(first.type, dims, numbers));
}

void onnx::addShapeOps(OpRegistry &r) {
  struct Row {
    llvm::StringLiteral name;
    InferFn infer;
    FoldFn fold;
    bool moves;
  };
  static constexpr Row rows[] = {
      {"Constant", inferConstant, foldConstant, false},
      {"ConstantOfShape", inferConstantOfShape, foldConstantOfShape, false},
      {"Shape", inferShape, foldShape, false},
      {"Size", inferSize, foldSize, false},
      {"Range", inferRange, foldRange, false},
      {"Reshape", inferReshape, foldReshape, true},
      {"Flatten", inferFlatten, foldFlatten, true},
      {"Squeeze", inferSqueeze, foldSqueeze, true},
      {"Unsqueeze", inferUnsqueeze, foldUnsqueeze, true},
      {"Transpose", inferTranspose, foldTranspose, true},
      {"Expand", inferExpand, foldExpand, true},
      {"Tile", inferTile, foldTile, true},
      {"Concat", inferConcat, foldConcat, true},
  };
  for (const Row &row : rows) {
    r.infer.add("", row.name, 1, row.infer);
    r.fold.add("", row.name, 1, row.fold);
    if (row.moves)
      r.moves.add("", row.name, 1, true);
  }
}
