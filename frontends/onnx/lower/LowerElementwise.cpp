//===- LowerElementwise.cpp - operators on single elements ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using Scalar = mlir::Value;

//===----------------------------------------------------------------------===//
// One input
//===----------------------------------------------------------------------===//

using UnaryFn = Scalar (*)(ScalarBuilder &s, Scalar x, const Node &node);

template <UnaryFn fn> static Error lowerUnary(LowerContext &c) {
  return c.done(
      c.a.unary(c.input(0), [&](ScalarBuilder &s, Scalar x) { return fn(s, x, c.node()); }));
}

static Scalar sigmoidOf(ScalarBuilder &s, Scalar x) {
  Scalar one = s.like(x, 1);
  return s.div(one, s.add(one, s.exp(s.neg(x))));
}
static Scalar positive(ScalarBuilder &s, Scalar x) { return s.op(Arith::Max, x, s.like(x, 0)); }
/// log(1 + e^x) without overflow: max(x, 0) + log1p(e^-|x|).
static Scalar softplusOf(ScalarBuilder &s, Scalar x) {
  Scalar small = s.exp(s.neg(s.call<math::AbsFOp>(x)));
  return s.add(positive(s, x), s.call<math::Log1pOp>(small));
}
static Scalar attribute(ScalarBuilder &s, Scalar x, const Node &node, StringRef name, float value) {
  return s.like(x, node.number(name, value));
}
static Scalar isNegative(ScalarBuilder &s, Scalar x) { return s.less(x, s.like(x, 0)); }

static Scalar absOf(ScalarBuilder &s, Scalar x, const Node &) {
  return isa<FloatType>(x.getType()) ? s.call<math::AbsFOp>(x) : s.call<math::AbsIOp>(x);
}
static Scalar negOf(ScalarBuilder &s, Scalar x, const Node &) { return s.neg(x); }
static Scalar reluOf(ScalarBuilder &s, Scalar x, const Node &) { return positive(s, x); }
static Scalar reciprocal(ScalarBuilder &s, Scalar x, const Node &) {
  return s.div(s.like(x, 1), x);
}
static Scalar sigmoidOp(ScalarBuilder &s, Scalar x, const Node &) { return sigmoidOf(s, x); }
static Scalar softplusOp(ScalarBuilder &s, Scalar x, const Node &) { return softplusOf(s, x); }
static Scalar softsign(ScalarBuilder &s, Scalar x, const Node &) {
  return s.div(x, s.add(s.like(x, 1), s.call<math::AbsFOp>(x)));
}
static Scalar mish(ScalarBuilder &s, Scalar x, const Node &) {
  return s.mul(x, s.call<math::TanhOp>(softplusOf(s, x)));
}
static Scalar hardSwish(ScalarBuilder &s, Scalar x, const Node &) {
  Scalar gate = s.add(s.div(x, s.like(x, 6)), s.like(x, 0.5));
  return s.mul(x, s.clamp(gate, s.like(x, 0), s.like(x, 1)));
}
static Scalar elu(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar small = s.mul(attribute(s, x, node, "alpha", 1), s.call<math::ExpM1Op>(x));
  return s.select(isNegative(s, x), small, x);
}
static Scalar celu(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar alpha = attribute(s, x, node, "alpha", 1);
  Scalar small = s.mul(alpha, s.call<math::ExpM1Op>(s.div(x, alpha)));
  return s.add(positive(s, x), s.op(Arith::Min, s.like(x, 0), small));
}
static Scalar selu(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar alpha = attribute(s, x, node, "alpha", 1.67326319217681884765625f);
  Scalar gamma = attribute(s, x, node, "gamma", 1.05070102214813232421875f);
  Scalar small = s.mul(alpha, s.call<math::ExpM1Op>(x));
  return s.mul(gamma, s.select(s.test(Test::Greater, x, s.like(x, 0)), x, small));
}
static Scalar leakyRelu(ScalarBuilder &s, Scalar x, const Node &node) {
  return s.select(isNegative(s, x), s.mul(x, attribute(s, x, node, "alpha", 0.01f)), x);
}
static Scalar thresholdedRelu(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar above = s.test(Test::Greater, x, attribute(s, x, node, "alpha", 1));
  return s.select(above, x, s.like(x, 0));
}
static Scalar hardSigmoid(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar y =
      s.add(s.mul(attribute(s, x, node, "alpha", 0.2f), x), attribute(s, x, node, "beta", 0.5f));
  return s.clamp(y, s.like(x, 0), s.like(x, 1));
}
static Scalar shrink(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar lambd = attribute(s, x, node, "lambd", 0.5f), bias = attribute(s, x, node, "bias", 0);
  Scalar high = s.select(s.test(Test::Greater, x, lambd), s.sub(x, bias), s.like(x, 0));
  return s.select(s.less(x, s.neg(lambd)), s.add(x, bias), high);
}
static Scalar gelu(ScalarBuilder &s, Scalar x, const Node &node) {
  Scalar half = s.mul(s.like(x, 0.5), x), one = s.like(x, 1), inner;
  if (node.text("approximate", "none") == "tanh") {
    Scalar cube = s.mul(s.mul(x, x), x);
    inner = s.mul(s.like(x, std::sqrt(2 / std::numbers::pi)),
                  s.add(x, s.mul(s.like(x, 0.044715), cube)));
    return s.mul(half, s.add(one, s.call<math::TanhOp>(inner)));
  }
  inner = s.mul(x, s.like(x, 1 / std::numbers::sqrt2));
  return s.mul(half, s.add(one, s.call<math::ErfOp>(inner)));
}
static Scalar swish(ScalarBuilder &s, Scalar x, const Node &node) {
  return s.mul(x, sigmoidOf(s, s.mul(x, attribute(s, x, node, "alpha", 1))));
}
static Scalar quickGelu(ScalarBuilder &s, Scalar x, const Node &node) {
  return s.mul(x, sigmoidOf(s, s.mul(x, attribute(s, x, node, "alpha", 1.702f))));
}
static Scalar bitwiseNot(ScalarBuilder &s, Scalar x, const Node &) {
  return s.op(Arith::Xor, x, s.like(x, -1));
}
/// Numbers that a float counts up in: what is no float is whole already.
template <typename MathOp> static Scalar rounded(ScalarBuilder &s, Scalar x, const Node &) {
  return isa<FloatType>(x.getType()) ? s.call<MathOp>(x) : x;
}
template <typename MathOp> static Scalar function(ScalarBuilder &s, Scalar x, const Node &) {
  return s.call<MathOp>(x);
}

