//===- ModelReader.cpp - ONNX file -> Graph -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ModelReader.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/TensorReader.h"
#include "frontends/onnx/Wire.h"
#include "llvm/Support/FileSystem.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using Bytes = ArrayRef<uint8_t>;

namespace {

// What a file may at most ask for; real models have a few ten thousand nodes.
constexpr size_t kMostNodes = size_t(1) << 20, kMostValues = size_t(1) << 22;
constexpr unsigned kDeepest = 24; ///< graphs in nodes, functions in functions

using Opsets = std::vector<std::pair<StringRef, int64_t>>;

/// The parts of a GraphProto or FunctionProto, not read yet.
struct Body {
  StringRef name, domain, overload;
  std::vector<Bytes> nodes, initializers, inputs, outputs, attributes;
  std::vector<StringRef> inputNames, outputNames;
  Opsets opsets;
  bool sparse = false;
};

/// Names of values, and what else a node is read with. Graphs in nodes see the names around them;
/// function bodies do not.
struct Scope {
  const Scope *parent = nullptr;
  llvm::StringMap<Value *> values;
  const Opsets *opsets = nullptr;
  std::string prefix;                                    ///< of node names in a function
  const llvm::StringMap<Attribute> *arguments = nullptr; ///< of the function, for ref_attr_name
  unsigned depth = 0;

  /// Nothing: the name is not known. Null: an input that the call of a function leaves out.
  std::optional<Value *> find(StringRef name) const {
    for (const Scope *s = this; s; s = s->parent)
      if (auto it = s->values.find(name); it != s->values.end())
        return it->second;
    return std::nullopt;
  }
};

class ModelReader {
public:
  explicit ModelReader(Model &model) : model(model), external(model.files) {}
  Error read();

private:
  Error fail(const Twine &why) { return corrupt(model.path(), why); }
  Error readBody(Bytes message, bool isFunction, Body &body);
  Error readOpset(const WireField &field, Opsets &opsets);
  Error readFunction(Bytes message);
  Error readGraph(Bytes message, Scope &scope, Graph &graph);
  Error readInput(Bytes message, Scope &scope, Graph &graph);
  Error readType(Bytes message, Value &value, unsigned depth);
  Error readShape(Bytes message, Value &value);
  Error readNode(Bytes message, Scope &scope, Graph &graph);
  Expected<Attribute> readAttribute(Bytes message, Scope &scope, bool &isPresent);
  Error inlineFunction(const Body &function, const Node &call, Scope &outer, Graph &graph);
  Error define(Scope &scope, Value *value);

  Model &model;
  ExternalFiles external;
  /// By domain, name and overload.
  llvm::StringMap<Body> functions;
  size_t values = 0;
};

StringRef canonicalDomain(StringRef domain) { return domain == "ai.onnx" ? "" : domain; }

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (canonicalDomain(domain) + Twine('\0') + name + Twine('\0') + overload).str();
}

} // namespace

Error ModelReader::readOpset(const WireField &field, Opsets &opsets) {
  WireReader reader(field.bytes);
  WireField f;
  StringRef domain;
  int64_t version = 1;
  while (reader.next(f)) {
    if (f.number == 1)
      domain = f.text();
    else if (f.number == 2)
      version = f.integer();
  }
  if (reader.failed() || version < 1)
    return fail("an opset import is damaged");
  opsets.emplace_back(canonicalDomain(domain), version);
  return Error::success();
}

Error ModelReader::readBody(Bytes message, bool isFunction, Body &body) {
  WireReader reader(message);
  WireField f;
  while (reader.next(f)) {
    if (f.type != WireField::Bytes)
      continue;
    if (isFunction) {
      switch (f.number) {
      case 1:
        body.name = f.text();
        break;
      case 4:
        body.inputNames.push_back(f.text());
        break;
      case 5:
        body.outputNames.push_back(f.text());
        break;
      case 7:
        body.nodes.push_back(f.bytes);
        break;
      case 9:
        if (Error error = readOpset(f, body.opsets))
          return error;
        break;
      case 10:
        body.domain = canonicalDomain(f.text());
        break;
      case 11:
        body.attributes.push_back(f.bytes);
        break;
      case 13:
        body.overload = f.text();
        break;
      }
      continue;
    }
    switch (f.number) {
    case 1:
      body.nodes.push_back(f.bytes);
      break;
    case 2:
      body.name = f.text();
      break;
    case 5:
      body.initializers.push_back(f.bytes);
      break;
    case 11:
      body.inputs.push_back(f.bytes);
      break;
    case 12:
      body.outputs.push_back(f.bytes);
      break;
    case 15:
      body.sparse = true;
      break;
    }
  }
  if (reader.failed())
    return fail(Twine(isFunction ? "function " : "graph ") + quoted(body.name) +
                " is damaged or truncated");
  return Error::success();
}

