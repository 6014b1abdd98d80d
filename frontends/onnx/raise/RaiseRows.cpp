//===- RaiseRows.cpp - linears, norms, sums -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;
using llvm::Twine;
using MeaningKind = Meaning::Kind;

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

Source *Raiser::newSource(Source::Kind kind, const Value *root, int64_t features) {
  StringRef name = root->producer && !root->producer->name.empty() ? StringRef(root->producer->name)
                                                                   : root->name;
  // Locations are for people and must be printable.
  std::string text;
  for (char c : name.take_front(200))
    text += c >= 32 && c < 127 ? c : '_';
  Source &source = sources.emplace_back(mlir::NameLoc::get(b.getStringAttr(text)));
  source.kind = kind;
  source.root = root;
  source.features = features;
  return &source;
}

void Raiser::setRows(const Value *value, Source *source, Layout layout) {
  Meaning m;
  m.kind = MeaningKind::Rows;
  m.source = source;
  m.layout = std::move(layout);
  meanings[value] = std::move(m);
  source->views.push_back(value);
}

Source *Raiser::opSource(const Value *root, mlir::Value op, const Layout &layout) {
  Source *source = newSource(Source::Kind::Op, root, llm::features(op));
  source->op = op;
  source->layout = layout;
  setRows(root, source, layout);
  return source;
}

mlir::RankedTensorType Raiser::rowsType(int64_t features) {
  return mlir::RankedTensorType::get({mlir::ShapedType::kDynamic, features}, b.getF32Type());
}

mlir::Value Raiser::emitLinear(Source *s) {
  mlir::Value input = emit(s->input);
  std::string why;
  mlir::FlatSymbolRefAttr weight = weights.symbol(s->weight, symbols, why), bias;
  if (s->bias)
    bias = weights.symbol(*s->bias, symbols, why);
  if (!input || !weight || (s->bias && !bias)) {
    meanings[s->root].why = why.empty() ? meanings[s->input->root].why : why;
    return {};
  }
  mlir::ArrayAttr biases = bias ? b.getArrayAttr({bias}) : mlir::ArrayAttr();
  return llm::LinearOp::create(b, s->loc, mlir::TypeRange{rowsType(s->features)}, input,
                               b.getArrayAttr({weight}), biases)
      .getResult(0);
}

mlir::Value Raiser::emit(Source *s) {
  if (s->op)
    return s->op;
  if (s->kind == Source::Kind::Linear)
    return s->op = emitLinear(s);
  if (s->kind == Source::Kind::Shifted)
    return s->op = emitShifted(s);
  mlir::Value input = emit(s->input);
  if (!input)
    return {};
  if (!s->weight)
    s->weight = weights.ones(s->features / s->groups);
  std::string why;
  mlir::FlatSymbolRefAttr weight = weights.symbol(s->weight, symbols, why), bias;
  if (s->bias)
    bias = weights.symbol(*s->bias, symbols, why);
  if (!weight || (s->bias && !bias)) {
    meanings[s->root].why = why;
    return {};
  }
  auto norm =
      llm::NormAttr::get(&context, s->norm, weight, bias, b.getF32FloatAttr(float(s->epsilon)));
  return s->op = llm::NormOp::create(b, s->loc, input.getType(), input, norm, s->groups);
}

