//===- Operators.h - operators, attributes and subscripts -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_OPERATORS_H
#define LLMC_RUNTIME_TEXT_JINJA_OPERATORS_H

#include "runtime/text/jinja/Runtime.h"

namespace llmc::rt::jinja {

enum class UnaryOp : uint8_t { Plus, Minus, Not };
enum class BinaryOp : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
enum class CompareOp : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};

StatusOr<Value> applyUnary(UnaryOp op, const Value &operand);
StatusOr<Value> applyBinary(Runtime &runtime, BinaryOp op, const Value &left, const Value &right);
StatusOr<bool> applyCompare(Runtime &runtime, CompareOp op, const Value &left, const Value &right);
/// `item in container`.
StatusOr<bool> contains(Runtime &runtime, const Value &container, const Value &item);

/// `object.name`: attributes and methods first, then items; undefined when there is neither.
StatusOr<Value> getAttribute(Runtime &runtime, const Value &object, std::string_view name);
/// `object[key]`: items first, then attributes.
StatusOr<Value> getItem(Runtime &runtime, const Value &object, const Value &key);
/// `object[start:stop:step]`; none where a part is left out.
StatusOr<Value> getSlice(Runtime &runtime, const Value &object, const Value &start,
                         const Value &stop, const Value &step);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_OPERATORS_H