static Error lowerSign(LowerContext &c) {
  Array x = c.input(0);
  bool isUnsigned = isUnsignedType(x.type);
  return c.done(c.a.unary(x, [&](ScalarBuilder &s, Scalar v) {
    Scalar zero = s.like(v, 0), one = s.like(v, 1);
    Scalar up = s.test(Test::Greater, v, zero, isUnsigned);
    Scalar other = isUnsigned ? zero : s.select(s.less(v, zero), s.like(v, -1), zero);
    if (isa<FloatType>(v.getType())) {
      Scalar isNan = arith::CmpFOp::create(s.builder(), arith::CmpFPredicate::UNO, v, v);
      other = s.select(isNan, v, other);
    }
    return s.select(up, one, other);
  }));
}

static Error lowerIdentity(LowerContext &c) { return c.done(c.input(0)); }

/// In inference everything passes; the mask says so.
static Error lowerDropout(LowerContext &c) {
  Array x = c.input(0);
  if (c.has(2) && c.wants(0)) {
    const Tensor *training = c.constant(2), *ratio = c.has(1) ? c.constant(1) : nullptr;
    bool drops = !training || (training->integer(0) && !(ratio && ratio->number(0) == 0));
    if (drops)
      return c.error("drops elements at random, as in training");
  }
  if (c.wants(1))
    c.set(1,
          c.a.full(c.outputType(1) == ElementType::Undefined ? ElementType::Bool : c.outputType(1),
                   x.shape(), 1));
  return c.done(x);
}

