//===- LowerControl.cpp - operators with graphs in them -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/GraphLowering.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

using Arrays = SmallVector<Array>;

/// The graph of an attribute; null where it is missing or takes another number of inputs.
static Graph *bodyOf(LowerContext &c, StringRef name, size_t inputs) {
  const onnx::Attribute *body = c.node().find(name);
  return body && body->graph && body->graph->inputs.size() == inputs ? body->graph : nullptr;
}

/// A branch that is known now takes the place of the node; otherwise both are computed and one is
/// chosen.
static Error lowerIf(LowerContext &c) {
  Graph *yes = bodyOf(c, "then_branch", 0), *no = bodyOf(c, "else_branch", 0);
  if (!yes || !no || yes->outputs.size() != no->outputs.size() ||
      yes->outputs.size() < c.outputCount())
    return c.error("has branches that do not go together");
  if (const Tensor *condition = c.constant(0)) {
    if (condition->elements() != 1)
      return c.error("has a condition that is not a single truth");
    Expected<Arrays> results = c.lowerBody(condition->integer(0) ? *yes : *no, {}, c.a);
    if (!results)
      return results.takeError();
    for (size_t i = 0; i < c.outputCount(); ++i)
      c.set(i, (*results)[i]);
    return Error::success();
  }
  Array condition = c.input(0);
  if (condition.elements() != 1)
    return c.error("has a condition that is not a single truth");
  condition = c.a.reshape(condition, {});
  Expected<Arrays> first = c.lowerBody(*yes, {}, c.a);
  if (!first)
    return first.takeError();
  Expected<Arrays> second = c.lowerBody(*no, {}, c.a);
  if (!second)
    return second.takeError();
  for (size_t i = 0; i < c.outputCount(); ++i) {
    Array x = (*first)[i], y = (*second)[i];
    if (x.shape() != y.shape() || x.type != y.type)
      return c.error("has branches with results of different shapes");
    c.set(i, c.a.generate(x.type, x.shape(), [&](ScalarBuilder &s, ValueRange at) {
      return s.select(s.load(condition, {}), s.load(x, at), s.load(y, at));
    }));
  }
  return Error::success();
}

/// Types and shapes of what a body gives for inputs like `inputs`, found by lowering it in a place
/// that is then thrown away.
static Expected<Arrays> tryBody(LowerContext &c, Graph &body, llvm::ArrayRef<Array> inputs,
                                OwningOpRef<ModuleOp> &scratch) {
  OpBuilder builder(c.a.builder().getContext());
  scratch = ModuleOp::create(c.a.builder().getLoc());
  builder.setInsertionPointToEnd(scratch->getBody());
  SmallVector<Type> types;
  for (const Array &input : inputs)
    types.push_back(input.value.getType());
  auto function = func::FuncOp::create(builder, c.a.builder().getLoc(), "trial",
                                       builder.getFunctionType(types, TypeRange()));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  ArrayBuilder a(builder, c.a.builder().getLoc());
  Arrays arguments;
  for (auto [argument, input] : llvm::zip(block->getArguments(), inputs))
    arguments.push_back({argument, input.type});
  return c.lowerBody(body, arguments, a);
}

/// Runs a body `steps` times over states; further results of the body are collected along a new
/// first axis. `inputsAt` gives what the body takes at a step besides the states, in front of them
/// or behind.
static Expected<Arrays>
runBody(LowerContext &c, Graph &body, int64_t steps, llvm::ArrayRef<Array> states,
        size_t skippedResults,
        llvm::function_ref<Arrays(ArrayBuilder &, mlir::Value step, llvm::ArrayRef<Array> states)>
            inputsAt,
        llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value step, size_t output)> placeOf) {
  OwningOpRef<ModuleOp> scratch;
  ScalarBuilder s(c.a.builder(), c.a.builder().getLoc());
  Arrays sample = inputsAt(c.a, s.index(0), states);
  Expected<Arrays> tried = tryBody(c, body, sample, scratch);
  if (!tried)
    return tried.takeError();
  Arrays init(states.begin(), states.end());
  for (size_t i = skippedResults + states.size(); i < tried->size(); ++i) {
    Dims dims{steps};
    llvm::append_range(dims, (*tried)[i].shape());
    if (!elementCount(dims))
      return c.error("collects more than memory can hold");
    init.push_back(c.a.full((*tried)[i].type, dims, 0));
  }
  for (auto [i, state] : llvm::enumerate(states)) {
    Array next = (*tried)[skippedResults + i];
    if (next.shape() != state.shape() || next.type != state.type)
      return c.error("changes the shape or type of a state");
  }
  Error failure = Error::success();
  Arrays results = c.a.repeat(
      steps, init, [&](ArrayBuilder &a, mlir::Value step, llvm::ArrayRef<Array> carried) {
        Expected<Arrays> now =
            c.lowerBody(body, inputsAt(a, step, carried.take_front(states.size())), a);
        Arrays next(carried.begin(), carried.end());
        if (!now) {
          failure = llvm::joinErrors(std::move(failure), now.takeError());
          return next;
        }
        ScalarBuilder scalar(a.builder(), a.builder().getLoc());
        for (size_t i = 0; i < next.size(); ++i) {
          Array result = (*now)[skippedResults + i];
          next[i] = i < states.size()
                        ? result
                        : a.put(carried[i], placeOf(scalar, step, i - states.size()), result);
        }
        return next;
      });
  if (failure)
    return std::move(failure);
  return results;
}

