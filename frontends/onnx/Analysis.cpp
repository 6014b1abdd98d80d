//===- Analysis.cpp - types, shapes and constants of a graph --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Analysis.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/OpRegistry.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Unsupported operators
//===----------------------------------------------------------------------===//

static void collectUnsupported(const Graph &graph, std::map<std::string, UnsupportedOp> &found) {
  constexpr size_t kShown = 3;
  for (const Node *node : graph.nodes) {
    for (const Attribute &a : node->attributes)
      if (a.graph)
        collectUnsupported(*a.graph, found);
    if (opRegistry().knows(*node))
      continue;
    std::string op = quoted(node->op), domain = quoted(node->domain);
    std::string name = (node->domain.empty() ? "" : domain.substr(1, domain.size() - 2) + ".") +
                       op.substr(1, op.size() - 2);
    UnsupportedOp &entry = found[name];
    entry.name = name;
    if (++entry.count <= kShown)
      entry.nodes.push_back(node->describe());
  }
}

std::vector<UnsupportedOp> onnx::unsupportedOps(const Model &model) {
  std::map<std::string, UnsupportedOp> found;
  collectUnsupported(*model.graph, found);
  std::vector<UnsupportedOp> ops;
  for (auto &[name, op] : found)
    ops.push_back(std::move(op));
  return ops;
}

std::string onnx::unsupportedOpsText(llvm::ArrayRef<UnsupportedOp> ops) {
  std::string text =
      std::to_string(ops.size()) +
      (ops.size() == 1 ? " operator is not supported: " : " operators are not supported: ");
  return text + llvm::join(llvm::map_range(ops,
                                           [](const UnsupportedOp &op) {
                                             return op.name + " (" + std::to_string(op.count) +
                                                    (op.count == 1 ? " node: " : " nodes: ") +
                                                    llvm::join(op.nodes, ", ") +
                                                    (op.count > op.nodes.size() ? ", ...)" : ")");
                                           }),
                           ", ");
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

namespace {

class Analyzer {
public:
  Analyzer(Model &model, const AnalysisOptions &options) : model(model), options(options) {}
  Error run();
  Error visit(Node &node);

private:
  bool isWorthFolding(const Node &node);
  Error fold(Node &node, FoldFn fn);
  Error moveContents(Node &node);
  void settle(Value &value);

  Model &model;
  const AnalysisOptions &options;
  uint64_t folded = 0;
};

} // namespace

/// Contents without a symbol in them are a constant.
void Analyzer::settle(Value &value) {
  if (!value.contents || value.constant)
    return;
  std::vector<int64_t> numbers;
  for (const Dim &dim : value.contents->values) {
    std::optional<int64_t> number = dim.constant();
    if (!number)
      return;
    numbers.push_back(*number);
  }
  if (isInteger(value.type) || value.type == ElementType::Bool)
    value.constant = Tensor::ofIntegers(value.type, value.contents->dims, numbers);
}

/// All inputs are there, the outputs' sizes are known and small.
bool Analyzer::isWorthFolding(const Node &node) {
  for (const Value *input : node.inputs)
    if (input && !input->constant)
      return false;
  uint64_t total = 0;
  for (const Value *output : node.outputs) {
    if (output->kind != Value::Kind::Tensor)
      return false;
    if (!output->shape)
      continue; // only the fold can tell
    Dims dims;
    for (const Dim &dim : *output->shape) {
      std::optional<int64_t> size = dim.constant();
      // A size that depends on data (Range, NonZero) follows from small inputs.
      dims.push_back(size.value_or(1));
    }
    std::optional<int64_t> elements = elementCount(dims);
    std::optional<uint64_t> bytes = elements ? tensorBytes(output->type, *elements) : std::nullopt;
    if (!bytes || *bytes > options.largestFold)
      return false;
    total += *bytes;
  }
  uint64_t read = 0;
  for (const Value *input : node.inputs)
    if (input)
      read += input->constant->bytes.size();
  constexpr uint64_t kReadPerWrite = 64;
  return folded + total <= options.totalFold && read <= options.largestFold * kReadPerWrite;
}

Error Analyzer::fold(Node &node, FoldFn fn) {
  std::vector<const Tensor *> inputs;
  for (const Value *input : node.inputs)
    inputs.push_back(input ? &*input->constant : nullptr);
  Expected<std::vector<Tensor>> results = fn(FoldContext(model.path(), node, inputs));
  if (!results)
    return results.takeError();
  for (auto [i, tensor] : llvm::enumerate(*results)) {
    Value *output = node.output(i);
    if (!output)
      continue;
    folded += tensor.bytes.size();
    output->type = tensor.type;
    output->shape.emplace(tensor.dims.begin(), tensor.dims.end());
    output->constant = std::move(tensor);
    output->contents.reset();
  }
  return Error::success();
}

/// The operator only moves elements: it is applied to the numbers of the known integers.
Error Analyzer::moveContents(Node &node) {
  FoldFn fn = opRegistry().fold.find(node);
  if (!fn || node.outputs.empty())
    return Error::success();
  std::vector<Dim> pool;
  std::vector<Tensor> numbered(node.inputs.size());
  std::vector<const Tensor *> inputs;
  InferContext context(model, node);
  bool isSymbolic = false;
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    if (!input) {
      inputs.push_back(nullptr);
      continue;
    }
    // The first input, or all of a Concat, is moved; others say where to.
    bool isData = i == 0 || node.op == "Concat";
    std::optional<Contents> known = context.contents(i);
    if (!isData) {
      if (!input->constant)
        if (std::optional<std::vector<int64_t>> numbers = context.integers(i)) {
          numbered[i] = Tensor::ofIntegers(ElementType::Int64, known->dims, *numbers);
          inputs.push_back(&numbered[i]);
          continue;
        }
      if (!input->constant)
        return Error::success();
      inputs.push_back(&*input->constant);
      continue;
    }
    if (!known)
      return Error::success();
    isSymbolic |= input->contents.has_value();
    std::vector<int64_t> indices;
    for (const Dim &value : known->values) {
      indices.push_back(int64_t(pool.size()));
      pool.push_back(value);
    }
    numbered[i] = Tensor::ofIntegers(ElementType::Int64, known->dims, indices);
    inputs.push_back(&numbered[i]);
  }
  if (!isSymbolic)
    return Error::success();
  Expected<std::vector<Tensor>> results = fn(FoldContext(model.path(), node, inputs));
  if (!results)
    return results.takeError();
  for (auto [i, tensor] : llvm::enumerate(*results)) {
    Value *output = node.output(i);
    constexpr int64_t kLongest = 1024;
    if (!output || tensor.elements() > kLongest)
      continue;
    Contents contents;
    contents.dims = tensor.dims;
    for (int64_t index : tensor.integers()) {
      if (index < 0 || size_t(index) >= pool.size())
        return Error::success();
      contents.values.push_back(pool[size_t(index)]);
    }
    output->shape.emplace(tensor.dims.begin(), tensor.dims.end());
    output->contents = std::move(contents);
  }
  return Error::success();
}

