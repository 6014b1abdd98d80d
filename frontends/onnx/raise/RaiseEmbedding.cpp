//===- RaiseEmbedding.cpp - tokens and positions --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Learned or computed positions, segments and whatever else is added to embedded
// tokens without looking at them is a function of the position alone. It is found
// by running it, and becomes one table.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"

using namespace llmc;
using namespace llmc::onnx;
using MeaningKind = Meaning::Kind;

/// A table that is computed rather than stored gets so many positions.
static constexpr int64_t kMostPositions = 8192;

bool Raiser::visitEmbed(Node &node) {
  bool isBlocks = node.is("GatherBlockQuantized", "com.microsoft");
  if (!node.is("Gather") && !isBlocks)
    return false;
  if (!isData(node.input(1)) || meanings[node.input(1)].kind != MeaningKind::Ids)
    return false;
  const Value *out = node.outputs[0];
  if (isData(node.input(0)) || !out->shape || out->shape->empty())
    return fail(node, "looks tokens up in something that is no constant table");
  std::optional<int64_t> features = out->shape->back().constant();
  WeightRef table;
  if (isBlocks) {
    if (node.integer("gather_axis", 0) != 0 || !features || !node.input(2) ||
        node.integer("quantize_axis", 1) != node.input(0)->rank() - 1)
      return fail(node, "is quantized along another axis than features");
    std::optional<int64_t> rows = (*node.inputs[0]->shape)[0].constant();
    table = weights.grouped(node.inputs[0], node.inputs[2], node.input(3), rows.value_or(0),
                            *features, node.integer("block_size", 128), node.integer("bits", 4));
  } else if (ElementType type = node.inputs[0]->type;
             type == ElementType::Int8 || type == ElementType::UInt8) {
    // What they stand for is computed after the look-up.
    Meaning m;
    m.kind = MeaningKind::TokenCodes;
    m.codes = node.integer("axis", 0) == 0 ? node.inputs[0] : nullptr;
    meanings[out] = std::move(m);
    return true;
  } else {
    table = weights.table(node.inputs[0]);
  }
  if (!features || table.columns != *features || node.integer("axis", 0) != 0)
    table = WeightRef();
  return makeEmbed(node, out, table);
}

bool Raiser::makeEmbed(Node &node, const Value *out, const WeightRef &table) {
  if (!table)
    return fail(node, "looks tokens up in a table that cannot be a weight");
  std::string why;
  mlir::FlatSymbolRefAttr symbol = weights.symbol(table, symbols, why);
  if (!symbol)
    return fail(node, why);
  vocabulary = table.rows;
  mlir::Value op =
      llm::EmbedOp::create(b, newSource(Source::Kind::Op, out, 0)->loc, rowsType(table.columns),
                           function.getArgument(0), symbol, b.getF32FloatAttr(1));
  opSource(out, op, rowMajorLayout(out->shape->size(), table.columns));
  return true;
}

/// What `value` is in a step, [sequence or 1, features]; nothing where it is anything else.
std::optional<std::vector<double>> Raiser::rowsOfStep(const Value *value, int64_t features,
                                                      int64_t sequence, int64_t past) {
  llvm::Expected<Tensor> tensor = Probe(model, roles, sequence, past).evaluate(*value);
  if (!tensor) {
    llvm::consumeError(tensor.takeError());
    return std::nullopt;
  }
  const Dims &dims = tensor->dims;
  if (dims.empty() || dims.back() != features)
    return std::nullopt;
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    if (dims[i] != 1 && (i + 2 != dims.size() || dims[i] != sequence))
      return std::nullopt;
  return tensor->doubles();
}

