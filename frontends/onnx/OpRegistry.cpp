//===- OpRegistry.cpp - what is known of every operator -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/OpRegistry.h"
#include "frontends/common/ImportError.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

const OpRegistry &onnx::opRegistry() {
  static const OpRegistry registry = [] {
    OpRegistry r;
    addElementwiseOps(r);
    addShapeOps(r);
    addIndexingOps(r);
    addReductionOps(r);
    addMatMulOps(r);
    addNormalizationOps(r);
    addAttentionOps(r);
    addQuantizationOps(r);
    addLoweredOps(r);
    return r;
  }();
  return registry;
}

static Expected<int64_t> checkedAxis(int64_t given, int64_t rank,
                                     Error (*make)(void *, const Twine &), void *context) {
  if (given < -rank || given >= rank)
    return make(context, "has the axis " + Twine(given) + " of a tensor with " + Twine(rank) +
                             " dimensions");
  return given < 0 ? given + rank : given;
}

//===----------------------------------------------------------------------===//
// InferContext
//===----------------------------------------------------------------------===//

std::optional<Contents> InferContext::contents(size_t input) const {
  // Longer lists are no shape arithmetic.
  constexpr int64_t kLongest = 1024;
  if (!has(input))
    return std::nullopt;
  const Value &value = *op.inputs[input];
  if (value.contents)
    return value.contents;
  if (!value.constant || value.constant->elements() > kLongest ||
      !(isInteger(value.constant->type) || value.constant->type == ElementType::Bool))
    return std::nullopt;
  Contents result;
  result.dims = value.constant->dims;
  for (int64_t number : value.constant->integers())
    result.values.emplace_back(number);
  return result;
}

std::optional<std::vector<int64_t>> InferContext::integers(size_t input) const {
  std::optional<Contents> known = contents(input);
  if (!known)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim &value : known->values) {
    std::optional<int64_t> number = value.constant();
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<int64_t>> InferContext::integersOf(StringRef attribute, size_t input,
                                                             bool &isGiven) const {
  isGiven = true;
  if (const Attribute *a = op.find(attribute))
    return a->integers;
  if (has(input))
    return integers(input);
  isGiven = false;
  return std::vector<int64_t>();
}

void InferContext::set(size_t output, ElementType type, std::optional<Shape> shape) {
  if (Value *value = op.output(output)) {
    value->type = type;
    value->shape = std::move(shape);
  }
}

void InferContext::setContents(size_t output, Contents contents) {
  if (Value *value = op.output(output))
    value->contents = std::move(contents);
}

Expected<int64_t> InferContext::axis(int64_t given, int64_t rank) {
  return checkedAxis(
      given, rank,
      [](void *self, const Twine &why) { return static_cast<InferContext *>(self)->error(why); },
      this);
}

Expected<Shape> InferContext::broadcast(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape result(a.begin(), a.end());
  size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    Dim &x = result[offset + i];
    const Dim &y = b[i];
    std::optional<int64_t> cx = x.constant(), cy = y.constant();
    if (x == y || cy == 1)
      continue;
    if (cx == 1) {
      x = y;
      continue;
    }
    if (cx && cy)
      return error("has inputs of shapes " + shapeText(a, symbols()) + " and " +
                   shapeText(b, symbols()) + ", which do not go together");
    // A symbol meets something else. Either is 1, or both are the same when the graph runs; a
    // number says more than a symbol.
    if (cy)
      x = y;
  }
  return result;
}

Expected<std::optional<Shape>> InferContext::broadcast(llvm::ArrayRef<size_t> inputs) {
  std::optional<Shape> result = Shape();
  for (size_t input : inputs) {
    if (!shape(input))
      return std::nullopt;
    Expected<Shape> next = broadcast(*result, *shape(input));
    if (!next)
      return next.takeError();
    result = std::move(*next);
  }
  return result;
}

Error InferContext::error(const Twine &why) const {
  return corrupt(model.path(), op.describe() + " " + why);
}

//===----------------------------------------------------------------------===//
// FoldContext
//===----------------------------------------------------------------------===//

std::vector<int64_t> FoldContext::integersOf(StringRef attribute, size_t input,
                                             bool &isGiven) const {
  isGiven = true;
  if (const Attribute *a = op.find(attribute))
    return a->integers;
  if (has(input))
    return inputs[input]->integers();
  isGiven = false;
  return {};
}

Expected<int64_t> FoldContext::axis(int64_t given, int64_t rank) const {
  return checkedAxis(
      given, rank,
      [](void *self, const Twine &why) {
        return static_cast<const FoldContext *>(self)->error(why);
      },
      const_cast<FoldContext *>(this));
}

Error FoldContext::error(const Twine &why) const {
  return corrupt(path, op.describe() + " " + why);
}
