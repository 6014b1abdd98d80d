//===- ModelBuilder.cpp - one decoder from a row and its numbers ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/ModelBuilder.h"
#include "frontends/common/ImportError.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace llmc;
using namespace llmc::gguf;
using namespace mlir;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Rows of a tensor that holds several weights one after the other; without a name: none.
struct Fused {
  std::string tensor; ///< without ".weight" or ".bias"
  uint64_t begin = 0, total = 0;
};

/// When the `.scale` of a weight is applied: to x W^T, or to x W^T + b.
enum class ScaleUse { None, BeforeBias, AfterBias };

/// A weight with its optional bias.
struct Projection {
  FlatSymbolRefAttr weight, bias;
  int64_t rows = 0;
};

class ModelBuilder {
public:
  ModelBuilder(const GgufSet &set, const Architecture &arch, const Hyperparameters &h,
               MLIRContext &context)
      : set(set), arch(arch), h(h), b(&context), symbols(&context), fileName(set.primary().path()) {
  }

  Expected<BuiltModel> build();

private:
  // Symbols.
  FlatSymbolRefAttr declare(const Twine &symbol, const GgufSet::Place &place,
                            ArrayRef<Attribute> recipe);
  FlatSymbolRefAttr matrix(const Twine &name, uint64_t rows, uint64_t columns);
  FlatSymbolRefAttr vector(const Twine &name, uint64_t size);
  StringRef owner(StringRef name, StringRef kind, const Fused &fused);
  FlatSymbolRefAttr part(StringRef name, StringRef kind, const Fused &fused, uint64_t rows,
                         uint64_t columns, float scale);
  Projection project(StringRef name, uint64_t rows, uint64_t columns, ScaleUse scaleUse,
                     const Fused &fused);
  float scaleOf(const Twine &name);
  SmallVector<Attribute> scaling(const GgufSet::Place &place, float scale);
  FlatSymbolRefAttr ropeTable(const RopeParameters &parameters);
  FlatSymbolRefAttr kvCache(size_t layer);

  // Ops.
  RankedTensorType rows(uint64_t features) {
    return RankedTensorType::get({ShapedType::kDynamic, int64_t(features)}, b.getF32Type());
  }
  void at(const Twine &name) { loc = NameLoc::get(b.getStringAttr(name)); }
  Value norm(Value x, const Twine &name, uint64_t groups = 1);
  Value linear(Value x, const Projection &projection);
  Value linear(Value x, const std::string &name, uint64_t features, ScaleUse scaleUse,
               const Fused &fused = {});
  Value add(Value x, Value y);
  Value attentionBlock(Value x, size_t layer);
  Value mlpBlock(Value x, size_t layer);
  Value layer(Value x, size_t layer);
  Value head(Value x, uint64_t vocabulary);

  void fail(Error error) {
    if (firstError)
      return llvm::consumeError(std::move(error));
    firstError.emplace(std::move(error));
  }
  bool has(const Twine &name) { return set.find(name.str()) != nullptr; }
  const GgufSet::Place *find(const Twine &name, bool required);
  bool checkShape(const GgufSet::Place &place, ArrayRef<uint64_t> shape);

  const GgufSet &set;
  const Architecture &arch;
  const Hyperparameters &h;
  OpBuilder b, symbols; ///< in the function; in the module, before the function
  StringRef fileName;
  Location loc = b.getUnknownLoc();
  Value positions;
  llvm::StringMap<FlatSymbolRefAttr> declared;
  llvm::StringSet<> used; ///< tensors
  std::vector<std::pair<RopeTable, FlatSymbolRefAttr>> ropeTables;
  std::optional<Error> firstError;
};

} // namespace

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

const GgufSet::Place *ModelBuilder::find(const Twine &name, bool required) {
  const GgufSet::Place *place = set.find(name.str());
  if (place)
    used.insert(place->tensor->name);
  else if (required)
    fail(corrupt(fileName, "tensor " + quoted(name.str()) + " is missing, which architecture " +
                               arch.name + " needs"));
  return place;
}

static std::string shapeText(ArrayRef<uint64_t> shape) {
  return llvm::join(llvm::map_range(shape, [](uint64_t d) { return std::to_string(d); }), "x");
}

bool ModelBuilder::checkShape(const GgufSet::Place &place, ArrayRef<uint64_t> shape) {
  // Leading ones of the file's shape are gone; a matrix of one row comes as a vector.
  while (shape.size() > 1 && shape.front() == 1)
    shape = shape.drop_front();
  if (place.tensor->shape == shape)
    return true;
  fail(corrupt(fileName, "tensor " + quoted(place.tensor->name) + " is " +
                             shapeText(place.tensor->shape) + ", the metadata asks for " +
                             shapeText(shape)));
  return false;
}

