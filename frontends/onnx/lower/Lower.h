//===- Lower.h - an ONNX graph as a tensor program --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What cannot be raised to the llm dialect still runs: every node becomes linalg
// and tensor ops of a function @graph, of static shapes. One table holds a function
// per operator and version (as in OpRegistry.h); composite operators are written in
// terms of simpler ones (Arrays.h). The files of this folder each fill the table
// for one family.
//
// A lowering takes shapes from the arrays it is given, not from inference; where
// the size of a result depends on data, it takes what the file declares.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_LOWER_LOWER_H
#define LLMC_FRONTENDS_ONNX_LOWER_LOWER_H

#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/lower/Arrays.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc::onnx {

class GraphLowering;

/// What the lowering of a node sees: its inputs as arrays.
class LowerContext {
public:
  LowerContext(GraphLowering &graph, const Node &node, ArrayBuilder &a)
      : a(a), graph(graph), op(node) {}

  ArrayBuilder &a;

  const Node &node() const { return op; }
  size_t inputCount() const { return op.inputs.size(); }
  size_t outputCount() const { return op.outputs.size(); }
  bool has(size_t input) const { return op.input(input) != nullptr; }
  bool wants(size_t output) const { return op.output(output) && !op.output(output)->name.empty(); }
  /// Null where the input is left out; checked operators have as many as they need.
  Array input(size_t i) const;
  /// All inputs, none of which is left out.
  llvm::Expected<llvm::SmallVector<Array>> inputs() const;
  ElementType type(size_t i) const { return op.inputs[i]->type; }
  /// The input's value where it is a constant, else null.
  const Tensor *constant(size_t i) const;
  /// Numbers that are an attribute in old versions and an input in new ones. `isGiven` is false
  /// where they are left out; an error where they are known only when the graph runs.
  llvm::Expected<std::vector<int64_t>> integersOf(llvm::StringRef attribute, size_t input,
                                                  bool &isGiven) const;
  llvm::Expected<std::vector<int64_t>> integers(size_t input) const;
  llvm::Expected<double> number(size_t input) const;
  llvm::Expected<int64_t> axis(int64_t given, int64_t rank) const;
  llvm::Expected<Dims> axes(llvm::ArrayRef<int64_t> given, int64_t rank) const;

  /// The output's type, as inferred or declared.
  ElementType outputType(size_t i) const;
  /// The output's shape where inference or the file knows it.
  std::optional<Dims> outputShape(size_t i) const;
  void set(size_t output, Array value);
  llvm::Error done(Array value) {
    set(0, value);
    return llvm::Error::success();
  }

  /// Lowers a graph of an attribute at the insertion point of `into`; gives its outputs.
  llvm::Expected<llvm::SmallVector<Array>> lowerBody(Graph &body, llvm::ArrayRef<Array> inputs,
                                                     ArrayBuilder &into);

  /// An error that names the file and the node.
  llvm::Error error(const llvm::Twine &why) const;
  /// The input is known only when the graph runs: says how to fix it.
  llvm::Error needsConstant(size_t input) const;

private:
  GraphLowering &graph;
  const Node &op;
};

using LowerFn = llvm::Error (*)(LowerContext &);

/// Integers of a product to an output of `zero`'s type: rint(x * factor) + zero, clamped.
Array requantize(ArrayBuilder &a, Array x, Array factor, Array zero);

/// The lowerings of all operators.
const OpTable<LowerFn> &lowerings();

/// The module of a graph whose types, shapes and constants are known: @graph, and a weight for
/// every large constant. Fails on operators that have no lowering, listing all with counts, and
/// on inputs whose shapes are not static.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> lowerGraph(Model &model,
                                                             mlir::MLIRContext &context);

// One function per file of this folder.
void addElementwiseLowerings(OpTable<LowerFn> &table);
void addReductionLowerings(OpTable<LowerFn> &table);
void addMovementLowerings(OpTable<LowerFn> &table);
void addIndexingLowerings(OpTable<LowerFn> &table);
void addMatMulLowerings(OpTable<LowerFn> &table);
void addNormalizationLowerings(OpTable<LowerFn> &table);
void addAttentionLowerings(OpTable<LowerFn> &table);
void addQuantizationLowerings(OpTable<LowerFn> &table);
void addConvolutionLowerings(OpTable<LowerFn> &table);
void addLossLowerings(OpTable<LowerFn> &table);
void addRecurrentLowerings(OpTable<LowerFn> &table);
void addResizeLowerings(OpTable<LowerFn> &table);
void addControlLowerings(OpTable<LowerFn> &table);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_LOWER_LOWER_H
