//===- Probe.cpp - running parts of a graph on chosen numbers -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Probe.h"
#include "frontends/common/ImportError.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Expected;
using llvm::Twine;

std::optional<int64_t> Probe::size(const Dim &dim) const {
  return model.symbols.evaluate(dim, [&](unsigned symbol) -> std::optional<int64_t> {
    if (symbol == roles.sequenceSymbol)
      return sequence;
    if (symbol == roles.pastSymbol)
      return past;
    return std::nullopt;
  });
}

std::optional<Dims> Probe::dims(const Value &value) const {
  if (!value.shape)
    return std::nullopt;
  Dims dims;
  for (const Dim &dim : *value.shape) {
    std::optional<int64_t> s = size(dim);
    if (!s || *s < 0)
      return std::nullopt;
    dims.push_back(*s);
  }
  std::optional<int64_t> count = elementCount(dims);
  constexpr int64_t kMost = int64_t(1) << 22;
  if (!count || *count > kMost)
    return std::nullopt;
  return dims;
}

static llvm::Error cannot(const Model &model, const Value &value) {
  return unsupported(model.path(),
                     "value " + quoted(value.name) + " depends on more than positions and masks");
}

/// A value that no node has to compute.
Expected<Tensor> Probe::leaf(const Value &value) {
  if (value.constant)
    return *value.constant;
  if (value.contents) {
    std::vector<int64_t> numbers;
    for (const Dim &dim : value.contents->values) {
      std::optional<int64_t> number = size(dim);
      if (!number)
        return cannot(model, value);
      numbers.push_back(*number);
    }
    return Tensor::ofIntegers(value.type, value.contents->dims, numbers);
  }
  bool isPosition = llvm::is_contained(roles.positions, &value);
  bool isType = llvm::is_contained(roles.types, &value);
  std::optional<Dims> shape = dims(value);
  if ((!isPosition && !isType && !llvm::is_contained(roles.masks, &value)) || !shape)
    return cannot(model, value);
  std::vector<int64_t> numbers(size_t(*elementCount(*shape)), isType ? 0 : 1);
  if (isPosition)
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = past + int64_t(i);
  return Tensor::ofIntegers(value.type, *shape, numbers);
}

Expected<Tensor> Probe::evaluate(const Value &target, llvm::ArrayRef<Given> given) {
  llvm::DenseMap<const Value *, Tensor> own; // what depends on something given
  for (const auto &[value, tensor] : given)
    own[value] = *tensor;
  auto find = [&](const Value *value) -> const Tensor * {
    if (auto it = own.find(value); it != own.end())
      return &it->second;
    auto it = known.find(value);
    return it == known.end() ? nullptr : &it->second;
  };
  // Values that are in the map as of an earlier call may depend on what is given now, so a node is
  // entered unless it is known that it does not: the second number says whether it was expanded.
  std::vector<std::pair<const Value *, bool>> work = {{&target, false}};
  constexpr size_t kMostSteps = size_t(1) << 18;
  for (size_t steps = 0; !work.empty(); ++steps) {
    if (steps > kMostSteps)
      return cannot(model, target);
    auto [value, expanded] = work.back();
    if (find(value)) {
      work.pop_back();
      continue;
    }
    const Node *node = value->producer;
    if (!node || value->constant || value->contents) {
      Expected<Tensor> tensor = leaf(*value);
      if (!tensor)
        return tensor.takeError();
      known[value] = std::move(*tensor);
      work.pop_back();
      continue;
    }
    FoldFn fold = opRegistry().fold.find(*node);
    if (!fold)
      return cannot(model, *value);
    // A shape needs no numbers.
    if ((node->op == "Shape" || node->op == "Size") && node->domain.empty() && node->input(0))
      if (std::optional<Dims> shape = dims(*node->input(0))) {
        Tensor hollow;
        hollow.dims = *shape;
        const Tensor *inputs[] = {&hollow};
        FoldResult result = fold(FoldContext(model.path(), *node, inputs));
        if (!result)
          return result.takeError();
        known[value] = std::move(result->front());
        work.pop_back();
        continue;
      }
    if (!expanded) {
      work.back().second = true;
      for (const Value *input : node->inputs)
        if (input && !find(input))
          work.push_back({input, false});
      continue;
    }
    work.pop_back();
    std::vector<const Tensor *> inputs;
    bool isOwn = false;
    for (const Value *input : node->inputs) {
      const Tensor *tensor = input ? find(input) : nullptr;
      if (input && !tensor)
        return cannot(model, *input); // a cycle cannot be, but nothing is taken for granted
      isOwn |= input && own.contains(input);
      inputs.push_back(tensor);
    }
    FoldResult results = fold(FoldContext(model.path(), *node, inputs));
    if (!results)
      return results.takeError();
    auto &place = isOwn ? own : known;
    for (auto [i, tensor] : llvm::enumerate(*results))
      if (const Value *output = node->output(i))
        place[output] = std::move(tensor);
    if (!find(value))
      return cannot(model, *value);
  }
  return *find(&target);
}
