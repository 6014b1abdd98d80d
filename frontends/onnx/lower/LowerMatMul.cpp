//===- LowerMatMul.cpp - products -----------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;

/// NumPy's matmul, vectors included; the shapes are checked.
static Error lowerProduct(LowerContext &c, Array x, Array y, ElementType type,
                          ElementType accumulate) {
  if (x.rank() == 0 || y.rank() == 0)
    return c.error("multiplies by a scalar");
  bool row = x.rank() == 1, column = y.rank() == 1;
  if (row)
    x = c.a.unsqueeze(x, 0);
  if (column)
    y = c.a.unsqueeze(y, 1);
  if (x.shape().back() != y.dim(y.rank() - 2) ||
      !broadcastShape(x.shape().drop_back(2), y.shape().drop_back(2)))
    return c.error("multiplies matrices of shapes that do not go together");
  Array z = c.a.matmul(x, y, type, accumulate);
  if (row)
    z = c.a.squeeze(z, z.rank() - 2);
  if (column)
    z = c.a.squeeze(z, z.rank() - 1);
  return c.done(z);
}

static Error lowerMatMul(LowerContext &c) {
  Array x = c.input(0), y = c.input(1);
  return lowerProduct(c, x, y, x.type, x.type);
}

static Error lowerGemm(LowerContext &c) {
  Array x = c.input(0), y = c.input(1);
  if (x.rank() != 2 || y.rank() != 2)
    return c.error("multiplies what are no matrices");
  if (c.node().integer("transA", 0))
    x = c.a.transpose(x, {1, 0});
  if (c.node().integer("transB", 0))
    y = c.a.transpose(y, {1, 0});
  if (x.dim(1) != y.dim(0))
    return c.error("multiplies matrices of shapes that do not go together");
  ElementType type = x.type;
  ElementType wide = isFloat(type) && type != ElementType::Double ? ElementType::Float : type;
  Array z = c.a.matmul(x, y, wide, wide);
  double alpha = c.node().number("alpha", 1), beta = c.node().number("beta", 1);
  if (alpha != 1)
    z = c.a.mulScalar(z, alpha);
  if (c.has(2)) {
    Array bias = c.a.cast(c.input(2), wide);
    if (broadcastShape(bias.shape(), z.shape()) != Dims(z.shape()))
      return c.error("adds a bias of a shape that does not go with the product's");
    z = c.a.add(z, beta == 1 ? bias : c.a.mulScalar(bias, beta));
  }
  return c.done(c.a.cast(z, type));
}

/// An array of `like`'s dims, or one that is broadcast to them, of zero points; zeros where the
/// input is left out. A vector belongs to the rows of the left matrix, or columns of the right.
static Array offsetOf(LowerContext &c, size_t input, Array matrix, bool left) {
  Array zero = c.input(input);
  if (!zero)
    return {};
  zero = c.a.cast(zero, ElementType::Int32);
  if (zero.rank() == 1 && zero.dim(0) != 1)
    return left ? c.a.unsqueeze(zero, 1) : zero;
  return zero.elements() == 1 ? c.a.reshape(zero, {}) : zero;
}

static Error lowerMatMulInteger(LowerContext &c) {
  auto wide = [&](size_t input, size_t zero, bool left) {
    Array x = c.a.cast(c.input(input), ElementType::Int32);
    Array offset = offsetOf(c, zero, x, left);
    return offset ? c.a.sub(x, offset) : x;
  };
  return lowerProduct(c, wide(0, 2, true), wide(1, 3, false), ElementType::Int32,
                      ElementType::Int32);
}

/// Integers of a product to the output's scale: rint(x * factor) + zero, clamped.
Array onnx::requantize(ArrayBuilder &a, Array x, Array factor, Array zero) {
  ElementType type = zero.type;
  double low = isUnsignedType(type) ? 0 : -128, high = isUnsignedType(type) ? 255 : 127;
  return a.map(type, {x, factor, zero}, [&](ScalarBuilder &s, ValueRange v) {
    mlir::Value scaled = s.mul(s.convert(v[0], x.type, ElementType::Float), v[1]);
    mlir::Value moved =
        s.add(s.call<math::RoundEvenOp>(scaled), s.convert(v[2], type, ElementType::Float));
    return s.convert(s.clamp(moved, s.like(moved, low), s.like(moved, high)), ElementType::Float,
                     type);
  });
}

