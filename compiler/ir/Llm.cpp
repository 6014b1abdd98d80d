//===- Llm.cpp - the llm dialect ------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Llm.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

#include "compiler/ir/LlmDialect.cpp.inc"

#include "compiler/ir/LlmEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/ir/LlmAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/ir/LlmOps.cpp.inc"

void LlmDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/ir/LlmAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/ir/LlmOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

namespace {
/// What a weight looks like after some steps of its recipe.
struct WeightState {
  SmallVector<int64_t> shape;
  StringRef encoding;
};

bool isFloatEncoding(StringRef encoding) {
  return encoding == "f32" || encoding == "f16" || encoding == "bf16";
}

/// Applies one recipe step to `state`; says in `emit` why it cannot.
LogicalResult applyStep(Attribute step, WeightState &state,
                        function_ref<InFlightDiagnostic()> emit) {
  return TypeSwitch<Attribute, LogicalResult>(step)
      .Case([&](SliceRowsAttr slice) -> LogicalResult {
        // A vector is sliced along its only dimension.
        int64_t rows = state.shape[0];
        if (slice.getBegin() < 0 || slice.getCount() <= 0 ||
            slice.getCount() > rows - slice.getBegin())
          return emit() << "slice_rows<" << slice.getBegin() << ", " << slice.getCount()
                        << "> leaves the " << rows << " rows";
        state.shape[0] = slice.getCount();
        return success();
      })
      .Case([&](TransposeAttr) -> LogicalResult {
        if (state.shape.size() != 2 || !isFloatEncoding(state.encoding))
          return emit() << "transpose of a weight that is no matrix of floats";
        std::swap(state.shape[0], state.shape[1]);
        return success();
      })
      .Case([&](CastAttr cast) -> LogicalResult {
        if (!isFloatEncoding(cast.getEncoding()))
          return emit() << "cast to '" << cast.getEncoding() << "', which is not a float encoding";
        state.encoding = cast.getEncoding();
        return success();
      })
      .Case([&](ScaleAttr) -> LogicalResult {
        if (state.encoding != "f32")
          return emit() << "scale of a weight in '" << state.encoding << "'; cast it to f32 first";
        return success();
      })
      .Case([&](QuantizeAttr quantize) -> LogicalResult {
        if (state.shape.size() != 2)
          return emit() << "quantize<\"" << quantize.getEncoding() << "\"> of a vector";
        state.encoding = quantize.getEncoding();
        return success();
      })
      .Case([&](PackAttr) { return success(); })
      .Default([&](Attribute) -> LogicalResult {
        return emit() << "recipe step " << step << " is not known";
      });
}

WeightState finalState(WeightOp op) {
  WeightState state{SmallVector<int64_t>(op.getShape()), op.getEncoding()};
  for (Attribute step : op.getRecipe())
    (void)applyStep(step, state, [&] { return op.emitOpError(); });
  return state;
}
} // namespace

LogicalResult WeightOp::verify() {
  if (getShape().empty() || getShape().size() > 2)
    return emitOpError("has ") << getShape().size() << " dimensions; 1 or 2 expected";
  for (int64_t dim : getShape())
    if (dim <= 0)
      return emitOpError("has a dimension of ") << dim;
  WeightState state{SmallVector<int64_t>(getShape()), getEncoding()};
  for (auto [i, step] : llvm::enumerate(getRecipe())) {
    if (i > 0 && isa<PackAttr>(getRecipe()[i - 1]))
      return emitOpError("has a step after its pack step");
    if (i > 0 && isa<QuantizeAttr>(getRecipe()[i - 1]) && !isa<PackAttr>(step))
      return emitOpError("has a step other than pack after its quantize step");
    if (isa<TransposeAttr>(step) && (i > 0 || getParts()))
      return emitOpError("has a transpose that is not the first step");
    if (failed(applyStep(step, state, [&] { return emitOpError("recipe: "); })))
      return failure();
  }
  return success();
}

SmallVector<int64_t> WeightOp::getFinalShape() { return finalState(*this).shape; }
StringRef WeightOp::getFinalEncoding() { return finalState(*this).encoding; }

void WeightOp::appendStep(Attribute step) {
  SmallVector<Attribute> steps(getRecipe().begin(), getRecipe().end());
  steps.push_back(step);
  setRecipeAttr(ArrayAttr::get(getContext(), steps));
}

LogicalResult KvOp::verify() {
  if (getEncoding() != "f16" && getEncoding() != "f32")
    return emitOpError("has encoding '") << getEncoding() << "'; f16 or f32 expected";
  if (getCapacity() && *getCapacity() % 256)
    return emitOpError("has capacity ") << *getCapacity() << ", which is no multiple of 256";
  return success();
}