Error Analyzer::visit(Node &node) {
  const OpRegistry &registry = opRegistry();
  InferContext context(model, node);
  if (Error error = registry.infer.find(node)(context))
    return error;
  FoldFn fold = registry.fold.find(node);
  if (fold && isWorthFolding(node))
    return this->fold(node, fold);
  if (InferFn symbolic = registry.symbolic.find(node))
    if (Error error = symbolic(context))
      return error;
  if (registry.moves.find(node))
    if (Error error = moveContents(node))
      return error;
  for (Value *output : node.outputs)
    settle(*output);
  return Error::success();
}

Error Analyzer::run() {
  std::vector<UnsupportedOp> unknown = unsupportedOps(model);
  if (!unknown.empty())
    return unsupported(model.path(), unsupportedOpsText(unknown));
  for (Node *node : model.graph->nodes)
    if (Error error = visit(*node))
      return error;
  return Error::success();
}

Error onnx::analyze(Model &model, const AnalysisOptions &options) {
  return Analyzer(model, options).run();
}

Error onnx::analyzeNode(Model &model, Node &node, const AnalysisOptions &options) {
  return Analyzer(model, options).visit(node);
}

std::vector<Node *> onnx::liveNodes(const Graph &graph) {
  auto isKnown = [](const Value *value) { return value->constant || value->contents; };
  llvm::DenseSet<const Node *> live;
  std::vector<Node *> work;
  auto need = [&](const Value *value) {
    if (value && value->producer && !isKnown(value) && live.insert(value->producer).second)
      work.push_back(value->producer);
  };
  for (const Value *output : graph.outputs)
    need(output);
  // Graphs in a node read values from around them.
  auto needAll = [&](auto &self, const Node &node) -> void {
    for (const Value *input : node.inputs)
      need(input);
    for (const Attribute &a : node.attributes)
      if (a.graph)
        for (const Node *inner : a.graph->nodes)
          self(self, *inner);
  };
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    needAll(needAll, *node);
  }
  std::vector<Node *> nodes;
  for (Node *node : graph.nodes)
    if (live.contains(node))
      nodes.push_back(node);
  return nodes;
}
