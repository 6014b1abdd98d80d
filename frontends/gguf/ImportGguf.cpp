//===- ImportGguf.cpp - GGUF file -> llm dialect --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/ImportGguf.h"
#include "frontends/common/ImportError.h"
#include "frontends/gguf/MetadataReader.h"
#include "frontends/gguf/ModelBuilder.h"
#include "frontends/gguf/Tokenizer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace llmc::gguf;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

using Properties = std::vector<std::pair<std::string, std::string>>;

/// "4", or the values of all layers where they differ.
static std::string perLayerText(const Hyperparameters &h, uint64_t LayerParameters::*member) {
  std::vector<std::string> values;
  bool equal = true;
  for (const LayerParameters &layer : h.layers) {
    values.push_back(std::to_string(layer.*member));
    equal &= layer.*member == h.layers.front().*member;
  }
  return equal ? values.front() : llvm::join(values, ",");
}

static void describe(const Hyperparameters &h, const BuiltModel &model, Properties &properties) {
  auto add = [&](StringRef name, const Twine &value) {
    properties.emplace_back(name.str(), value.str());
  };
  add("context length", Twine(h.contextLength));
  add("layers", Twine(h.layers.size()));
  add("width", Twine(h.width));
  add("heads", perLayerText(h, &LayerParameters::heads));
  add("kv heads", perLayerText(h, &LayerParameters::kvHeads));
  add("head dim", Twine(h.headDim));
  add("mlp width", perLayerText(h, &LayerParameters::mlpWidth));
  add("windows", perLayerText(h, &LayerParameters::window));
  add("vocabulary", Twine(model.vocabulary));
  add("rope scaling", h.ropeNote);
  if (!model.unusedTensors.empty())
    add("unused tensors", llvm::join(model.unusedTensors, ","));
}

static Error importTensors(const GgufSet &set, mlir::MLIRContext &context,
                           const GgufImportOptions &options, ImportedModel &result) {
  StringRef path = set.primary().path();
  MetadataReader keys(set.primary(), "");
  std::string name = keys.text("general.architecture", "");
  std::string title = keys.text("general.name", llvm::sys::path::stem(path));
  if (Error error = keys.takeError())
    return error;
  if (name.empty())
    return corrupt(path, "metadata 'general.architecture' is missing");
  const Architecture *architecture = findArchitecture(name);
  if (!architecture)
    return unsupported(
        path, "architecture " + quoted(name) + " is unsupported; supported: " +
                  llvm::join(llvm::map_range(architectures(),
                                             [](const Architecture &a) { return a.name.str(); }),
                             ", "));
  Expected<Hyperparameters> h = readHyperparameters(set, *architecture, options.context);
  if (!h)
    return h.takeError();
  Expected<BuiltModel> model = buildModel(set, *architecture, *h, context);
  if (!model)
    return model.takeError();
  size_t tokens = result.tokenizer.tokens.size();
  if (result.tokenizer.kind != TokenizerData::Kind::None && tokens != model->vocabulary)
    return corrupt(path, "the tokenizer has " + Twine(tokens) + " tokens, token_embd.weight has " +
                             Twine(model->vocabulary) + " rows");

  mlir::Builder b(&context);
  mlir::ModuleOp module = *model->module;
  module->setAttr("llm.name", b.getStringAttr(title));
  module->setAttr("llm.architecture", b.getStringAttr(name));
  module->setAttr("llm.source", b.getStringAttr(llvm::sys::path::filename(path)));
  module->setAttr("llm.context_length", b.getI64IntegerAttr(int64_t(h->contextLength)));
  result.properties.emplace_back("architecture", name);
  result.properties.emplace_back("name", title);
  describe(*h, *model, result.properties);
  result.module = std::move(model->module);
  return Error::success();
}

static Expected<ImportedModel> import(GgufSet set, mlir::MLIRContext &context,
                                      const GgufImportOptions &options) {
  ImportedModel result;
  Expected<TokenizerData> tokenizer = readTokenizer(set.primary(), options);
  if (!tokenizer)
    return tokenizer.takeError();
  result.tokenizer = std::move(*tokenizer);
  MetadataReader keys(set.primary(), "");
  result.chatTemplate = keys.text("tokenizer.chat_template", "");
  if (Error error = keys.takeError())
    return std::move(error);
  if (set.tensorCount() != 0)
    if (Error error = importTensors(set, context, options, result))
      return std::move(error);
  result.files = set.takeFiles();
  return std::move(result);
}

Expected<ImportedModel> llmc::importGguf(StringRef path, mlir::MLIRContext &context,
                                         const GgufImportOptions &options) {
  Expected<GgufSet> set = GgufSet::open(path);
  if (!set)
    return set.takeError();
  return import(std::move(*set), context, options);
}

Expected<ImportedModel> llmc::importGguf(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                         mlir::MLIRContext &context,
                                         const GgufImportOptions &options) {
  Expected<GgufFile> file = GgufFile::parse(std::move(bytes));
  if (!file)
    return file.takeError();
  return import(GgufSet::of(std::move(*file)), context, options);
}
