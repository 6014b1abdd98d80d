//===- Analysis.h - types, shapes and constants of a graph ------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over the nodes in order. For every node: infer the outputs' types and
// shapes; carry integers that are known up to symbols through shape arithmetic;
// and, where all inputs are constants and the outputs are not large, compute them.
// What the file says about intermediate values is not read.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_ANALYSIS_H
#define LLMC_FRONTENDS_ONNX_ANALYSIS_H

#include "frontends/onnx/Graph.h"
#include "llvm/Support/Error.h"

namespace llmc::onnx {

/// An operator that the registry does not have.
struct UnsupportedOp {
  std::string name; ///< "com.microsoft.MoE", "Foo (opset 23)"
  size_t count = 0;
  std::vector<std::string> nodes; ///< the first few
};

/// All operators of the graph, and of graphs in its nodes, that are not known, by name.
std::vector<UnsupportedOp> unsupportedOps(const Model &model);
/// One line: "3 operators are not supported: Foo (2 nodes: 'a', 'b'), ...".
std::string unsupportedOpsText(llvm::ArrayRef<UnsupportedOp> ops);

struct AnalysisOptions {
  /// Constants of more bytes are not computed (weights stay references).
  uint64_t largestFold = uint64_t(1) << 20;
  /// Nor more than this in all.
  uint64_t totalFold = uint64_t(1) << 26;
};

/// Fills in types, shapes, contents and constants of the main graph. Fails on operators that are
/// not known, listing all, and on nodes that contradict themselves.
llvm::Error analyze(Model &model, const AnalysisOptions &options = {});

/// The same for one node, where more has become known of its inputs.
llvm::Error analyzeNode(Model &model, Node &node, const AnalysisOptions &options = {});

/// The nodes that the graph's outputs need, in order; those whose outputs are all constants or
/// known contents are not needed.
std::vector<Node *> liveNodes(const Graph &graph);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_ANALYSIS_H
