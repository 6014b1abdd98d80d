//===- Operators.cpp - arithmetic, comparison and membership --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Operators.h"

#include "runtime/text/jinja/Format.h"

#include <cmath>
#include <limits>

namespace llmc::rt::jinja {
namespace {

Status overflow() { return raised("integer is too large"); }

std::string_view symbolOf(BinaryOp op) {
  constexpr std::string_view symbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return symbols[static_cast<size_t>(op)];
}

Status unsupportedOperands(BinaryOp op, const Value &left, const Value &right) {
  return raised("unsupported operand type(s) for " + std::string(symbolOf(op)) + ": '" +
                std::string(typeName(left)) + "' and '" + std::string(typeName(right)) + "'");
}

StatusOr<Value> powerOfInts(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0)
      return raised("0.0 cannot be raised to a negative power");
    return Value::floating(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      return overflow();
    exponent >>= 1;
    if (exponent == 0)
      return Value::integer(result);
    if (__builtin_mul_overflow(base, base, &base))
      return overflow();
  }
}

StatusOr<Value> applyToInts(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool tooLarge = false;
  switch (op) {
  case BinaryOp::Add:
    tooLarge = __builtin_add_overflow(a, b, &result);
    break;
  case BinaryOp::Subtract:
    tooLarge = __builtin_sub_overflow(a, b, &result);
    break;
  case BinaryOp::Multiply:
    tooLarge = __builtin_mul_overflow(a, b, &result);
    break;
  case BinaryOp::Divide:
    if (b == 0)
      return raised("division by zero");
    return Value::floating(static_cast<double>(a) / static_cast<double>(b));
  case BinaryOp::FloorDivide:
  case BinaryOp::Modulo: {
    if (b == 0)
      return raised("integer division or modulo by zero");
    if (b == -1) { // the smallest integer has no quotient by -1
      tooLarge = op == BinaryOp::FloorDivide && __builtin_sub_overflow(int64_t(0), a, &result);
      break;
    }
    // Python rounds towards minus infinity, C++ towards zero.
    int64_t quotient = a / b, remainder = a % b;
    bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    result = op == BinaryOp::FloorDivide ? quotient - adjust : remainder + (adjust ? b : 0);
    break;
  }
  case BinaryOp::Power:
    return powerOfInts(a, b);
  }
  if (tooLarge)
    return overflow();
  return Value::integer(result);
}

StatusOr<Value> applyToFloats(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add:
    return Value::floating(a + b);
  case BinaryOp::Subtract:
    return Value::floating(a - b);
  case BinaryOp::Multiply:
    return Value::floating(a * b);
  case BinaryOp::Divide:
    if (b == 0)
      return raised("float division by zero");
    return Value::floating(a / b);
  case BinaryOp::FloorDivide:
  case BinaryOp::Modulo: {
    if (b == 0)
      return raised("float floor division or modulo by zero");
    double remainder = std::fmod(a, b);
    if (remainder != 0 && (remainder < 0) != (b < 0))
      remainder += b;
    else if (remainder == 0)
      remainder = std::copysign(0.0, b);
    return Value::floating(op == BinaryOp::Modulo ? remainder : std::round((a - remainder) / b));
  }
  case BinaryOp::Power: {
    double result = std::pow(a, b);
    if ((a == 0 && b < 0) || (std::isnan(result) && !std::isnan(a) && !std::isnan(b)))
      return raised("power is not a real number");
    if (std::isinf(result) && !std::isinf(a) && !std::isinf(b))
      return raised("numerical result out of range");
    return Value::floating(result);
  }
  }
  return Value();
}

StatusOr<Value> concatenate(Runtime &runtime, const Value &left, const Value &right) {
  TextBuilder out = runtime.builder();
  bool markup = left.isMarkup() || right.isMarkup();
  for (const Value *part : {&left, &right}) {
    if (markup && !part->isMarkup())
      appendEscaped(out, part->text());
    else
      out.add(part->text());
  }
  return runtime.finish(std::move(out), markup);
}

StatusOr<Value> repeat(Runtime &runtime, const Value &value, int64_t times) {
  size_t count = times > 0 ? static_cast<size_t>(times) : 0;
  if (value.isString()) {
    TextBuilder out = runtime.builder();
    if (!value.text().empty())
      for (size_t i = 0; i < count && !out.overflowed(); ++i)
        out.add(value.text());
    return runtime.finish(std::move(out), value.isMarkup());
  }
  const Sequence &sequence = value.asSequence();
  std::vector<Value> items;
  if (!sequence.items.empty()) {
    if (count > runtime.heap.room() / sizeof(Value) / sequence.items.size())
      return runtime.reserve(std::numeric_limits<size_t>::max());
    LLMC_RETURN_IF_ERROR(runtime.tick(count * sequence.items.size()));
    for (size_t i = 0; i < count; ++i)
      items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return runtime.sequence(std::move(items), sequence.flavor);
}

bool isRepeatable(const Value &value) {
  return value.isString() || (value.isSequence() && value.asSequence().isIndexable());
}

StatusOr<Value> joinSequences(Runtime &runtime, const Value &left, const Value &right) {
  const Sequence &a = left.asSequence(), &b = right.asSequence();
  LLMC_RETURN_IF_ERROR(runtime.tick(a.items.size() + b.items.size()));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return runtime.sequence(std::move(items), a.isTuple() ? Sequence::Flavor::Tuple : a.flavor);
}

} // namespace

