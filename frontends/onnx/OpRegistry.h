//===- OpRegistry.h - what is known of every operator -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators change from one opset to another. A table holds one function per
// operator and version since which it means something else; a node gets the one of
// the newest version that is not newer than what its file imports:
//
//   table.add("", "Squeeze", 1, squeezeAttr);     axes are an attribute
//   table.add("", "Squeeze", 13, squeezeInput);   axes are an input
//
// There is one table per hook, so that a hook can live in a room of its own:
//
//   infer     element types and symbolic shapes of the outputs from the inputs'
//   symbolic  integers known up to symbols, for operators of shape arithmetic
//   fold      the outputs themselves, from constant inputs, on the host
//
// The files of ops/ each fill the tables for one family of operators.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_OPREGISTRY_H
#define LLMC_FRONTENDS_ONNX_OPREGISTRY_H

#include "frontends/onnx/Graph.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace llmc::onnx {

/// Functions by operator and version.
template <typename Hook> class OpTable {
public:
  void add(llvm::StringRef domain, llvm::StringRef op, int64_t since, Hook hook) {
    auto &versions = entries[key(domain, op)];
    auto place = versions.begin();
    while (place != versions.end() && place->first < since)
      ++place;
    versions.insert(place, {since, hook});
  }
  /// Null where the operator is not known, or not in so old a version.
  Hook find(llvm::StringRef domain, llvm::StringRef op, int64_t version) const {
    auto it = entries.find(key(domain, op));
    Hook found{};
    if (it != entries.end())
      for (const auto &[since, hook] : it->second)
        if (since <= version)
          found = hook;
    return found;
  }
  Hook find(const Node &node) const { return find(node.domain, node.op, node.version); }
  /// Calls fn(domain, op, since) for every entry, in no order that means something.
  template <typename Fn> void forEach(Fn fn) const {
    for (const auto &entry : entries)
      for (const auto &[since, hook] : entry.second) {
        auto [domain, op] = entry.first().split(':');
        fn(domain, op, since);
      }
  }

private:
  static std::string key(llvm::StringRef domain, llvm::StringRef op) {
    return (domain + llvm::Twine(':') + op).str();
  }
  llvm::StringMap<std::vector<std::pair<int64_t, Hook>>> entries;
};

/// What `infer` and `symbolic` see of a node: its inputs; and where they leave what they found.
class InferContext {
public:
  InferContext(Model &model, Node &node) : model(model), op(node) {}

  const Node &node() const { return op; }
  SymbolTable &symbols() { return model.symbols; }

  size_t inputCount() const { return op.inputs.size(); }
  size_t outputCount() const { return op.outputs.size(); }
  bool has(size_t input) const { return op.input(input) != nullptr; }
  ElementType type(size_t input) const {
    return has(input) ? op.inputs[input]->type : ElementType::Undefined;
  }
  /// The input's shape; null where the input is left out or its rank is not known.
  const Shape *shape(size_t input) const {
    return has(input) && op.inputs[input]->shape ? &*op.inputs[input]->shape : nullptr;
  }
  /// The input's value where it is a constant, else null.
  const Tensor *constant(size_t input) const {
    return has(input) && op.inputs[input]->constant ? &*op.inputs[input]->constant : nullptr;
  }
  /// The input's integers, known up to symbols; nothing where they are not.
  std::optional<Contents> contents(size_t input) const;
  /// The same as plain numbers; nothing where a symbol is among them.
  std::optional<std::vector<int64_t>> integers(size_t input) const;
  /// What an operator takes as an attribute in old versions and as an input in new ones.
  /// `isGiven` is false where it is left out. Nothing: given, but not known.
  std::optional<std::vector<int64_t>> integersOf(llvm::StringRef attribute, size_t input,
                                                 bool &isGiven) const;

  void set(size_t output, ElementType type, std::optional<Shape> shape);
  void setContents(size_t output, Contents contents);

  /// An axis, counted from the back where negative, of a tensor of that rank.
  llvm::Expected<int64_t> axis(int64_t given, int64_t rank);
  /// The shape of element-wise operators with NumPy's broadcasting.
  llvm::Expected<std::optional<Shape>> broadcast(llvm::ArrayRef<size_t> inputs);
  llvm::Expected<Shape> broadcast(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b);

  /// An error that names the file and the node.
  llvm::Error error(const llvm::Twine &why) const;

private:
  Model &model;
  Node &op;
};

/// What `fold` sees: all inputs are constants.
class FoldContext {
public:
  FoldContext(llvm::StringRef path, const Node &node, llvm::ArrayRef<const Tensor *> inputs)
      : path(path), op(node), inputs(inputs) {
    missing.dims = {0};
  }

  const Node &node() const { return op; }
  size_t inputCount() const { return inputs.size(); }
  bool has(size_t input) const { return input < inputs.size() && inputs[input]; }
  /// An empty tensor of no type where the input is left out.
  const Tensor &input(size_t i) const { return has(i) ? *inputs[i] : missing; }
  /// As in InferContext.
  std::vector<int64_t> integersOf(llvm::StringRef attribute, size_t input, bool &isGiven) const;
  llvm::Expected<int64_t> axis(int64_t given, int64_t rank) const;

  llvm::Error error(const llvm::Twine &why) const;

private:
  llvm::StringRef path;
  const Node &op;
  llvm::ArrayRef<const Tensor *> inputs;
  Tensor missing;
};

using InferFn = llvm::Error (*)(InferContext &);
using FoldResult = llvm::Expected<std::vector<Tensor>>;
using FoldFn = FoldResult (*)(const FoldContext &);

struct OpRegistry {
  OpTable<InferFn> infer;
  OpTable<InferFn> symbolic;
  OpTable<FoldFn> fold;
  /// Operators that only move elements: their fold, applied to numbers of elements, says which
  /// input element every output element is. Symbolic integers pass through them so.
  OpTable<bool> moves;

  bool knows(const Node &node) const { return infer.find(node) != nullptr; }
};

/// The registry of all operators of ops/.
const OpRegistry &opRegistry();

// One function per file of ops/.
void addElementwiseOps(OpRegistry &registry);
void addShapeOps(OpRegistry &registry);
void addIndexingOps(OpRegistry &registry);
void addReductionOps(OpRegistry &registry);
void addMatMulOps(OpRegistry &registry);
void addNormalizationOps(OpRegistry &registry);
void addAttentionOps(OpRegistry &registry);
void addQuantizationOps(OpRegistry &registry);
/// Operators about which only their lowering (lower/) knows anything; after all others.
void addLoweredOps(OpRegistry &registry);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_OPREGISTRY_H
