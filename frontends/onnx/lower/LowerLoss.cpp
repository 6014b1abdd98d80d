//===- LowerLoss.cpp - losses ---------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;

/// -w[t] x[t] for the class t of every place, reduced as asked. x is [batch, classes, places...] of
/// log probabilities; places of the class `ignore_index` count nothing.
static Error negativeLikelihood(LowerContext &c, Array x, size_t targetInput, size_t weightInput) {
  ArrayBuilder &a = c.a;
  Array target = c.input(targetInput), weight = c.input(weightInput);
  Dims places(x.shape());
  if (x.rank() < 2)
    return c.error("has scores without classes");
  places.erase(places.begin() + 1);
  if (target.shape() != llvm::ArrayRef<int64_t>(places) ||
      (weight && weight.elements() != x.dim(1)) || x.dim(1) == 0)
    return c.error("has classes or weights of a shape that does not go with its scores'");
  const onnx::Attribute *ignored = c.node().find("ignore_index");
  auto isIgnored = [&](ScalarBuilder &s, mlir::Value label) {
    return ignored ? s.test(Test::Equal, label, s.like(label, double(ignored->integer)))
                   : s.truth(false);
  };
  auto weightAt = [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value label = s.load(target, at), zero = s.constant(s.computedType(x.type), 0);
    mlir::Value w = weight ? s.widen(s.loadClamped(weight, s.toIndex(label)), weight.type)
                           : s.constant(s.computedType(x.type), 1);
    return s.select(isIgnored(s, label), zero, w);
  };
  Array weights = a.generate(x.type, places, [&](ScalarBuilder &s, ValueRange at) {
    return s.narrow(weightAt(s, at), x.type);
  });
  Array losses = a.generate(x.type, places, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at);
    source.insert(source.begin() + 1, s.toIndex(s.load(target, at)));
    mlir::Value score = s.widen(s.loadClamped(x, source), x.type);
    mlir::Value w = weightAt(s, at), zero = s.like(w, 0);
    // An infinite score of an ignored place is not multiplied by zero.
    mlir::Value none = s.test(Test::Equal, w, zero);
    return s.narrow(s.select(none, zero, s.neg(s.mul(score, w))), x.type);
  });
  StringRef reduction = c.node().text("reduction", "mean");
  if (reduction == "none")
    return c.done(losses);
  Dims axes = allAxes(losses.rank());
  Array sum = a.reduceSum(losses, axes, false);
  if (reduction == "sum")
    return c.done(sum);
  if (reduction != "mean")
    return c.error("reduces in a way that is not known");
  return c.done(a.div(sum, a.reduceSum(weights, axes, false)));
}

static Error lowerNll(LowerContext &c) { return negativeLikelihood(c, c.input(0), 1, 2); }

static Error lowerCrossEntropy(LowerContext &c) {
  ArrayBuilder &a = c.a;
  Array x = c.input(0);
  if (x.rank() < 2)
    return c.error("has scores without classes");
  Array moved = a.sub(x, a.reduceMax(x, {1}, true));
  Array logs = a.sub(moved, a.call<math::LogOp>(a.reduceSum(a.exp(moved), {1}, true)));
  if (c.wants(1))
    c.set(1, logs);
  return negativeLikelihood(c, logs, 1, 2);
}

void onnx::addLossLowerings(OpTable<LowerFn> &table) {
  table.add("", "NegativeLogLikelihoodLoss", 12, lowerNll);
  table.add("", "SoftmaxCrossEntropyLoss", 12, lowerCrossEntropy);
}