Source *Raiser::rowsOf(const Value *value) {
  Meaning &m = meanings[value];
  if (m.kind == MeaningKind::Rows)
    return m.source;
  if (m.kind != MeaningKind::Function)
    return nullptr;
  if (!m.layout || m.mixes || m.reduces || m.positional) {
    m.why = (value->producer ? value->producer->describe() : std::string("a value")) +
            " computes a function of rows that is not known";
    return nullptr;
  }
  std::optional<ElementFunction> f = elementFunction(value, m.source);
  if (!f) {
    m.why = (value->producer ? value->producer->describe() : std::string("a value")) +
            " computes an activation that is not known";
    return nullptr;
  }
  if (f->kind == ElementFunction::Kind::Scale && f->number == 1) {
    setRows(value, m.source, Layout(*m.layout));
    return meanings[value].source;
  }
  mlir::Value input = emit(m.source);
  if (!input)
    return nullptr;
  Layout layout = *m.layout;
  mlir::Location loc = newSource(Source::Kind::Op, value, 0)->loc;
  mlir::Value op;
  switch (f->kind) {
  case ElementFunction::Kind::Scale:
    if (auto embed = input.getDefiningOp<llm::EmbedOp>(); embed && input.use_empty()) {
      embed.setScale(llvm::APFloat(float(embed.getScale().convertToFloat() * f->number)));
      op = input;
      break;
    }
    op = llm::ScaleOp::create(b, loc, input.getType(), input, b.getF32FloatAttr(float(f->number)));
    break;
  case ElementFunction::Kind::Activation:
    op = llm::ActOp::create(b, loc, input.getType(), input, f->activation);
    break;
  case ElementFunction::Kind::Softcap:
    op =
        llm::SoftcapOp::create(b, loc, input.getType(), input, b.getF32FloatAttr(float(f->number)));
    break;
  }
  return opSource(value, op, layout);
}

Source *Raiser::matrixOf(const Value *value) {
  Source *source = rowsOf(value);
  const Meaning &m = meanings[value];
  if (!source || !m.layout || !m.layout->isRowMajor() || m.layout->features() != source->features) {
    if (source)
      meanings[value].why = (value->producer ? value->producer->describe() : std::string("input")) +
                            " gives rows in an order that is not known";
    return nullptr;
  }
  return source;
}

std::optional<double> Raiser::scalar(const Value *value) const {
  if (!value || !value->constant || value->constant->elements() != 1 ||
      value->constant->type == ElementType::String)
    return std::nullopt;
  return value->constant->number(0);
}

//===----------------------------------------------------------------------===//
// Linear
//===----------------------------------------------------------------------===//

void Raiser::makeLinear(Node &node, const Value *out, Source *input, WeightRef weight,
                        std::optional<WeightRef> bias) {
  if (!weight || weight.columns != input->features) {
    fail(node, "multiplies with a matrix that does not fit, or cannot be a weight");
    return;
  }
  // Chains of open sources stay short.
  if (!emit(input)) {
    fail(node, "multiplies rows that are not understood: " + meanings[input->root].why);
    return;
  }
  Source *source = newSource(Source::Kind::Linear, out, weight.rows);
  source->input = input;
  source->weight = weight;
  source->bias = std::move(bias);
  source->layout = rowMajorLayout(out->shape ? out->shape->size() : 2, weight.rows);
  setRows(out, source, source->layout);
}

bool Raiser::visitLinear(Node &node) {
  bool isBlocks = node.is("MatMulNBits", "com.microsoft");
  if (!node.is("MatMul") && !node.is("Gemm") && !isBlocks)
    return false;
  const Value *x = node.input(0), *w = node.input(1), *out = node.outputs[0];
  if (!isData(x) || !w || isData(w))
    return isBlocks ? fail(node, "multiplies something that is no rows") : false;
  if (!w->constant && !isBlocks && !llvm::is_contained(model.graph->initializers, w)) {
    // Rotary embeddings multiply with tables of positions; those are functions.
    WeightRef probe = weights.matrix(w, false);
    if (!probe)
      return false;
  }
  Source *input = matrixOf(x);
  if (!input)
    return fail(node, "multiplies rows that are not understood: " + meanings[x].why);
  if (node.op == "Gemm") {
    if (node.integer("transA", 0) || node.number("alpha", 1) != 1 || node.number("beta", 1) != 1)
      return fail(node, "has alpha, beta or transA");
    std::optional<WeightRef> bias;
    if (node.input(2)) {
      bias = weights.vector(node.input(2));
      if (!*bias)
        return fail(node, "adds a bias that cannot be a weight");
    }
    makeLinear(node, out, input, weights.matrix(w, node.integer("transB", 0) != 0), bias);
    return true;
  }
  if (isBlocks) {
    if (node.input(4))
      return fail(node, "has a group index (g_idx), which is not supported");
    WeightRef ref =
        weights.grouped(w, node.input(2), node.input(3), node.integer("N", 0), node.integer("K", 0),
                        node.integer("block_size", 0), node.integer("bits", 4));
    std::optional<WeightRef> bias;
    if (node.input(5))
      bias = weights.vector(node.input(5));
    makeLinear(node, out, input, ref, bias);
    return true;
  }
  makeLinear(node, out, input, weights.matrix(w, false), std::nullopt);
  return true;
}