FlatSymbolRefAttr ModelBuilder::declare(const Twine &symbol, const GgufSet::Place &place,
                                        ArrayRef<Attribute> recipe) {
  std::string name = symbol.str();
  auto [it, isNew] = declared.try_emplace(name);
  if (!isNew)
    return it->second;
  SmallVector<int64_t> shape(place.tensor->shape.begin(), place.tensor->shape.end());
  llm::WeightOp::create(symbols, NameLoc::get(b.getStringAttr(name)), name, shape,
                        place.tensor->encoding->name, int64_t(place.file),
                        int64_t(place.tensor->offset), b.getArrayAttr(recipe));
  return it->second = FlatSymbolRefAttr::get(b.getContext(), name);
}

FlatSymbolRefAttr ModelBuilder::matrix(const Twine &name, uint64_t rowCount, uint64_t columns) {
  const GgufSet::Place *place = find(name, /*required=*/true);
  if (!place || !checkShape(*place, {rowCount, columns}))
    return {};
  return declare(name, *place, {});
}

/// A vector as float32.
FlatSymbolRefAttr ModelBuilder::vector(const Twine &name, uint64_t size) {
  const GgufSet::Place *place = find(name, /*required=*/true);
  if (!place || !checkShape(*place, {size}))
    return {};
  return declare(name, *place, scaling(*place, 1));
}

/// Steps that make a tensor float32 times `scale`; none where it is that already.
SmallVector<Attribute> ModelBuilder::scaling(const GgufSet::Place &place, float scale) {
  SmallVector<Attribute> steps;
  if (place.tensor->encoding->name != "f32")
    steps.push_back(llm::CastAttr::get(b.getContext(), "f32"));
  if (scale != 1)
    steps.push_back(llm::ScaleAttr::get(b.getContext(), b.getF32FloatAttr(scale)));
  return steps;
}

/// The number in `<name>.scale`, which goes with a weight; 1 where there is none.
float ModelBuilder::scaleOf(const Twine &name) {
  const GgufSet::Place *place = find(name + ".scale", /*required=*/false);
  if (!place || !checkShape(*place, {1}))
    return 1;
  float scale = 1;
  dequantizeRow(*place->tensor->encoding, set.data(*place), &scale, 1);
  if (!std::isfinite(scale))
    fail(corrupt(fileName, "tensor " + quoted(place->tensor->name) + " is not finite"));
  return scale;
}

/// The tensor, without its kind, that holds `<name>.<kind>`: its own, or the fused one.
StringRef ModelBuilder::owner(StringRef name, StringRef kind, const Fused &fused) {
  bool alone = fused.tensor.empty() || (name != fused.tensor && has(name + "." + kind));
  return alone ? name : StringRef(fused.tensor);
}

/// `<name>.<kind>` (weight or bias), all of its owner or some rows of it; null for a bias that is
/// not there. `columns` is 0 for a bias.
FlatSymbolRefAttr ModelBuilder::part(StringRef name, StringRef kind, const Fused &fused,
                                     uint64_t rowCount, uint64_t columns, float scale) {
  const GgufSet::Place *place =
      find(owner(name, kind, fused) + "." + kind, /*required=*/columns != 0);
  if (!place)
    return {};
  bool isSlice = !fused.tensor.empty() && owner(name, kind, fused) == fused.tensor;
  SmallVector<uint64_t> shape{isSlice ? fused.total : rowCount};
  if (columns)
    shape.push_back(columns);
  if (!checkShape(*place, shape))
    return {};
  SmallVector<Attribute> recipe;
  if (isSlice)
    recipe.push_back(
        llm::SliceRowsAttr::get(b.getContext(), int64_t(fused.begin), int64_t(rowCount)));
  if (scale != 1 || !columns)
    recipe.append(scaling(*place, scale));
  return declare(name + "." + kind, *place, recipe);
}

Projection ModelBuilder::project(StringRef name, uint64_t rowCount, uint64_t columns,
                                 ScaleUse scaleUse, const Fused &fused) {
  float scale = scaleUse == ScaleUse::None ? 1 : scaleOf(owner(name, "weight", fused));
  float biasScale = scaleUse == ScaleUse::AfterBias ? scale : 1;
  return {part(name, "weight", fused, rowCount, columns, scale),
          part(name, "bias", fused, rowCount, 0, biasScale), int64_t(rowCount)};
}

FlatSymbolRefAttr ModelBuilder::ropeTable(const RopeParameters &parameters) {
  RopeTable table = computeRope(parameters);
  for (const auto &[known, symbol] : ropeTables)
    if (known == table)
      return symbol;
  std::string name = "rope." + std::to_string(ropeTables.size());
  llm::RopeTableOp::create(symbols, NameLoc::get(b.getStringAttr(name)), name, table.kind,
                           table.invFreq, llvm::APFloat(table.mscale));
  ropeTables.emplace_back(std::move(table), FlatSymbolRefAttr::get(b.getContext(), name));
  return ropeTables.back().second;
}