Error ModelReader::define(Scope &scope, Value *value) {
  if (++values > kMostValues)
    return unsupported(model.path(), "has more than " + Twine(kMostValues) + " values");
  if (value->name.empty())
    return Error::success();
  if (!scope.values.try_emplace(value->name, value).second)
    return fail("value " + quoted(value->name) + " is computed twice");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Error ModelReader::readShape(Bytes message, Value &value) {
  WireReader reader(message);
  WireField dim;
  Shape shape;
  while (reader.next(dim)) {
    if (dim.number != 1 || dim.type != WireField::Bytes)
      continue;
    constexpr size_t kMostDims = 32;
    if (shape.size() == kMostDims)
      return fail("value " + quoted(value.name) + " has more than 32 dimensions");
    WireReader parts(dim.bytes);
    WireField part;
    std::optional<Dim> size;
    while (parts.next(part)) {
      if (part.number == 1 && part.type == WireField::Varint) {
        if (part.integer() < 0)
          return fail("value " + quoted(value.name) + " has the dimension " +
                      Twine(part.integer()));
        size = Dim(part.integer());
      } else if (part.number == 2 && part.type == WireField::Bytes && !part.text().empty()) {
        size = model.symbols.parse(part.text());
      }
    }
    if (parts.failed())
      return fail("value " + quoted(value.name) + " has a damaged shape");
    shape.push_back(size ? *size : model.symbols.fresh("size"));
  }
  if (reader.failed())
    return fail("value " + quoted(value.name) + " has a damaged shape");
  value.shape = std::move(shape);
  return Error::success();
}

Error ModelReader::readType(Bytes message, Value &value, unsigned depth) {
  if (depth > 4)
    return fail("value " + quoted(value.name) + " has a type of types of types");
  WireReader reader(message);
  WireField f;
  while (reader.next(f)) {
    switch (f.number) {
    case 1:
    case 8:
      value.kind = f.number == 1 ? Value::Kind::Tensor : Value::Kind::SparseTensor;
      break;
    case 4:
      value.kind = Value::Kind::Sequence;
      continue;
    case 5:
      value.kind = Value::Kind::Map;
      continue;
    case 9:
      value.kind = Value::Kind::Optional;
      continue;
    default:
      continue;
    }
    WireReader tensor(f.bytes);
    WireField part;
    while (tensor.next(part)) {
      if (part.number == 1) {
        if (part.value >= kElementTypes)
          return fail("value " + quoted(value.name) + " has the element type " + Twine(part.value) +
                      ", which is not known");
        value.type = ElementType(part.value);
      } else if (part.number == 2) {
        if (Error error = readShape(part.bytes, value))
          return error;
      }
    }
    if (tensor.failed())
      return fail("value " + quoted(value.name) + " has a damaged type");
  }
  return reader.failed() ? fail("value " + quoted(value.name) + " has a damaged type")
                         : Error::success();
}

Error ModelReader::readInput(Bytes message, Scope &scope, Graph &graph) {
  std::optional<NamedField> input = readNamedField(message);
  if (!input)
    return fail("an input of the graph is damaged");
  // Old files list initializers among the inputs; those are constants.
  if (scope.values.contains(input->name))
    return Error::success();
  Value *value = model.newValue(input->name);
  if (Error error = readType(input->value.bytes, *value, 0))
    return error;
  graph.inputs.push_back(value);
  return define(scope, value);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Expected<Attribute> ModelReader::readAttribute(Bytes message, Scope &scope, bool &isPresent) {
  WireReader reader(message);
  WireField f;
  Attribute a;
  StringRef reference;
  uint64_t type = 0;
  isPresent = true;
  using Kind = Attribute::Kind;
  Kind seen = Kind::Undefined;
  std::optional<Bytes> graph;
  while (reader.next(f)) {
    bool isBytes = f.type == WireField::Bytes;
    switch (f.number) {
    case 1:
      a.name = f.text();
      break;
    case 2:
      a.number = f.number32();
      seen = Kind::Float;
      break;
    case 3:
      a.integer = f.integer();
      seen = Kind::Int;
      break;
    case 4:
      a.text = f.text();
      seen = Kind::String;
      break;
    case 5: {
      Expected<NamedTensor> tensor = readTensor(f.bytes, model.files, external);
      if (!tensor)
        return tensor.takeError();
      a.tensor = std::move(tensor->tensor);
      seen = Kind::Tensor;
      break;
    }
    case 6:
      graph = f.bytes;
      seen = Kind::Graph;
      break;
    case 7:
      for (size_t i = 0; isBytes && i + 4 <= f.bytes.size(); i += 4) {
        float value;
        std::memcpy(&value, f.bytes.data() + i, 4);
        a.numbers.push_back(value);
      }
      if (!isBytes)
        a.numbers.push_back(f.number32());
      seen = Kind::Floats;
      break;
    case 8:
      if (!appendIntegers(f, a.integers))
        return fail("attribute " + quoted(a.name) + " is damaged");
      seen = Kind::Ints;
      break;
    case 9:
      a.texts.push_back(f.text());
      seen = Kind::Strings;
      break;
    case 20:
      type = f.value;
      break;
    case 21:
      reference = f.text();
      break;
    }
  }
  if (reader.failed())
    return fail("attribute " + quoted(a.name) + " is damaged");
  if (type > uint64_t(Kind::TypeProtos))
    return fail("attribute " + quoted(a.name) + " has the type " + Twine(type) +
                ", which is not known");
  a.kind = type ? Kind(type) : seen; // files before IR version 2 do not say
  if (!reference.empty()) {
    auto it =
        scope.arguments ? scope.arguments->find(reference) : decltype(scope.arguments->end())();
    if (!scope.arguments || it == scope.arguments->end()) {
      isPresent = false; // an optional attribute that the call leaves out
      return std::move(a);
    }
    StringRef name = a.name;
    a = it->second;
    a.name = name;
    return std::move(a);
  }
  if (graph) {
    a.graph = model.newGraph();
    Scope inner;
    inner.parent = &scope;
    inner.opsets = scope.opsets;
    inner.prefix = scope.prefix;
    inner.arguments = scope.arguments;
    inner.depth = scope.depth + 1;
    if (Error error = readGraph(*graph, inner, *a.graph))
      return std::move(error);
  }
  return std::move(a);
}

Error ModelReader::readNode(Bytes message, Scope &scope, Graph &graph) {
  if (model.nodeCount() >= kMostNodes)
    return unsupported(model.path(), "has more than " + Twine(kMostNodes) +
                                         " nodes, counting those of functions at every call");
  WireReader reader(message);
  WireField f;
  Node node;
  StringRef name, overload;
  std::vector<StringRef> inputs, outputs;
  std::vector<Bytes> attributes;
  while (reader.next(f)) {
    if (f.type != WireField::Bytes)
      continue;
    switch (f.number) {
    case 1:
      inputs.push_back(f.text());
      break;
    case 2:
      outputs.push_back(f.text());
      break;
    case 3:
      name = f.text();
      break;
    case 4:
      node.op = f.text();
      break;
    case 5:
      attributes.push_back(f.bytes);
      break;
    case 7:
      node.domain = canonicalDomain(f.text());
      break;
    case 8:
      overload = f.text();
      break;
    }
  }
  if (!name.empty())
    node.name = (scope.prefix + name).str();
  if (reader.failed())
    return fail("a node of graph " + quoted(graph.name) + " is damaged");
  if (node.op.empty())
    return fail(node.describe() + " has no operator");
  for (const auto &[domain, version] : *scope.opsets)
    if (domain == node.domain)
      node.version = version;
  for (StringRef input : inputs) {
    std::optional<Value *> value = input.empty() ? nullptr : scope.find(input);
    if (!value)
      return fail(node.describe() + " uses " + quoted(input) +
                  ", which no earlier node computes and no input gives");
    node.inputs.push_back(*value);
  }
  for (StringRef output : outputs)
    node.outputs.push_back(model.newValue(output));
  for (Bytes attribute : attributes) {
    bool isPresent;
    Expected<Attribute> a = readAttribute(attribute, scope, isPresent);
    if (!a)
      return a.takeError();
    if (isPresent)
      node.attributes.push_back(std::move(*a));
  }
  auto function = functions.find(functionKey(node.domain, node.op, overload));
  if (function != functions.end()) {
    // The outputs of the call are the values that the body computes.
    if (Error error = inlineFunction(function->second, node, scope, graph))
      return error;
    return Error::success();
  }
  Node *kept = model.newNode();
  *kept = std::move(node);
  for (Value *input : kept->inputs)
    if (input)
      input->users.push_back(kept);
  for (auto [i, output] : llvm::enumerate(kept->outputs)) {
    output->producer = kept;
    output->index = unsigned(i);
    if (Error error = define(scope, output))
      return error;
  }
  graph.nodes.push_back(kept);
  return Error::success();
}

Error ModelReader::inlineFunction(const Body &function, const Node &call, Scope &outer,
                                  Graph &graph) {
  if (outer.depth >= kDeepest)
    return fail(call.describe() + " is too deep: functions may not call themselves");
  llvm::StringMap<Attribute> arguments;
  Scope scope;
  scope.opsets = function.opsets.empty() ? outer.opsets : &function.opsets;
  scope.prefix = (call.name.empty() ? function.name.str() : call.name) + "/";
  scope.depth = outer.depth + 1;
  for (Bytes attribute : function.attributes) { // defaults
    bool isPresent;
    Expected<Attribute> a = readAttribute(attribute, scope, isPresent);
    if (!a)
      return a.takeError();
    arguments[a->name] = std::move(*a);
  }
  for (const Attribute &attribute : call.attributes)
    arguments[attribute.name] = attribute;
  scope.arguments = &arguments;
  if (call.inputs.size() > function.inputNames.size() ||
      call.outputs.size() > function.outputNames.size())
    return fail(call.describe() + " has more inputs or outputs than its function");
  // An input that the call leaves out stays null: a node that uses it leaves it out, too.
  for (auto [i, name] : llvm::enumerate(function.inputNames))
    scope.values[name] = call.input(i);
  for (Bytes node : function.nodes)
    if (Error error = readNode(node, scope, graph))
      return error;
  for (auto [i, output] : llvm::enumerate(call.outputs)) {
    auto it = scope.values.find(function.outputNames[i]);
    if (it == scope.values.end() || !it->second)
      return fail(call.describe() + ": its function does not compute " +
                  quoted(function.outputNames[i]));
    if (output->name.empty())
      continue;
    if (!outer.values.try_emplace(output->name, it->second).second)
      return fail("value " + quoted(output->name) + " is computed twice");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Error ModelReader::readGraph(Bytes message, Scope &scope, Graph &graph) {
  if (scope.depth >= kDeepest)
    return fail("has graphs in graphs, more than " + Twine(kDeepest) + " deep");
  Body body;
  if (Error error = readBody(message, /*isFunction=*/false, body))
    return error;
  graph.name = body.name;
  if (body.sparse)
    return unsupported(model.path(), "graph " + quoted(graph.name) + " has sparse initializers");
  for (Bytes initializer : body.initializers) {
    Expected<NamedTensor> tensor = readTensor(initializer, model.files, external);
    if (!tensor)
      return tensor.takeError();
    Value *value = model.newValue(tensor->name);
    value->type = tensor->tensor.type;
    value->shape.emplace(tensor->tensor.dims.begin(), tensor->tensor.dims.end());
    value->constant = std::move(tensor->tensor);
    value->isInitializer = true;
    graph.initializers.push_back(value);
    if (Error error = define(scope, value))
      return error;
  }
  for (Bytes input : body.inputs)
    if (Error error = readInput(input, scope, graph))
      return error;
  for (Bytes node : body.nodes)
    if (Error error = readNode(node, scope, graph))
      return error;
  for (Bytes message : body.outputs) {
    std::optional<NamedField> output = readNamedField(message);
    if (!output)
      return fail("an output of graph " + quoted(graph.name) + " is damaged");
    Value *value = scope.find(output->name).value_or(nullptr);
    if (!value)
      return fail("graph " + quoted(graph.name) + " has the output " + quoted(output->name) +
                  ", which nothing computes");
    Value declared;
    if (Error error = readType(output->value.bytes, declared, 0))
      return error;
    value->declaredType = declared.type;
    value->declaredShape = std::move(declared.shape);
    graph.outputs.push_back(value);
  }
  return Error::success();
}

Error ModelReader::readFunction(Bytes message) {
  Body body;
  if (Error error = readBody(message, /*isFunction=*/true, body))
    return error;
  std::string key = functionKey(body.domain, body.name, body.overload);
  if (!functions.try_emplace(key, std::move(body)).second)
    return fail("function " + quoted(body.name) + " is defined twice");
  ++model.functions;
  return Error::success();
}

Error ModelReader::read() {
  const llvm::MemoryBuffer &buffer = *model.files.front().bytes;
  Bytes message(reinterpret_cast<const uint8_t *>(buffer.getBufferStart()), buffer.getBufferSize());
  WireReader reader(message);
  WireField f;
  std::optional<Bytes> graph;
  std::vector<Bytes> functionBodies;
  while (reader.next(f)) {
    bool isBytes = f.type == WireField::Bytes;
    if (f.number == 1 && f.type == WireField::Varint) {
      model.irVersion = f.integer();
    } else if (f.number == 2) {
      model.producer = f.text();
    } else if (f.number == 3) {
      model.producerVersion = f.text();
    } else if (f.number == 7 && isBytes) {
      graph = f.bytes;
    } else if (f.number == 8 && isBytes) {
      if (Error error = readOpset(f, model.opsets))
        return error;
    } else if (f.number == 14 && isBytes) {
      std::optional<NamedField> entry = readNamedField(f.bytes);
      if (!entry)
        return fail("an entry of the metadata is damaged");
      model.metadata.emplace_back(entry->name, entry->value.text());
    } else if (f.number == 25 && isBytes) {
      functionBodies.push_back(f.bytes);
    }
  }
  if (reader.failed())
    return fail("is no ONNX file, or damaged: byte " +
                Twine(uint64_t(reader.position() - message.data())) + " of " +
                Twine(message.size()) + " is in the middle of a field");
  if (!graph)
    return fail("is no ONNX file, or an empty one: it has no graph");
  for (Bytes function : functionBodies)
    if (Error error = readFunction(function))
      return error;
  Scope scope;
  scope.opsets = &model.opsets;
  model.graph = model.newGraph();
  return readGraph(*graph, scope, *model.graph);
}

Expected<std::unique_ptr<Model>> onnx::readModel(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                                 StringRef path) {
  auto model = std::make_unique<Model>();
  model->files.push_back({path.str(), std::move(bytes)});
  if (Error error = ModelReader(*model).read())
    return std::move(error);
  return std::move(model);
}

Expected<std::unique_ptr<Model>> onnx::readModel(StringRef path) {
  auto bytes =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return unreadable(path, bytes.getError().message());
  return readModel(std::move(*bytes), path);
}

bool onnx::isOnnxFile(StringRef path) {
  if (path.ends_with(".onnx"))
    return true;
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return false;
  }
  char bytes[8] = {};
  auto count = llvm::sys::fs::readNativeFile(*file, bytes);
  llvm::sys::fs::closeFile(*file);
  if (!count) {
    llvm::consumeError(count.takeError());
    return false;
  }
  return looksLikeOnnx({reinterpret_cast<const uint8_t *>(bytes), *count});
}

bool onnx::looksLikeOnnx(Bytes beginning) {
  // Field 1 (ir_version) as a small varint, then the tag of another field of ModelProto.
  if (beginning.size() < 3 || beginning[0] != 0x08 || beginning[1] == 0 || beginning[1] > 100)
    return false;
  switch (beginning[2] >> 3) {
  case 2:
  case 3:
  case 4:
  case 6:
  case 7:
  case 8:
    return (beginning[2] & 7) == 2;
  case 5:
    return (beginning[2] & 7) == 0;
  default: // a field number above 15 takes another byte
    return (beginning[2] & 0x87) == 0x82;
  }
}
