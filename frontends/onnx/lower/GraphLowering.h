//===- GraphLowering.h - the state of lowering one graph --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_LOWER_GRAPHLOWERING_H
#define LLMC_FRONTENDS_ONNX_LOWER_GRAPHLOWERING_H

#include "frontends/onnx/lower/Lower.h"
#include <set>

namespace llmc::onnx {

class GraphLowering {
public:
  GraphLowering(Model &model, mlir::MLIRContext &context)
      : model(model), graph(*model.graph), builder(&context) {}

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> run();

  llvm::StringRef path() const { return model.path(); }
  /// The array of a value that is computed, given or constant.
  Array arrayOf(Value &value, ArrayBuilder &a);
  void define(Value &value, Array array);

  llvm::Expected<llvm::SmallVector<Array>> lowerBody(Graph &body, llvm::ArrayRef<Array> inputs,
                                                     ArrayBuilder &into);

private:
  static Array literal(const Tensor &tensor, ArrayBuilder &a);
  llvm::Error addWeight(Value &value);
  llvm::Error addArguments(llvm::ArrayRef<Node *> nodes);
  llvm::Error lowerNode(Node &node);

  Model &model;
  Graph &graph;
  mlir::OpBuilder builder;
  llvm::DenseMap<const Value *, Array> arrays;
  std::vector<std::pair<Value *, mlir::RankedTensorType>> inputs;
  std::vector<std::pair<Value *, std::string>> weights;
  std::set<std::string> symbols;
};

/// The shape, where every dimension is a number.
std::optional<Dims> staticDims(llvm::ArrayRef<Dim> shape);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_LOWER_GRAPHLOWERING_H