LogicalResult RopeTableOp::verify() {
  if (getInvFreq().empty())
    return emitOpError("has no frequencies");
  return success();
}

//===----------------------------------------------------------------------===//
// Checks shared by ops
//===----------------------------------------------------------------------===//

static FailureOr<WeightOp> findWeight(Operation *op, SymbolTableCollection &symbols,
                                      FlatSymbolRefAttr name) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, name);
  if (!weight)
    return op->emitOpError("uses ") << name << ", which is no llm.weight";
  return weight;
}

static LogicalResult checkMatrix(Operation *op, SymbolTableCollection &symbols,
                                 FlatSymbolRefAttr name, int64_t rows, int64_t columns) {
  FailureOr<WeightOp> weight = findWeight(op, symbols, name);
  if (failed(weight))
    return failure();
  if (weight->getRows() != rows || weight->getColumns() != columns)
    return op->emitOpError("needs ") << name << " to be " << rows << "x" << columns << ", it is "
                                     << weight->getRows() << "x" << weight->getColumns();
  return success();
}

static LogicalResult checkNorm(Operation *op, SymbolTableCollection &symbols, NormAttr norm,
                               int64_t columns) {
  if (!norm)
    return success();
  if (norm.getKind() == NormKind::Rms && norm.getBias())
    return op->emitOpError("has an rms norm with a bias");
  if (failed(checkMatrix(op, symbols, norm.getWeight(), 1, columns)))
    return failure();
  return norm.getBias() ? checkMatrix(op, symbols, norm.getBias(), 1, columns) : success();
}

static LogicalResult checkProjection(Operation *op, ArrayAttr weights,
                                     std::optional<ArrayAttr> biases) {
  if (weights.empty())
    return op->emitOpError("has no weights");
  for (Attribute weight : weights)
    if (!isa<FlatSymbolRefAttr>(weight))
      return op->emitOpError("has ") << weight << " where a weight's symbol is expected";
  if (!biases)
    return success();
  if (biases->size() != weights.size())
    return op->emitOpError("has ") << weights.size() << " weights but " << biases->size()
                                   << " biases; write unit for a weight without bias";
  for (Attribute bias : *biases)
    if (!isa<FlatSymbolRefAttr, UnitAttr>(bias))
      return op->emitOpError("has ") << bias << " where a bias' symbol or unit is expected";
  return success();
}

static LogicalResult checkKv(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                             KvOp &kv) {
  kv = symbols.lookupNearestSymbolFrom<KvOp>(op, name);
  if (!kv)
    return op->emitOpError("uses ") << name << ", which is no llm.kv";
  return success();
}

static LogicalResult checkHeads(Operation *op, KvOp kv, int64_t heads, int64_t queryFeatures) {
  int64_t kvHeads = kv.getHeads(), headDim = kv.getHeadDim();
  if (heads % kvHeads)
    return op->emitOpError("has ") << heads << " heads, no multiple of the cache's " << kvHeads;
  if (queryFeatures != heads * headDim)
    return op->emitOpError("has a query of ")
           << queryFeatures << " features, " << heads << " heads of " << headDim << " need "
           << heads * headDim;
  return success();
}

static LogicalResult checkKeyValue(Operation *op, KvOp kv, Value key, Value value) {
  int64_t want = kv.getHeads() * kv.getHeadDim();
  if (features(key) != want || features(value) != want)
    return op->emitOpError("writes ")
           << features(key) << " and " << features(value) << " features to a cache of " << want;
  return success();
}

static LogicalResult checkRope(Operation *op, SymbolTableCollection &symbols,
                               FlatSymbolRefAttr name, int64_t headDim) {
  auto table = symbols.lookupNearestSymbolFrom<RopeTableOp>(op, name);
  if (!table)
    return op->emitOpError("uses ") << name << ", which is no llm.rope_table";
  if (int64_t(table.getInvFreq().size()) * 2 > headDim)
    return op->emitOpError("rotates ")
           << table.getInvFreq().size() * 2 << " features of heads of " << headDim;
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<WeightOp> table = findWeight(*this, symbols, getWeightAttr());
  if (failed(table))
    return failure();
  // The vocabulary is as large as the table is.
  return checkMatrix(*this, symbols, getWeightAttr(), table->getRows(), features(getResult()));
}

bool LinearOp::hasPlainEpilogue() {
  return !getResidual() && !getGated() && getActivation() == Activation::None &&
         getScale().convertToFloat() == 1.0f && getSoftcap().convertToFloat() == 0.0f;
}

