//===- Arrays.h - writes tensor programs ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The words in which operators are lowered: an Array is a tensor value of static
// shape with its ONNX element type; ArrayBuilder makes linalg and tensor ops of
// NumPy-like calls; ScalarBuilder writes what is done with one element.
//
// An element has two forms. *Stored*: as it lies in memory; unsigned integers are
// signless, integers below eight bits are i8, small floats are i8 codes, bfloat16 is
// i16 (machines have few instructions for it), bool is i1. *Computed*: what arithmetic is done in;
// floats below 32 bits are f32, all else is as stored. map() and reduce() compute, generate() moves
// stored elements.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_LOWER_ARRAYS_H
#define LLMC_FRONTENDS_ONNX_LOWER_ARRAYS_H

#include "frontends/onnx/Tensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace llmc::onnx {

struct Array {
  mlir::Value value;
  ElementType type = ElementType::Undefined;

  explicit operator bool() const { return bool(value); }
  llvm::ArrayRef<int64_t> shape() const {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  int64_t rank() const { return int64_t(shape().size()); }
  int64_t dim(int64_t axis) const { return shape()[axis]; }
  int64_t elements() const {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getNumElements();
  }
};

/// Not signed: unsigned integers and bool.
inline bool isUnsignedType(ElementType type) {
  return type == ElementType::Bool || (isInteger(type) && !isSignedInteger(type));
}

enum class Arith { Add, Sub, Mul, Div, Mod, Fmod, Pow, Min, Max, And, Or, Xor };
enum class Test { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };

/// Writes the computation of one element.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc) : b(loc, builder) {}

  // Constants of a computed form.
  mlir::Value constant(mlir::Type type, double value);
  mlir::Value like(mlir::Value value, double number) { return constant(value.getType(), number); }
  mlir::Value index(int64_t value);
  mlir::Value truth(bool value);