static Error lowerIsNan(LowerContext &c) {
  return c.done(c.a.map(ElementType::Bool, c.input(0), [](ScalarBuilder &s, ValueRange v) {
    return arith::CmpFOp::create(s.builder(), arith::CmpFPredicate::UNO, v[0], v[0]).getResult();
  }));
}

static Error lowerIsInf(LowerContext &c) {
  bool up = c.node().integer("detect_positive", 1), down = c.node().integer("detect_negative", 1);
  return c.done(c.a.map(ElementType::Bool, c.input(0), [&](ScalarBuilder &s, ValueRange v) {
    Scalar result = s.truth(false);
    if (up)
      result = s.logicalOr(result, s.test(Test::Equal, v[0], s.like(v[0], INFINITY)));
    if (down)
      result = s.logicalOr(result, s.test(Test::Equal, v[0], s.like(v[0], -INFINITY)));
    return result;
  }));
}

static Error lowerNot(LowerContext &c) {
  return c.done(c.a.unary(c.input(0), [](ScalarBuilder &s, Scalar x) { return s.logicalNot(x); }));
}

static Error lowerCast(LowerContext &c) {
  ElementType from = c.type(0), to = c.outputType(0);
  if (from == ElementType::String || to == ElementType::String)
    return c.error("casts from or to strings");
  if (to == ElementType::Float8E8M0 && c.node().text("round_mode", "up") != "up")
    return c.error("rounds other than up");
  return c.done(c.a.cast(c.input(0), to, c.node().integer("saturate", 1) != 0));
}

//===----------------------------------------------------------------------===//
// Several inputs
//===----------------------------------------------------------------------===//

static Error checkBroadcast(LowerContext &c, llvm::ArrayRef<Array> inputs) {
  Dims dims;
  for (const Array &input : inputs) {
    std::optional<Dims> next = broadcastShape(dims, input.shape());
    if (!next)
      return c.error("has inputs of shapes that do not go together");
    dims = *next;
  }
  return Error::success();
}

template <Arith op> static Error lowerBinary(LowerContext &c) {
  Array x = c.input(0), y = c.input(1);
  if (Error error = checkBroadcast(c, {x, y}))
    return error;
  return c.done(c.a.binary(op, x, y));
}

template <Test test> static Error lowerTest(LowerContext &c) {
  Array x = c.input(0), y = c.input(1);
  if (Error error = checkBroadcast(c, {x, y}))
    return error;
  return c.done(c.a.test(test, x, y));
}

template <Arith op> static Error lowerVariadic(LowerContext &c) {
  auto inputs = c.inputs();
  if (!inputs)
    return inputs.takeError();
  if (Error error = checkBroadcast(c, *inputs))
    return error;
  Array result = inputs->front();
  for (const Array &next : llvm::drop_begin(*inputs))
    result = c.a.binary(op, result, next);
  return c.done(result);
}

static Error lowerMean(LowerContext &c) {
  auto inputs = c.inputs();
  if (!inputs)
    return inputs.takeError();
  if (Error error = checkBroadcast(c, *inputs))
    return error;
  Array result = inputs->front();
  for (const Array &next : llvm::drop_begin(*inputs))
    result = c.a.add(result, next);
  return c.done(c.a.div(result, c.a.scalar(result.type, double(inputs->size()))));
}

static Error lowerMod(LowerContext &c) {
  return c.node().integer("fmod", 0) ? lowerBinary<Arith::Fmod>(c) : lowerBinary<Arith::Mod>(c);
}

/// The base's type is the result's; powers of integers to floats are computed in double.
static Error lowerPow(LowerContext &c) {
  Array x = c.input(0), y = c.input(1);
  if (Error error = checkBroadcast(c, {x, y}))
    return error;
  if (isFloat(x.type) == isFloat(y.type) && !isFloat(x.type))
    return c.done(c.a.binary(Arith::Pow, x, c.a.cast(y, x.type)));
  ElementType wide =
      isFloat(x.type) && x.type != ElementType::Double ? ElementType::Float : ElementType::Double;
  return c.done(c.a.cast(c.a.binary(Arith::Pow, c.a.cast(x, wide), c.a.cast(y, wide)), x.type));
}