Source *Raiser::sliceOf(Source *s, int64_t begin, int64_t count, const Value *root,
                        const Layout &layout) {
  // A linear that already has its op is made again for fewer rows: its first op is then not used.
  Source *part = newSource(Source::Kind::Linear, root, count);
  part->input = s->input;
  part->weight = s->weight.slice(begin, count);
  if (s->bias)
    part->bias = s->bias->slice(begin, count);
  part->whole = s->whole ? s->whole : s;
  part->begin = s->begin + begin;
  part->layout = layout;
  return part;
}

/// A part of the features of rows, where it is a range of whole outermost groups.
bool Raiser::visitSlice(Node &node) {
  if (!node.domain.empty() || (node.op != "Slice" && node.op != "Split" && node.op != "Gather"))
    return false;
  const Value *x = node.input(0);
  const Meaning m = meanings[x];
  if (m.kind == MeaningKind::Cache && node.op != "Gather")
    return visitCacheParts(node);
  if (!x || !isData(x) || m.kind != MeaningKind::Rows || !m.layout || !x->shape)
    return visitGeneric(node);
  auto axisAt = [&](int64_t given) { return given < 0 ? given + x->rank() : given; };
  int64_t axis;
  struct Part {
    const Value *out;
    int64_t begin, size;
  };
  std::vector<Part> parts;
  if (node.op == "Split") {
    axis = axisAt(node.integer("axis", 0));
    int64_t begin = 0;
    for (const Value *out : node.outputs) {
      std::optional<int64_t> size =
          out->shape ? (*out->shape)[size_t(axis)].constant() : std::nullopt;
      if (!size)
        return visitGeneric(node);
      parts.push_back({out, begin, *size});
      begin += *size;
    }
  } else {
    const Value *out = node.outputs[0];
    if (!out->shape)
      return visitGeneric(node);
    // Which axis, and from where, by the shapes and the constant operands.
    std::vector<int64_t> begins, steps;
    axis = -1;
    if (node.op == "Gather") {
      if (std::optional<double> index = scalar(node.input(1))) {
        axis = axisAt(node.integer("axis", 0));
        const auto &factors = m.layout->axes[size_t(axis)];
        // The last row alone: logits of other rows are not asked for.
        if (factors.size() == 1 && factors[0].kind == Factor::Kind::Row && *index == -1) {
          Layout layout = *m.layout;
          if (out->rank() < x->rank())
            layout.axes.erase(layout.axes.begin() + axis);
          else
            layout.axes[size_t(axis)].clear();
          setRows(out, m.source, layout);
          return true;
        }
      }
      return visitGeneric(node);
    }
    auto list = [&](StringRef attribute, size_t input) -> std::optional<std::vector<int64_t>> {
      if (const Attribute *a = node.find(attribute))
        return a->integers;
      if (const Value *v = node.input(input))
        return v->constant ? std::optional(v->constant->integers()) : std::nullopt;
      return std::vector<int64_t>();
    };
    auto b = list("starts", 1), e = list("ends", 2), a = list("axes", 3), s = list("steps", 4);
    if (!b || !a || !s || b->size() != 1 || a->size() > 1 || (!s->empty() && (*s)[0] != 1))
      return visitGeneric(node);
    axis = axisAt(a->empty() ? 0 : (*a)[0]);
    std::optional<int64_t> whole = (*x->shape)[size_t(axis)].constant(),
                           size = (*out->shape)[size_t(axis)].constant();
    const auto &factors = m.layout->axes[size_t(axis)];
    if (factors.size() == 1 && factors[0].kind == Factor::Kind::Row && (*b)[0] == -1) {
      Layout layout = *m.layout;
      layout.axes[size_t(axis)].clear();
      setRows(out, m.source, layout);
      return true;
    }
    if (!whole || !size)
      return visitGeneric(node);
    int64_t begin = (*b)[0] < 0 ? (*b)[0] + *whole : (*b)[0];
    parts.push_back({out, begin, *size});
  }
  // Only rows of an open linear can be taken apart, and only along their outermost groups.
  Layout layout = m.layout->normalized();
  auto &factors = layout.axes[size_t(axis)];
  bool outermost = factors.size() == 1 && factors[0].kind == Factor::Kind::Feature &&
                   factors[0].size * factors[0].stride == m.source->features;
  if (m.source->kind != Source::Kind::Linear || !outermost)
    return visitGeneric(node);
  int64_t stride = factors[0].stride;
  for (const Part &part : parts) {
    if (part.begin < 0 || part.size <= 0 || part.begin + part.size > factors[0].size)
      return visitGeneric(node);
    Layout cut = layout;
    cut.axes[size_t(axis)][0].size = part.size;
    cut = cut.normalized();
    Source *source = sliceOf(m.source, part.begin * stride, part.size * stride, part.out, cut);
    setRows(part.out, source, cut);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

Source *Raiser::normOf(const Value *root, Source *input, llm::NormKind kind, double epsilon,
                       int64_t groups, const Layout &layout) {
  (void)emit(input); // chains of open sources stay short
  Source *source = newSource(Source::Kind::Norm, root, input->features);
  source->input = input;
  source->norm = kind;
  source->epsilon = epsilon;
  source->groups = groups;
  source->layout = layout;
  setRows(root, source, layout);
  return source;
}

/// The groups of a layout whose last axis is what a norm is taken over; 0 where it is no range.
static int64_t groupsOf(const Layout &layout, int64_t features) {
  if (layout.axes.empty() || layout.axes.back().size() != 1)
    return 0;
  const Factor &last = layout.axes.back()[0];
  if (last.kind != Factor::Kind::Feature || last.stride != 1 || features % last.size)
    return 0;
  return features / last.size;
}

bool Raiser::visitNorm(Node &node) {
  struct Form {
    llm::NormKind kind;
    int skip, scale, bias, sumBias, sumOutput;
    float epsilon;
  };
  using K = llm::NormKind;
  std::optional<Form> form =
      llvm::StringSwitch<std::optional<Form>>(node.op)
          .Case("LayerNormalization", Form{K::Layer, -1, 1, 2, -1, -1, 1e-5f})
          .Cases({"SimplifiedLayerNormalization", "RMSNormalization"},
                 Form{K::Rms, -1, 1, -1, -1, -1, 1e-5f})
          .Case("SkipLayerNormalization", Form{K::Layer, 1, 2, 3, 4, 3, 1e-12f})
          .Case("SkipSimplifiedLayerNormalization", Form{K::Rms, 1, 2, -1, 3, 3, 1e-12f})
          .Default(std::nullopt);
  if (!form)
    return false;
  const Value *x = node.input(0), *out = node.outputs[0];
  if (!x || !out->shape || !node.input(size_t(form->scale)))
    return fail(node, "has no scale or no known shape");
  int64_t axis = node.integer("axis", -1);
  if (axis != -1 && axis != int64_t(out->shape->size()) - 1)
    return fail(node, "normalizes over more than the last axis");
  Source *input = rowsOf(x);
  std::optional<Layout> layout = meanings[x].layout;
  if (form->skip >= 0) {
    const Value *skip = node.input(size_t(form->skip));
    Source *left = matrixOf(x), *right = skip && isData(skip) ? matrixOf(skip) : nullptr;
    if (!left || !right || left->features != right->features || node.input(size_t(form->sumBias)))
      return fail(node, "adds rows that are not understood: " +
                            (left ? meanings[skip].why : meanings[x].why));
    mlir::Value lhs = emit(left), rhs = emit(right);
    if (!lhs || !rhs)
      return fail(node, "adds rows that are not understood");
    mlir::Value sum =
        llm::AddOp::create(b, left->loc, lhs.getType(), lhs, rhs, b.getF32FloatAttr(1));
    layout = rowMajorLayout(out->shape->size(), left->features);
    const Value *sumValue = node.output(size_t(form->sumOutput));
    input = opSource(sumValue ? sumValue : out, sum, *layout);
  }
  if (!input || !layout)
    return fail(node, "normalizes rows that are not understood: " + meanings[x].why);
  int64_t groups = groupsOf(layout->normalized(), input->features);
  if (groups == 0)
    return fail(node, "normalizes over features that are no range");
  Source *norm = normOf(out, input, form->kind, double(node.number("epsilon", form->epsilon)),
                        groups, *layout);
  norm->weight = weights.vector(node.input(size_t(form->scale)));
  const Value *bias = form->bias >= 0 ? node.input(size_t(form->bias)) : nullptr;
  if (bias)
    norm->bias = weights.vector(bias);
  int64_t size = input->features / groups;
  if (norm->weight.columns != size || (bias && norm->bias->columns != size))
    return fail(node, "has a scale or a bias of another size than its rows");
  return true;
}

//===----------------------------------------------------------------------===//
// Sums and products
//===----------------------------------------------------------------------===//

/// True where `value` is a constant vector along the last axis of something with that many
/// features.
static bool isVectorOf(const Value *value, int64_t size) {
  if (!value->shape || value->shape->empty())
    return false;
  for (size_t i = 0; i + 1 < value->shape->size(); ++i)
    if ((*value->shape)[i] != Dim(1))
      return false;
  return value->shape->back() == Dim(size) && size > 1;
}

bool Raiser::visitSum(Node &node) {
  if (!node.is("Add") || node.inputs.size() != 2)
    return false;
  const Value *x = node.input(0), *y = node.input(1), *out = node.outputs[0];
  if (!isData(x))
    std::swap(x, y);
  const Meaning mx = meanings[x], my = meanings[y];
  auto hasRows = [](const Meaning &m) {
    return m.kind == MeaningKind::Rows || m.kind == MeaningKind::Function;
  };
  if (!isData(y)) {
    if (visitShift(node, x, y))
      return true;
    // A bias joins the linear or the norm before it.
    if (mx.kind != MeaningKind::Rows || !mx.layout || !y || y->type == ElementType::Undefined)
      return visitGeneric(node);
    Source *s = mx.source;
    int64_t size = s->features / s->groups;
    WeightRef bias = isVectorOf(y, size) ? weights.vector(y) : WeightRef();
    bool canTake = (s->kind == Source::Kind::Linear && mx.layout->isRowMajor()) ||
                   (s->kind == Source::Kind::Norm && s->norm == llm::NormKind::Layer);
    if (!bias || !canTake || s->bias)
      return visitGeneric(node);
    Source *next = newSource(s->kind, out, s->features);
    std::vector<const Value *> none;
    *next = *s;
    next->views = none;
    next->op = {};
    next->root = out;
    next->whole = nullptr;
    next->bias = bias;
    setRows(out, next, *mx.layout);
    return true;
  }
  if (!hasRows(mx) || !hasRows(my))
    return visitGeneric(node);
  Source *baseX = mx.source->whole ? mx.source->whole : mx.source,
         *baseY = my.source->whole ? my.source->whole : my.source;
  if (baseX == baseY || mx.positional || my.positional)
    return visitGeneric(node);
  // The stream is the older of the two; what joins it may be scaled.
  auto isStream = [](const Source *s) {
    return s->op && (s->op.getDefiningOp<llm::AddOp>() || s->op.getDefiningOp<llm::EmbedOp>());
  };
  if (isStream(my.source) && !(isStream(mx.source) && mx.kind == MeaningKind::Rows))
    std::swap(x, y);
  double scale = 1;
  Source *right = nullptr;
  const Meaning added = meanings[y];
  if (added.kind == MeaningKind::Function && added.layout && !added.mixes && !added.reduces)
    if (std::optional<ElementFunction> f = elementFunction(y, added.source);
        f && f->kind == ElementFunction::Kind::Scale) {
      scale = f->number;
      right = added.source;
    }
  if (!right)
    right = rowsOf(y);
  Source *left = rowsOf(x);
  if (!left || !right)
    return fail(node, "adds rows that are not understood: " + meanings[left ? y : x].why);
  if (left->features != right->features || !meanings[x].layout || !meanings[y].layout ||
      meanings[x].layout->normalized() != meanings[y].layout->normalized())
    return fail(node, "adds rows that lie in different orders");
  mlir::Value lhs = emit(left), rhs = emit(right);
  if (!lhs || !rhs)
    return fail(node,
                "adds rows that are not understood: " + meanings[(lhs ? right : left)->root].why);
  Layout layout = *meanings[x].layout;
  mlir::Location loc = newSource(Source::Kind::Op, out, 0)->loc;
  opSource(out,
           llm::AddOp::create(b, loc, lhs.getType(), lhs, rhs, b.getF32FloatAttr(float(scale))),
           layout);
  return true;
}

bool Raiser::visitProduct(Node &node) {
  if (!node.is("Mul") || node.inputs.size() != 2)
    return false;
  const Value *x = node.input(0), *y = node.input(1), *out = node.outputs[0];
  if (!isData(x))
    std::swap(x, y);
  const Meaning mx = meanings[x], my = meanings[y];
  if (!isData(y)) {
    // The weight of the norm before it.
    Source *s = mx.kind == MeaningKind::Rows ? mx.source : nullptr;
    if (!s || s->kind != Source::Kind::Norm || s->weight || !y ||
        !isVectorOf(y, s->features / s->groups) || s->bias)
      return visitGeneric(node);
    Source *next = newSource(s->kind, out, s->features);
    *next = *s;
    next->views.clear();
    next->op = {};
    next->root = out;
    next->weight = weights.vector(y);
    if (!next->weight)
      return fail(node, "scales a norm with something that cannot be a weight");
    setRows(out, next, *mx.layout);
    return true;
  }
  auto hasRows = [](const Meaning &m) {
    return m.kind == MeaningKind::Rows || m.kind == MeaningKind::Function;
  };
  if (!hasRows(mx) || !hasRows(my) || mx.source == my.source || mx.positional || my.positional ||
      mx.reduces || my.reduces)
    return visitGeneric(node);
  // A gate: activation(a) * b. The activation is on one side.
  auto activation = [&](const Value *v, const Meaning &m) -> std::optional<llm::Activation> {
    if (m.kind == MeaningKind::Rows)
      return llm::Activation::None;
    std::optional<ElementFunction> f = m.layout ? elementFunction(v, m.source) : std::nullopt;
    if (!f || f->kind != ElementFunction::Kind::Activation)
      return std::nullopt;
    return f->activation;
  };
  std::optional<llm::Activation> ax = activation(x, mx), ay = activation(y, my);
  if (!ax || !ay || (*ax != llm::Activation::None && *ay != llm::Activation::None))
    return fail(node, "multiplies two functions of rows that are not known");
  bool gateIsY = *ay != llm::Activation::None;
  const Meaning &gateMeaning = gateIsY ? my : mx, &upMeaning = gateIsY ? mx : my;
  mlir::Value gate = emit(gateMeaning.source), up = emit(upMeaning.source);
  if (!gate || !up || gate.getType() != up.getType() || !mx.layout || !my.layout ||
      mx.layout->normalized() != my.layout->normalized())
    return fail(node, "multiplies rows of different forms");
  mlir::Location loc = newSource(Source::Kind::Op, out, 0)->loc;
  opSource(out, llm::GluOp::create(b, loc, up.getType(), gate, up, gateIsY ? *ay : *ax),
           *mx.layout);
  return true;
}
