//===- ImportOnnx.cpp - ONNX file -> llm dialect --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ImportOnnx.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/ModelReader.h"
#include "frontends/onnx/raise/Branches.h"
#include "frontends/onnx/raise/Raiser.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {
/// What the configuration beside a model says.
struct Configuration {
  std::string architecture;
  int64_t context = 0;
};
} // namespace

/// A JSON object in a file; nothing where there is no such file, or no object in it.
static std::optional<llvm::json::Object> readObject(StringRef model, StringRef name) {
  llvm::SmallString<256> path(llvm::sys::path::parent_path(model));
  llvm::sys::path::append(path, name);
  auto bytes = llvm::MemoryBuffer::getFile(path);
  if (!bytes)
    return std::nullopt;
  Expected<llvm::json::Value> value = llvm::json::parse((*bytes)->getBuffer());
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  llvm::json::Object *object = value->getAsObject();
  return object ? std::optional(std::move(*object)) : std::nullopt;
}

static Configuration readConfiguration(StringRef model) {
  Configuration result;
  constexpr int64_t kLongest = int64_t(1) << 30;
  auto take = [&](std::optional<int64_t> context) {
    if (result.context == 0 && context && *context > 0 && *context <= kLongest)
      result.context = *context;
  };
  if (std::optional<llvm::json::Object> genai = readObject(model, "genai_config.json"))
    if (llvm::json::Object *section = genai->getObject("model")) {
      result.architecture = section->getString("type").value_or("").str();
      take(section->getInteger("context_length"));
    }
  if (std::optional<llvm::json::Object> config = readObject(model, "config.json")) {
    if (result.architecture.empty())
      result.architecture = config->getString("model_type").value_or("").str();
    take(config->getInteger("max_position_embeddings"));
  }
  return result;
}

/// The name of the model: of its file, or of its folder where all files are called model.onnx.
static std::string titleOf(StringRef path) {
  StringRef stem = llvm::sys::path::stem(path);
  StringRef folder = llvm::sys::path::filename(llvm::sys::path::parent_path(path));
  return (stem == "model" && !folder.empty() ? folder : stem).str();
}

static Expected<ImportedModel> import(std::unique_ptr<Model> model, mlir::MLIRContext &context) {
  ImportedModel result;
  std::string path = model->path().str();
  Configuration configuration = path.empty() ? Configuration() : readConfiguration(path);
  takeCacheBranches(*model);
  Expected<RaisedModel> raised = Raiser(*model, context).run();
  if (!raised)
    return raised.takeError();
  int64_t positions = configuration.context;
  if (raised->context && (positions == 0 || raised->context < positions))
    positions = raised->context;
  std::string title = titleOf(path);
  if (configuration.architecture.empty())
    configuration.architecture = "onnx";
  mlir::Builder b(&context);
  mlir::ModuleOp module = *raised->module;
  module->setAttr("llm.name", b.getStringAttr(title));
  module->setAttr("llm.architecture", b.getStringAttr(configuration.architecture));
  module->setAttr("llm.source", b.getStringAttr(llvm::sys::path::filename(path)));
  if (positions)
    module->setAttr("llm.context_length", b.getI64IntegerAttr(positions));
  if (raised->pooling) {
    module->setAttr("llm.pooling", b.getStringAttr(raised->pooling->kind));
    module->setAttr("llm.normalize", b.getBoolAttr(raised->pooling->normalize));
  }
  auto add = [&](StringRef name, std::string value) {
    result.properties.emplace_back(name.str(), std::move(value));
  };
  add("architecture", configuration.architecture);
  add("name", title);
  add("producer", (model->producer + " " + model->producerVersion).str());
  for (const auto &[domain, version] : model->opsets)
    add("opset " + (domain.empty() ? std::string("ai.onnx") : domain.str()),
        std::to_string(version));
  if (positions)
    add("context length", std::to_string(positions));
  add("layers", std::to_string(raised->layers));
  add("vocabulary", std::to_string(raised->vocabulary));
  result.module = std::move(raised->module);
  result.files = std::move(model->files);
  for (SourceFile &file : raised->extraFiles)
    result.files.push_back(std::move(file));
  return std::move(result);
}

Expected<ImportedModel> llmc::importOnnx(StringRef path, mlir::MLIRContext &context) {
  Expected<std::unique_ptr<Model>> model = readModel(path);
  if (!model)
    return model.takeError();
  return import(std::move(*model), context);
}

Expected<ImportedModel> llmc::importOnnx(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                         mlir::MLIRContext &context) {
  std::string name = bytes->getBufferIdentifier().str();
  Expected<std::unique_ptr<Model>> model = readModel(std::move(bytes), name);
  if (!model)
    return model.takeError();
  return import(std::move(*model), context);
}