StatusOr<Value> applyUnary(UnaryOp op, const Value &operand) {
  if (op == UnaryOp::Not)
    return Value::boolean(!isTruthy(operand));
  if (operand.isUndefined())
    return raised(operand.describeUndefined());
  if (operand.isFloat())
    return Value::floating(op == UnaryOp::Minus ? -operand.asDouble() : operand.asDouble());
  if (!operand.isIntegral())
    return raised("bad operand type for unary " + std::string(op == UnaryOp::Minus ? "-" : "+") +
                  ": '" + std::string(typeName(operand)) + "'");
  return op == UnaryOp::Minus ? applyToInts(BinaryOp::Subtract, 0, operand.asInt())
                              : StatusOr<Value>(Value::integer(operand.asInt()));
}

StatusOr<Value> applyBinary(Runtime &runtime, BinaryOp op, const Value &left, const Value &right) {
  if (op == BinaryOp::Modulo && left.isString())
    return formatPercent(runtime, left.text(), right);
  if (left.isUndefined() || right.isUndefined())
    return raised((left.isUndefined() ? left : right).describeUndefined());
  if (left.isNumber() && right.isNumber()) {
    if (left.isFloat() || right.isFloat())
      return applyToFloats(op, left.asDouble(), right.asDouble());
    return applyToInts(op, left.asInt(), right.asInt());
  }
  if (op == BinaryOp::Multiply) {
    if (isRepeatable(left) && right.isIntegral())
      return repeat(runtime, left, right.asInt());
    if (isRepeatable(right) && left.isIntegral())
      return repeat(runtime, right, left.asInt());
  }
  if (op == BinaryOp::Add && isRepeatable(left) && isRepeatable(right)) {
    if (left.isString() && right.isString())
      return concatenate(runtime, left, right);
    if (left.isSequence() && right.isSequence() &&
        left.asSequence().isTuple() == right.asSequence().isTuple())
      return joinSequences(runtime, left, right);
  }
  if (op == BinaryOp::Add && left.isString())
    return raised("can only concatenate str (not \"" + std::string(typeName(right)) + "\") to str");
  return unsupportedOperands(op, left, right);
}

StatusOr<bool> contains(Runtime &runtime, const Value &container, const Value &item) {
  switch (container.kind()) {
  case Value::Kind::Undefined:
    return false;
  case Value::Kind::String:
    if (!item.isString())
      return raised("'in <string>' requires string as left operand, not " +
                    std::string(typeName(item)));
    LLMC_RETURN_IF_ERROR(runtime.tickSearch(container.str().size() / 16, item.str().size()));
    return container.str().find(item.str()) != std::string_view::npos;
  case Value::Kind::Dict: {
    LLMC_ASSIGN_OR_RETURN(std::string code, runtime.dictCode(item));
    return container.asDict().find(code) != nullptr;
  }
  case Value::Kind::Sequence: {
    LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> sequence, runtime.iterate(container));
    for (const Value &candidate : sequence->items) {
      LLMC_ASSIGN_OR_RETURN(bool same, runtime.equals(candidate, item));
      if (same)
        return true;
    }
    return false;
  }
  default:
    return raised("argument of type '" + std::string(typeName(container)) + "' is not iterable");
  }
}

StatusOr<bool> applyCompare(Runtime &runtime, CompareOp op, const Value &left, const Value &right) {
  auto negate = [](StatusOr<bool> result) {
    return result.ok() ? StatusOr<bool>(!result.value()) : std::move(result);
  };
  // NaN is neither below nor above, so `<=` is not the negation of `>`.
  auto lessOrEqual = [&](const Value &a, const Value &b) -> StatusOr<bool> {
    LLMC_ASSIGN_OR_RETURN(bool below, runtime.less(a, b));
    return below ? StatusOr<bool>(true) : runtime.equals(a, b);
  };
  switch (op) {
  case CompareOp::Equal:
    return runtime.equals(left, right);
  case CompareOp::NotEqual:
    return negate(runtime.equals(left, right));
  case CompareOp::Less:
    return runtime.less(left, right);
  case CompareOp::LessEqual:
    return lessOrEqual(left, right);
  case CompareOp::Greater:
    return runtime.less(right, left);
  case CompareOp::GreaterEqual:
    return lessOrEqual(right, left);
  case CompareOp::In:
    return contains(runtime, right, left);
  case CompareOp::NotIn:
    return negate(contains(runtime, right, left));
  }
  return false;
}

} // namespace llmc::rt::jinja
