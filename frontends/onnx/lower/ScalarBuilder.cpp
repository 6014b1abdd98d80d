//===- ScalarBuilder.cpp - writes the computation of one element ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Arrays.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

mlir::Value ScalarBuilder::constant(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, FloatAttr::get(type, value));
  // Also for bounds such as the least int64, which a double holds exactly.
  APInt bits(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), uint64_t(int64_t(value)),
             /*isSigned=*/true, /*implicitTrunc=*/true);
  return arith::ConstantOp::create(b, IntegerAttr::get(type, bits));
}

mlir::Value ScalarBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }

mlir::Value ScalarBuilder::truth(bool value) {
  return arith::ConstantOp::create(b, b.getBoolAttr(value));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Integer quotient or remainder, toward zero; zero where the divisor is, and no trap where the
/// least number is divided by -1.
template <typename Signed, typename Unsigned>
static mlir::Value divide(ScalarBuilder &s, mlir::Value x, mlir::Value y, bool isUnsigned) {
  ImplicitLocOpBuilder &b = s.builder();
  mlir::Value zero = s.like(y, 0), one = s.like(y, 1);
  mlir::Value isZero = s.test(Test::Equal, y, zero);
  mlir::Value bad = isZero;
  if (!isUnsigned) {
    mlir::Value isMinusOne = s.test(Test::Equal, y, s.like(y, -1));
    mlir::Value safe = s.select(s.logicalOr(isZero, isMinusOne), one, y);
    mlir::Value result = Signed::create(b, x, safe);
    if (std::is_same_v<Signed, arith::DivSIOp>)
      result = s.select(isMinusOne, s.sub(zero, x), result);
    return s.select(isZero, zero, result);
  }
  mlir::Value result = Unsigned::create(b, x, s.select(bad, one, y));
  return s.select(bad, zero, result);
}

/// x^n of integers by squaring; a negative power is 0, except of 1 and -1.
static mlir::Value integerPower(ScalarBuilder &s, mlir::Value x, mlir::Value n, bool isUnsigned) {
  unsigned bits = x.getType().getIntOrFloatBitWidth();
  mlir::Value zero = s.like(x, 0), one = s.like(x, 1), result = one, base = x, left = n;
  for (unsigned i = 0; i < bits; ++i) {
    mlir::Value odd = arith::AndIOp::create(s.builder(), left, one);
    result = s.select(s.test(Test::Equal, odd, one), s.mul(result, base), result);
    base = s.mul(base, base);
    left = arith::ShRUIOp::create(s.builder(), left, one);
  }
  if (isUnsigned)
    return result;
  mlir::Value odd = s.test(Test::Equal, arith::AndIOp::create(s.builder(), n, one), one);
  mlir::Value minusOne = s.like(x, -1);
  mlir::Value inverse =
      s.select(s.test(Test::Equal, x, one), one,
               s.select(s.test(Test::Equal, x, minusOne), s.select(odd, minusOne, one), zero));
  return s.select(s.less(n, zero), inverse, result);
}

mlir::Value ScalarBuilder::op(Arith op, mlir::Value x, mlir::Value y, bool isUnsigned) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (op) {
  case Arith::Add:
    return isFloat ? mlir::Value(arith::AddFOp::create(b, x, y)) : arith::AddIOp::create(b, x, y);
  case Arith::Sub:
    return isFloat ? mlir::Value(arith::SubFOp::create(b, x, y)) : arith::SubIOp::create(b, x, y);
  case Arith::Mul:
    return isFloat ? mlir::Value(arith::MulFOp::create(b, x, y)) : arith::MulIOp::create(b, x, y);
  case Arith::Div:
    return isFloat ? mlir::Value(arith::DivFOp::create(b, x, y))
                   : divide<arith::DivSIOp, arith::DivUIOp>(*this, x, y, isUnsigned);
  case Arith::Fmod:
    return isFloat ? mlir::Value(arith::RemFOp::create(b, x, y))
                   : divide<arith::RemSIOp, arith::RemUIOp>(*this, x, y, isUnsigned);
  case Arith::Mod: { // the sign of the divisor
    mlir::Value m = this->op(Arith::Fmod, x, y, isUnsigned);
    if (isUnsigned)
      return m;
    mlir::Value zero = like(x, 0);
    mlir::Value differs = arith::XOrIOp::create(b, less(m, zero), less(y, zero));
    mlir::Value isZero = test(Test::Equal, m, zero);
    return select(logicalAnd(differs, logicalNot(isZero)), add(m, y), m);
  }
  case Arith::Pow:
    return isFloat ? mlir::Value(math::PowFOp::create(b, x, y))
                   : integerPower(*this, x, y, isUnsigned);
  case Arith::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, x, y);
    return isUnsigned ? mlir::Value(arith::MinUIOp::create(b, x, y))
                      : arith::MinSIOp::create(b, x, y);
  case Arith::Max:
    if (isFloat)
      return arith::MaximumFOp::create(b, x, y);
    return isUnsigned ? mlir::Value(arith::MaxUIOp::create(b, x, y))
                      : arith::MaxSIOp::create(b, x, y);
  case Arith::And:
    return arith::AndIOp::create(b, x, y);
  case Arith::Or:
    return arith::OrIOp::create(b, x, y);
  case Arith::Xor:
    return arith::XOrIOp::create(b, x, y);
  }
  llvm_unreachable("all ops are handled");
}

