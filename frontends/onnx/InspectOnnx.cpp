//===- InspectOnnx.cpp - what is in an ONNX file --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/InspectOnnx.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/Analysis.h"
#include "frontends/onnx/ModelReader.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;

/// A text from the file, safe to print.
static std::string printable(StringRef text) {
  std::string quotes = quoted(text);
  return quotes.substr(1, quotes.size() - 2);
}

static OnnxListing::ValueInfo describe(const Value &value, const SymbolTable &symbols) {
  return {printable(value.name), elementTypeName(value.type).str(),
          value.shape ? shapeText(*value.shape, symbols) : "?"};
}

static std::vector<OnnxListing::Count> countOperators(llvm::ArrayRef<Node *> nodes) {
  std::map<std::string, uint64_t> counts;
  for (const Node *node : nodes)
    ++counts[(node->domain.empty() ? "" : printable(node->domain) + ".") + printable(node->op)];
  std::vector<OnnxListing::Count> sorted;
  for (const auto &[name, count] : counts)
    sorted.push_back({name, count});
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return std::tie(b.count, a.name) < std::tie(a.count, b.name);
  });
  return sorted;
}

llvm::Expected<OnnxListing> llmc::inspectOnnx(StringRef path) {
  llvm::Expected<std::unique_ptr<Model>> read = readModel(path);
  if (!read)
    return read.takeError();
  Model &model = **read;
  OnnxListing listing;
  listing.irVersion = model.irVersion;
  listing.producer = printable(model.producer);
  if (!model.producerVersion.empty())
    listing.producer += " " + printable(model.producerVersion);
  listing.graph = printable(model.graph->name);
  for (const auto &[domain, version] : model.opsets)
    listing.opsets.emplace_back(domain.empty() ? "ai.onnx" : printable(domain), version);
  for (const SourceFile &file : model.files)
    listing.files.push_back(file.path);
  for (const auto &[key, value] : model.metadata)
    listing.metadata.emplace_back(printable(key), printable(value));
  listing.functions = model.functions;
  listing.nodes = model.graph->nodes.size();
  listing.operators = countOperators(model.graph->nodes);
  for (const Value *value : model.graph->initializers) {
    const Tensor &t = *value->constant;
    listing.initializers.push_back({printable(value->name),
                                    elementTypeName(t.type).str(),
                                    {t.dims.begin(), t.dims.end()},
                                    t.file,
                                    t.offset,
                                    t.bytes.size()});
  }
  if (llvm::Error error = analyze(model)) {
    listing.problem = llvm::toString(std::move(error));
  } else {
    std::vector<Node *> live = liveNodes(*model.graph);
    listing.remainingNodes = live.size();
    listing.remaining = countOperators(live);
  }
  for (const Value *value : model.graph->inputs)
    listing.inputs.push_back(describe(*value, model.symbols));
  for (const Value *value : model.graph->outputs)
    listing.outputs.push_back(describe(*value, model.symbols));
  return std::move(listing);
}