FlatSymbolRefAttr ModelBuilder::kvCache(size_t i) {
  std::string name = "kv." + std::to_string(i);
  const LayerParameters &layer = h.layers[i];
  llm::KvOp::create(symbols, loc, name, int64_t(layer.kvHeads), int64_t(h.headDim), "f16",
                    int64_t(layer.window), /*capacity=*/IntegerAttr(), /*k_offset=*/IntegerAttr(),
                    /*v_offset=*/IntegerAttr());
  return FlatSymbolRefAttr::get(b.getContext(), name);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value ModelBuilder::norm(Value x, const Twine &name, uint64_t groups) {
  at(name);
  uint64_t size = uint64_t(llm::features(x)) / groups;
  FlatSymbolRefAttr weight = vector(name + ".weight", size), bias;
  if (arch.norm == llm::NormKind::Layer && has(name + ".bias"))
    bias = vector(name + ".bias", size);
  if (!weight)
    return x;
  auto attr = llm::NormAttr::get(b.getContext(), arch.norm, weight, bias,
                                 b.getF32FloatAttr(float(h.epsilon)));
  return llm::NormOp::create(b, loc, x.getType(), x, attr, int64_t(groups));
}

Value ModelBuilder::linear(Value x, const Projection &projection) {
  if (!projection.weight)
    return x; // after an error
  ArrayAttr biases = projection.bias ? b.getArrayAttr({projection.bias}) : ArrayAttr();
  return llm::LinearOp::create(b, loc, TypeRange{rows(uint64_t(projection.rows))}, x,
                               b.getArrayAttr({projection.weight}), biases)
      .getResult(0);
}

Value ModelBuilder::linear(Value x, const std::string &name, uint64_t features, ScaleUse scaleUse,
                           const Fused &fused) {
  at(name);
  return linear(x, project(name, features, uint64_t(llm::features(x)), scaleUse, fused));
}

Value ModelBuilder::add(Value x, Value y) {
  if (x.getType() != y.getType())
    return x; // after an error
  return llm::AddOp::create(b, loc, x.getType(), x, y, b.getF32FloatAttr(float(h.residualScale)));
}

Value ModelBuilder::attentionBlock(Value x, size_t i) {
  const LayerParameters &layer = h.layers[i];
  std::string blk = "blk." + std::to_string(i) + ".";
  uint64_t queries = layer.heads * h.headDim, keys = layer.kvHeads * h.headDim;
  std::string qkv = has(blk + "attn_qkv.weight") ? blk + "attn_qkv" : "";
  auto project = [&](StringRef name, uint64_t features, uint64_t begin) {
    return linear(x, blk + name.str(), features, ScaleUse::BeforeBias,
                  Fused{qkv, begin, queries + 2 * keys});
  };
  Value q = project("attn_q", queries, 0);
  Value k = project("attn_k", keys, queries);
  Value v = project("attn_v", keys, queries + keys);
  if (firstError)
    return x;

  if (arch.qkNorm != QkNorm::None) {
    bool perHead = arch.qkNorm == QkNorm::PerHead;
    q = norm(q, blk + "attn_q_norm", perHead ? layer.heads : 1);
    k = norm(k, blk + "attn_k_norm", perHead ? layer.kvHeads : 1);
  }
  at(blk + "attn");
  if (layer.rope) {
    FlatSymbolRefAttr table = ropeTable(layer.local ? h.localRope : h.rope);
    q = llm::RopeOp::create(b, loc, q.getType(), q, positions, table,
                            b.getI64IntegerAttr(int64_t(layer.heads)));
    k = llm::RopeOp::create(b, loc, k.getType(), k, positions, table,
                            b.getI64IntegerAttr(int64_t(layer.kvHeads)));
  }
  Value attended = llm::AttentionOp::create(
      b, loc, q.getType(), q, k, v, positions, kvCache(i), b.getI64IntegerAttr(layer.heads),
      b.getF32FloatAttr(float(h.attentionScale)), b.getF32FloatAttr(float(h.scoreCap)));
  return linear(attended, blk + "attn_output", h.width, ScaleUse::BeforeBias);
}

Value ModelBuilder::mlpBlock(Value x, size_t i) {
  uint64_t inner = h.layers[i].mlpWidth;
  std::string blk = "blk." + std::to_string(i) + ".";
  ScaleUse scales = arch.mlpScales ? ScaleUse::AfterBias : ScaleUse::None;
  Value hidden;
  if (arch.mlp == Mlp::Plain) {
    hidden = linear(x, blk + "ffn_up", inner, scales);
    hidden = llm::ActOp::create(b, loc, hidden.getType(), hidden, arch.activation);
  } else {
    // Fused, ffn_up holds the gate's rows, then its own.
    std::string fused = arch.mlp == Mlp::FusedGate ? blk + "ffn_up" : "";
    Value gate = linear(x, blk + "ffn_gate", inner, scales, Fused{fused, 0, 2 * inner});
    Value up = linear(x, blk + "ffn_up", inner, scales, Fused{fused, inner, 2 * inner});
    if (firstError)
      return x;
    hidden = llm::GluOp::create(b, loc, up.getType(), gate, up, arch.activation);
  }
  return linear(hidden, blk + "ffn_down", h.width, scales);
}

Value ModelBuilder::layer(Value x, size_t i) {
  std::string blk = "blk." + std::to_string(i);
  Operation *before = b.getInsertionBlock()->empty() ? nullptr : &b.getInsertionBlock()->back();
  struct Half {
    Value (ModelBuilder::*block)(Value, size_t);
    StringRef normBefore, normAfter;
  };
  for (const Half &half :
       {Half{&ModelBuilder::attentionBlock, ".attn_norm", ".post_attention_norm"},
        Half{&ModelBuilder::mlpBlock, ".ffn_norm", ".post_ffw_norm"}}) {
    Value y = arch.normBefore ? norm(x, blk + half.normBefore) : x;
    y = (this->*half.block)(y, i);
    if (arch.normAfter)
      y = norm(y, blk + half.normAfter);
    at(blk);
    x = add(x, y);
  }
  for (Operation *op = &b.getInsertionBlock()->back(); op && op != before; op = op->getPrevNode())
    op->setAttr("llm.layer", b.getI64IntegerAttr(int64_t(i)));
  return x;
}

Value ModelBuilder::head(Value x, uint64_t vocabulary) {
  x = norm(x, "output_norm");
  // Without an output matrix of its own the model shares the embedding's.
  bool shared = !has("output.weight");
  at(shared ? "token_embd" : "output");
  Projection projection;
  projection.rows = int64_t(vocabulary);
  projection.weight = matrix(shared ? "token_embd.weight" : "output.weight", vocabulary, h.width);
  if (has("output.bias"))
    projection.bias = vector("output.bias", vocabulary);
  x = linear(x, projection);
  if (h.logitScale != 1)
    x = llm::ScaleOp::create(b, loc, x.getType(), x, b.getF32FloatAttr(float(h.logitScale)));
  if (h.logitCap != 0)
    x = llm::SoftcapOp::create(b, loc, x.getType(), x, b.getF32FloatAttr(float(h.logitCap)));
  return x;
}

Expected<BuiltModel> ModelBuilder::build() {
  BuiltModel model;
  const GgufSet::Place *embedding = set.find("token_embd.weight");
  model.vocabulary =
      embedding && embedding->tensor->shape.size() == 2 ? embedding->tensor->shape[0] : 1;

  at(arch.name);
  model.module = ModuleOp::create(loc);
  symbols.setInsertionPointToStart(model.module->getBody());
  auto ids = RankedTensorType::get({ShapedType::kDynamic}, b.getI32Type());
  auto function = func::FuncOp::create(symbols, loc, llm::kForwardName,
                                       b.getFunctionType({ids, ids}, {rows(model.vocabulary)}));
  symbols.setInsertionPoint(function);
  b.setInsertionPointToStart(function.addEntryBlock());
  positions = function.getArgument(1);

  at("token_embd");
  FlatSymbolRefAttr table = matrix("token_embd.weight", model.vocabulary, h.width);
  if (firstError)
    return std::move(*firstError);
  Value x = llm::EmbedOp::create(b, loc, rows(h.width), function.getArgument(0), table,
                                 b.getF32FloatAttr(float(h.embeddingScale)));
  for (size_t i = 0; i < h.layers.size(); ++i) {
    x = layer(x, i);
    if (firstError)
      return std::move(*firstError);
  }
  x = head(x, model.vocabulary);
  if (firstError)
    return std::move(*firstError);
  func::ReturnOp::create(b, loc, x);

  used.insert(h.factorTensor);
  for (const GgufFile &file : set.parts())
    for (const Tensor &tensor : file.tensors())
      if (!used.contains(tensor.name))
        model.unusedTensors.push_back(tensor.name.str());
  return std::move(model);
}

Expected<BuiltModel> gguf::buildModel(const GgufSet &set, const Architecture &architecture,
                                      const Hyperparameters &parameters, MLIRContext &context) {
  context.loadDialect<llm::LlmDialect, func::FuncDialect>();
  return ModelBuilder(set, architecture, parameters, context).build();
}
