//===- ImportGraph.cpp - ONNX file -> tensor program ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/ImportGraph.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/Analysis.h"
#include "frontends/onnx/ModelReader.h"
#include "frontends/onnx/TensorReader.h"
#include "frontends/onnx/lower/Lower.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static Expected<Value *> findInput(Model &model, StringRef option, StringRef text, StringRef name) {
  if (text.find('=') == StringRef::npos)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   option + " " + text + ": NAME=... is expected");
  std::string known;
  for (Value *input : model.graph->inputs) {
    if (input->name == name)
      return input;
    known += (known.empty() ? "" : ", ") + quoted(input->name);
  }
  return unsupported(model.path(), "has no input " + quoted(name) + " for " + option +
                                       "; its inputs are " + known);
}

static Error setShape(Model &model, StringRef text) {
  auto [name, sizes] = text.rsplit('=');
  Expected<Value *> input = findInput(model, "--shape", text, name);
  if (!input)
    return input.takeError();
  Shape shape;
  for (StringRef rest = sizes; !rest.empty();) {
    StringRef size;
    std::tie(size, rest) = rest.split('x');
    int64_t number;
    if (size.getAsInteger(10, number) || number < 0)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "--shape " + text + ": sizes such as 1x128 are expected");
    shape.push_back(number);
  }
  std::optional<Shape> &known = (*input)->shape;
  bool fits = !known || known->size() == shape.size();
  for (size_t i = 0; fits && known && i < shape.size(); ++i)
    fits = !(*known)[i].isConstant() || (*known)[i] == shape[i];
  if (!fits)
    return unsupported(model.path(), "input " + quoted(name) + " has the shape " +
                                         shapeText(*known, model.symbols) + ", not " + sizes);
  known = std::move(shape);
  return Error::success();
}

static Error setConstant(Model &model, StringRef text) {
  auto [name, path] = text.split('=');
  Expected<Value *> input = findInput(model, "--set", text, name);
  if (!input)
    return input.takeError();
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer)
    return unreadable(path, buffer.getError().message());
  std::vector<SourceFile> files;
  files.push_back({path.str(), std::move(*buffer)});
  ExternalFiles external(files);
  const llvm::MemoryBuffer &bytes = *files.front().bytes;
  Expected<NamedTensor> tensor =
      readTensor({reinterpret_cast<const uint8_t *>(bytes.getBufferStart()), bytes.getBufferSize()},
                 files, external);
  if (!tensor)
    return tensor.takeError();
  Value &value = **input;
  Tensor &given = tensor->tensor;
  bool fits = given.type == value.type;
  if (value.shape)
    fits &= value.shape->size() == given.dims.size();
  for (size_t i = 0; fits && value.shape && i < given.dims.size(); ++i)
    fits = !(*value.shape)[i].isConstant() || (*value.shape)[i] == given.dims[i];
  if (!fits || given.strings)
    return unsupported(path, "is no tensor of the type and shape of input " + quoted(name));
  // The file goes away; the tensor stays.
  std::vector<uint8_t> copy(given.bytes.begin(), given.bytes.end());
  value.shape.emplace(given.dims.begin(), given.dims.end());
  value.constant = Tensor::ofBytes(given.type, given.dims, std::move(copy));
  llvm::erase(model.graph->inputs, &value);
  return Error::success();
}

Error llmc::specialize(onnx::Model &model, const GraphImportOptions &options) {
  for (StringRef text : options.shapes)
    if (Error error = setShape(model, text))
      return error;
  for (StringRef text : options.constants)
    if (Error error = setConstant(model, text))
      return error;
  return Error::success();
}

Expected<ImportedModel> llmc::importOnnxGraph(StringRef path, mlir::MLIRContext &context,
                                              const GraphImportOptions &options) {
  auto model = readModel(path);
  if (!model)
    return model.takeError();
  if (Error error = specialize(**model, options))
    return std::move(error);
  if (Error error = analyze(**model))
    return std::move(error);
  auto module = lowerGraph(**model, context);
  if (!module)
    return module.takeError();
  ImportedModel imported;
  imported.module = std::move(*module);
  imported.files = std::move((*model)->files);
  return imported;
}