static Error lowerQLinearMatMul(LowerContext &c) {
  Array a = c.input(0), b = c.input(3);
  auto offset = [&](size_t input, Array like, bool left) {
    return c.a.sub(c.a.cast(like, ElementType::Int32), offsetOf(c, input, like, left));
  };
  Array product;
  {
    Array x = offset(2, a, true), y = offset(5, b, false);
    if (x.rank() < 2 || y.rank() < 2 || x.shape().back() != y.dim(y.rank() - 2) ||
        !broadcastShape(x.shape().drop_back(2), y.shape().drop_back(2)))
      return c.error("multiplies matrices of shapes that do not go together");
    product = c.a.matmul(x, y, ElementType::Int32, ElementType::Int32);
  }
  auto scale = [&](size_t input, bool left) {
    Array s = c.a.cast(c.input(input), ElementType::Float);
    if (s.elements() == 1)
      return c.a.reshape(s, {});
    return left && s.rank() == 1 ? c.a.unsqueeze(s, 1) : s;
  };
  Array factor = c.a.div(c.a.mul(scale(1, true), scale(4, false)), scale(6, false));
  Array zero = c.input(7);
  if (zero.elements() == 1)
    zero = c.a.reshape(zero, {});
  return c.done(requantize(c.a, product, factor, zero));
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// An equation: labels of every operand and of the result. The dimensions of an ellipsis have the
/// labels '0', '1', ... counted from the last.
struct Equation {
  SmallVector<std::string> operands;
  std::string result;
};
} // namespace

static bool expandEllipsis(std::string &labels, int64_t rank, int64_t &widest) {
  size_t dots = labels.find("...");
  if (dots == std::string::npos)
    return int64_t(labels.size()) == rank;
  int64_t count = rank - (int64_t(labels.size()) - 3);
  if (count < 0 || count > 10)
    return false;
  widest = std::max(widest, count);
  std::string names;
  for (int64_t i = count; i-- > 0;)
    names += char('0' + i);
  labels.replace(dots, 3, names);
  return true;
}

static Error lowerEinsum(LowerContext &c) {
  auto inputs = c.inputs();
  if (!inputs)
    return inputs.takeError();
  std::string text;
  for (char letter : c.node().text("equation", ""))
    if (letter != ' ')
      text += letter;
  auto [left, right] = StringRef(text).split("->");
  bool isExplicit = text.find("->") != std::string::npos;
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != inputs->size())
    return c.error("has an equation of another number of terms than inputs");
  Equation eq;
  int64_t widest = 0;
  std::map<char, int64_t> sizes;
  std::map<char, int> uses;
  for (auto [term, input] : llvm::zip(terms, *inputs)) {
    std::string labels = term.str();
    if (!expandEllipsis(labels, input.rank(), widest))
      return c.error("has a term with another number of labels than its input has dimensions");
    for (auto [label, size] : llvm::zip(labels, input.shape())) {
      int64_t &known = sizes.try_emplace(label, 1).first->second;
      if (known != size && known != 1 && size != 1)
        return c.error("gives one label two sizes");
      known = std::max(known, size);
      ++uses[label];
    }
    eq.operands.push_back(labels);
  }
  if (isExplicit) {
    eq.result = right.str();
    size_t dots = eq.result.find("...");
    std::string names;
    for (int64_t i = widest; i-- > 0;)
      names += char('0' + i);
    if (dots != std::string::npos)
      eq.result.replace(dots, 3, names);
  } else {
    for (int64_t i = widest; i-- > 0;)
      eq.result += char('0' + i);
    for (auto [label, count] : uses)
      if (count == 1 && llvm::isAlpha(label))
        eq.result += label;
  }
  // Loops: the result's labels, then the others.
  std::string loops = eq.result;
  for (char label : loops)
    if (!sizes.count(label) || llvm::count(loops, label) != 1)
      return c.error("has a result with a label that is not one of its terms'");
  for (auto [label, size] : sizes)
    if (loops.find(label) == std::string::npos)
      loops += label;

  ElementType type = inputs->front().type;
  ElementType wide = isFloat(type) && type != ElementType::Double ? ElementType::Float : type;
  Dims dims;
  for (char label : loops)
    dims.push_back(sizes[label]);
  // Where a label stands twice in a term, its diagonal is read.
  Array product;
  for (auto [labels, input] : llvm::zip(eq.operands, *inputs)) {
    std::string own;
    Dims shape;
    for (char label : loops) {
      size_t at = labels.find(label);
      own += label;
      shape.push_back(at == std::string::npos ? 1 : input.dim(int64_t(at)));
    }
    Array spread = c.a.generate(type, shape, [&](ScalarBuilder &s, ValueRange at) {
      SmallVector<mlir::Value> source;
      for (auto [label, size] : llvm::zip(labels, input.shape()))
        source.push_back(size == 1 ? s.index(0) : at[loops.find(label)]);
      return s.load(input, source);
    });
    spread = c.a.cast(spread, wide);
    product = product ? c.a.mul(product, spread) : spread;
  }
  product = c.a.expand(product, dims);
  Dims reduced;
  for (size_t i = eq.result.size(); i < loops.size(); ++i)
    reduced.push_back(int64_t(i));
  return c.done(c.a.cast(reduced.empty() ? product : c.a.reduceSum(product, reduced, false), type));
}

void onnx::addMatMulLowerings(OpTable<LowerFn> &table) {
  table.add("", "Einsum", 1, lowerEinsum);
  table.add("", "Gemm", 1, lowerGemm);
  table.add("", "MatMul", 1, lowerMatMul);
  table.add("", "MatMulInteger", 1, lowerMatMulInteger);
  table.add("", "QLinearMatMul", 1, lowerQLinearMatMul);
}
