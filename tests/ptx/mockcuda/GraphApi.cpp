//===- GraphApi.cpp - graphs of the mock driver ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/Launch.h"

#include <algorithm>

using namespace llmc::mock;
using Node = CUgraphNode_st;

LLMC_CUDA CUresult cuGraphCreate(CUgraph *graph, unsigned) {
  LLMC_ENTER;
  *graph = new CUgraph_st;
  driver.graphs.insert(*graph);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuGraphDestroy(CUgraph graph) {
  LLMC_ENTER;
  if (!driver.graphs.erase(graph))
    return CUDA_ERROR_INVALID_HANDLE;
  delete graph;
  return CUDA_SUCCESS;
}

static CUresult addNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count,
                        Node node) {
  Driver &driver = Driver::get();
  if (!out || !driver.graphs.count(graph) || (count && !after))
    return CUDA_ERROR_INVALID_VALUE;
  node.index = graph->nodes.size();
  for (size_t i = 0; i < count; ++i) {
    if (after[i]->index >= graph->nodes.size() || graph->nodes[after[i]->index].get() != after[i])
      return driver.complain(CUDA_ERROR_INVALID_VALUE, "a dependency on another graph's node");
    node.after.push_back(after[i]->index);
  }
  graph->nodes.push_back(std::make_unique<Node>(std::move(node)));
  *out = graph->nodes.back().get();
  return CUDA_SUCCESS;
}

static CUresult kernelNode(const CUDA_KERNEL_NODE_PARAMS *p, Node &node) {
  Driver &driver = Driver::get();
  if (!p || !p->func)
    return CUDA_ERROR_INVALID_VALUE;
  node.kind = Node::Kernel;
  node.function = p->func;
  setDims(node.config, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY,
          p->blockDimZ, p->sharedMemBytes);
  if (CUresult r = driver.checkLaunch(p->func, node.config, nullptr, 0))
    return r;
  return gatherParams(p->func, p->kernelParams, p->extra, node.config);
}

LLMC_CUDA CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph,
                                           const CUgraphNode *after, size_t count,
                                           const CUDA_KERNEL_NODE_PARAMS *p) {
  LLMC_ENTER;
  Node node;
  if (CUresult r = kernelNode(p, node))
    return r;
  return addNode(out, graph, after, count, node);
}

/// Only whole stretches of bytes: no pitch, no arrays.
static CUresult copyNode(const CUDA_MEMCPY3D *p, Node &node) {
  if (!p || p->Height > 1 || p->Depth > 1 || p->srcArray || p->dstArray)
    return CUDA_ERROR_NOT_SUPPORTED;
  node.kind = Node::Copy;
  node.copy = *p;
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                        size_t count, const CUDA_MEMCPY3D *p, CUcontext) {
  LLMC_ENTER;
  Node node;
  if (CUresult r = copyNode(p, node))
    return r;
  return addNode(out, graph, after, count, node);
}
LLMC_CUDA CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                        size_t count, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext) {
  LLMC_ENTER;
  if (!p || p->height > 1 || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
    return CUDA_ERROR_NOT_SUPPORTED;
  Node node;
  node.kind = Node::Set;
  node.set = *p;
  return addNode(out, graph, after, count, node);
}
LLMC_CUDA CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                       size_t count) {
  LLMC_ENTER;
  return addNode(out, graph, after, count, Node());
}

LLMC_CUDA CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                             const CUgraphNode *to, const CUgraphEdgeData *data,
                                             size_t count) {
  LLMC_ENTER;
  if (!driver.graphs.count(graph))
    return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count; ++i) {
    bool programmatic = data && data[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (programmatic && (from[i]->kind != Node::Kernel || to[i]->kind != Node::Kernel))
      return driver.complain(CUDA_ERROR_INVALID_VALUE, "a programmatic edge between other nodes");
    (programmatic ? to[i]->programmaticAfter : to[i]->after).push_back(from[i]->index);
  }
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
                                          const CUgraphNode *to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
LLMC_CUDA CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  LLMC_ENTER;
  if (!driver.graphs.count(graph) || !count)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; nodes && i < std::min(*count, graph->nodes.size()); ++i)
    nodes[i] = graph->nodes[i].get();
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, unsigned id, const void *value) {
  LLMC_ENTER;
  if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC)
    return driver.complain(CUDA_ERROR_INVALID_VALUE,
                           "programmatic launches of a graph are edges between its nodes");
  return CUDA_SUCCESS;
}

