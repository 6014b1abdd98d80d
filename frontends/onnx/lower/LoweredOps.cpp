//===- LoweredOps.cpp - operators that only their lowering knows ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/ImportGraph.h"
#include "frontends/onnx/lower/Lower.h"
#include <map>

using namespace llmc;
using namespace llmc::onnx;

/// Nothing is known of the outputs until the node is lowered.
static llvm::Error inferNothing(InferContext &context) {
  for (size_t i = 0; i < context.outputCount(); ++i)
    context.set(i, ElementType::Undefined, std::nullopt);
  return llvm::Error::success();
}

void onnx::addLoweredOps(OpRegistry &registry) {
  lowerings().forEach([&](llvm::StringRef domain, llvm::StringRef op, int64_t since) {
    if (!registry.infer.find(domain, op, since))
      registry.infer.add(domain, op, since, inferNothing);
  });
}

std::vector<OnnxOperator> llmc::onnxOperators() {
  std::map<std::pair<std::string, std::string>, OnnxOperator> found;
  const OpRegistry &registry = opRegistry();
  auto entry = [&](llvm::StringRef domain, llvm::StringRef op, int64_t since) -> OnnxOperator & {
    OnnxOperator &row = found[{domain.str(), op.str()}];
    row.domain = domain.str();
    row.name = op.str();
    if (!llvm::is_contained(row.versions, since))
      row.versions.push_back(since);
    return row;
  };
  registry.infer.forEach(entry);
  registry.fold.forEach([&](llvm::StringRef domain, llvm::StringRef op, int64_t since) {
    entry(domain, op, since).folds = true;
  });
  lowerings().forEach([&](llvm::StringRef domain, llvm::StringRef op, int64_t since) {
    entry(domain, op, since).lowers = true;
  });
  std::vector<OnnxOperator> rows;
  for (auto &[name, row] : found) {
    llvm::sort(row.versions);
    rows.push_back(std::move(row));
  }
  return rows;
}
