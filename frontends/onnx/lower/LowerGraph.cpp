//===- LowerGraph.cpp - an ONNX graph as a tensor program -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Llm.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/Analysis.h"
#include "frontends/onnx/lower/GraphLowering.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

/// Larger constants are weights of the artifact, not part of its code.
static constexpr uint64_t kLargestLiteral = 4096;

const OpTable<LowerFn> &onnx::lowerings() {
  static const OpTable<LowerFn> table = [] {
    OpTable<LowerFn> t;
    addElementwiseLowerings(t);
    addReductionLowerings(t);
    addMovementLowerings(t);
    addIndexingLowerings(t);
    addMatMulLowerings(t);
    addNormalizationLowerings(t);
    addAttentionLowerings(t);
    addQuantizationLowerings(t);
    addConvolutionLowerings(t);
    addLossLowerings(t);
    addRecurrentLowerings(t);
    addResizeLowerings(t);
    addControlLowerings(t);
    return t;
  }();
  return table;
}

std::optional<Dims> onnx::staticDims(llvm::ArrayRef<Dim> shape) {
  Dims dims;
  for (const Dim &dim : shape) {
    std::optional<int64_t> size = dim.constant();
    if (!size || *size < 0)
      return std::nullopt;
    dims.push_back(*size);
  }
  return dims;
}

//===----------------------------------------------------------------------===//
// LowerContext
//===----------------------------------------------------------------------===//

Array LowerContext::input(size_t i) const {
  Value *value = op.input(i);
  return value ? graph.arrayOf(*value, a) : Array();
}

Expected<SmallVector<Array>> LowerContext::inputs() const {
  SmallVector<Array> arrays;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!has(i))
      return error("has an input that is left out");
    arrays.push_back(input(i));
  }
  if (arrays.empty())
    return error("has no inputs");
  return arrays;
}

const Tensor *LowerContext::constant(size_t i) const {
  return has(i) && op.inputs[i]->constant ? &*op.inputs[i]->constant : nullptr;
}

Expected<std::vector<int64_t>> LowerContext::integers(size_t input) const {
  const Tensor *tensor = constant(input);
  if (!tensor)
    return needsConstant(input);
  return tensor->integers();
}

Expected<std::vector<int64_t>> LowerContext::integersOf(StringRef attribute, size_t input,
                                                        bool &isGiven) const {
  isGiven = true;
  if (const onnx::Attribute *given = op.find(attribute))
    return given->integers;
  if (has(input))
    return integers(input);
  isGiven = false;
  return std::vector<int64_t>();
}

Expected<double> LowerContext::number(size_t input) const {
  const Tensor *tensor = constant(input);
  if (!tensor)
    return needsConstant(input);
  if (tensor->elements() != 1)
    return error("has more than one number where one is expected");
  return tensor->number(0);
}

Expected<int64_t> LowerContext::axis(int64_t given, int64_t rank) const {
  if (given < -rank || given >= rank)
    return error("has the axis " + llvm::Twine(given) + " of a tensor with " + llvm::Twine(rank) +
                 " dimensions");
  return given < 0 ? given + rank : given;
}

Expected<Dims> LowerContext::axes(llvm::ArrayRef<int64_t> given, int64_t rank) const {
  Dims axes;
  for (int64_t value : given) {
    Expected<int64_t> checked = axis(value, rank);
    if (!checked)
      return checked.takeError();
    if (llvm::is_contained(axes, *checked))
      return error("names an axis twice");
    axes.push_back(*checked);
  }
  return axes;
}

std::optional<Dims> LowerContext::outputShape(size_t i) const {
  const onnx::Value *output = op.output(i);
  if (!output)
    return std::nullopt;
  std::optional<Dims> known = output->shape ? staticDims(*output->shape) : std::nullopt;
  return !known && output->declaredShape ? staticDims(*output->declaredShape) : known;
}

ElementType LowerContext::outputType(size_t i) const {
  const onnx::Value *output = op.output(i);
  if (!output)
    return ElementType::Undefined;
  return output->type == ElementType::Undefined ? output->declaredType : output->type;
}

void LowerContext::set(size_t output, Array value) {
  if (Value *to = op.output(output))
    graph.define(*to, value);
}

Error LowerContext::error(const llvm::Twine &why) const {
  return unsupported(graph.path(), op.describe() + " " + why);
}

Expected<SmallVector<Array>> LowerContext::lowerBody(Graph &body, llvm::ArrayRef<Array> inputs,
                                                     ArrayBuilder &into) {
  return graph.lowerBody(body, inputs, into);
}

/// An input of the graph that the value depends on; null where there is none.
static const onnx::Value *originOf(const onnx::Value *value) {
  llvm::SmallPtrSet<const onnx::Value *, 16> seen;
  SmallVector<const onnx::Value *> work{value};
  while (!work.empty()) {
    const onnx::Value *next = work.pop_back_val();
    if (!next || next->constant || !seen.insert(next).second)
      continue;
    if (!next->producer)
      return next;
    llvm::append_range(work, next->producer->inputs);
  }
  return nullptr;
}

