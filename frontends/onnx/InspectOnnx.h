//===- InspectOnnx.h - what is in an ONNX file ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A listing for `llmc inspect`: the graph as it is in the file, and what shape
// inference and constant folding leave of it.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_INSPECTONNX_H
#define LLMC_FRONTENDS_ONNX_INSPECTONNX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct OnnxListing {
  struct ValueInfo {
    std::string name, type, shape;
  };
  struct TensorInfo {
    std::string name, type;
    std::vector<int64_t> shape;
    int file; ///< index into `files`; -1: neither raw nor external
    uint64_t offset, bytes;
  };
  struct Count {
    std::string name;
    uint64_t count;
  };
  int64_t irVersion = 0;
  std::string producer, graph;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<std::string> files;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<Count> operators; ///< in the file, functions inlined
  std::vector<Count> remaining; ///< after constant folding; empty where that fails
  uint64_t nodes = 0, remainingNodes = 0, functions = 0;
  std::vector<TensorInfo> initializers;
  /// Operators that are not supported, or why inference failed; empty where all is well.
  std::string problem;
};

llvm::Expected<OnnxListing> inspectOnnx(llvm::StringRef path);

} // namespace llmc

#endif // LLMC_FRONTENDS_ONNX_INSPECTONNX_H
