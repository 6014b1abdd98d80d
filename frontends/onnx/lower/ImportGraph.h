//===- ImportGraph.h - ONNX file -> tensor program --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_LOWER_IMPORTGRAPH_H
#define LLMC_FRONTENDS_ONNX_LOWER_IMPORTGRAPH_H

#include "compiler/support/ModelSource.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

namespace llmc {

namespace onnx {
class Model;
} // namespace onnx

struct GraphImportOptions {
  /// "NAME=2x128": sizes of an input that the file leaves open.
  std::vector<std::string> shapes;
  /// "NAME=FILE.pb": an input that is a constant, as a TensorProto.
  std::vector<std::string> constants;
};

/// Applies the options to a model that has been read.
llvm::Error specialize(onnx::Model &model, const GraphImportOptions &options);

/// Reads, analyzes and lowers a file to @graph.
llvm::Expected<ImportedModel> importOnnxGraph(llvm::StringRef path, mlir::MLIRContext &context,
                                              const GraphImportOptions &options);

/// What is known of one operator, for the table of all.
struct OnnxOperator {
  std::string domain, name;
  std::vector<int64_t> versions;
  bool folds = false, lowers = false;
};
/// Sorted by domain and name.
std::vector<OnnxOperator> onnxOperators();

} // namespace llmc

#endif // LLMC_FRONTENDS_ONNX_LOWER_IMPORTGRAPH_H