Error LowerContext::needsConstant(size_t input) const {
  StringRef name = op.input(input) ? op.inputs[input]->name : "";
  if (const onnx::Value *origin = originOf(op.input(input)); origin && origin->name != name)
    return error("must know " + quoted(name) + " while compiling, which depends on the input " +
                 quoted(origin->name) + "; give that with --set " + origin->name + "=FILE.pb");
  return error("must know " + quoted(name) +
               " while compiling; where it is an input of the model, "
               "give it with --set " +
               name + "=FILE.pb");
}

//===----------------------------------------------------------------------===//
// GraphLowering
//===----------------------------------------------------------------------===//

Array GraphLowering::arrayOf(onnx::Value &value, ArrayBuilder &a) {
  Array &array = arrays[&value];
  if (!array && value.constant)
    return literal(*value.constant, a);
  return array;
}

/// Constants stand where they are used; canonicalization makes equal ones one.
Array GraphLowering::literal(const Tensor &tensor, ArrayBuilder &a) { return a.constant(tensor); }

void GraphLowering::define(onnx::Value &value, Array array) {
  value.type = array.type;
  // What was inferred may have left sizes open.
  value.shape.emplace(array.shape().begin(), array.shape().end());
  arrays[&value] = array;
}

/// All operators without a lowering, in one error.
static Error checkOperators(const Model &model, llvm::ArrayRef<Node *> nodes) {
  std::map<std::string, UnsupportedOp> missing;
  for (const Node *node : nodes) {
    if (lowerings().find(*node))
      continue;
    std::string name = (node->domain.empty() ? "" : node->domain.str() + ".") + node->op.str();
    UnsupportedOp &entry = missing[name];
    entry.name = name;
    if (++entry.count <= 3)
      entry.nodes.push_back(node->describe());
  }
  if (missing.empty())
    return Error::success();
  std::vector<UnsupportedOp> list;
  for (auto &[name, op] : missing)
    list.push_back(std::move(op));
  return unsupported(model.path(), unsupportedOpsText(list));
}

Error GraphLowering::addWeight(onnx::Value &value) {
  const Tensor &tensor = *value.constant;
  int64_t file = tensor.file;
  uint64_t offset = tensor.offset;
  if (!tensor.isMapped()) {
    StringRef bytes(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
    file = int64_t(model.files.size());
    offset = 0;
    model.files.push_back(
        {model.files.front().path, llvm::MemoryBuffer::getMemBufferCopy(bytes, value.name)});
  }
  std::string symbol = value.name.empty() ? "constant" : value.name.str();
  while (!symbols.insert(symbol).second)
    symbol += "_";
  llm::WeightOp::create(builder, builder.getUnknownLoc(), symbol,
                        ArrayRef<int64_t>(int64_t(tensor.bytes.size())), "raw", file,
                        int64_t(offset), builder.getArrayAttr({}));
  weights.push_back({&value, symbol});
  return Error::success();
}

Error GraphLowering::addArguments(llvm::ArrayRef<Node *> nodes) {
  ArrayBuilder a(builder, builder.getUnknownLoc());
  for (Value *input : graph.inputs) {
    if (input->constant)
      continue;
    if (input->kind != Value::Kind::Tensor || input->type == ElementType::String)
      return unsupported(path(), "input " + quoted(input->name) +
                                     " is no tensor of numbers; sequences, optionals and strings "
                                     "are not supported");
    std::optional<Dims> dims = input->shape ? staticDims(*input->shape) : std::nullopt;
    if (dims && elementCount(*dims).value_or(INT64_MAX) >= int64_t(1) << 40)
      return unsupported(path(), "input " + quoted(input->name) + " is too large");
    if (!dims)
      return unsupported(path(),
                         "input " + quoted(input->name) + " has the shape " +
                             (input->shape ? shapeText(*input->shape, model.symbols) : "?") +
                             "; give its sizes with --shape " + input->name + "=N,N,...");
    inputs.push_back({input, RankedTensorType::get(*dims, a.storedType(input->type))});
  }
  // Large constants that nodes or outputs read.
  llvm::SmallPtrSet<Value *, 16> seen;
  auto consider = [&](Value *value) -> Error {
    if (value && value->constant && value->constant->bytes.size() > kLargestLiteral &&
        elementBits(value->constant->type) >= 8 && seen.insert(value).second)
      return addWeight(*value);
    return Error::success();
  };
  for (Node *node : nodes)
    for (Value *value : node->inputs)
      if (Error error = consider(value))
        return error;
  for (Value *value : graph.outputs)
    if (Error error = consider(value))
      return error;
  return Error::success();
}

static DictionaryAttr portAttr(OpBuilder &b, StringRef name, ElementType type) {
  return b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(name)),
                              b.getNamedAttr("element", b.getStringAttr(elementTypeName(type)))});
}

