//===- InspectOnnx.cpp - what is in an ONNX file --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/InspectOnnx.h"
#include "tools/llmc/Inspect.h"

using namespace llmc;
using namespace llmc::tool;

static Json counts(const std::vector<OnnxListing::Count> &operators) {
  Json list = Json::array();
  for (const OnnxListing::Count &op : operators)
    list.push_back({{"operator", op.name}, {"count", op.count}});
  return list;
}

static Json values(const std::vector<OnnxListing::ValueInfo> &values) {
  Json list = Json::array();
  for (const OnnxListing::ValueInfo &value : values)
    list.push_back({{"name", value.name}, {"type", value.type}, {"shape", value.shape}});
  return list;
}

llvm::Expected<Json> llmc::tool::inspectOnnxFile(const InspectOptions &options) {
  llvm::Expected<OnnxListing> listing = inspectOnnx(options.path);
  if (!listing)
    return listing.takeError();
  Json opsets = Json::array(), metadata = Json::array(), initializers = Json::array();
  for (const auto &[domain, version] : listing->opsets)
    opsets.push_back({{"domain", domain}, {"version", version}});
  for (const auto &[key, value] : listing->metadata)
    metadata.push_back({{"key", key}, {"value", value}});
  uint64_t bytes = 0;
  for (const OnnxListing::TensorInfo &tensor : listing->initializers) {
    bytes += tensor.bytes;
    Json row = {{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}};
    if (tensor.file >= 0) {
      row["file"] = tensor.file;
      row["offset"] = tensor.offset;
    }
    row["bytes"] = tensor.bytes;
    initializers.push_back(std::move(row));
  }
  Json report = {{"format", "onnx"},
                 {"ir_version", listing->irVersion},
                 {"producer", listing->producer},
                 {"graph", listing->graph},
                 {"opsets", std::move(opsets)},
                 {"files", listing->files},
                 {"nodes", listing->nodes},
                 {"functions", listing->functions},
                 {"tensor_bytes", bytes},
                 {"metadata", std::move(metadata)},
                 {"inputs", values(listing->inputs)},
                 {"outputs", values(listing->outputs)},
                 {"operators", counts(listing->operators)}};
  if (listing->problem.empty()) {
    report["nodes_after_folding"] = listing->remainingNodes;
    report["operators_after_folding"] = counts(listing->remaining);
  } else {
    report["problem"] = listing->problem;
  }
  report["initializers"] = std::move(initializers);
  return report;
}
