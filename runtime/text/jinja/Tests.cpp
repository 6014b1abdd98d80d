//===- Tests.cpp - the tests of `is` --------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Objects.h"
#include "runtime/text/jinja/Operators.h"
#include "runtime/text/jinja/TextOperations.h"
#include "runtime/text/jinja/Unicode.h"

namespace llmc::rt::jinja {
namespace {

template <bool (*predicate)(const Value &)>
StatusOr<Value> check(Runtime &, const Value &self, Args &) {
  return Value::boolean(predicate(self));
}

template <CompareOp op> StatusOr<Value> compare(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(bool holds, applyCompare(runtime, op, self, *args[0]));
  return Value::boolean(holds);
}

bool isCallable(const Value &v) { // calling an undefined value is what fails, as in Jinja
  return v.isUndefined() || (v.isObject() && v.asObject().type != Object::Type::Namespace &&
                             v.asObject().type != Object::Type::Cycler);
}
bool isDefined(const Value &v) { return !v.isUndefined(); }
bool isUndefined(const Value &v) { return v.isUndefined(); }
bool isBoolean(const Value &v) { return v.isBool(); }
bool isFalse(const Value &v) { return v.isBool() && !v.asBool(); }
bool isTrue(const Value &v) { return v.isBool() && v.asBool(); }
bool isFloat(const Value &v) { return v.isFloat(); }
bool isInteger(const Value &v) { return v.kind() == Value::Kind::Int; }
bool isMapping(const Value &v) { return v.isDict(); }
bool isNone(const Value &v) { return v.isNone(); }
bool isNumber(const Value &v) { return v.isNumber(); }
bool isString(const Value &v) { return v.isString(); }
bool isEscaped(const Value &v) { return v.isMarkup(); }
bool isIterable(const Value &v) {
  return v.isUndefined() || v.isString() || v.isSequence() || v.isDict();
}
bool isSequence(const Value &v) { // what has a length and an index
  return v.isUndefined() || v.isString() || v.isDict() ||
         (v.isSequence() && v.asSequence().isIndexable());
}

template <CaseMapper map> StatusOr<Value> testCase(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  return Value::boolean(hasOnlyCase(string.str(), map));
}

StatusOr<Value> remainderIs(Runtime &runtime, const Value &self, const Value &divisor,
                            int64_t wanted) {
  LLMC_ASSIGN_OR_RETURN(Value remainder, applyBinary(runtime, BinaryOp::Modulo, self, divisor));
  LLMC_ASSIGN_OR_RETURN(bool same, runtime.equals(remainder, Value::integer(wanted)));
  return Value::boolean(same);
}

StatusOr<Value> testDivisibleby(Runtime &runtime, const Value &self, Args &args) {
  return remainderIs(runtime, self, *args[0], 0);
}

StatusOr<Value> testEven(Runtime &runtime, const Value &self, Args &) {
  return remainderIs(runtime, self, Value::integer(2), 0);
}

StatusOr<Value> testOdd(Runtime &runtime, const Value &self, Args &) {
  return remainderIs(runtime, self, Value::integer(2), 1);
}

StatusOr<Value> testSameas(Runtime &, const Value &self, Args &args) {
  return Value::boolean(self.sameAs(*args[0]));
}

constexpr Builtin table[] = {
    {"!=", "other", compare<CompareOp::NotEqual>},
    {"<", "other", compare<CompareOp::Less>},
    {"<=", "other", compare<CompareOp::LessEqual>},
    {"==", "other", compare<CompareOp::Equal>},
    {">", "other", compare<CompareOp::Greater>},
    {">=", "other", compare<CompareOp::GreaterEqual>},
    {"boolean", "", check<isBoolean>},
    {"callable", "", check<isCallable>},
    {"defined", "", check<isDefined>},
    {"divisibleby", "num", testDivisibleby},
    {"eq", "other", compare<CompareOp::Equal>},
    {"equalto", "other", compare<CompareOp::Equal>},
    {"escaped", "", check<isEscaped>},
    {"even", "", testEven},
    {"false", "", check<isFalse>},
    {"float", "", check<isFloat>},
    {"ge", "other", compare<CompareOp::GreaterEqual>},
    {"greaterthan", "other", compare<CompareOp::Greater>},
    {"gt", "other", compare<CompareOp::Greater>},
    {"in", "seq", compare<CompareOp::In>},
    {"integer", "", check<isInteger>},
    {"iterable", "", check<isIterable>},
    {"le", "other", compare<CompareOp::LessEqual>},
    {"lessthan", "other", compare<CompareOp::Less>},
    {"lower", "", testCase<appendLower>},
    {"lt", "other", compare<CompareOp::Less>},
    {"mapping", "", check<isMapping>},
    {"ne", "other", compare<CompareOp::NotEqual>},
    {"none", "", check<isNone>},
    {"number", "", check<isNumber>},
    {"odd", "", testOdd},
    {"sameas", "other", testSameas},
    {"sequence", "", check<isSequence>},
    {"string", "", check<isString>},
    {"true", "", check<isTrue>},
    {"undefined", "", check<isUndefined>},
    {"upper", "", testCase<appendUpper>},
};

} // namespace

std::span<const Builtin> tests() { return table; }

} // namespace llmc::rt::jinja