/// [positions, features] for as many positions as there are, or one row for all of them.
std::optional<std::vector<double>> Raiser::rowsByPosition(const Value *value, int64_t features) {
  constexpr int64_t kFew = 5;
  std::optional<std::vector<double>> few = rowsOfStep(value, features, kFew, 0);
  if (!few)
    return std::nullopt;
  size_t n = size_t(features);
  auto row = [&](const std::vector<double> &rows, int64_t i) {
    return llvm::ArrayRef(rows).slice(rows.size() == n ? 0 : size_t(i) * n, n);
  };
  // The largest step for which there are rows.
  std::vector<double> rows = *few;
  int64_t known = kFew, unknown = kMostPositions + 1;
  for (int64_t next = 2 * kFew; rows.size() != n && known + 1 < unknown;) {
    int64_t size = std::min(next, (known + unknown) / 2);
    std::optional<std::vector<double>> more = rowsOfStep(value, features, size, 0);
    if (more) {
      rows = std::move(*more);
      known = size;
      next = 2 * size;
    } else {
      unknown = size;
      next = kMostPositions + 1;
    }
  }
  // Rows depend on nothing but their position.
  for (int64_t i = 0; i < kFew; ++i)
    if (row(*few, i) != row(rows, i))
      return std::nullopt;
  if (!roles.pasts.empty())
    for (int64_t past : {int64_t(3), int64_t(7), known - 1}) {
      std::optional<std::vector<double>> later = rowsOfStep(value, features, 1, past);
      if (!later || (past < known && row(*later, 0) != row(rows, past)))
        return std::nullopt;
    }
  return rows;
}

/// rows + added, where the first are embedded tokens and the second does not depend on tokens.
bool Raiser::visitShift(Node &node, const Value *rows, const Value *added) {
  const Meaning m = meanings[rows];
  Source *source = m.kind == MeaningKind::Rows ? m.source : nullptr;
  if (!source || !m.layout || !m.layout->isRowMajor() || !added || !isFloat(added->type) ||
      added->rank() > rows->rank())
    return false;
  bool isEmbedded = source->kind == Source::Kind::Shifted ||
                    (source->op && source->op.getDefiningOp<llm::EmbedOp>());
  if (!isEmbedded || (added->shape && added->shape->back() != Dim(source->features)))
    return false;
  std::optional<std::vector<double>> shift = rowsByPosition(added, source->features);
  if (!shift)
    return false;
  Source *next = newSource(Source::Kind::Shifted, node.outputs[0], source->features);
  next->layout = *m.layout;
  next->input = source;
  if (source->kind == Source::Kind::Shifted) {
    next->input = source->input;
    std::vector<double> &longer = shift->size() < source->shift.size() ? source->shift : *shift;
    std::vector<double> &shorter = shift->size() < source->shift.size() ? *shift : source->shift;
    // Either one row for all, or of as many positions as both have.
    size_t n = size_t(source->features);
    std::vector<double> sum(shorter.size() == n ? longer.size() : shorter.size());
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] = longer[i] + shorter[shorter.size() == n ? i % n : i];
    shift = std::move(sum);
  }
  next->shift = std::move(*shift);
  setRows(node.outputs[0], next, *m.layout);
  return true;
}

mlir::Value Raiser::emitShifted(Source *s) {
  mlir::Value tokens = emit(s->input);
  int64_t rows = int64_t(s->shift.size()) / s->features;
  std::string why = "adds the same row to all tokens, but no positions";
  mlir::FlatSymbolRefAttr table;
  if (rows > 1)
    table =
        weights.symbol(weights.computed("positions", rows, s->features, s->shift), symbols, why);
  if (!tokens || !table) {
    meanings[s->root].why =
        (s->root->producer ? s->root->producer->describe() + " " : std::string()) + why;
    return {};
  }
  contextLimit = std::min(contextLimit, rows);
  mlir::Value added = llm::EmbedOp::create(b, s->loc, rowsType(s->features), positions, table,
                                           b.getF32FloatAttr(1));
  return llm::AddOp::create(b, s->loc, tokens.getType(), tokens, added, b.getF32FloatAttr(1));
}