static Error lowerShift(LowerContext &c) {
  bool left = c.node().text("direction", "") == "LEFT";
  Array x = c.input(0), y = c.input(1);
  if (Error error = checkBroadcast(c, {x, y}))
    return error;
  return c.done(c.a.map(x.type, {x, y}, [&](ScalarBuilder &s, ValueRange v) {
    unsigned bits = v[0].getType().getIntOrFloatBitWidth();
    Scalar fits = s.test(Test::Less, v[1], s.like(v[1], bits), true), zero = s.like(v[0], 0);
    Scalar by = s.select(fits, v[1], zero), gone = zero, shifted;
    if (left) {
      shifted = arith::ShLIOp::create(s.builder(), v[0], by);
    } else if (isUnsignedType(x.type)) {
      shifted = arith::ShRUIOp::create(s.builder(), v[0], by);
    } else {
      shifted = arith::ShRSIOp::create(s.builder(), v[0], by);
      gone = s.select(isNegative(s, v[0]), s.like(v[0], -1), zero);
    }
    return s.select(fits, shifted, gone);
  }));
}

static Error lowerPRelu(LowerContext &c) {
  Array x = c.input(0), slope = c.input(1);
  if (Error error = checkBroadcast(c, {x, slope}))
    return error;
  bool isUnsigned = isUnsignedType(x.type);
  return c.done(c.a.map(x.type, {x, slope}, [&](ScalarBuilder &s, ValueRange v) {
    return isUnsigned ? v[0] : s.select(isNegative(s, v[0]), s.mul(v[0], v[1]), v[0]);
  }));
}

static Error lowerWhere(LowerContext &c) {
  Array condition = c.input(0), x = c.input(1), y = c.input(2);
  if (Error error = checkBroadcast(c, {condition, x, y}))
    return error;
  return c.done(c.a.where(condition, x, y));
}

static Error lowerClip(LowerContext &c) {
  Array x = c.input(0);
  auto bound = [&](StringRef attribute, size_t input) -> Array {
    if (c.has(input))
      return c.input(input);
    if (c.node().find(attribute))
      return c.a.scalar(x.type, c.node().number(attribute, 0));
    return {};
  };
  Array low = bound("min", 1), high = bound("max", 2);
  for (const Array &limit : {low, high})
    if (limit && limit.elements() != 1)
      return c.error("has a bound that is not a single number");
  // A bound of one element, whatever its rank.
  auto apply = [&](Arith op, Array limit) {
    if (limit)
      x = c.a.binary(op, x, c.a.reshape(limit, {}));
  };
  apply(Arith::Max, low);
  apply(Arith::Min, high);
  return c.done(x);
}

static Error lowerBitCast(LowerContext &c) {
  Array x = c.input(0);
  ElementType to = c.outputType(0);
  if (elementBits(x.type) != elementBits(to) || elementBits(to) < 8)
    return c.error("reinterprets elements as ones of another size");
  Type type = c.a.storedType(to);
  auto reinterpret = [&](ScalarBuilder &s, ValueRange at) {
    Scalar v = s.load(x, at);
    if (x.type == ElementType::Bool)
      v = arith::ExtUIOp::create(s.builder(), s.builder().getI8Type(), v);
    if (to == ElementType::Bool)
      return Scalar(arith::TruncIOp::create(s.builder(), type, v));
    return v.getType() == type ? v : Scalar(arith::BitcastOp::create(s.builder(), type, v));
  };
  return c.done(c.a.generate(to, x.shape(), reinterpret));
}

