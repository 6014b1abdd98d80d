//===- Raiser.cpp - the walk over an ONNX graph ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/Analysis.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using MeaningKind = Meaning::Kind;

Raiser::Raiser(Model &model, mlir::MLIRContext &context)
    : model(model), context(context), b(&context), symbols(&context), weights(model, context) {}

bool Raiser::fail(Node &node, const Twine &why) {
  for (const Value *output : node.outputs) {
    Meaning &m = meanings[output];
    m = Meaning();
    m.why = (node.describe() + " " + why).str();
    // Reasons hold other reasons; the first says most.
    constexpr size_t kLongest = 500;
    if (m.why.size() > kLongest)
      m.why.resize(kLongest);
  }
  return true;
}

void Raiser::copyMeaning(Node &node, const Value *from) {
  Meaning copy = meanings[from];
  meanings[node.outputs[0]] = std::move(copy);
}

//===----------------------------------------------------------------------===//
// What the inputs are
//===----------------------------------------------------------------------===//

/// Operators that only change how integers are written down.
static bool isPlainMove(const Node &node) {
  return node.domain.empty() &&
         llvm::StringSwitch<bool>(node.op)
             .Cases({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand"},
                    true)
             .Default(false);
}

/// The nodes that use a value, moves passed over.
static std::vector<std::pair<Node *, const Value *>> finalUses(const Value *value) {
  std::vector<std::pair<Node *, const Value *>> uses;
  llvm::SmallVector<const Value *> work = {value};
  llvm::DenseSet<const Value *> seen;
  while (!work.empty()) {
    const Value *next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (Node *user : next->users) {
      if (isPlainMove(*user) && user->input(0) == next)
        work.push_back(user->outputs[0]);
      else
        uses.emplace_back(user, next);
    }
  }
  return uses;
}

/// All values that are computed from constants and shapes alone.
static llvm::DenseSet<const Value *> constantValues(const Graph &graph) {
  llvm::DenseSet<const Value *> constants(graph.initializers.begin(), graph.initializers.end());
  for (const Node *node : graph.nodes) {
    bool all = !node->inputs.empty() || node->op == "Constant";
    if (node->op == "Shape") {
      constants.insert(node->outputs.begin(), node->outputs.end());
      continue;
    }
    for (const Value *input : node->inputs)
      all &= !input || constants.contains(input);
    if (all)
      constants.insert(node->outputs.begin(), node->outputs.end());
  }
  return constants;
}

/// True for a table of cosines: all of position 0 are the same.
static bool isCosines(const Value &table) {
  if (!table.constant || !isFloat(table.constant->type) || table.constant->dims.size() != 2 ||
      table.constant->elements() == 0)
    return false;
  double first = table.constant->number(0);
  for (int64_t i = 1; i < table.constant->dims[1]; ++i)
    if (table.constant->number(i) != first)
      return false;
  return first != 0;
}

/// Rows of a table of constants. Shapes of what is computed are not known yet: then it has as many
/// as the largest of what it is computed from.
static std::optional<int64_t> rowsOfTable(const Value &table) {
  std::optional<int64_t> rows;
  llvm::SmallVector<const Value *> work = {&table};
  constexpr size_t kMostValues = 16;
  for (size_t i = 0; i < work.size() && i < kMostValues; ++i) {
    const Value &value = *work[i];
    if (value.shape) {
      if (value.rank() == 2 || i == 0)
        rows =
            std::max(rows, value.shape->empty() ? std::nullopt : value.shape->front().constant());
    } else if (value.producer) {
      for (const Value *input : value.producer->inputs)
        if (input)
          work.push_back(input);
    }
  }
  return rows;
}

/// True where the value ends as the index into a table of constants; `rows` is the table's, or -1
/// for a table of cosines.
static bool indexesTable(const Value *value, const llvm::DenseSet<const Value *> &constants,
                         std::optional<int64_t> &rows) {
  bool isTable = false;
  for (auto [node, used] : finalUses(value)) {
    bool gather = (node->is("Gather") && node->integer("axis", 0) == 0) ||
                  node->is("GatherBlockQuantized", "com.microsoft");
    if (!gather || node->input(1) != used || !constants.contains(node->input(0)))
      continue;
    isTable = true;
    if (isCosines(*node->inputs[0]))
      rows = -1;
    else if (rows != -1)
      rows = rowsOfTable(*node->inputs[0]);
  }
  return isTable;
}

/// True where the value is multiplied with constants, or says where a rotary embedding is.
static bool isPositional(const Value *value, const llvm::DenseSet<const Value *> &constants) {
  std::optional<int64_t> rows;
  if (indexesTable(value, constants, rows))
    return true;
  for (auto [node, used] : finalUses(value)) {
    if (node->op == "RotaryEmbedding" || node->op == "GroupQueryAttention")
      return true;
    if (node->op == "Mul" || node->op == "MatMul" || node->op == "Einsum")
      for (const Value *other : node->inputs)
        if (other && other != used && constants.contains(other) &&
            (!other->constant || isFloat(other->constant->type)))
          return true;
  }
  return false;
}

Error Raiser::findRoles() {
  llvm::DenseSet<const Value *> constants = constantValues(*model.graph);
  std::vector<Value *> integers;
  for (Value *input : model.graph->inputs) {
    if (input->kind != Value::Kind::Tensor || !input->shape)
      return unsupported(model.path(),
                         "input " + quoted(input->name) + " is no tensor of a known rank");
    (isFloat(input->type) ? roles.pasts : integers).push_back(input);
  }
  int64_t vocabularyRows = -1;
  for (const Value *output : model.graph->outputs)
    if (output->producer)
      for (const Value *input : output->producer->inputs)
        if (input && constants.contains(input) && input->shape && input->shape->size() == 2)
          vocabularyRows = (*input->shape)[1].constant().value_or(-1);
  // Tokens index the embedding; positions may index tables of cosines.
  int64_t best = -1;
  for (Value *input : integers) {
    std::optional<int64_t> rows;
    if (!indexesTable(input, constants, rows) || rows == -1)
      continue;
    int64_t score = rows.value_or(0) == vocabularyRows ? INT64_MAX : rows.value_or(0);
    if (score > best) {
      best = score;
      roles.ids = input;
    }
  }
  if (!roles.ids)
    return unsupported(model.path(),
                       "no input indexes an embedding table, so this is no language model");
  for (Value *input : integers) {
    if (input == roles.ids)
      continue;
    // A table of so few rows is one of segments: no text has so few positions.
    constexpr int64_t kMostTypes = 16;
    std::optional<int64_t> rows;
    bool isType = indexesTable(input, constants, rows) && rows && *rows >= 0 && *rows <= kMostTypes;
    (isType                           ? roles.types
     : isPositional(input, constants) ? roles.positions
                                      : roles.masks)
        .push_back(input);
  }
  return Error::success();
}

/// The axis along which a past grows.
static int64_t appendAxis(const Value *past) {
  for (const Node *user : past->users)
    if (user->is("Concat")) {
      int64_t axis = user->integer("axis", 0);
      return axis < 0 ? axis + past->rank() : axis;
    }
  return past->rank() - 2;
}

/// The step is one sequence of S rows after P positions: input shapes say so from here on.
Error Raiser::bindShapes() {
  Shape &ids = *roles.ids->shape;
  if (ids.empty() || ids.size() > 2)
    return unsupported(model.path(), "tokens " + quoted(roles.ids->name) + " have " +
                                         Twine(ids.size()) + " dimensions");
  if (ids.back().isConstant())
    return unsupported(model.path(), "the number of tokens of a step is fixed to " +
                                         ids.back().text(model.symbols) +
                                         "; export it with a dynamic sequence length");
  Dim rows = model.symbols.fresh("rows"), past = model.symbols.fresh("past");
  roles.sequenceSymbol = *rows.asSymbol();
  roles.pastSymbol = *past.asSymbol();
  sizes.rows = rows;
  sizes.time = roles.pasts.empty() ? rows : past + rows;
  Dim sequence = ids.back();
  std::optional<unsigned> batch = ids.size() == 2 ? ids[0].asSymbol() : std::nullopt;
  if (ids.size() == 2 && ids[0].isConstant() && ids[0] != Dim(1))
    return unsupported(model.path(), "the batch is fixed to " + ids[0].text(model.symbols) +
                                         " sequences; 1 is supported");
  auto isBatch = [&](const Dim &dim) { return batch && dim.asSymbol() == batch; };
  auto bindIds = [&](Shape &shape, const Dim &last) {
    for (size_t i = 0; i < shape.size(); ++i)
      if (i + 1 == shape.size())
        shape[i] = last;
      else if (!shape[i].isConstant())
        shape[i] = Dim(1);
  };
  bindIds(ids, rows);
  for (const std::vector<Value *> *inputs : {&roles.positions, &roles.types})
    for (Value *input : *inputs)
      bindIds(*input->shape, rows);
  for (Value *input : roles.masks) {
    Shape &shape = *input->shape;
    if (shape.size() >= 3 && !shape[shape.size() - 2].isConstant())
      shape[shape.size() - 2] = shape.size() == 4 ? rows : Dim(1);
    Dim last = !shape.empty() && shape.back() == sequence ? rows : sizes.time;
    if (shape.size() == 4) {
      shape[0] = Dim(1);
      shape.back() = sizes.time;
    } else if (!shape.empty()) {
      bindIds(shape, last);
    }
  }
  for (Value *input : roles.pasts) {
    Shape &shape = *input->shape;
    int64_t axis = appendAxis(input);
    for (size_t i = 0; i < shape.size(); ++i)
      if (int64_t(i) == axis)
        shape[i] = past;
      else if (isBatch(shape[i]) || (i == 0 && !shape[i].isConstant()))
        shape[i] = Dim(1);
  }
  return Error::success();
}

void Raiser::classify() {
  data.insert(roles.ids);
  data.insert(roles.pasts.begin(), roles.pasts.end());
  for (const Node *node : model.graph->nodes) {
    bool any = false;
    for (const Value *input : node->inputs)
      any |= isData(input);
    if (any)
      for (const Value *output : node->outputs)
        if (!output->constant && !output->contents)
          data.insert(output);
  }
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

bool Raiser::visitMove(Node &node) {
  bool isReshape = llvm::StringSwitch<bool>(node.op)
                       .Cases({"Reshape", "Flatten", "Squeeze", "Unsqueeze"}, true)
                       .Default(false);
  if ((!isReshape && node.op != "Transpose") || !node.domain.empty())
    return false;
  const Value *from = node.input(0), *to = node.output(0);
  Meaning m = meanings[from];
  if (m.kind == MeaningKind::Ids) {
    meanings[to] = m;
    return true;
  }
  if (m.kind == MeaningKind::None || m.kind == MeaningKind::Past)
    return false;
  if (m.layout && to->shape) {
    std::optional<Layout> layout;
    if (isReshape) {
      layout = reshaped(*m.layout, *to->shape, sizes);
    } else {
      std::vector<int64_t> perm(node.integers("perm"));
      if (perm.empty())
        for (int64_t i = from->rank(); i-- > 0;)
          perm.push_back(i);
      for (int64_t &axis : perm)
        axis += axis < 0 ? from->rank() : 0;
      if (perm.size() == m.layout->axes.size())
        layout = transposed(*m.layout, perm);
    }
    if (layout) {
      m.layout = std::move(layout);
      bool isOpen = m.kind == MeaningKind::Function && m.positional;
      if (m.kind == MeaningKind::Rows)
        m.source->views.push_back(to);
      meanings[to] = std::move(m);
      if (isOpen)
        tryRope(to);
      return true;
    }
  }
  if (m.kind == MeaningKind::Rows || m.kind == MeaningKind::Function)
    return visitGeneric(node);
  return fail(node, "changes the shape of " +
                        Twine(m.kind == MeaningKind::Cache ? "a KV cache" : "attention scores") +
                        " in an unknown way");
}

/// A function of the rows of one source, to be named later.
bool Raiser::visitGeneric(Node &node) {
  Meaning result;
  result.kind = MeaningKind::Function;
  Source *source = nullptr;
  bool isSame = true;
  for (const Value *input : node.inputs) {
    if (!input)
      continue;
    if (!isData(input)) {
      result.positional |= !input->constant && !input->contents;
      continue;
    }
    const Meaning &m = meanings[input];
    if (m.kind != MeaningKind::Rows && m.kind != MeaningKind::Function)
      return fail(node, "does not go with what it is given");
    isSame &= !source || source == m.source;
    Source *whole = m.source->whole ? m.source->whole : m.source;
    if (source && source != m.source && (source->whole ? source->whole : source) != whole)
      return fail(node, "joins different rows in a way that is not known");
    source = isSame ? m.source : whole;
    result.reduces |= m.reduces;
    result.mixes |= m.mixes;
    result.positional |= m.positional;
  }
  if (!source)
    return fail(node, "does not go with what it is given");
  result.source = source;
  result.reduces |=
      node.op.starts_with("Reduce") || node.op == "Softmax" || node.op == "LpNormalization";
  bool moves = llvm::StringSwitch<bool>(node.op)
                   .Cases({"Slice", "Split", "Concat", "Gather", "GatherElements", "MatMul", "Gemm",
                           "Einsum", "RotaryEmbedding", "ScatterND", "ScatterElements"},
                          true)
                   .Default(false);
  result.mixes |= moves;
  for (const Value *output : node.outputs) {
    Meaning m = result;
    // Laid out like an operand of the same shape, or like another view of the source.
    auto takeLayout = [&](const Value *like) {
      const Meaning &l = meanings[like];
      if (!m.layout && l.layout && like->shape && output->shape && *like->shape == *output->shape)
        m.layout = l.layout;
    };
    for (const Value *input : node.inputs)
      if (isData(input))
        takeLayout(input);
    if (!m.layout)
      for (const Value *view : source->views)
        takeLayout(view);
    meanings[output] = std::move(m);
    const Meaning &set = meanings[output];
    if (set.layout && set.positional)
      tryRope(output);
    else if (set.layout && set.reduces)
      tryNorm(output);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

void Raiser::visit(Node &node) {
  auto isFloatCast = [&] {
    return node.op == "Cast" &&
           (isFloat(node.outputs[0]->type) || meanings[node.input(0)].kind == MeaningKind::Ids);
  };
  if (node.inputs.empty() || node.outputs.empty())
    return void(fail(node, "has no inputs or outputs"));
  if (node.domain.empty() &&
      (node.op == "Identity" || node.op == "Dropout" || (isData(node.input(0)) && isFloatCast())))
    return copyMeaning(node, node.inputs[0]);
  // A value without a meaning makes none of what needs it; the reason stays the first one.
  for (const Value *input : node.inputs)
    if (isData(input) && meanings[input].kind == MeaningKind::None) {
      std::string why = meanings[input].why;
      for (const Value *output : node.outputs) {
        meanings[output] = Meaning();
        meanings[output].why = why;
      }
      return;
    }
  if (visitEmbed(node) || visitQuantized(node) || visitScores(node) || visitScoreArithmetic(node) ||
      visitMove(node) || visitAppend(node) || visitExpand(node) || visitSlice(node) ||
      visitLinear(node) || visitNorm(node) || visitFusedAttention(node) || visitGroupQuery(node) ||
      visitMultiHead(node) || visitSum(node) || visitProduct(node))
    return;
  visitGeneric(node);
}

Error Raiser::blame(const Value *value) {
  const Meaning &m = meanings[value];
  std::string why = m.why;
  if (why.empty() && value->producer)
    why = value->producer->describe() + " gives something that is not the rows of a language model";
  if (why.empty())
    why = "input " + quoted(value->name) + " is not the rows of a language model";
  return unsupported(model.path(), "cannot be raised: " + why);
}

Expected<RaisedModel> Raiser::run() {
  if (std::vector<UnsupportedOp> unknown = unsupportedOps(model); !unknown.empty())
    return unsupported(model.path(), unsupportedOpsText(unknown));
  if (Error error = findRoles())
    return std::move(error);
  if (Error error = bindShapes())
    return std::move(error);
  if (Error error = analyze(model))
    return std::move(error);
  classify();

  context.loadDialect<llm::LlmDialect, mlir::func::FuncDialect>();
  mlir::Location loc = b.getUnknownLoc();
  module = mlir::ModuleOp::create(loc);
  symbols.setInsertionPointToStart(module->getBody());
  auto ids = mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, b.getI32Type());
  function = mlir::func::FuncOp::create(symbols, loc, llm::kForwardName,
                                        b.getFunctionType({ids, ids}, {}));
  symbols.setInsertionPoint(function);
  b.setInsertionPointToStart(function.addEntryBlock());
  positions = function.getArgument(1);

  meanings[roles.ids].kind = MeaningKind::Ids;
  for (Value *past : roles.pasts) {
    meanings[past].kind = MeaningKind::Past;
    meanings[past].cache = -1;
  }
  for (Node *node : liveNodes(*model.graph)) {
    bool any = false;
    for (const Value *output : node->outputs)
      any |= isData(output);
    if (any)
      visit(*node);
  }

  // The logits are the rows among the outputs; with several, those of the most features. Where an
  // output is pooled, they are what it is pooled from.
  const Value *logits = nullptr;
  Source *best = nullptr;
  RaisedModel raised;
  for (const Value *output : model.graph->outputs)
    if (!raised.pooling && (raised.pooling = poolingOf(output))) {
      logits = output;
      best = meanings[output].source;
    }
  for (const Value *output : model.graph->outputs) {
    if (raised.pooling)
      break;
    MeaningKind kind = meanings[output].kind;
    if (kind == MeaningKind::Cache || kind == MeaningKind::Past)
      continue;
    Source *source = matrixOf(output);
    if (!logits || (source && (!best || source->features > best->features))) {
      logits = output;
      best = source;
    }
  }
  if (!logits)
    return unsupported(model.path(), "has no output with logits");
  if (!best)
    return blame(logits);
  mlir::Value result = emit(best);
  if (!result)
    return blame(logits);
  if (attentions == 0 && !roles.pasts.empty())
    return blame(logits);
  if (Error error = checkCaches())
    return std::move(error);
  raised.isEncoder = attentions > 0 && causalAttentions == 0;
  if (!raised.isEncoder && causalAttentions != attentions)
    return unsupported(model.path(), "attends to all positions in some layers and to earlier ones "
                                     "alone in others, which is not supported");
  if (raised.pooling && !raised.isEncoder)
    return unsupported(model.path(),
                       "pools the rows of a text, but its attention looks at earlier ones alone");
  mlir::func::ReturnOp::create(b, loc, result);
  function.setFunctionType(b.getFunctionType({ids, ids}, {result.getType()}));
  order();
  raised.vocabulary = raised.isEncoder ? vocabulary : best->features;
  raised.layers = attentions;
  raised.context = contextLimit == INT64_MAX ? 0 : contextLimit;
  nameAll(raised);
  raised.extraFiles = weights.takeFiles();
  raised.module = std::move(module);
  return std::move(raised);
}
