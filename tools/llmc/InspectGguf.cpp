//===- InspectGguf.cpp - what is in a GGUF file ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/InspectGguf.h"
#include "compiler/driver/Phases.h"
#include "frontends/common/Rope.h"
#include "frontends/gguf/ImportGguf.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Inspect.h"

using namespace llmc;
using namespace llmc::tool;

static llvm::Expected<Json> ropeReport(const std::string &path) {
  mlir::DialectRegistry registry;
  registerLlmcDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  llvm::Expected<ImportedModel> model = importGguf(path, context, {});
  if (!model)
    return model.takeError();
  if (!model->module)
    return makeError(path + ": has no tensors, so there is no rotary embedding to show");
  Json tables = Json::array();
  for (const RopeSummary &rope : summarizeRope(*model->module))
    tables.push_back({{"name", rope.name},
                      {"layout", rope.layout},
                      {"features", rope.features},
                      {"attention_scale", rope.attentionScale},
                      {"first_inverse_frequency", rope.firstInvFreq},
                      {"last_inverse_frequency", rope.lastInvFreq}});
  return Json{{"rope", tables}};
}

llvm::Expected<Json> llmc::tool::inspectGgufFile(const InspectOptions &options) {
  if (options.rope)
    return ropeReport(options.path);
  llvm::Expected<GgufListing> listing = inspectGguf(options.path, options.stats);
  if (!listing)
    return listing.takeError();
  Json metadata = Json::array(), tensors = Json::array();
  for (const GgufListing::Metadata &entry : listing->metadata)
    metadata.push_back({{"key", entry.key}, {"type", entry.type}, {"value", entry.value}});
  uint64_t bytes = 0;
  for (const GgufListing::TensorInfo &tensor : listing->tensors) {
    bytes += tensor.bytes;
    Json row = {{"name", tensor.name}, {"encoding", tensor.encoding}, {"shape", tensor.shape},
                {"file", tensor.file}, {"offset", tensor.offset},     {"bytes", tensor.bytes}};
    if (tensor.mean)
      row["mean"] = *tensor.mean;
    tensors.push_back(std::move(row));
  }
  return Json{
      {"format", "gguf"},      {"version", listing->version},     {"files", listing->files},
      {"tensor_bytes", bytes}, {"metadata", std::move(metadata)}, {"tensors", std::move(tensors)}};
}
