//===- RaiseAttention.cpp - KV caches, scores, fused attention ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/ImportError.h"
#include "frontends/onnx/raise/Raiser.h"
#include "frontends/onnx/raise/RotaryFit.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Twine;
using MeaningKind = Meaning::Kind;
using FactorKind = Factor::Kind;

Meaning onnx::presentCache(int cache, int64_t heads, int64_t dim) {
  Meaning m;
  m.kind = MeaningKind::Cache;
  m.cache = cache;
  m.layout = Layout();
  m.layout->axes.resize(4);
  m.layout->axes[1] = {{FactorKind::Feature, heads, dim}};
  m.layout->axes[2] = {{FactorKind::Time, 0, 0}};
  m.layout->axes[3] = {{FactorKind::Feature, dim, 1}};
  return m;
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

mlir::FlatSymbolRefAttr Raiser::kvSymbol(int64_t heads, int64_t headDim, int64_t window) {
  std::string name = "kv." + std::to_string(attentions++);
  llm::KvOp::create(symbols, b.getUnknownLoc(), name, heads, headDim, "f16", window,
                    mlir::IntegerAttr(), mlir::IntegerAttr(), mlir::IntegerAttr());
  return mlir::FlatSymbolRefAttr::get(&context, name);
}

/// The same table, but for what finding it from cosines and sines loses.
static bool isSameTable(const RopeTable &a, const RopeTable &b) {
  constexpr float kLost = 1e-5f;
  if (a.kind != b.kind || a.invFreq.size() != b.invFreq.size() ||
      std::fabs(a.mscale - b.mscale) > kLost)
    return false;
  for (size_t i = 0; i < a.invFreq.size(); ++i)
    if (std::fabs(a.invFreq[i] - b.invFreq[i]) > kLost * std::fabs(a.invFreq[i]))
      return false;
  return true;
}

mlir::FlatSymbolRefAttr Raiser::ropeSymbol(const RopeTable &table) {
  for (const auto &[known, symbol] : ropeTables)
    if (isSameTable(known, table))
      return symbol;
  std::string name = "rope." + std::to_string(ropeTables.size());
  llm::RopeTableOp::create(symbols, mlir::NameLoc::get(b.getStringAttr(name)), name, table.kind,
                           table.invFreq, llvm::APFloat(table.mscale));
  ropeTables.emplace_back(table, mlir::FlatSymbolRefAttr::get(&context, name));
  return ropeTables.back().second;
}

Source *Raiser::applyRope(Source *source, const RopeTable &table, int64_t heads, const Value *root,
                          const Layout &layout) {
  mlir::Value input = emit(source);
  if (!input)
    return nullptr;
  mlir::Location loc = newSource(Source::Kind::Op, root, 0)->loc;
  mlir::Value op = llm::RopeOp::create(b, loc, input.getType(), input, positions, ropeSymbol(table),
                                       b.getI64IntegerAttr(heads));
  return opSource(root, op, layout);
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

static Layout withTime(Layout layout) {
  for (auto &axis : layout.axes)
    for (Factor &f : axis)
      if (f.kind == FactorKind::Row)
        f.kind = FactorKind::Time;
  return layout;
}

/// Concat(past, rows) along the axis of rows.
bool Raiser::visitAppend(Node &node) {
  if (!node.is("Concat"))
    return false;
  const Value *past = nullptr, *rows = nullptr;
  for (const Value *input : node.inputs) {
    if (isData(input) && meanings[input].kind == MeaningKind::Past)
      past = input;
    else
      rows = input;
  }
  if (!past)
    return visitGeneric(node);
  if (node.inputs.size() != 2 || node.inputs[0] != past || !rows || !isData(rows))
    return fail(node, "appends to a past in an unknown way");
  Source *source = rowsOf(rows);
  const Meaning m = meanings[rows];
  int64_t axis = node.integer("axis", 0);
  axis += axis < 0 ? past->rank() : 0;
  if (!source || !m.layout || axis < 0 || size_t(axis) >= m.layout->axes.size())
    return fail(node, "appends rows that are not understood: " + Twine(m.why));
  const auto &factors = m.layout->axes[size_t(axis)];
  if (factors.size() != 1 || factors[0].kind != FactorKind::Row)
    return fail(node, "appends along another axis than that of rows");
  if (appended.contains(past))
    return fail(node, "appends to a past a second time");
  appended[past] = node.outputs[0];
  caches.push_back({past, source, 0, 0});
  Meaning cache;
  cache.kind = MeaningKind::Cache;
  cache.cache = int(caches.size()) - 1;
  cache.layout = withTime(*m.layout);
  meanings[node.outputs[0]] = std::move(cache);
  return true;
}

/// Keys and values that were kept side by side are taken apart: each part becomes a cache of its
/// own.
bool Raiser::visitCacheParts(Node &node) {
  const Value *x = node.input(0);
  const Meaning m = meanings[x];
  const Cache whole = caches[size_t(m.cache)];
  auto refuse = [&] { return fail(node, "takes a KV cache apart in an unknown way"); };
  if (!m.layout || !x->shape || !whole.rows || m.factor != 1)
    return refuse();
  auto constants = [&](size_t input) -> std::optional<std::vector<int64_t>> {
    const Value *value = node.input(input);
    return value && value->constant ? std::optional(value->constant->integers()) : std::nullopt;
  };
  std::optional<int64_t> axis, begin = 0;
  if (node.op == "Split") {
    axis = node.integer("axis", 0);
  } else {
    auto starts = constants(1), axes = constants(3);
    if (!starts || !axes || starts->size() != 1 || axes->size() != 1 ||
        (node.input(4) && constants(4) != std::vector<int64_t>{1}))
      return refuse();
    axis = (*axes)[0];
    begin = (*starts)[0];
  }
  *axis += *axis < 0 ? x->rank() : 0;
  Layout layout = m.layout->normalized();
  if (*axis < 0 || size_t(*axis) >= layout.axes.size() || layout.axes[size_t(*axis)].size() != 1)
    return refuse();
  const Factor factor = layout.axes[size_t(*axis)][0];
  if (factor.kind != FactorKind::Feature || factor.size * factor.stride != whole.rows->features ||
      whole.rows->kind != Source::Kind::Linear)
    return refuse();
  if (*begin < 0)
    *begin += factor.size;
  for (const Value *out : node.outputs) {
    std::optional<int64_t> size =
        out->shape ? (*out->shape)[size_t(*axis)].constant() : std::nullopt;
    if (!size || *begin < 0 || *size <= 0 || *begin + *size > factor.size)
      return refuse();
    Meaning part = m;
    part.layout = layout;
    part.layout->axes[size_t(*axis)][0].size = *size;
    part.layout = part.layout->normalized();
    Source *rows = sliceOf(whole.rows, *begin * factor.stride, *size * factor.stride, out,
                           rowMajorLayout(x->shape->size(), *size * factor.stride));
    caches.push_back({whole.past, rows, 0, 0});
    part.cache = int(caches.size()) - 1;
    meanings[out] = std::move(part);
    *begin += *size;
  }
  return true;
}

/// The cache that a value is; rows of a graph without a past are one, too.
int Raiser::cacheOf(const Value *value) {
  Meaning m = meanings[value];
  if (m.kind == MeaningKind::Cache)
    return m.cache;
  if (!roles.pasts.empty())
    return -1;
  Source *source = nullptr;
  if (m.kind == MeaningKind::Function && m.layout && !m.mixes && !m.reduces)
    if (std::optional<ElementFunction> f = elementFunction(value, m.source);
        f && f->kind == ElementFunction::Kind::Scale) {
      source = m.source;
      meanings[value].factor *= f->number;
    }
  source = source ? source : rowsOf(value);
  m = meanings[value];
  if (!source || !m.layout)
    return -1;
  caches.push_back({nullptr, source, 0, 0});
  return int(caches.size()) - 1;
}

/// Grouped queries: keys and values repeat along an axis of 1.
bool Raiser::visitExpand(Node &node) {
  if (!node.is("Expand") && !node.is("Tile"))
    return false;
  const Value *from = node.input(0), *to = node.outputs[0];
  const Meaning m = meanings[from];
  bool hasRows = m.kind == MeaningKind::Rows || m.kind == MeaningKind::Cache;
  if (!hasRows || !m.layout || !from->shape || !to->shape)
    return m.kind == MeaningKind::Cache ? fail(node, "repeats a cache in an unknown way")
                                        : visitGeneric(node);
  Meaning result = m;
  size_t added = to->shape->size() - from->shape->size();
  result.layout->axes.insert(result.layout->axes.begin(), added, {});
  for (size_t i = 0; i < to->shape->size(); ++i) {
    Dim before = i < added ? Dim(1) : (*from->shape)[i - added];
    const Dim &after = (*to->shape)[i];
    if (before == after)
      continue;
    std::optional<int64_t> times = after.constant();
    if (before != Dim(1) || !times)
      return fail(node, "repeats something that is not a single head");
    result.layout->axes[i].push_back({FactorKind::Repeat, *times, 0});
  }
  meanings[to] = std::move(result);
  return true;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

namespace {
/// Heads of queries against heads of keys, along the batch axes of a product.
struct HeadMatch {
  int64_t heads = 1, kvHeads = 1, headDim = 0;
};
} // namespace

/// The queries' heads in order, and for the keys first their own heads, then repetitions: query
/// head h uses head h / (heads / kvHeads). Axes are aligned from the back, as MatMul does.
static std::optional<HeadMatch> matchHeads(const Layout &query, const Layout &key, size_t keyDim) {
  if (query.axes.size() < 2 || key.axes.size() < 2 || query.axes.back().size() != 1)
    return std::nullopt;
  const Factor &dim = query.axes.back()[0];
  if (dim.kind != FactorKind::Feature || dim.stride != 1 || key.axes[keyDim].size() != 1 ||
      key.axes[keyDim][0] != dim)
    return std::nullopt;
  HeadMatch match;
  match.headDim = dim.size;
  size_t axes = std::max(query.axes.size(), key.axes.size()) - 2;
  Layout keys, queries;
  auto &k = keys.axes.emplace_back();
  auto &q = queries.axes.emplace_back();
  for (size_t i = 0; i < axes; ++i) {
    auto axisOf = [&](const Layout &layout) {
      size_t own = layout.axes.size() - 2, skipped = axes - own;
      return i < skipped ? llvm::SmallVector<Factor, 2>() : layout.axes[i - skipped];
    };
    auto mine = axisOf(query), theirs = axisOf(key);
    if (theirs.empty())
      for (const Factor &f : mine)
        theirs.push_back({FactorKind::Repeat, f.size, 0});
    q.append(mine.begin(), mine.end());
    k.append(theirs.begin(), theirs.end());
  }
  queries = queries.normalized();
  keys = keys.normalized();
  // Heads in order.
  for (const Factor &f : queries.axes[0]) {
    if (f.kind != FactorKind::Feature || queries.axes[0].size() != 1 || f.stride != dim.size)
      return std::nullopt;
    match.heads = f.size;
  }
  bool repeats = false;
  int64_t total = 1;
  for (const Factor &f : keys.axes[0]) {
    if (f.kind == FactorKind::Repeat) {
      repeats = true;
    } else if (f.kind != FactorKind::Feature || repeats || f.stride != dim.size) {
      return std::nullopt;
    } else {
      match.kvHeads = f.size;
    }
    total *= f.size;
  }
  return total == match.heads ? std::optional(match) : std::nullopt;
}

static bool isAxis(const Layout &layout, size_t axis, FactorKind kind) {
  return layout.axes[axis].size() == 1 && layout.axes[axis][0].kind == kind;
}

bool Raiser::startScores(Node &node, const Value *query, const Value *key, double scale) {
  // The query may be multiplied by a part of the scale.
  const Meaning given = meanings[query];
  Source *source = nullptr;
  if (given.kind == MeaningKind::Function && given.layout && !given.mixes && !given.reduces)
    if (std::optional<ElementFunction> f = elementFunction(query, given.source);
        f && f->kind == ElementFunction::Kind::Scale) {
      source = given.source;
      scale *= f->number;
    }
  if (!source)
    source = rowsOf(query);
  if (!source)
    return fail(node, "multiplies queries that are not understood: " + meanings[query].why);
  Layout q = meanings[query].layout->normalized();
  int cache = cacheOf(key);
  if (cache < 0)
    return fail(node, "multiplies queries with keys that are not understood: " + meanings[key].why);
  Layout k = withTime(*meanings[key].layout).normalized();
  size_t n = k.axes.size();
  if (n < 2 || q.axes.size() < 2 || !isAxis(k, n - 1, FactorKind::Time) ||
      !isAxis(q, q.axes.size() - 2, FactorKind::Row))
    return fail(node, "multiplies queries and keys along unknown axes");
  std::optional<HeadMatch> match = matchHeads(q, k, n - 2);
  if (!match || source->features != match->heads * match->headDim)
    return fail(node, "pairs heads of queries and keys in an unknown way");
  auto scores = std::make_shared<Scores>();
  scores->query = source;
  scores->heads = match->heads;
  scores->headDim = match->headDim;
  scores->cache = cache;
  scores->scale = scale * meanings[key].factor;
  caches[size_t(cache)].heads = match->kvHeads;
  caches[size_t(cache)].headDim = match->headDim;
  Meaning m;
  m.kind = MeaningKind::Scores;
  m.scores = scores;
  m.layout = q;
  m.layout->axes.back() = {{FactorKind::Time, 0, 0}};
  if (n > q.axes.size())
    m.layout->axes.insert(m.layout->axes.begin(), n - q.axes.size(), {});
  meanings[node.outputs[0]] = std::move(m);
  return true;
}

bool Raiser::visitScores(Node &node) {
  if (!node.is("MatMul"))
    return false;
  const Value *x = node.input(0), *y = node.input(1);
  if (!isData(x) || !isData(y))
    return false;
  const Meaning mx = meanings[x];
  if (mx.kind != MeaningKind::Scores)
    return startScores(node, x, y, 1);
  if (!mx.scores->isProbability)
    return fail(node, "multiplies values with scores before their softmax");
  int cache = cacheOf(y);
  if (cache < 0)
    return fail(node, "multiplies probabilities with something that is no cache of values: " +
                          meanings[y].why);
  Layout v = withTime(*meanings[y].layout).normalized();
  size_t n = v.axes.size();
  Layout q = *mx.layout;
  if (n < 2 || !isAxis(v, n - 2, FactorKind::Time) || v.axes[n - 1].size() != 1)
    return fail(node, "multiplies values along an unknown axis");
  q.axes.back() = v.axes[n - 1];
  std::optional<HeadMatch> match = matchHeads(q, v, n - 1);
  if (!match || match->heads != mx.scores->heads || match->headDim != mx.scores->headDim)
    return fail(node, "pairs heads of scores and values in an unknown way");
  caches[size_t(cache)].heads = match->kvHeads;
  caches[size_t(cache)].headDim = match->headDim;
  Scores scores = *mx.scores;
  return finishAttention(node, node.outputs[0], scores, cache, q);
}

/// Everything between the two products.
bool Raiser::visitScoreArithmetic(Node &node) {
  const Value *scores = nullptr, *other = nullptr;
  for (const Value *input : node.inputs)
    if (input && isData(input) && meanings[input].kind == MeaningKind::Scores && !scores)
      scores = input;
  // Keys may be multiplied by a part of the scale.
  if (!scores && node.is("Mul"))
    for (size_t i = 0; i < 2; ++i)
      if (const Value *x = node.input(i); isData(x) && meanings[x].kind == MeaningKind::Cache)
        if (std::optional<double> factor = scalar(node.input(1 - i))) {
          copyMeaning(node, x);
          meanings[node.outputs[0]].factor *= *factor;
          return true;
        }
  if (!scores)
    return false;
  Meaning m = meanings[scores];
  auto next = std::make_shared<Scores>(*m.scores);
  m.scores = next;
  auto done = [&] {
    meanings[node.outputs[0]] = m;
    return true;
  };
  size_t index = node.input(0) == scores ? 0 : 1;
  other = node.input(1 - index);
  if ((node.is("Mul") || (node.is("Div") && index == 0)) && !next->isProbability) {
    std::optional<double> factor = scalar(other);
    if (!factor || *factor == 0)
      return fail(node, "scales scores by something that is no number");
    if (next->causal)
      return fail(node, "scales scores after they were masked");
    (next->capped ? next->cap : next->scale) *= node.is("Mul") ? *factor : 1 / *factor;
    return done();
  }
  if (node.is("Tanh") && !next->isProbability && !next->capped && !next->causal) {
    next->capped = true;
    return done();
  }
  if (node.is("Add") && other && !isData(other) && !next->isProbability) {
    if (!applyMask(*next, other, /*isCondition=*/false))
      return fail(node, "adds to scores what is neither a causal mask nor a windowed one");
    return done();
  }
  if (node.is("Where")) {
    const Value *condition = node.input(0);
    if (!condition)
      return fail(node, "has no condition");
    if (next->isProbability) {
      // Rows of nothing but hidden positions: no row of a step is one.
      bool guards = isData(condition) && meanings[condition].kind == MeaningKind::Scores &&
                    scalar(node.input(1)) == 0.0;
      return guards ? done() : fail(node, "chooses among probabilities");
    }
    bool first = node.input(1) == scores;
    std::optional<double> hidden = scalar(node.input(first ? 2 : 1));
    if (isData(condition) || !hidden || *hidden > -1e3 || !first)
      return fail(node, "masks scores in an unknown way");
    if (!applyMask(*next, condition, /*isCondition=*/true))
      return fail(node, "masks scores with what is neither causal nor windowed");
    return done();
  }
  if (node.is("Softmax") && !next->isProbability) {
    int64_t axis = node.integer("axis", node.version < 13 ? 1 : -1);
    if (axis != -1 && axis != scores->rank() - 1)
      return fail(node, "takes the softmax along another axis than positions");
    next->isProbability = true;
    return done();
  }
  if (node.is("IsNaN") && next->isProbability)
    return done();
  return false;
}

bool Raiser::finishAttention(Node &node, const Value *out, Scores &s, int valueCache,
                             const Layout &layout) {
  Cache &keys = caches[size_t(s.cache)], &values = caches[size_t(valueCache)];
  if (!s.causal && !roles.pasts.empty())
    return fail(node, "attends to all positions, later ones included, but the graph has a past");
  if (!keys.rows || !values.rows || keys.heads != values.heads || keys.headDim != values.headDim)
    return fail(node, "attends to keys and values of different heads");
  double scale = s.scale;
  double softcap = 0;
  if (s.capped) {
    softcap = s.cap;
    scale *= s.cap;
  }
  // Split over queries and keys, a scale loses its last bits.
  double usual = 1 / std::sqrt(double(s.headDim));
  if (std::fabs(scale - usual) <= 2e-7 * usual)
    scale = usual;
  mlir::Value q = emit(s.query), k = emit(keys.rows), v = emit(values.rows);
  if (!q || !k || !v)
    return fail(node, "attends with rows that are not understood");
  mlir::Location loc = newSource(Source::Kind::Op, out, 0)->loc;
  mlir::Value op = llm::AttentionOp::create(
      b, loc, q.getType(), q, k, v, positions, kvSymbol(keys.heads, keys.headDim, s.window),
      b.getI64IntegerAttr(s.heads), b.getF32FloatAttr(float(scale)),
      b.getF32FloatAttr(float(softcap)), s.causal ? mlir::UnitAttr() : b.getUnitAttr());
  causalAttentions += s.causal;
  opSource(out, op, layout);
  return true;
}

//===----------------------------------------------------------------------===//
// Fused operators
//===----------------------------------------------------------------------===//

/// ai.onnx Attention: Q, K, V, mask, past key, past value.
bool Raiser::visitFusedAttention(Node &node) {
  if (!node.is("Attention"))
    return false;
  const Value *q = node.input(0), *out = node.outputs[0];
  if (!q || !node.input(1) || !node.input(2) || !q->shape || !out->shape)
    return fail(node, "needs queries, keys and values");
  int64_t qHeads = node.integer("q_num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
  bool flat = q->shape->size() == 3;
  // In three dimensions heads are side by side in a row.
  auto asHeads = [&](const Value *value, int64_t heads) -> std::optional<Layout> {
    std::optional<Layout> layout = meanings[value].layout;
    if (!layout || !flat)
      return layout;
    if (!value->shape || value->shape->size() != 3)
      return std::nullopt;
    std::optional<Dim> dim = (*value->shape)[2].dividedBy(Dim(heads));
    if (!dim)
      return std::nullopt;
    std::optional<Layout> split =
        reshaped(*layout, {(*value->shape)[0], (*value->shape)[1], Dim(heads), *dim}, sizes);
    return split ? std::optional(transposed(*split, {0, 2, 1, 3})) : std::nullopt;
  };
  // Keys and values come from a past, or were appended to one before.
  int operands[2] = {-1, -1};
  Layout kv[2];
  for (size_t i = 0; i < 2; ++i) {
    const Value *rows = node.input(1 + i), *past = node.input(4 + i);
    if (past && isData(past) && meanings[past].kind == MeaningKind::Past) {
      Source *source = isData(rows) ? rowsOf(rows) : nullptr;
      const Value *present = node.output(1 + i);
      if (!source || appended.contains(past))
        return fail(node, "appends rows that are not understood: " + meanings[rows].why);
      appended[past] = present;
      caches.push_back({past, source, 0, 0});
      operands[i] = int(caches.size()) - 1;
    } else if (!past) {
      operands[i] = isData(rows) ? cacheOf(rows) : -1;
      if (operands[i] < 0 && isData(rows))
        if (Source *source = rowsOf(rows)) {
          (void)source;
          return fail(node, "attends to the step alone, but the graph has a past");
        }
    }
    std::optional<Layout> layout = asHeads(rows, kvHeads);
    if (operands[i] < 0 || !layout)
      return fail(node, "has keys or values that are not understood: " + meanings[rows].why);
    kv[i] = withTime(*layout).normalized();
    if (const Value *present = node.output(1 + i)) {
      Meaning m;
      m.kind = MeaningKind::Cache;
      m.cache = operands[i];
      m.layout = kv[i];
      meanings[present] = std::move(m);
    }
  }
  double scale = 1;
  const Meaning given = meanings[q];
  Source *query = nullptr;
  if (given.kind == MeaningKind::Function && given.layout && !given.mixes)
    if (std::optional<ElementFunction> f = elementFunction(q, given.source);
        f && f->kind == ElementFunction::Kind::Scale) {
      query = given.source;
      scale = f->number;
    }
  query = query ? query : rowsOf(q);
  std::optional<Layout> layout = query ? asHeads(q, qHeads) : std::nullopt;
  if (!layout)
    return fail(node, "has queries that are not understood: " + meanings[q].why);
  layout = layout->normalized();
  std::optional<HeadMatch> match;
  if (layout->axes.size() == 4 && kv[0].axes.size() == 4 && kv[1].axes.size() == 4) {
    // Without repetition the operator itself groups queries.
    Layout repeated = kv[0];
    int64_t have = 1, want = 1;
    for (const Factor &f : repeated.axes[1])
      have *= f.size;
    for (const Factor &f : layout->axes[1])
      want *= f.size;
    if (have > 0 && want % have == 0 && want != have)
      repeated.axes[1].push_back({FactorKind::Repeat, want / have, 0});
    match = matchHeads(*layout, repeated.normalized(), 3);
  }
  if (!match || !isAxis(kv[0], 2, FactorKind::Time) || !isAxis(*layout, 2, FactorKind::Row) ||
      kv[0] != kv[1])
    return fail(node, "pairs heads in an unknown way");
  if (node.output(3))
    return fail(node, "gives its scores away");
  Scores s;
  s.query = query;
  s.heads = match->heads;
  s.headDim = match->headDim;
  s.cache = operands[0];
  float given_scale = node.number("scale", 0);
  s.scale = scale * meanings[node.input(1)].factor *
            (given_scale != 0 ? double(given_scale) : 1 / std::sqrt(double(match->headDim)));
  if (float cap = node.number("softcap", 0); cap != 0) {
    s.capped = true;
    s.cap = double(cap);
    s.scale /= s.cap;
  }
  for (int cache : operands) {
    caches[size_t(cache)].heads = match->kvHeads;
    caches[size_t(cache)].headDim = match->headDim;
  }
  // The operator's own mask counts rows from the first key on, so it needs to know the past.
  bool hasPast = node.input(4) != nullptr || roles.pasts.empty();
  s.causal = node.integer("is_causal", 0) != 0 && hasPast;
  if (const Value *mask = node.input(3))
    if (isData(mask) || !applyMask(s, mask, mask->type == ElementType::Bool))
      return fail(node, "has a mask that is neither causal nor windowed");
  Layout result = *layout;
  if (flat) {
    result = transposed(*layout, {0, 2, 1, 3});
    std::optional<Layout> joined = reshaped(result, *out->shape, sizes);
    if (!joined)
      return fail(node, "gives rows of an unknown form");
    result = *joined;
  }
  return finishAttention(node, out, s, operands[1], result);
}

/// The rotation in tables of cosines and sines, [positions, pairs].
std::optional<RopeTable> Raiser::tableOf(const Value *cos, const Value *sin, llm::RopeKind kind,
                                         int64_t dims) {
  if (!cos || !sin || isData(cos) || isData(sin))
    return std::nullopt;
  Probe &p = probe(1, 0);
  llvm::Expected<Tensor> c = p.evaluate(*cos), s = p.evaluate(*sin);
  if (!c || !s) {
    llvm::consumeError(c.takeError());
    llvm::consumeError(s.takeError());
    return std::nullopt;
  }
  if (c->dims.size() != 2 || c->dims != s->dims || c->dims[1] < dims / 2)
    return std::nullopt;
  RotarySamples samples;
  samples.pairs = dims / 2;
  for (int64_t position = 0; position < c->dims[0]; position += position < 16 ? 1 : position) {
    samples.positions.push_back(position);
    for (int64_t pair = 0; pair < samples.pairs; ++pair) {
      samples.cosines.push_back(c->number(position * c->dims[1] + pair));
      samples.sines.push_back(s->number(position * c->dims[1] + pair));
    }
  }
  contextLimit = std::min(contextLimit, c->dims[0]);
  return fitRotary(samples, kind, std::max(tolerance(cos), 1e-4));
}

/// com.microsoft GroupQueryAttention: query [, key, value], past key, past value, last positions,
/// total length, cos, sin, position ids, attention bias.
bool Raiser::visitGroupQuery(Node &node) {
  if (!node.is("GroupQueryAttention", "com.microsoft"))
    return false;
  int64_t heads = node.integer("num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
  const Value *q = node.input(0), *out = node.outputs[0];
  Source *query = q ? matrixOf(q) : nullptr;
  constexpr int64_t kMostHeads = 1 << 16;
  if (!query || !out->shape || heads <= 0 || kvHeads <= 0 || heads > kMostHeads ||
      kvHeads > kMostHeads)
    return fail(node, "has queries that are not understood: " + meanings[q].why);
  for (size_t i : {10, 11})
    if (node.input(i))
      return fail(node, "has an attention bias or sinks, which are not supported");
  if (node.integer("smooth_softmax", 0) > 0 || node.integer("qk_output", 0) != 0)
    return fail(node, "has a smooth softmax or gives its scores away, which is not supported");
  Source *rows[3] = {query, nullptr, nullptr};
  int64_t dim;
  if (!node.input(1)) {
    dim = query->features / (heads + 2 * kvHeads);
    if (query->kind != Source::Kind::Linear || dim * (heads + 2 * kvHeads) != query->features)
      return fail(node, "has packed queries, keys and values that no linear computes");
    int64_t begins[] = {0, heads * dim, (heads + kvHeads) * dim};
    int64_t counts[] = {heads * dim, kvHeads * dim, kvHeads * dim};
    for (size_t i = 0; i < 3; ++i)
      rows[i] = sliceOf(query, begins[i], counts[i], out, rowMajorLayout(3, counts[i]));
  } else {
    dim = query->features / heads;
    for (size_t i : {1, 2})
      rows[i] = node.input(i) && isData(node.input(i)) ? matrixOf(node.input(i)) : nullptr;
    if (!rows[1] || !rows[2] || dim * heads != query->features ||
        rows[1]->features != kvHeads * dim || rows[2]->features != kvHeads * dim)
      return fail(node, "has keys or values that are not understood");
  }
  if (node.integer("do_rotary", 0)) {
    auto kind = node.integer("rotary_interleaved", 0) ? llm::RopeKind::Interleaved
                                                      : llm::RopeKind::HalfSplit;
    const Value *cos = node.input(7);
    int64_t rotated = cos && cos->shape && cos->shape->size() == 2
                          ? 2 * (*cos->shape)[1].constant().value_or(0)
                          : 0;
    std::optional<RopeTable> table = tableOf(cos, node.input(8), kind, rotated);
    if (!table || rotated > dim)
      return fail(node, "has cosines and sines that are no rotation by position");
    for (size_t i = 0; i < 2; ++i) {
      mlir::Value input = emit(rows[i]);
      if (!input)
        return fail(node, "rotates rows that are not understood: " + meanings[rows[i]->root].why);
      mlir::Value rotatedRows =
          llm::RopeOp::create(b, rows[i]->loc, input.getType(), input, positions,
                              ropeSymbol(*table), b.getI64IntegerAttr(i == 0 ? heads : kvHeads));
      rows[i] = newSource(Source::Kind::Op, out, llm::features(rotatedRows));
      rows[i]->op = rotatedRows;
    }
  }
  int operands[2];
  for (size_t i = 0; i < 2; ++i) {
    const Value *past = node.input(3 + i);
    bool isPast = past && isData(past) && meanings[past].kind == MeaningKind::Past;
    if ((past && !isPast) || (isPast && appended.contains(past)))
      return fail(node, "appends to a past that is not understood");
    caches.push_back({past, rows[1 + i], kvHeads, dim});
    operands[i] = int(caches.size()) - 1;
    const Value *present = node.output(1 + i);
    if (isPast)
      appended[past] = present;
    if (present)
      meanings[present] = presentCache(operands[i], kvHeads, dim);
  }
  Scores s;
  s.query = rows[0];
  s.heads = heads;
  s.headDim = dim;
  s.cache = operands[0];
  float scale = node.number("scale", 0);
  s.scale = scale != 0 ? double(scale) : 1 / std::sqrt(double(dim));
  if (float cap = node.number("softcap", 0); cap != 0) {
    s.capped = true;
    s.cap = double(cap);
    s.scale /= s.cap;
  }
  s.causal = true;
  // The window counts the current position.
  s.window = std::max<int64_t>(node.integer("local_window_size", -1), 0);
  return finishAttention(node, out, s, operands[1],
                         rowMajorLayout(out->shape->size(), heads * dim));
}

llvm::Error Raiser::checkCaches() {
  std::string lost;
  for (const Value *past : roles.pasts)
    if (!appended.contains(past) || !appended.lookup(past) ||
        !llvm::is_contained(model.graph->outputs, appended.lookup(past)))
      lost += (lost.empty() ? "" : ", ") + quoted(past->name);
  for (const Value *output : model.graph->outputs)
    if (meanings[output].kind == MeaningKind::Past)
      lost += (lost.empty() ? "" : ", ") + quoted(output->name);
  if (lost.empty())
    return llvm::Error::success();
  return unsupported(
      model.path(), "these inputs are no past of keys or values that an output continues: " + lost);
}