/// An order in which every node comes after what it depends on, chosen anew by the seed.
static bool orderOf(CUgraphExec exec, std::mt19937_64 &random) {
  size_t n = exec->nodes.size();
  std::vector<std::vector<size_t>> next(n);
  std::vector<size_t> missing(n), ready;
  for (size_t i = 0; i < n; ++i)
    for (const auto *list : {&exec->nodes[i].after, &exec->nodes[i].programmaticAfter})
      for (size_t before : *list) {
        next[before].push_back(i);
        ++missing[i];
      }
  for (size_t i = 0; i < n; ++i)
    if (!missing[i])
      ready.push_back(i);
  exec->order.clear();
  while (!ready.empty()) {
    // Of nodes that do not depend on each other any may be first.
    std::swap(ready[random() % ready.size()], ready.back());
    size_t i = ready.back();
    ready.pop_back();
    exec->order.push_back(i);
    for (size_t k : next[i])
      if (!--missing[k])
        ready.push_back(k);
  }
  return exec->order.size() == n;
}

LLMC_CUDA CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph,
                                               unsigned long long) {
  LLMC_ENTER;
  if (!driver.graphs.count(graph))
    return CUDA_ERROR_INVALID_HANDLE;
  auto exec = std::make_unique<CUgraphExec_st>();
  for (const auto &node : graph->nodes) {
    exec->index[node.get()] = exec->nodes.size();
    exec->nodes.push_back(*node);
  }
  std::mt19937_64 random(driver.settings.options.seed);
  if (!orderOf(exec.get(), random))
    return driver.complain(CUDA_ERROR_INVALID_VALUE, "the graph has a cycle");
  *out = exec.release();
  driver.execs.insert(*out);
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuGraphExecDestroy(CUgraphExec exec) {
  LLMC_ENTER;
  driver.flush();
  if (!driver.execs.erase(exec))
    return CUDA_ERROR_INVALID_HANDLE;
  delete exec;
  return driver.sticky;
}
LLMC_CUDA CUresult cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }

LLMC_CUDA CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                     const CUDA_KERNEL_NODE_PARAMS *p) {
  LLMC_ENTER;
  if (!driver.execs.count(exec) || !exec->index.count(node))
    return CUDA_ERROR_INVALID_VALUE;
  driver.flush();
  Node &own = exec->nodes[exec->index[node]];
  if (own.kind != Node::Kernel)
    return CUDA_ERROR_INVALID_VALUE;
  Node changed;
  if (CUresult r = kernelNode(p, changed))
    return r;
  own.function = changed.function;
  own.config = changed.config;
  return CUDA_SUCCESS;
}
LLMC_CUDA CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_MEMCPY3D *p, CUcontext) {
  LLMC_ENTER;
  if (!driver.execs.count(exec) || !exec->index.count(node))
    return CUDA_ERROR_INVALID_VALUE;
  driver.flush();
  return copyNode(p, exec->nodes[exec->index[node]]);
}

static CUresult runNode(Driver &driver, const Node &node, size_t before) {
  switch (node.kind) {
  case Node::Kernel: {
    auto config = node.config;
    // It overlaps with its predecessor only if that is the last thing that ran.
    config.programmatic =
        !node.programmaticAfter.empty() && node.after.empty() &&
        std::count(node.programmaticAfter.begin(), node.programmaticAfter.end(), before);
    driver.run(node.function, config);
    return driver.sticky;
  }
  case Node::Copy: {
    const CUDA_MEMCPY3D &c = node.copy;
    bool fromHost = c.srcMemoryType == CU_MEMORYTYPE_HOST;
    bool toHost = c.dstMemoryType == CU_MEMORYTYPE_HOST;
    return driver.copy(
        (toHost ? reinterpret_cast<uint64_t>(c.dstHost) : c.dstDevice) + c.dstXInBytes, !toHost,
        (fromHost ? reinterpret_cast<uint64_t>(c.srcHost) : c.srcDevice) + c.srcXInBytes, !fromHost,
        c.WidthInBytes);
  }
  case Node::Set:
    return driver.fill(node.set.dst, node.set.value, node.set.elementSize, node.set.width);
  case Node::Empty:
    break;
  }
  return CUDA_SUCCESS;
}

LLMC_CUDA CUresult cuGraphLaunch(CUgraphExec exec, CUstream) {
  LLMC_ENTER;
  if (!driver.execs.count(exec))
    return CUDA_ERROR_INVALID_HANDLE;
  driver.enqueue([&driver, exec] {
    size_t before = ~size_t(0);
    for (size_t i : exec->order) {
      if (CUresult r = runNode(driver, exec->nodes[i], before)) {
        driver.sticky = r;
        return;
      }
      before = i;
    }
  });
  return CUDA_SUCCESS;
}