  // Arithmetic; `isUnsigned` matters to integers only. Division by zero is zero.
  mlir::Value op(Arith op, mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value add(mlir::Value x, mlir::Value y) { return op(Arith::Add, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return op(Arith::Sub, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return op(Arith::Mul, x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return op(Arith::Div, x, y); }
  mlir::Value neg(mlir::Value x);
  mlir::Value test(Test test, mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value less(mlir::Value x, mlir::Value y) { return test(Test::Less, x, y); }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value logicalAnd(mlir::Value x, mlir::Value y);
  mlir::Value logicalOr(mlir::Value x, mlir::Value y);
  mlir::Value logicalNot(mlir::Value x);
  template <typename MathOp> mlir::Value call(mlir::Value x) { return MathOp::create(b, x); }
  mlir::Value exp(mlir::Value x) { return call<mlir::math::ExpOp>(x); }
  mlir::Value clamp(mlir::Value x, mlir::Value low, mlir::Value high, bool isUnsigned = false) {
    return op(Arith::Min, op(Arith::Max, x, low, isUnsigned), high, isUnsigned);
  }

  // Forms.
  mlir::Type computedType(ElementType type);
  mlir::Value widen(mlir::Value stored, ElementType type);
  /// Rounds; small floats saturate or not.
  mlir::Value narrow(mlir::Value computed, ElementType type, bool saturate = true);
  /// A computed form of `from` to a computed form of `to`, as ONNX's Cast does.
  mlir::Value convert(mlir::Value computed, ElementType from, ElementType to);
  mlir::Value toIndex(mlir::Value integer);
  mlir::Value fromIndex(mlir::Value index, ElementType type);

  // Memory: an element of an array, in its stored form.
  mlir::Value load(Array array, mlir::ValueRange at);
  mlir::Value loadWide(Array array, mlir::ValueRange at) {
    return widen(load(array, at), array.type);
  }
  /// The same where data says which: every index is clamped to the array.
  mlir::Value loadClamped(Array array, mlir::ValueRange at);

  /// `array` with one stored element replaced.
  mlir::Value store(mlir::Value element, Array array, mlir::ValueRange at);
  /// The indices of element number `linear` of an array of `dims`.
  llvm::SmallVector<mlir::Value> unravel(mlir::Value linear, llvm::ArrayRef<int64_t> dims);
  /// Of integers; index arithmetic is signed.
  mlir::Value remainder(mlir::Value x, int64_t divisor);
  mlir::Value quotient(mlir::Value x, int64_t divisor);
  /// An index that counts from the back where it is negative.
  mlir::Value fromBack(mlir::Value index, int64_t size);

  mlir::ImplicitLocOpBuilder &builder() { return b; }

private:
  mlir::Value table(llvm::ArrayRef<float> values, mlir::Value at);
  mlir::Value encodeSmallFloat(mlir::Value x, ElementType type, bool saturate);
  mlir::ImplicitLocOpBuilder b;
};

using MapFn = llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::ValueRange)>;

class ArrayBuilder {
public:
  explicit ArrayBuilder(mlir::OpBuilder &builder, mlir::Location loc) : b(loc, builder) {}

  mlir::Type storedType(ElementType type);
  Array constant(const Tensor &tensor);
  Array scalar(ElementType type, double value);
  Array full(ElementType type, llvm::ArrayRef<int64_t> dims, double value);

  // --- elements -------------------------------------------------------------

  /// fn of the computed elements of arrays that are broadcast against each other (at least to
  /// `dims`), narrowed to `type`.
  Array map(ElementType type, llvm::ArrayRef<Array> inputs, MapFn fn, bool saturate = true);
  Array unary(Array x, llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value)> fn);
  Array binary(Arith op, Array x, Array y);
  Array test(Test test, Array x, Array y);
  Array add(Array x, Array y) { return binary(Arith::Add, x, y); }
  Array sub(Array x, Array y) { return binary(Arith::Sub, x, y); }
  Array mul(Array x, Array y) { return binary(Arith::Mul, x, y); }
  Array div(Array x, Array y) { return binary(Arith::Div, x, y); }
  Array addScalar(Array x, double y) { return add(x, scalar(x.type, y)); }
  Array mulScalar(Array x, double y) { return mul(x, scalar(x.type, y)); }
  Array where(Array condition, Array x, Array y);
  Array cast(Array x, ElementType type, bool saturate = true);
  template <typename MathOp> Array call(Array x) {
    return unary(x, [](ScalarBuilder &s, mlir::Value v) { return s.call<MathOp>(v); });
  }
  Array exp(Array x) { return call<mlir::math::ExpOp>(x); }
  Array sqrt(Array x) { return call<mlir::math::SqrtOp>(x); }
  Array tanh(Array x) { return call<mlir::math::TanhOp>(x); }
  Array sigmoid(Array x);

  /// An array whose stored element at an index is fn(index).
  Array generate(ElementType type, llvm::ArrayRef<int64_t> dims, MapFn fn);

  /// One element after the other: `steps` times fn(step, array) -> array, starting with `init`,
  /// which it may change in place with store().
  Array loop(int64_t steps, Array init,
             llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value step, Array)> fn);

  /// `steps` times fn(step, states) -> states, starting with `init`; shapes stay as they are.
  llvm::SmallVector<Array>
  repeat(int64_t steps, llvm::ArrayRef<Array> init,
         llvm::function_ref<llvm::SmallVector<Array>(ArrayBuilder &, mlir::Value step,
                                                     llvm::ArrayRef<Array>)>
             fn);
  /// Entry `index`, a value, of the first axis of x; and x with that entry replaced.
  Array take(Array x, mlir::Value index);
  Array put(Array x, mlir::Value index, Array entry);

  // --- reductions -----------------------------------------------------------

  /// Folds elements over `axes` with `fn(accumulator, element)`, both in the computed form of
  /// `accumulate` (the elements are converted), starting from `init`; gives `type`. Order: as in
  /// memory.
  Array reduce(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims, double init, MapFn fn,
               ElementType type, ElementType accumulate);
  Array reduceSum(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Array reduceMax(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Array reduceMin(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Array reduceMean(Array x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Array softmax(Array x, int64_t axis);
  /// Sums, or products, of an axis from its beginning on.
  Array cumulate(Array x, int64_t axis, Arith op, bool exclusive, bool reverse);

  // --- movement -------------------------------------------------------------

  Array reshape(Array x, llvm::ArrayRef<int64_t> dims);
  Array transpose(Array x, llvm::ArrayRef<int64_t> permutation);
  /// NumPy's broadcasting to `dims`.
  Array expand(Array x, llvm::ArrayRef<int64_t> dims);
  Array slice(Array x, int64_t axis, int64_t begin, int64_t count);
  Array concat(llvm::ArrayRef<Array> parts, int64_t axis);
  Array unsqueeze(Array x, int64_t axis);
  Array squeeze(Array x, int64_t axis);

  // --- products -------------------------------------------------------------

  /// NumPy's matmul of arrays of at least two dimensions; accumulates in the computed form, or in
  /// `accumulate`, and gives `type`.
  Array matmul(Array x, Array y);
  Array matmul(Array x, Array y, ElementType type, ElementType accumulate);

  mlir::ImplicitLocOpBuilder &builder() { return b; }

private:
  mlir::Value empty(mlir::Type type, llvm::ArrayRef<int64_t> dims);
  mlir::ImplicitLocOpBuilder b;
};

/// NumPy's common shape; nothing where there is none.
std::optional<Dims> broadcastShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// All axes 0, 1, ..., rank - 1.
Dims allAxes(int64_t rank);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_LOWER_ARRAYS_H