mlir::Value ScalarBuilder::neg(mlir::Value x) {
  if (isa<FloatType>(x.getType()))
    return arith::NegFOp::create(b, x);
  return sub(like(x, 0), x);
}

mlir::Value ScalarBuilder::test(Test test, mlir::Value x, mlir::Value y, bool isUnsigned) {
  struct Row {
    arith::CmpFPredicate floats;
    arith::CmpIPredicate integers, wide;
  };
  static constexpr Row rows[] = {
      {arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq},
      {arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult},
      {arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule},
      {arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt},
      {arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge}};
  const Row &row = rows[size_t(test)];
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, row.floats, x, y);
  return arith::CmpIOp::create(b, isUnsigned ? row.wide : row.integers, x, y);
}

mlir::Value ScalarBuilder::select(mlir::Value condition, mlir::Value x, mlir::Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}
mlir::Value ScalarBuilder::logicalAnd(mlir::Value x, mlir::Value y) {
  return arith::AndIOp::create(b, x, y);
}
mlir::Value ScalarBuilder::logicalOr(mlir::Value x, mlir::Value y) {
  return arith::OrIOp::create(b, x, y);
}
mlir::Value ScalarBuilder::logicalNot(mlir::Value x) {
  return arith::XOrIOp::create(b, x, truth(true));
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

static bool isSmallFloat(ElementType type) { return isFloat(type) && elementBits(type) <= 8; }

Type ScalarBuilder::computedType(ElementType type) {
  if (type == ElementType::Double)
    return b.getF64Type();
  if (isFloat(type))
    return b.getF32Type();
  if (type == ElementType::Bool)
    return b.getI1Type();
  return b.getIntegerType(std::max(8u, elementBits(type)));
}

mlir::Value ScalarBuilder::table(llvm::ArrayRef<float> values, mlir::Value at) {
  auto type = RankedTensorType::get({int64_t(values.size())}, b.getF32Type());
  mlir::Value data = arith::ConstantOp::create(b, DenseElementsAttr::get(type, values));
  return tensor::ExtractOp::create(b, data, at);
}

mlir::Value ScalarBuilder::widen(mlir::Value stored, ElementType type) {
  if (type == ElementType::Float16)
    return arith::ExtFOp::create(b, b.getF32Type(), stored);
  if (type == ElementType::BFloat16) { // the upper half of a float
    mlir::Value wide = arith::ExtUIOp::create(b, b.getI32Type(), stored);
    mlir::Value bits = arith::ShLIOp::create(b, wide, constant(b.getI32Type(), 16));
    return arith::BitcastOp::create(b, b.getF32Type(), bits);
  }
  if (!isSmallFloat(type))
    return stored;
  SmallVector<float> values;
  for (unsigned code = 0; code < (1u << elementBits(type)); ++code)
    values.push_back(float(floatFromBits(type, code)));
  mlir::Value code = arith::IndexCastUIOp::create(b, b.getIndexType(), stored);
  mlir::Value last = index(int64_t(values.size()) - 1);
  return table(values, arith::MinUIOp::create(b, code, last));
}

/// The codes of positive numbers count up with their values, so the code is the number of
/// thresholds (midpoints of neighbours) below |x|; at a threshold the even code wins.
mlir::Value ScalarBuilder::encodeSmallFloat(mlir::Value x, ElementType type, bool saturate) {
  bool hasSign = type != ElementType::Float8E8M0;
  unsigned codes = 1u << (elementBits(type) - hasSign);
  SmallVector<float> thresholds;
  unsigned largest = 0;
  for (unsigned code = 1; code < codes; ++code) {
    double value = floatFromBits(type, code);
    if (!std::isfinite(value))
      break;
    // Numbers of exponents alone are rounded up.
    double below = floatFromBits(type, code - 1);
    thresholds.push_back(float(hasSign ? (below + value) / 2 : below));
    largest = code;
  }
  double top = floatFromBits(type, largest), step = top - floatFromBits(type, largest - 1);
  double beyond = top + step / 2; // where rounding leaves the type
  // A type without NaN has negative zero for it, as ml_dtypes has.
  uint64_t nan = type == ElementType::Float4E2M1 ? codes : floatToBits(type, NAN, saturate),
           inf = floatToBits(type, INFINITY, saturate);
  while (!llvm::isPowerOf2_64(thresholds.size() + 1))
    thresholds.push_back(INFINITY);

  mlir::Value magnitude = math::AbsFOp::create(b, x), count = index(0);
  for (size_t width = (thresholds.size() + 1) / 2; width; width /= 2) {
    mlir::Value at = arith::AddIOp::create(b, count, index(int64_t(width) - 1));
    mlir::Value threshold = table(thresholds, at);
    // The threshold at `at` parts the codes `at` and `at` + 1.
    mlir::Value odd = test(Test::Equal, arith::AndIOp::create(b, at, index(1)), index(1));
    mlir::Value above = logicalOr(test(Test::Greater, magnitude, threshold),
                                  hasSign ? logicalAnd(odd, test(Test::Equal, magnitude, threshold))
                                          : truth(false));
    count = select(above, arith::AddIOp::create(b, count, index(int64_t(width))), count);
  }
  mlir::Value code = arith::IndexCastOp::create(b, b.getI8Type(), count);
  mlir::Value isInfinite = test(Test::Equal, magnitude, like(x, INFINITY));
  mlir::Value overflows =
      test(largest % 2 ? Test::GreaterOrEqual : Test::Greater, magnitude, like(x, beyond));
  auto byte = [&](uint64_t bits) { return constant(b.getI8Type(), double(int8_t(bits))); };
  code = select(overflows, byte(saturate ? largest : inf), code);
  code = select(isInfinite, byte(inf), code);
  if (hasSign) {
    // Types without a negative zero use its code for NaN.
    bool hasMinusZero = floatFromBits(type, codes) == 0;
    mlir::Value bits = arith::BitcastOp::create(b, b.getI32Type(), x);
    mlir::Value isNegative = less(bits, constant(b.getI32Type(), 0));
    if (!hasMinusZero)
      isNegative = logicalAnd(isNegative, logicalNot(test(Test::Equal, code, byte(0))));
    mlir::Value negative = arith::OrIOp::create(b, code, byte(codes));
    code = select(isNegative, negative, code);
  }
  mlir::Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return select(isNan, byte(nan), code);
}

/// Integers below eight bits wrap: the sign, or zeros, fill the byte.
static mlir::Value wrapInteger(ScalarBuilder &s, mlir::Value x, ElementType type) {
  unsigned spare = 8 - elementBits(type);
  mlir::Value shift = s.constant(s.builder().getI8Type(), spare);
  mlir::Value up = arith::ShLIOp::create(s.builder(), x, shift);
  if (isSignedInteger(type))
    return arith::ShRSIOp::create(s.builder(), up, shift);
  return arith::ShRUIOp::create(s.builder(), up, shift);
}

mlir::Value ScalarBuilder::narrow(mlir::Value computed, ElementType type, bool saturate) {
  if (type == ElementType::Float16)
    return arith::TruncFOp::create(b, b.getF16Type(), computed);
  if (type == ElementType::BFloat16) {
    // To nearest even: the carry does what exponents need. NaN keeps a bit of its fraction.
    Type i32 = b.getI32Type();
    auto shifted = [&](mlir::Value v) {
      return mlir::Value(arith::ShRUIOp::create(b, v, constant(i32, 16)));
    };
    mlir::Value bits = arith::BitcastOp::create(b, i32, computed);
    mlir::Value odd = arith::AndIOp::create(b, shifted(bits), constant(i32, 1));
    mlir::Value rounded = shifted(add(bits, add(odd, constant(i32, 0x7fff))));
    mlir::Value quiet = arith::OrIOp::create(b, shifted(bits), constant(i32, 0x40));
    mlir::Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, computed, computed);
    return arith::TruncIOp::create(b, b.getI16Type(), select(isNan, quiet, rounded));
  }
  if (isSmallFloat(type))
    return encodeSmallFloat(computed, type, saturate);
  if (isInteger(type) && elementBits(type) < 8)
    return wrapInteger(*this, computed, type);
  return computed;
}