void onnx::addElementwiseLowerings(OpTable<LowerFn> &table) {
  struct Row {
    llvm::StringLiteral name;
    LowerFn lower;
  };
  static constexpr Row rows[] = {
      {"Abs", lowerUnary<absOf>},
      {"Acos", lowerUnary<function<math::AcosOp>>},
      {"Acosh", lowerUnary<function<math::AcoshOp>>},
      {"Add", lowerBinary<Arith::Add>},
      {"And", lowerBinary<Arith::And>},
      {"Asin", lowerUnary<function<math::AsinOp>>},
      {"Asinh", lowerUnary<function<math::AsinhOp>>},
      {"Atan", lowerUnary<function<math::AtanOp>>},
      {"Atanh", lowerUnary<function<math::AtanhOp>>},
      {"BitCast", lowerBitCast},
      {"BitShift", lowerShift},
      {"BitwiseAnd", lowerBinary<Arith::And>},
      {"BitwiseNot", lowerUnary<bitwiseNot>},
      {"BitwiseOr", lowerBinary<Arith::Or>},
      {"BitwiseXor", lowerBinary<Arith::Xor>},
      {"Cast", lowerCast},
      {"CastLike", lowerCast},
      {"Ceil", lowerUnary<rounded<math::CeilOp>>},
      {"Celu", lowerUnary<celu>},
      {"Clip", lowerClip},
      {"Cos", lowerUnary<function<math::CosOp>>},
      {"Cosh", lowerUnary<function<math::CoshOp>>},
      {"Div", lowerBinary<Arith::Div>},
      {"Dropout", lowerDropout},
      {"Elu", lowerUnary<elu>},
      {"Equal", lowerTest<Test::Equal>},
      {"Erf", lowerUnary<function<math::ErfOp>>},
      {"Exp", lowerUnary<function<math::ExpOp>>},
      {"Floor", lowerUnary<rounded<math::FloorOp>>},
      {"Gelu", lowerUnary<gelu>},
      {"Greater", lowerTest<Test::Greater>},
      {"GreaterOrEqual", lowerTest<Test::GreaterOrEqual>},
      {"HardSigmoid", lowerUnary<hardSigmoid>},
      {"HardSwish", lowerUnary<hardSwish>},
      {"Identity", lowerIdentity},
      {"IsInf", lowerIsInf},
      {"IsNaN", lowerIsNan},
      {"LeakyRelu", lowerUnary<leakyRelu>},
      {"Less", lowerTest<Test::Less>},
      {"LessOrEqual", lowerTest<Test::LessOrEqual>},
      {"Log", lowerUnary<function<math::LogOp>>},
      {"Max", lowerVariadic<Arith::Max>},
      {"Mean", lowerMean},
      {"Min", lowerVariadic<Arith::Min>},
      {"Mish", lowerUnary<mish>},
      {"Mod", lowerMod},
      {"Mul", lowerBinary<Arith::Mul>},
      {"Neg", lowerUnary<negOf>},
      {"Not", lowerNot},
      {"Or", lowerBinary<Arith::Or>},
      {"PRelu", lowerPRelu},
      {"Pow", lowerPow},
      {"Reciprocal", lowerUnary<reciprocal>},
      {"Relu", lowerUnary<reluOf>},
      {"Round", lowerUnary<rounded<math::RoundEvenOp>>},
      {"Selu", lowerUnary<selu>},
      {"Shrink", lowerUnary<shrink>},
      {"Sigmoid", lowerUnary<sigmoidOp>},
      {"Sign", lowerSign},
      {"Sin", lowerUnary<function<math::SinOp>>},
      {"Sinh", lowerUnary<function<math::SinhOp>>},
      {"Softplus", lowerUnary<softplusOp>},
      {"Softsign", lowerUnary<softsign>},
      {"Sqrt", lowerUnary<function<math::SqrtOp>>},
      {"Sub", lowerBinary<Arith::Sub>},
      {"Sum", lowerVariadic<Arith::Add>},
      {"Swish", lowerUnary<swish>},
      {"Tan", lowerUnary<function<math::TanOp>>},
      {"Tanh", lowerUnary<function<math::TanhOp>>},
      {"ThresholdedRelu", lowerUnary<thresholdedRelu>},
      {"Where", lowerWhere},
      {"Xor", lowerBinary<Arith::Xor>},
  };
  for (const Row &row : rows)
    table.add("", row.name, 1, row.lower);
  table.add("com.microsoft", "Gelu", 1, lowerUnary<gelu>);
  table.add("com.microsoft", "QuickGelu", 1, lowerUnary<quickGelu>);
}