LogicalResult LinearOp::verify() {
  if (failed(checkProjection(*this, getWeights(), getBiases())))
    return failure();
  size_t results = getNumResults(), weights = getWeights().size();
  if (getGated() && (weights != 2 || results != 1))
    return emitOpError("is gated: it needs two weights and one result, it has ")
           << weights << " and " << results;
  if (!getGated() && results != weights)
    return emitOpError("has ") << weights << " weights but " << results << " results";
  if (getResidual() && (results != 1 || getResidual().getType() != getResult(0).getType()))
    return emitOpError("has a residual that does not match its one result");
  return success();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t columns = features(getInput());
  for (unsigned i = 0, e = getWeights().size(); i < e; ++i) {
    int64_t rows = features(getResult(getGated() ? 0 : i));
    if (failed(checkMatrix(*this, symbols, getWeight(i), rows, columns)))
      return failure();
    if (getBias(i) && failed(checkMatrix(*this, symbols, getBias(i), 1, rows)))
      return failure();
  }
  return checkNorm(*this, symbols, getNormAttr(), columns);
}

LogicalResult NormOp::verify() {
  if (features(getInput()) % getGroups())
    return emitOpError("cannot split ")
           << features(getInput()) << " features into " << getGroups() << " groups";
  return success();
}

LogicalResult NormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkNorm(*this, symbols, getNorm(), features(getInput()) / getGroups());
}

LogicalResult SoftcapOp::verify() {
  if (!(getCap().convertToFloat() > 0))
    return emitOpError("needs a positive cap");
  return success();
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().convertToFloat() == 1.0f ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult RopeOp::verify() {
  if (features(getInput()) % getHeads())
    return emitOpError("cannot split ")
           << features(getInput()) << " features into " << getHeads() << " heads";
  return success();
}

LogicalResult RopeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkRope(*this, symbols, getTableAttr(), features(getInput()) / getHeads());
}

LogicalResult KvAppendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KvOp kv;
  if (failed(checkKv(*this, symbols, getKvAttr(), kv)))
    return failure();
  return checkKeyValue(*this, kv, getKey(), getValue());
}

static LogicalResult verifyAttend(Operation *op, Value query, Value result) {
  if (query.getType() != result.getType())
    return op->emitOpError("must give the type of its query");
  return success();
}

LogicalResult AttendOp::verify() { return verifyAttend(*this, getQuery(), getResult()); }
LogicalResult AttentionOp::verify() { return verifyAttend(*this, getQuery(), getResult()); }

static LogicalResult checkDirection(Operation *op, KvOp kv, bool bidirectional) {
  if (bidirectional && kv.getWindow())
    return op->emitOpError("sees all rows of a step, but ")
           << kv.getSymNameAttr() << " has a window of " << kv.getWindow();
  return success();
}

LogicalResult AttendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KvOp kv;
  if (failed(checkKv(*this, symbols, getKvAttr(), kv)) ||
      failed(checkDirection(*this, kv, getBidirectional())))
    return failure();
  return checkHeads(*this, kv, getHeads(), features(getQuery()));
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KvOp kv;
  if (failed(checkKv(*this, symbols, getKvAttr(), kv)) ||
      failed(checkDirection(*this, kv, getBidirectional())) ||
      failed(checkKeyValue(*this, kv, getKey(), getValue())))
    return failure();
  return checkHeads(*this, kv, getHeads(), features(getQuery()));
}

LogicalResult QkvOp::verify() {
  if (failed(checkProjection(*this, getWeights(), getBiases())))
    return failure();
  if (getWeights().size() != 3)
    return emitOpError("has ") << getWeights().size() << " weights; query, key, value expected";
  return success();
}

LogicalResult QkvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KvOp kv;
  if (failed(checkKv(*this, symbols, getKvAttr(), kv)) ||
      failed(checkHeads(*this, kv, getHeads(), features(getQuery()))))
    return failure();
  int64_t columns = features(getInput()), kvFeatures = kv.getHeads() * kv.getHeadDim();
  for (unsigned i = 0; i < 3; ++i) {
    int64_t rows = i == 0 ? features(getQuery()) : kvFeatures;
    if (failed(checkMatrix(*this, symbols, getWeight(i), rows, columns)))
      return failure();
    if (getBias(i) && failed(checkMatrix(*this, symbols, getBias(i), 1, rows)))
      return failure();
  }
  if (failed(checkNorm(*this, symbols, getNormAttr(), columns)) ||
      failed(checkNorm(*this, symbols, getQNormAttr(), kv.getHeadDim())) ||
      failed(checkNorm(*this, symbols, getKNormAttr(), kv.getHeadDim())))
    return failure();
  return getRopeAttr() ? checkRope(*this, symbols, getRopeAttr(), kv.getHeadDim()) : success();
}