mlir::Value ScalarBuilder::convert(mlir::Value x, ElementType from, ElementType to) {
  Type source = x.getType(), target = computedType(to);
  if (to == ElementType::Bool) {
    if (from == ElementType::Bool)
      return x;
    // NaN is true.
    if (isa<FloatType>(source))
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, x, like(x, 0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, x, like(x, 0));
  }
  if (isa<FloatType>(source)) {
    if (isa<FloatType>(target)) {
      if (source == target)
        return x;
      return source.isF32() ? mlir::Value(arith::ExtFOp::create(b, target, x))
                            : arith::TruncFOp::create(b, target, x);
    }
    // Through int64, so that numbers out of range wrap as on other machines; what int64 cannot
    // hold is the least of it.
    unsigned bits = target.getIntOrFloatBitWidth();
    if (isUnsignedType(to) && bits == 64) {
      mlir::Value half = like(x, 0x1p63), isLarge = test(Test::GreaterOrEqual, x, half);
      mlir::Value low = convert(select(isLarge, sub(x, half), x), from, ElementType::Int64);
      mlir::Value top = constant(target, -0x1p63);
      return select(isLarge, arith::XOrIOp::create(b, low, top), low);
    }
    mlir::Value least = like(x, -0x1p63);
    mlir::Value fits = logicalAnd(test(Test::GreaterOrEqual, x, least), less(x, like(x, 0x1p63)));
    mlir::Value whole = arith::FPToSIOp::create(b, b.getI64Type(), select(fits, x, least));
    return bits == 64 ? whole : mlir::Value(arith::TruncIOp::create(b, target, whole));
  }
  bool isUnsigned = isUnsignedType(from);
  if (isa<FloatType>(target))
    return isUnsigned ? mlir::Value(arith::UIToFPOp::create(b, target, x))
                      : arith::SIToFPOp::create(b, target, x);
  unsigned width = source.getIntOrFloatBitWidth(), wanted = target.getIntOrFloatBitWidth();
  if (width == wanted)
    return x;
  if (width > wanted)
    return arith::TruncIOp::create(b, target, x);
  return isUnsigned ? mlir::Value(arith::ExtUIOp::create(b, target, x))
                    : arith::ExtSIOp::create(b, target, x);
}