static Error lowerScan(LowerContext &c) {
  const Node &node = c.node();
  size_t scans = size_t(std::max<int64_t>(node.integer("num_scan_inputs", 0), 0));
  if (scans == 0 || scans > c.inputCount())
    return c.error("scans nothing");
  size_t stateCount = c.inputCount() - scans;
  Graph *body = bodyOf(c, "body", c.inputCount());
  if (!body || body->outputs.size() < stateCount || body->outputs.size() < c.outputCount())
    return c.error("has a body that does not go with its inputs");
  auto given = c.inputs();
  if (!given)
    return given.takeError();
  auto direction = [&](StringRef name, size_t i) {
    llvm::ArrayRef<int64_t> list = node.integers(name);
    return i < list.size() && list[i] != 0;
  };
  auto axisOf = [&](StringRef name, size_t i) {
    llvm::ArrayRef<int64_t> list = node.integers(name);
    return i < list.size() ? list[i] : 0;
  };
  Arrays states(given->begin(), given->begin() + stateCount), sources;
  int64_t steps = -1;
  for (size_t i = 0; i < scans; ++i) {
    Array source = (*given)[stateCount + i];
    auto axis = c.axis(axisOf("scan_input_axes", i), source.rank());
    if (!axis)
      return axis.takeError();
    Dims order = allAxes(source.rank());
    order.erase(order.begin() + *axis);
    order.insert(order.begin(), *axis);
    sources.push_back(*axis ? c.a.transpose(source, order) : source);
    if (steps >= 0 && steps != sources.back().dim(0))
      return c.error("scans sequences of different lengths");
    steps = sources.back().dim(0);
  }
  Expected<Arrays> results = runBody(
      c, *body, steps, states, 0,
      [&](ArrayBuilder &a, mlir::Value step, llvm::ArrayRef<Array> now) {
        ScalarBuilder s(a.builder(), a.builder().getLoc());
        Arrays inputs(now.begin(), now.end());
        for (auto [i, source] : llvm::enumerate(sources)) {
          bool back = direction("scan_input_directions", i);
          inputs.push_back(a.take(source, back ? s.sub(s.index(steps - 1), step) : step));
        }
        return inputs;
      },
      [&](ScalarBuilder &s, mlir::Value step, size_t output) {
        bool back = direction("scan_output_directions", output);
        return back ? s.sub(s.index(steps - 1), step) : step;
      });
  if (!results)
    return results.takeError();
  for (size_t i = 0; i < c.outputCount(); ++i) {
    Array result = (*results)[i];
    if (i >= stateCount) {
      auto axis = c.axis(axisOf("scan_output_axes", i - stateCount), result.rank());
      if (!axis)
        return axis.takeError();
      Dims order = allAxes(result.rank());
      order.erase(order.begin());
      order.insert(order.begin() + *axis, 0);
      if (*axis)
        result = c.a.transpose(result, order);
    }
    c.set(i, result);
  }
  return Error::success();
}

/// A loop whose number of steps is known and that never ends before.
static Error lowerLoop(LowerContext &c) {
  if (c.inputCount() < 2)
    return c.error("has neither a number of steps nor a condition");
  size_t stateCount = c.inputCount() - 2;
  Graph *body = bodyOf(c, "body", stateCount + 2);
  if (!body || body->outputs.size() < stateCount + 1 || body->outputs.size() < c.outputCount() + 1)
    return c.error("has a body that does not go with its inputs");
  if (!c.has(0))
    return c.error("has no number of steps");
  if (!c.constant(0))
    return c.needsConstant(0);
  if (c.has(1) && !c.constant(1))
    return c.needsConstant(1);
  int64_t steps = std::max<int64_t>(c.constant(0)->integer(0), 0);
  if (c.has(1) && !c.constant(1)->integer(0))
    steps = 0;
  Arrays states;
  for (size_t i = 0; i < stateCount; ++i) {
    if (!c.has(i + 2))
      return c.error("has a state that is left out");
    states.push_back(c.input(i + 2));
  }
  Expected<Arrays> results = runBody(
      c, *body, steps, states, 1,
      [&](ArrayBuilder &a, mlir::Value step, llvm::ArrayRef<Array> now) {
        Arrays inputs{a.generate(ElementType::Int64, {},
                                 [&](ScalarBuilder &s, ValueRange) {
                                   return s.fromIndex(step, ElementType::Int64);
                                 }),
                      a.scalar(ElementType::Bool, 1)};
        llvm::append_range(inputs, now);
        return inputs;
      },
      [](ScalarBuilder &, mlir::Value step, size_t) { return step; });
  if (!results)
    return results.takeError();
  // The condition must be the one that came in, or true.
  const onnx::Value *condition = body->outputs[0];
  while (condition->producer && condition->producer->is("Identity"))
    condition = condition->producer->inputs[0];
  bool goesOn =
      condition == body->inputs[1] || (condition->constant && condition->constant->integer(0) != 0);
  if (!goesOn)
    return c.error("may end before its last step");
  for (size_t i = 0; i < c.outputCount(); ++i)
    c.set(i, (*results)[i]);
  return Error::success();
}

void onnx::addControlLowerings(OpTable<LowerFn> &table) {
  table.add("", "If", 1, lowerIf);
  table.add("", "Loop", 1, lowerLoop);
  table.add("", "Scan", 9, lowerScan);
}
