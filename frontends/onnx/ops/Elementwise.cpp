//===- Elementwise.cpp - operators on single elements ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Floats are computed in double and rounded once; integers wrap in their type.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"
#include <cmath>
#include <numbers>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// One input
//===----------------------------------------------------------------------===//

static double erfExact(double x) { return std::erf(x); }
static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
static double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
static double geluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
static double sign(double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); }

using Unary = double (*)(double x, const Node &node);

template <Unary fn> static FoldResult foldUnary(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<double> values = input.doubles();
  for (double &value : values)
    value = fn(value, context.node());
  return one(Tensor::ofDoubles(input.type, input.dims, values));
}

/// Integers that doubles cannot hold keep their bits.
template <int64_t (*fn)(int64_t), Unary floating>
static FoldResult foldUnaryExact(const FoldContext &context) {
  const Tensor &input = context.input(0);
  if (isFloat(input.type))
    return foldUnary<floating>(context);
  std::vector<int64_t> values = input.integers();
  for (int64_t &value : values)
    value = fn(value);
  return one(Tensor::ofIntegers(input.type, input.dims, values));
}

static Error inferBool(InferContext &context) {
  if (Error error = inferSame(context))
    return error;
  context.set(0, ElementType::Bool,
              context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  return Error::success();
}

template <bool (*fn)(double, const Node &)> static FoldResult foldTest(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<int64_t> values;
  for (double value : input.doubles())
    values.push_back(fn(value, context.node()));
  return one(Tensor::ofIntegers(ElementType::Bool, input.dims, values));
}

static FoldResult foldIdentity(const FoldContext &context) { return one(context.input(0)); }

//===----------------------------------------------------------------------===//
// Two inputs
//===----------------------------------------------------------------------===//

namespace {
/// A binary operator on the three kinds of numbers. Null: not defined there.
struct Binary {
  double (*floats)(double, double);
  int64_t (*integers)(int64_t, int64_t);
  uint64_t (*wide)(uint64_t, uint64_t); ///< uint64, where its sign matters
};
} // namespace

static bool isUnsigned(const Tensor &t) { return isInteger(t.type) && !isSignedInteger(t.type); }

static FoldResult foldPair(const FoldContext &context, const Tensor &a, const Tensor &b,
                           ElementType type, const Binary &op) {
  Expected<Dims> dims = broadcastDims(context, {&a, &b});
  if (!dims)
    return dims.takeError();
  Odometer at(*dims, {broadcastStrides(a.dims, *dims), broadcastStrides(b.dims, *dims)});
  if (isFloat(a.type)) {
    std::vector<double> x = a.doubles(), y = b.doubles(), result;
    for (; !at.atEnd(); at.next())
      result.push_back(op.floats(x[size_t(at.offset(0))], y[size_t(at.offset(1))]));
    return one(Tensor::ofDoubles(type, *dims, result));
  }
  std::vector<int64_t> x = a.integers(), y = b.integers(), result;
  for (; !at.atEnd(); at.next()) {
    int64_t u = x[size_t(at.offset(0))], v = y[size_t(at.offset(1))];
    result.push_back(op.wide && isUnsigned(a) ? int64_t(op.wide(uint64_t(u), uint64_t(v)))
                                              : op.integers(u, v));
  }
  return one(Tensor::ofIntegers(type, *dims, result));
}

static int64_t addInt(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
static int64_t subInt(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
static int64_t mulInt(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
static int64_t divInt(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? subInt(0, a) : a / b; }
static int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t m = a % b;
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
static int64_t truncMod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static double floatMod(double a, double b) { return std::fmod(a, b); }
static double floatFloorMod(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
static int64_t powInt(int64_t a, int64_t b) {
  if (b < 0)
    return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (uint64_t e = uint64_t(b); e; e >>= 1, a = mulInt(a, a))
    if (e & 1)
      result = mulInt(result, a);
  return result;
}

static constexpr Binary kAdd = {[](double a, double b) { return a + b; }, addInt, nullptr};
static constexpr Binary kSub = {[](double a, double b) { return a - b; }, subInt, nullptr};
static constexpr Binary kMul = {[](double a, double b) { return a * b; }, mulInt, nullptr};
static constexpr Binary kDiv = {[](double a, double b) { return a / b; }, divInt,
                                [](uint64_t a, uint64_t b) { return b ? a / b : 0; }};
static constexpr Binary kMod = {floatFloorMod, floorMod,
                                [](uint64_t a, uint64_t b) { return b ? a % b : 0; }};
static constexpr Binary kFmod = {floatMod, truncMod,
                                 [](uint64_t a, uint64_t b) { return b ? a % b : 0; }};
static constexpr Binary kPow = {[](double a, double b) { return std::pow(a, b); }, powInt, nullptr};
static double maxFloat(double a, double b) { return std::isnan(a) || a > b ? a : b; }
static double minFloat(double a, double b) { return std::isnan(a) || a < b ? a : b; }
static constexpr Binary kMax = {maxFloat, [](int64_t a, int64_t b) { return std::max(a, b); },
                                [](uint64_t a, uint64_t b) { return std::max(a, b); }};
static constexpr Binary kMin = {minFloat, [](int64_t a, int64_t b) { return std::min(a, b); },
                                [](uint64_t a, uint64_t b) { return std::min(a, b); }};
static constexpr Binary kAnd = {nullptr, [](int64_t a, int64_t b) { return a & b; }, nullptr};
static constexpr Binary kOr = {nullptr, [](int64_t a, int64_t b) { return a | b; }, nullptr};
static constexpr Binary kXor = {nullptr, [](int64_t a, int64_t b) { return a ^ b; }, nullptr};
// A shift by the width or more, or by a negative number, shifts everything out; to the right,
// signed numbers keep their sign.
static int64_t shiftLeft(int64_t a, int64_t b) {
  return b >= 0 && b < 64 ? int64_t(uint64_t(a) << b) : 0;
}
static int64_t shiftRight(int64_t a, int64_t b) { return a >> (b >= 0 && b < 64 ? b : 63); }
static constexpr Binary kLeft = {nullptr, shiftLeft,
                                 [](uint64_t a, uint64_t b) { return b < 64 ? a << b : 0; }};
static constexpr Binary kRight = {nullptr, shiftRight,
                                  [](uint64_t a, uint64_t b) { return b < 64 ? a >> b : 0; }};
static constexpr Binary kPRelu = {[](double x, double slope) { return x < 0 ? x * slope : x; },
                                  [](int64_t x, int64_t s) { return x < 0 ? mulInt(x, s) : x; },
                                  [](uint64_t x, uint64_t) { return x; }};
static constexpr Binary kEqual = {[](double a, double b) { return double(a == b); },
                                  [](int64_t a, int64_t b) { return int64_t(a == b); }, nullptr};
static constexpr Binary kLess = {[](double a, double b) { return double(a < b); },
                                 [](int64_t a, int64_t b) { return int64_t(a < b); },
                                 [](uint64_t a, uint64_t b) { return uint64_t(a < b); }};
static constexpr Binary kLessEq = {[](double a, double b) { return double(a <= b); },
                                   [](int64_t a, int64_t b) { return int64_t(a <= b); },
                                   [](uint64_t a, uint64_t b) { return uint64_t(a <= b); }};
static constexpr Binary kGreater = {[](double a, double b) { return double(a > b); },
                                    [](int64_t a, int64_t b) { return int64_t(a > b); },
                                    [](uint64_t a, uint64_t b) { return uint64_t(a > b); }};
static constexpr Binary kGreaterEq = {[](double a, double b) { return double(a >= b); },
                                      [](int64_t a, int64_t b) { return int64_t(a >= b); },
                                      [](uint64_t a, uint64_t b) { return uint64_t(a >= b); }};

/// Applies the operator if its numbers are of a kind that it is defined for.
static FoldResult foldChecked(const FoldContext &context, const Binary &op, bool isTest) {
  if (!context.has(0) || !context.has(1))
    return context.error("needs two inputs");
  const Tensor &a = context.input(0), &b = context.input(1);
  bool defined = isFloat(a.type)
                     ? op.floats != nullptr && (isFloat(b.type) || isInteger(b.type))
                     : (op.integers || (op.wide && isUnsigned(a))) && a.type != ElementType::String;
  if (a.type == ElementType::String || b.type == ElementType::String || !defined)
    return context.error("is not defined on " + elementTypeName(a.type));
  if (&op == &kPow && !isFloat(a.type) && isFloat(b.type)) {
    Tensor wide = Tensor::ofDoubles(ElementType::Double, a.dims, a.doubles());
    return foldPair(context, wide, b, a.type, op);
  }
  return foldPair(context, a, b, isTest ? ElementType::Bool : a.type, op);
}

template <const Binary *op> static FoldResult foldArithmetic(const FoldContext &context) {
  return foldChecked(context, *op, false);
}
template <const Binary *op> static FoldResult foldCompare(const FoldContext &context) {
  return foldChecked(context, *op, true);
}

static FoldResult foldMod(const FoldContext &context) {
  return foldChecked(context, context.node().integer("fmod", 0) ? kFmod : kMod, false);
}
static FoldResult foldShift(const FoldContext &context) {
  return foldChecked(context, context.node().text("direction", "") == "LEFT" ? kLeft : kRight,
                     false);
}

/// Any number of inputs, one after the other.
template <const Binary *op> static FoldResult foldVariadic(const FoldContext &context) {
  if (!context.has(0))
    return context.error("has no inputs");
  Tensor result = context.input(0);
  for (size_t i = 1; i < context.inputCount(); ++i) {
    if (!context.has(i) || (isFloat(result.type) ? op->floats == nullptr : !op->integers))
      return context.error("has an input that is left out");
    FoldResult next = foldPair(context, result, context.input(i), result.type, *op);
    if (!next)
      return next;
    result = std::move(next->front());
  }
  return one(std::move(result));
}

static FoldResult foldMean(const FoldContext &context) {
  FoldResult sum = foldVariadic<&kAdd>(context);
  if (!sum)
    return sum;
  std::vector<double> values = sum->front().doubles();
  for (double &value : values)
    value /= double(context.inputCount());
  return one(Tensor::ofDoubles(sum->front().type, sum->front().dims, values));
}

static Error inferBroadcast(InferContext &context, ElementType type) {
  llvm::SmallVector<size_t> inputs;
  for (size_t i = 0; i < context.inputCount(); ++i)
    inputs.push_back(i);
  Expected<std::optional<Shape>> shape = context.broadcast(inputs);
  if (!shape)
    return shape.takeError();
  context.set(0, type, std::move(*shape));
  return Error::success();
}
static Error inferArithmetic(InferContext &context) {
  return inferBroadcast(context, context.type(0));
}
static Error inferCompare(InferContext &context) {
  return inferBroadcast(context, ElementType::Bool);
}

//===----------------------------------------------------------------------===//
// Integers known up to symbols
//===----------------------------------------------------------------------===//

using SymbolicBinary = std::optional<Dim> (*)(SymbolTable &, const Dim &, const Dim &);

static std::optional<Dim> symbolicAdd(SymbolTable &, const Dim &a, const Dim &b) { return a + b; }
static std::optional<Dim> symbolicSub(SymbolTable &, const Dim &a, const Dim &b) { return a - b; }
static std::optional<Dim> symbolicMul(SymbolTable &, const Dim &a, const Dim &b) { return a * b; }
static std::optional<Dim> symbolicDiv(SymbolTable &s, const Dim &a, const Dim &b) {
  // ONNX rounds towards zero, which is down only where nothing is negative.
  if (b.constant() == 0)
    return std::nullopt;
  if (std::optional<Dim> even = a.dividedBy(b))
    return even;
  return a.isNonNegative() && b.isNonNegative() ? std::optional<Dim>(s.quotient(a, b))
                                                : std::nullopt;
}
static std::optional<Dim> symbolicMod(SymbolTable &s, const Dim &a, const Dim &b) {
  if (b.constant() == 0 || !a.isNonNegative() || !b.isNonNegative())
    return std::nullopt;
  return s.remainder(a, b);
}
static std::optional<Dim> symbolicMax(SymbolTable &s, const Dim &a, const Dim &b) {
  return s.larger(a, b);
}
static std::optional<Dim> symbolicMin(SymbolTable &s, const Dim &a, const Dim &b) {
  return s.smaller(a, b);
}
/// Whether a < b (strict) or a <= b, for all values of the symbols, or for none.
static std::optional<Dim> decide(const Dim &a, const Dim &b, bool orEqual) {
  Dim d = b - a;
  if (orEqual ? d.isNonNegative() : d.isPositive())
    return Dim(1);
  Dim r = a - b;
  if (orEqual ? r.isPositive() : r.isNonNegative())
    return Dim(0);
  return std::nullopt;
}
static std::optional<Dim> symbolicEqual(SymbolTable &, const Dim &a, const Dim &b) {
  if (a == b)
    return Dim(1);
  if ((a - b).isPositive() || (b - a).isPositive())
    return Dim(0);
  return std::nullopt;
}
static std::optional<Dim> symbolicLess(SymbolTable &, const Dim &a, const Dim &b) {
  return decide(a, b, false);
}
static std::optional<Dim> symbolicLessEq(SymbolTable &, const Dim &a, const Dim &b) {
  return decide(a, b, true);
}
static std::optional<Dim> symbolicGreater(SymbolTable &, const Dim &a, const Dim &b) {
  return decide(b, a, false);
}
static std::optional<Dim> symbolicGreaterEq(SymbolTable &, const Dim &a, const Dim &b) {
  return decide(b, a, true);
}

static bool isSymbolic(const Node &node) {
  for (const Value *input : node.inputs)
    if (input && input->contents && !input->constant)
      return true;
  return false;
}

template <SymbolicBinary op> static Error symbolicPair(InferContext &context) {
  if (!isSymbolic(context.node()))
    return Error::success();
  std::optional<Contents> result = context.contents(0);
  for (size_t i = 1; result && i < context.inputCount(); ++i) {
    std::optional<Contents> b = context.contents(i);
    // Exporters mix only lists of one length, and single numbers.
    if (!b || (b->values.size() != result->values.size() && b->values.size() != 1 &&
               result->values.size() != 1))
      return Error::success();
    Contents next;
    next.dims = result->dims.size() >= b->dims.size() && result->values.size() >= b->values.size()
                    ? result->dims
                    : b->dims;
    size_t count = std::max(result->values.size(), b->values.size());
    if (result->values.empty() || b->values.empty() || elementCount(next.dims) != int64_t(count))
      return Error::success();
    for (size_t k = 0; k < count; ++k) {
      std::optional<Dim> value = op(context.symbols(), result->values[k % result->values.size()],
                                    b->values[k % b->values.size()]);
      if (!value)
        return Error::success();
      next.values.push_back(std::move(*value));
    }
    result = std::move(next);
  }
  if (result)
    context.setContents(0, std::move(*result));
  return Error::success();
}

static Error symbolicWhere(InferContext &context) {
  std::optional<Contents> c = context.contents(0), a = context.contents(1), b = context.contents(2);
  if (!isSymbolic(context.node()) || !c || !a || !b)
    return Error::success();
  size_t count = std::max({c->values.size(), a->values.size(), b->values.size()});
  Contents result;
  for (const Contents *part : {&*c, &*a, &*b}) {
    if (part->values.size() != count && part->values.size() != 1)
      return Error::success();
    if (part->values.size() == count && part->dims.size() >= result.dims.size())
      result.dims = part->dims;
  }
  for (size_t i = 0; i < count; ++i) {
    std::optional<int64_t> choice = c->values[i % c->values.size()].constant();
    if (!choice)
      return Error::success();
    const Contents &from = *choice ? *a : *b;
    result.values.push_back(from.values[i % from.values.size()]);
  }
  context.setContents(0, std::move(result));
  return Error::success();
}

static Error symbolicNeg(InferContext &context) {
  std::optional<Contents> a = context.contents(0);
  if (!isSymbolic(context.node()) || !a)
    return Error::success();
  for (Dim &value : a->values)
    value = Dim(0) - value;
  context.setContents(0, std::move(*a));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Where, Clip, Cast
//===----------------------------------------------------------------------===//

static Error inferWhere(InferContext &context) { return inferBroadcast(context, context.type(1)); }

static FoldResult foldWhere(const FoldContext &context) {
  for (size_t i = 0; i < 3; ++i)
    if (!context.has(i))
      return context.error("needs three inputs");
  const Tensor &c = context.input(0), &a = context.input(1), &b = context.input(2);
  if (a.type != b.type || c.type != ElementType::Bool)
    return context.error("has inputs of types that do not go together");
  Expected<Dims> dims = broadcastDims(context, {&c, &a, &b});
  if (!dims)
    return dims.takeError();
  Odometer at(*dims, {broadcastStrides(c.dims, *dims), broadcastStrides(a.dims, *dims),
                      broadcastStrides(b.dims, *dims)});
  std::vector<int64_t> condition = c.integers();
  if (a.type == ElementType::String) {
    std::vector<std::string> values;
    for (; !at.atEnd(); at.next())
      values.push_back(condition[size_t(at.offset(0))] ? (*a.strings)[size_t(at.offset(1))]
                                                       : (*b.strings)[size_t(at.offset(2))]);
    return one(Tensor::ofStrings(*dims, std::move(values)));
  }
  bool floats = isFloat(a.type);
  std::vector<double> values;
  std::vector<int64_t> integers;
  for (; !at.atEnd(); at.next()) {
    bool first = condition[size_t(at.offset(0))];
    const Tensor &from = first ? a : b;
    int64_t i = at.offset(first ? 1 : 2);
    floats ? values.push_back(from.number(i)) : integers.push_back(from.integer(i));
  }
  return one(floats ? Tensor::ofDoubles(a.type, *dims, values)
                    : Tensor::ofIntegers(a.type, *dims, integers));
}

static FoldResult foldClip(const FoldContext &context) {
  const Tensor &x = context.input(0);
  const Node &node = context.node();
  if (isFloat(x.type)) {
    double low = node.number("min", -INFINITY), high = node.number("max", INFINITY);
    if (context.has(1) && context.input(1).elements() == 1)
      low = context.input(1).number(0);
    if (context.has(2) && context.input(2).elements() == 1)
      high = context.input(2).number(0);
    std::vector<double> values = x.doubles();
    for (double &value : values)
      value = std::isnan(value) ? value : std::min(std::max(value, low), high);
    return one(Tensor::ofDoubles(x.type, x.dims, values));
  }
  Tensor result = x;
  if (context.has(1)) {
    FoldResult r = foldPair(context, result, context.input(1), x.type, kMax);
    if (!r)
      return r;
    result = std::move(r->front());
  }
  if (context.has(2)) {
    FoldResult r = foldPair(context, result, context.input(2), x.type, kMin);
    if (!r)
      return r;
    result = std::move(r->front());
  }
  return one(std::move(result));
}

static Tensor castTo(const Tensor &x, ElementType to, bool saturate) {
  if (x.type == to)
    return x;
  if (isFloat(to)) {
    std::vector<double> values = x.doubles();
    if (saturate || elementBits(to) > 8)
      return Tensor::ofDoubles(to, x.dims, values);
    std::vector<uint8_t> bytes;
    for (double value : values)
      bytes.push_back(uint8_t(floatToBits(to, value, false)));
    return Tensor::ofBytes(to, x.dims, std::move(bytes));
  }
  if (isFloat(x.type)) {
    // Numbers beyond the type's range have no defined result; they wrap here, except that bool
    // asks only whether they are zero.
    if (to == ElementType::Bool || to == ElementType::UInt64)
      return Tensor::ofDoubles(to, x.dims, x.doubles());
    return Tensor::ofIntegers(to, x.dims, x.integers());
  }
  return Tensor::ofIntegers(to, x.dims, x.integers());
}

/// The type that a Cast's `to` names.
static Expected<ElementType> castType(int64_t to,
                                      llvm::function_ref<Error(const llvm::Twine &)> fail) {
  if (to <= 0 || uint64_t(to) >= kElementTypes)
    return fail("casts to the element type " + llvm::Twine(to) + ", which is not known");
  return ElementType(to);
}

static Error inferCast(InferContext &context) {
  Expected<ElementType> to = castType(context.node().integer("to", 0),
                                      [&](const llvm::Twine &why) { return context.error(why); });
  if (!to)
    return to.takeError();
  context.set(0, *to, context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  return Error::success();
}

static FoldResult foldCast(const FoldContext &context) {
  Expected<ElementType> to = castType(context.node().integer("to", 0),
                                      [&](const llvm::Twine &why) { return context.error(why); });
  if (!to)
    return to.takeError();
  const Tensor &x = context.input(0);
  if ((x.type == ElementType::String || *to == ElementType::String) && x.type != *to)
    return context.error("casts from or to strings while compiling");
  return one(castTo(x, *to, context.node().integer("saturate", 1) != 0));
}

static Error inferCastLike(InferContext &context) {
  context.set(0, context.type(1),
              context.shape(0) ? std::optional<Shape>(*context.shape(0)) : std::nullopt);
  return Error::success();
}
static FoldResult foldCastLike(const FoldContext &context) {
  if (!context.has(1) || context.input(1).type == ElementType::String ||
      context.input(0).type == ElementType::String)
    return context.error("casts from or to strings while compiling");
  return one(
      castTo(context.input(0), context.input(1).type, context.node().integer("saturate", 1) != 0));
}

/// Between integers, and to and from bool, the numbers stay.
static Error symbolicCast(InferContext &context) {
  std::optional<Contents> a = context.contents(0);
  if (a && context.node().inputs[0]->contents) {
    ElementType to = context.node().outputs[0]->type;
    if (isInteger(to) && elementBits(to) >= 32)
      context.setContents(0, std::move(*a));
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

template <double (*fn)(double)> static double plain(double x, const Node &) { return fn(x); }

#define UNARY(name, expression)                                                                    \
  {name, foldUnary<+[](double x, const Node &node) -> double {                                     \
     (void)node;                                                                                   \
     return expression;                                                                            \
   }>}

void onnx::addElementwiseOps(OpRegistry &r) {
  struct Row {
    llvm::StringLiteral name;
    FoldFn fold;
  };
  static constexpr Row unary[] = {
      {"Abs",
       foldUnaryExact<+[](int64_t x) { return x < 0 ? subInt(0, x) : x; }, plain<std::fabs>>},
      {"Neg", foldUnaryExact<+[](int64_t x) { return subInt(0, x); },
                             +[](double x, const Node &) { return -x; }>},
      {"Sign", foldUnaryExact<+[](int64_t x) { return int64_t(x > 0) - (x < 0); }, plain<sign>>},
      {"Relu", foldUnaryExact<+[](int64_t x) { return std::max<int64_t>(x, 0); },
                              +[](double x, const Node &) { return x < 0 ? 0.0 : x; }>},
      UNARY("Acos", std::acos(x)),
      UNARY("Acosh", std::acosh(x)),
      UNARY("Asin", std::asin(x)),
      UNARY("Asinh", std::asinh(x)),
      UNARY("Atan", std::atan(x)),
      UNARY("Atanh", std::atanh(x)),
      UNARY("Ceil", std::ceil(x)),
      UNARY("Cos", std::cos(x)),
      UNARY("Cosh", std::cosh(x)),
      UNARY("Erf", erfExact(x)),
      UNARY("Exp", std::exp(x)),
      UNARY("Floor", std::floor(x)),
      UNARY("Log", std::log(x)),
      UNARY("Reciprocal", 1 / x),
      UNARY("Round", std::nearbyint(x)),
      UNARY("Sigmoid", sigmoid(x)),
      UNARY("Sin", std::sin(x)),
      UNARY("Sinh", std::sinh(x)),
      UNARY("Softplus", softplus(x)),
      UNARY("Softsign", x / (1 + std::fabs(x))),
      UNARY("Sqrt", std::sqrt(x)),
      UNARY("Tan", std::tan(x)),
      UNARY("Tanh", std::tanh(x)),
      UNARY("Mish", x * std::tanh(softplus(x))),
      UNARY("HardSwish", x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0)),
      UNARY("Elu", x < 0 ? double(node.number("alpha", 1)) * std::expm1(x) : x),
      UNARY("Celu",
            std::max(0.0, x) + std::min(0.0, double(node.number("alpha", 1)) *
                                                 std::expm1(x / double(node.number("alpha", 1))))),
      UNARY("Selu",
            double(node.number("gamma", 1.05070102214813232421875f)) *
                (x > 0 ? x
                       : double(node.number("alpha", 1.67326319217681884765625f)) * std::expm1(x))),
      UNARY("LeakyRelu", x < 0 ? x * double(node.number("alpha", 0.01f)) : x),
      UNARY("ThresholdedRelu", x > double(node.number("alpha", 1)) ? x : 0.0),
      UNARY("HardSigmoid", std::min(std::max(double(node.number("alpha", 0.2f)) * x +
                                                 double(node.number("beta", 0.5f)),
                                             0.0),
                                    1.0)),
      UNARY("Shrink", x < -double(node.number("lambd", 0.5f))  ? x + double(node.number("bias", 0))
                      : x > double(node.number("lambd", 0.5f)) ? x - double(node.number("bias", 0))
                                                               : 0.0),
      UNARY("Gelu", node.text("approximate", "none") == "tanh" ? geluTanh(x) : gelu(x)),
      UNARY("Swish", x * sigmoid(x * double(node.number("alpha", 1)))),
  };
  for (const Row &row : unary) {
    r.infer.add("", row.name, 1, inferSame);
    r.fold.add("", row.name, 1, row.fold);
  }
  static constexpr Row contrib[] = {
      UNARY("Gelu", gelu(x)),
      UNARY("QuickGelu", x * sigmoid(x * double(node.number("alpha", 1.702f)))),
  };
  for (const Row &row : contrib) {
    r.infer.add("com.microsoft", row.name, 1, inferSame);
    r.fold.add("com.microsoft", row.name, 1, row.fold);
  }
  r.symbolic.add("", "Neg", 1, symbolicNeg);

  r.infer.add("", "IsNaN", 1, inferBool);
  r.fold.add("", "IsNaN", 1, foldTest<+[](double x, const Node &) { return std::isnan(x); }>);
  r.infer.add("", "IsInf", 1, inferBool);
  r.fold.add("", "IsInf", 1, foldTest<+[](double x, const Node &node) {
               return std::isinf(x) && (x > 0 ? node.integer("detect_positive", 1) != 0
                                              : node.integer("detect_negative", 1) != 0);
             }>);
  r.infer.add("", "Not", 1, inferBool);
  r.fold.add("", "Not", 1, foldTest<+[](double x, const Node &) { return x == 0; }>);
  r.infer.add("", "BitwiseNot", 1, inferSame);
  r.fold.add(
      "", "BitwiseNot", 1,
      foldUnaryExact<+[](int64_t x) { return ~x; }, +[](double x, const Node &) { return x; }>);
  for (llvm::StringRef name : {"Identity", "Dropout"}) {
    r.infer.add("", name, 1, inferSame);
    r.fold.add("", name, 1, foldIdentity);
    r.moves.add("", name, 1, true);
  }

  struct Pair {
    llvm::StringLiteral name;
    FoldFn fold;
    InferFn infer, symbolic;
  };
  static constexpr Pair pairs[] = {
      {"Add", foldArithmetic<&kAdd>, inferArithmetic, symbolicPair<symbolicAdd>},
      {"Sub", foldArithmetic<&kSub>, inferArithmetic, symbolicPair<symbolicSub>},
      {"Mul", foldArithmetic<&kMul>, inferArithmetic, symbolicPair<symbolicMul>},
      {"Div", foldArithmetic<&kDiv>, inferArithmetic, symbolicPair<symbolicDiv>},
      {"Mod", foldMod, inferArithmetic, symbolicPair<symbolicMod>},
      {"Pow", foldArithmetic<&kPow>, inferArithmetic, nullptr},
      {"PRelu", foldArithmetic<&kPRelu>, inferArithmetic, nullptr},
      {"BitShift", foldShift, inferArithmetic, nullptr},
      {"BitwiseAnd", foldArithmetic<&kAnd>, inferArithmetic, nullptr},
      {"BitwiseOr", foldArithmetic<&kOr>, inferArithmetic, nullptr},
      {"BitwiseXor", foldArithmetic<&kXor>, inferArithmetic, nullptr},
      {"And", foldCompare<&kAnd>, inferCompare, nullptr},
      {"Or", foldCompare<&kOr>, inferCompare, nullptr},
      {"Xor", foldCompare<&kXor>, inferCompare, nullptr},
      {"Equal", foldCompare<&kEqual>, inferCompare, symbolicPair<symbolicEqual>},
      {"Less", foldCompare<&kLess>, inferCompare, symbolicPair<symbolicLess>},
      {"LessOrEqual", foldCompare<&kLessEq>, inferCompare, symbolicPair<symbolicLessEq>},
      {"Greater", foldCompare<&kGreater>, inferCompare, symbolicPair<symbolicGreater>},
      {"GreaterOrEqual", foldCompare<&kGreaterEq>, inferCompare, symbolicPair<symbolicGreaterEq>},
      {"Max", foldVariadic<&kMax>, inferArithmetic, symbolicPair<symbolicMax>},
      {"Min", foldVariadic<&kMin>, inferArithmetic, symbolicPair<symbolicMin>},
      {"Sum", foldVariadic<&kAdd>, inferArithmetic, nullptr},
      {"Mean", foldMean, inferArithmetic, nullptr},
  };
  for (const Pair &pair : pairs) {
    r.infer.add("", pair.name, 1, pair.infer);
    r.fold.add("", pair.name, 1, pair.fold);
    if (pair.symbolic)
      r.symbolic.add("", pair.name, 1, pair.symbolic);
  }

  r.infer.add("", "Where", 1, inferWhere);
  r.fold.add("", "Where", 1, foldWhere);
  r.symbolic.add("", "Where", 1, symbolicWhere);
  r.infer.add("", "Clip", 1, inferSame);
  r.fold.add("", "Clip", 1, foldClip);
  r.infer.add("", "Cast", 1, inferCast);
  r.fold.add("", "Cast", 1, foldCast);
  r.symbolic.add("", "Cast", 1, symbolicCast);
  r.infer.add("", "CastLike", 1, inferCastLike);
  r.fold.add("", "CastLike", 1, foldCastLike);
  r.symbolic.add("", "CastLike", 1, symbolicCast);
}
