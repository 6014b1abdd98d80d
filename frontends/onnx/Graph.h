//===- Graph.h - an ONNX model in memory ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the reader makes of a file: values connected by nodes, in an order in which
// every value is computed before it is used. Names of domains are canonical ("" is
// ai.onnx), every node knows the version of its operator that the file means, and
// functions are inlined. Names and initializers refer to mapped bytes.
//
// Inference and folding (Analysis.h) fill in what the file leaves open: element
// types, symbolic shapes, and the contents of what can be computed beforehand.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_GRAPH_H
#define LLMC_FRONTENDS_ONNX_GRAPH_H

#include "compiler/support/ModelSource.h"
#include "frontends/onnx/Dim.h"
#include "frontends/onnx/Tensor.h"
#include "llvm/ADT/StringRef.h"
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc::onnx {

struct Graph;
struct Node;

/// Integers of a small tensor, known up to symbols: what shape arithmetic computes.
struct Contents {
  Dims dims;
  std::vector<Dim> values;
};

struct Value {
  /// What the file says it is. Only tensors are computed with.
  enum class Kind : uint8_t { Tensor, Sequence, Optional, Map, SparseTensor };

  llvm::StringRef name;
  Kind kind = Kind::Tensor;
  ElementType type = ElementType::Undefined;
  std::optional<Shape> shape; ///< nothing: not even the rank is known
  /// What the file says of an output of the graph; only sizes that depend on data need it.
  ElementType declaredType = ElementType::Undefined;
  std::optional<Shape> declaredShape;
  Node *producer = nullptr;  ///< null: an input, or an initializer
  unsigned index = 0;        ///< among the producer's outputs
  std::vector<Node *> users; ///< once per use
  std::optional<Tensor> constant;
  std::optional<Contents> contents;
  bool isInitializer = false;

  /// Rank, or -1.
  int rank() const { return shape ? int(shape->size()) : -1; }
};

struct Attribute {
  /// The numbers are those of AttributeProto.AttributeType.
  enum class Kind : uint8_t {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    TypeProto = 13,
    TypeProtos = 14,
  };
  llvm::StringRef name;
  Kind kind = Kind::Undefined;
  float number = 0;
  int64_t integer = 0;
  llvm::StringRef text;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<llvm::StringRef> texts;
  std::optional<Tensor> tensor;
  Graph *graph = nullptr;
};

struct Node {
  llvm::StringRef domain; ///< "" for ai.onnx
  llvm::StringRef op;
  std::string name; ///< as in the file; within a function, after the name of the call
  /// The opset that the file imports for the domain.
  int64_t version = 1;
  std::vector<Value *> inputs; ///< null where an optional one is left out
  std::vector<Value *> outputs;
  std::vector<Attribute> attributes;

  bool is(llvm::StringRef opName, llvm::StringRef opDomain = "") const {
    return op == opName && domain == opDomain;
  }
  Value *input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value *output(size_t i) const { return i < outputs.size() ? outputs[i] : nullptr; }
  const Attribute *find(llvm::StringRef attribute) const;
  int64_t integer(llvm::StringRef attribute, int64_t otherwise) const;
  float number(llvm::StringRef attribute, float otherwise) const;
  llvm::StringRef text(llvm::StringRef attribute, llvm::StringRef otherwise) const;
  /// The attribute's list; empty where there is none.
  llvm::ArrayRef<int64_t> integers(llvm::StringRef attribute) const;
  /// "node 'name' (MatMul)", for messages; without a name, what it computes.
  std::string describe() const;
};

struct Graph {
  llvm::StringRef name;
  std::vector<Value *> inputs; ///< without those that are initializers
  std::vector<Value *> outputs;
  std::vector<Value *> initializers;
  std::vector<Node *> nodes;
};

/// Owner of everything of one file.
class Model {
public:
  std::vector<SourceFile> files; ///< the model's own is the first
  int64_t irVersion = 0;
  llvm::StringRef producer, producerVersion;
  std::vector<std::pair<llvm::StringRef, int64_t>> opsets;
  std::vector<std::pair<llvm::StringRef, llvm::StringRef>> metadata;
  size_t functions = 0;
  SymbolTable symbols;
  Graph *graph = nullptr;

  llvm::StringRef path() const { return files.front().path; }

  Value *newValue(llvm::StringRef name) {
    Value &value = values.emplace_back();
    value.name = name;
    return &value;
  }
  Node *newNode() { return &nodes.emplace_back(); }
  Graph *newGraph() { return &graphs.emplace_back(); }
  size_t nodeCount() const { return nodes.size(); }
  /// Keeps a text that is in no file.
  llvm::StringRef keep(std::string text) { return texts.emplace_back(std::move(text)); }

private:
  std::deque<Value> values;
  std::deque<Node> nodes;
  std::deque<Graph> graphs;
  std::deque<std::string> texts;
};

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_GRAPH_H