mlir::Value ScalarBuilder::toIndex(mlir::Value integer) {
  return arith::IndexCastOp::create(b, b.getIndexType(), integer);
}
mlir::Value ScalarBuilder::fromIndex(mlir::Value index, ElementType type) {
  mlir::Value wide = arith::IndexCastOp::create(b, b.getI64Type(), index);
  return convert(wide, ElementType::Int64, type);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

mlir::Value ScalarBuilder::load(Array array, ValueRange at) {
  return tensor::ExtractOp::create(b, array.value, at);
}

mlir::Value ScalarBuilder::loadClamped(Array array, ValueRange at) {
  SmallVector<mlir::Value> safe;
  for (auto [i, index] : llvm::enumerate(at)) {
    mlir::Value last = this->index(std::max<int64_t>(array.dim(int64_t(i)) - 1, 0));
    safe.push_back(
        arith::MinSIOp::create(b, arith::MaxSIOp::create(b, index, this->index(0)), last));
  }
  return load(array, safe);
}

mlir::Value ScalarBuilder::store(mlir::Value element, Array array, ValueRange at) {
  return tensor::InsertOp::create(b, element, array.value, at);
}

SmallVector<mlir::Value> ScalarBuilder::unravel(mlir::Value linear, llvm::ArrayRef<int64_t> dims) {
  SmallVector<mlir::Value> indices(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t size = std::max<int64_t>(dims[i], 1);
    indices[i] = i == 0 ? linear : remainder(linear, size);
    if (i)
      linear = quotient(linear, size);
  }
  return indices;
}

mlir::Value ScalarBuilder::remainder(mlir::Value x, int64_t divisor) {
  return arith::RemSIOp::create(b, x, like(x, double(divisor)));
}
mlir::Value ScalarBuilder::quotient(mlir::Value x, int64_t divisor) {
  return arith::DivSIOp::create(b, x, like(x, double(divisor)));
}
mlir::Value ScalarBuilder::fromBack(mlir::Value index, int64_t size) {
  return select(less(index, like(index, 0)), add(index, like(index, double(size))), index);
}
