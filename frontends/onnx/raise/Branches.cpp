//===- Branches.cpp - decoders merged with an If --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Branches.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llmc;
using namespace llmc::onnx;

/// All nodes of a graph and of the graphs in them.
static void forAllNodes(const Graph &graph, llvm::function_ref<void(Node &)> visit) {
  for (Node *node : graph.nodes) {
    visit(*node);
    for (const Attribute &a : node->attributes)
      if (a.graph)
        forAllNodes(*a.graph, visit);
  }
}

/// How many of the model's floating point inputs a branch reads.
static size_t pastsOf(const Model &model, const Graph &branch) {
  llvm::DenseSet<const Value *> found;
  auto note = [&](const Value *value) {
    if (value && isFloat(value->type) && llvm::is_contained(model.graph->inputs, value))
      found.insert(value);
  };
  forAllNodes(branch, [&](Node &node) { llvm::for_each(node.inputs, note); });
  llvm::for_each(branch.outputs, note);
  return found.size();
}

/// True for an input of the graph, perhaps with another shape or type.
static bool isInput(const Model &model, const Value *value) {
  while (value && value->producer &&
         (value->producer->is("Identity") || value->producer->is("Cast") ||
          value->producer->is("Squeeze") || value->producer->is("Reshape")))
    value = value->producer->input(0);
  return llvm::is_contained(model.graph->inputs, value);
}

static void dropUse(Value *value, const Node *user) {
  if (!value)
    return;
  auto it = llvm::find(value->users, user);
  if (it != value->users.end())
    value->users.erase(it);
}

/// The branch to keep, or null.
static Graph *cacheBranch(const Model &model, const Node &node) {
  if (!node.is("If") || !isInput(model, node.input(0)))
    return nullptr;
  const Attribute *yes = node.find("then_branch"), *no = node.find("else_branch");
  if (!yes || !no || !yes->graph || !no->graph || !yes->graph->inputs.empty() ||
      !no->graph->inputs.empty())
    return nullptr;
  const size_t first = pastsOf(model, *yes->graph), second = pastsOf(model, *no->graph);
  Graph *more = first > second ? yes->graph : no->graph;
  return first == second || more->outputs.size() != node.outputs.size() ? nullptr : more;
}

void onnx::takeCacheBranches(Model &model) {
  Graph &graph = *model.graph;
  for (size_t at = 0; at < graph.nodes.size(); ++at) {
    Node *node = graph.nodes[at];
    Graph *kept = cacheBranch(model, *node);
    if (!kept)
      continue;
    // What goes uses nothing any more.
    for (const Attribute &a : node->attributes)
      if (a.graph && a.graph != kept)
        forAllNodes(*a.graph, [](Node &inner) {
          for (Value *input : inner.inputs)
            dropUse(input, &inner);
        });
    for (Value *input : node->inputs)
      dropUse(input, node);
    for (auto [outer, inner] : llvm::zip(node->outputs, kept->outputs)) {
      if (!outer)
        continue;
      for (Node *user : outer->users)
        std::replace(user->inputs.begin(), user->inputs.end(), outer, inner);
      llvm::append_range(inner->users, outer->users);
      std::replace(graph.outputs.begin(), graph.outputs.end(), outer, inner);
      inner->declaredType = outer->declaredType;
      inner->declaredShape = outer->declaredShape;
    }
    llvm::append_range(graph.initializers, kept->initializers);
    auto place = graph.nodes.erase(graph.nodes.begin() + ptrdiff_t(at));
    graph.nodes.insert(place, kept->nodes.begin(), kept->nodes.end());
    --at; // there may be one in it
  }
  llvm::erase_if(graph.inputs, [&](const Value *input) {
    return input->type == ElementType::Bool && input->users.empty() &&
           !llvm::is_contained(graph.outputs, input);
  });
}