Error GraphLowering::lowerNode(Node &node) {
  LowerFn lower = lowerings().find(node);
  std::string label = node.op.str();
  Location loc = NameLoc::get(builder.getStringAttr(label));
  ArrayBuilder a(builder, loc);
  LowerContext context(*this, node, a);
  for (Value *input : node.inputs)
    if (input && !input->constant && !arrays.count(input))
      return context.error("uses " + quoted(input->name) + ", which nothing computes");
  // More may be known of its inputs than before, so that it is a constant after all.
  if (Error error = analyzeNode(model, node))
    return error;
  if (llvm::all_of(node.outputs, [](Value *output) { return output->constant.has_value(); }))
    return Error::success();
  if (Error error = lower(context))
    return error;
  // No machine has more, and products of sizes stay within 64 bits.
  constexpr int64_t kMostElements = int64_t(1) << 40;
  for (const onnx::Value *output : node.outputs)
    if (auto it = arrays.find(output); it != arrays.end())
      if (elementCount(it->second.shape()).value_or(kMostElements) >= kMostElements)
        return context.error("makes a tensor that is too large");
  return Error::success();
}

Expected<SmallVector<Array>> GraphLowering::lowerBody(Graph &body, llvm::ArrayRef<Array> inputs,
                                                      ArrayBuilder &into) {
  OpBuilder::InsertionGuard guard(builder);
  builder.restoreInsertionPoint(into.builder().saveInsertionPoint());
  for (auto [value, array] : llvm::zip(body.inputs, inputs))
    define(*value, array);
  for (Node *node : body.nodes) {
    if (!lowerings().find(*node))
      return unsupported(path(), node->describe() + " is an operator that is not supported");
    if (Error error = lowerNode(*node))
      return std::move(error);
  }
  into.builder().restoreInsertionPoint(builder.saveInsertionPoint());
  SmallVector<Array> outputs;
  for (onnx::Value *output : body.outputs) {
    Array array = arrayOf(*output, into);
    if (!array)
      return unsupported(path(), "value " + quoted(output->name) + " is computed by nothing");
    outputs.push_back(array);
  }
  return outputs;
}

Expected<OwningOpRef<ModuleOp>> GraphLowering::run() {
  std::vector<Node *> nodes = liveNodes(graph);
  if (Error error = checkOperators(model, nodes))
    return error;
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  if (Error error = addArguments(nodes))
    return error;

  SmallVector<Type> types;
  SmallVector<mlir::Attribute> inputPorts, outputPorts;
  for (auto &[value, type] : inputs) {
    types.push_back(type);
    inputPorts.push_back(portAttr(builder, value->name, value->type));
  }
  ArrayBuilder a(builder, builder.getUnknownLoc());
  for (auto &[value, symbol] : weights)
    types.push_back(
        RankedTensorType::get(value->constant->dims, a.storedType(value->constant->type)));
  auto func = func::FuncOp::create(builder, builder.getUnknownLoc(), "graph",
                                   builder.getFunctionType(types, TypeRange()));
  Block *body = func.addEntryBlock();
  builder.setInsertionPointToStart(body);
  for (auto [i, input] : llvm::enumerate(inputs))
    arrays[input.first] = {body->getArgument(unsigned(i)), input.first->type};
  for (auto [i, weight] : llvm::enumerate(weights)) {
    unsigned at = unsigned(inputs.size() + i);
    arrays[weight.first] = {body->getArgument(at), weight.first->constant->type};
    func.setArgAttr(at, "llm.weight", FlatSymbolRefAttr::get(builder.getContext(), weight.second));
  }
  // Neither inputs nor weights may be written to.
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    func.setArgAttr(i, "bufferization.writable", builder.getBoolAttr(false));

  for (Node *node : nodes)
    if (Error error = lowerNode(*node))
      return error;

  SmallVector<mlir::Value> results;
  ArrayBuilder end(builder, builder.getUnknownLoc());
  for (Value *output : graph.outputs) {
    if (output->kind != Value::Kind::Tensor)
      return unsupported(path(), "output " + quoted(output->name) + " is no tensor");
    Array array = arrayOf(*output, end);
    if (!array && output->contents) // sizes, all of them known by now
      return unsupported(path(), "output " + quoted(output->name) + " depends on a size");
    if (!array)
      return unsupported(path(), "output " + quoted(output->name) + " is computed by nothing");
    results.push_back(array.value);
    outputPorts.push_back(portAttr(builder, output->name, array.type));
  }
  func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
  func.setFunctionType(builder.getFunctionType(types, TypeRange(ValueRange(results))));
  func->setAttr("llm.inputs", builder.getArrayAttr(inputPorts));
  func->setAttr("llm.outputs", builder.getArrayAttr(outputPorts));
  return module;
}

Expected<OwningOpRef<ModuleOp>> onnx::lowerGraph(Model &model, MLIRContext &context) {
  return GraphLowering(model, context).run();
}
