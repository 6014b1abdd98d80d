//===- Interpreter.cpp - the llm dialect, evaluated -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/RowMath.h"
#include "compiler/weights/Recipe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Parallel.h"
#include <cmath>
#include <numeric>

using namespace llmc;
using namespace llmc::reference;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace {
struct Weight {
  Recipe recipe;
  int64_t rows, columns;
};

Error makeError(Operation *op, const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 op->getName().getStringRef() + ": " + message);
}
} // namespace

class Interpreter::Impl {
public:
  Impl(ModuleOp module) : module(module) {}
  Error load(llvm::ArrayRef<SourceFile> files);
  Expected<std::vector<float>> step(llvm::ArrayRef<int32_t> tokens, int64_t position,
                                    llvm::ArrayRef<int64_t> outRows);

  ModuleOp module;
  func::FuncOp function;
  llvm::DenseMap<StringAttr, std::unique_ptr<Weight>> weights;
  llvm::DenseMap<StringAttr, KvState> caches;
  llvm::DenseMap<StringAttr, llm::RopeTableOp> ropeTables;

private:
  Error evaluate(Operation *op);

  const Rows &in(Value value) { return values.find(value)->second; }
  const Weight &weight(FlatSymbolRefAttr symbol) { return *weights.find(symbol.getAttr())->second; }
  std::vector<float> vector(FlatSymbolRefAttr symbol);
  Rows project(const Rows &x, FlatSymbolRefAttr symbol, FlatSymbolRefAttr bias);
  Rows normalized(Rows x, llm::NormAttr norm, int64_t groups = 1);
  Rows rotated(Rows x, FlatSymbolRefAttr table, int64_t heads);
  /// Whether the ids are the step's positions.
  bool embedsPositions(llm::EmbedOp op) { return op.getTokens() == function.getArgument(1); }
  Rows embed(llm::EmbedOp op);
  void linear(llm::LinearOp op);
  Rows qkv(llm::QkvOp op);
  void append(FlatSymbolRefAttr kv, const Rows &key, const Rows &value);
  template <typename AttendLike> Rows attended(AttendLike op);

  // Of the step that runs.
  llvm::ArrayRef<int32_t> tokens;
  llvm::ArrayRef<int64_t> outRows;
  int64_t position = 0;
  bool rowsSelected = false;
  llvm::DenseMap<Value, Rows> values;
};

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Error Interpreter::Impl::load(llvm::ArrayRef<SourceFile> files) {
  function = module.lookupSymbol<func::FuncOp>(llm::kForwardName);
  if (!function || !function.getBody().hasOneBlock() || function.getNumArguments() != 2)
    return llvm::createStringError("the module has no function @forward of tokens and positions");
  for (auto weight : module.getOps<llm::WeightOp>()) {
    Expected<Recipe> recipe = Recipe::create(weight, files);
    if (!recipe)
      return recipe.takeError();
    weights[weight.getSymNameAttr()] =
        std::make_unique<Weight>(Weight{std::move(*recipe), weight.getRows(), weight.getColumns()});
  }
  for (auto kv : module.getOps<llm::KvOp>()) {
    KvState state;
    state.heads = int64_t(kv.getHeads());
    state.headDim = int64_t(kv.getHeadDim());
    state.window = int64_t(kv.getWindow());
    state.half = kv.getEncoding() == "f16";
    caches.try_emplace(kv.getSymNameAttr(), std::move(state));
  }
  for (auto table : module.getOps<llm::RopeTableOp>())
    ropeTables.try_emplace(table.getSymNameAttr(), table);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Parts of ops
//===----------------------------------------------------------------------===//

std::vector<float> Interpreter::Impl::vector(FlatSymbolRefAttr symbol) {
  if (!symbol)
    return {};
  std::vector<float> row(size_t(weight(symbol).columns));
  weight(symbol).recipe.dequantizeRow(0, row.data());
  return row;
}

/// x W^T + b.
Rows Interpreter::Impl::project(const Rows &x, FlatSymbolRefAttr symbol, FlatSymbolRefAttr bias) {
  const Weight &w = weight(symbol);
  std::vector<float> b = vector(bias);
  Rows y(x.count, w.rows);
  constexpr int64_t kRowsPerTask = 64;
  llvm::parallelFor(0, size_t((w.rows + kRowsPerTask - 1) / kRowsPerTask), [&](size_t task) {
    std::vector<float> row(size_t(w.columns));
    int64_t begin = int64_t(task) * kRowsPerTask, end = std::min(w.rows, begin + kRowsPerTask);
    for (int64_t n = begin; n < end; ++n) {
      w.recipe.dequantizeRow(uint64_t(n), row.data());
      for (int64_t m = 0; m < x.count; ++m)
        y.row(m)[n] =
            float(dot(x.row(m), row.data(), w.columns) + (b.empty() ? 0.0f : b[size_t(n)]));
    }
  });
  return y;
}

Rows Interpreter::Impl::normalized(Rows x, llm::NormAttr norm, int64_t groups) {
  if (!norm)
    return x;
  std::vector<float> weight = vector(norm.getWeight()), bias = vector(norm.getBias());
  int64_t size = x.features / groups;
  for (int64_t m = 0; m < x.count; ++m)
    for (int64_t g = 0; g < groups; ++g)
      normalize(norm.getKind(), x.row(m) + g * size, size, weight.data(),
                bias.empty() ? nullptr : bias.data(), norm.getEps().getValueAsDouble());
  return x;
}

Rows Interpreter::Impl::rotated(Rows x, FlatSymbolRefAttr table, int64_t heads) {
  llm::RopeTableOp rope = ropeTables.lookup(table.getAttr());
  for (int64_t m = 0; m < x.count; ++m)
    for (int64_t head = 0; head < heads; ++head)
      rotate(x.row(m) + head * (x.features / heads), int32_t(position + m), rope);
  return x;
}

Rows Interpreter::Impl::embed(llm::EmbedOp op) {
  const Weight &table = weight(op.getWeightAttr());
  float scale = op.getScale().convertToFloat();
  Rows x(int64_t(tokens.size()), table.columns);
  for (int64_t m = 0; m < x.count; ++m) {
    int64_t id = embedsPositions(op) ? position + m : tokens[size_t(m)];
    table.recipe.dequantizeRow(uint64_t(id), x.row(m));
    std::transform(x.row(m), x.row(m) + x.features, x.row(m), [&](float v) { return v * scale; });
  }
  return x;
}

void Interpreter::Impl::linear(llm::LinearOp op) {
  Rows h = normalized(in(op.getInput()), op.getNormAttr());
  std::vector<Rows> results;
  for (unsigned i = 0; i < op.getWeights().size(); ++i)
    results.push_back(project(h, op.getWeight(i), op.getBias(i)));
  llm::Activation activation = op.getActivation();
  if (op.getGated()) {
    std::transform(results[0].data.begin(), results[0].data.end(), results[1].data.begin(),
                   results[0].data.begin(),
                   [&](float gate, float up) { return activate(activation, gate) * up; });
    results.pop_back();
    activation = llm::Activation::None;
  }
  float scale = op.getScale().convertToFloat(), cap = op.getSoftcap().convertToFloat();
  for (auto [result, y] : llvm::zip_equal(op.getResults(), results)) {
    for (float &v : y.data) {
      v = activate(activation, v) * scale;
      v = cap != 0 ? softcap(v, cap) : v;
    }
    if (op.getResidual())
      std::transform(y.data.begin(), y.data.end(), in(op.getResidual()).data.begin(),
                     y.data.begin(), std::plus<float>());
    values[result] = std::move(y);
  }
}

void Interpreter::Impl::append(FlatSymbolRefAttr kv, const Rows &key, const Rows &value) {
  KvState &state = caches.find(kv.getAttr())->second;
  for (int64_t m = 0; m < key.count; ++m)
    state.append(position + m, key.row(m), value.row(m));
}

template <typename AttendLike> Rows Interpreter::Impl::attended(AttendLike op) {
  const KvState &state = caches.find(op.getKvAttr().getAttr())->second;
  const Rows &query = in(op.getQuery());
  auto heads = int64_t(op.getHeads());
  float scale = op.getScale().convertToFloat(), cap = op.getSoftcap().convertToFloat();
  Rows out(query.count, query.features);
  llvm::parallelFor(0, size_t(query.count), [&](size_t m) {
    int64_t last = position + (op.getBidirectional() ? query.count - 1 : int64_t(m));
    attend(state, query.row(int64_t(m)), heads, last, scale, cap, out.row(int64_t(m)));
  });
  return out;
}

Rows Interpreter::Impl::qkv(llm::QkvOp op) {
  Rows h = normalized(in(op.getInput()), op.getNormAttr());
  int64_t heads = int64_t(op.getHeads());
  int64_t kvHeads = caches.find(op.getKvAttr().getAttr())->second.heads;
  auto make = [&](unsigned i, llm::NormAttr norm, int64_t groups) {
    Rows x = normalized(project(h, op.getWeight(i), op.getBias(i)), norm, groups);
    return op.getRopeAttr() ? rotated(std::move(x), op.getRopeAttr(), groups) : x;
  };
  Rows q = make(0, op.getQNormAttr(), heads), k = make(1, op.getKNormAttr(), kvHeads);
  append(op.getKvAttr(), k, project(h, op.getWeight(2), op.getBias(2)));
  return q;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Error Interpreter::Impl::evaluate(Operation *op) {
  auto map = [&](Value x, auto function) {
    Rows y = in(x);
    std::transform(y.data.begin(), y.data.end(), y.data.begin(), function);
    return y;
  };
  auto zip = [&](Value x, Value y, auto function) {
    Rows z = in(x);
    std::transform(z.data.begin(), z.data.end(), in(y).data.begin(), z.data.begin(), function);
    return z;
  };
  return llvm::TypeSwitch<Operation *, Error>(op)
      .Case([&](llm::EmbedOp op) -> Error {
        values[op.getResult()] = embed(op);
        return Error::success();
      })
      .Case([&](llm::LinearOp op) -> Error {
        linear(op);
        return Error::success();
      })
      .Case([&](llm::NormOp op) -> Error {
        values[op.getResult()] =
            normalized(in(op.getInput()), op.getNorm(), int64_t(op.getGroups()));
        return Error::success();
      })
      .Case([&](llm::AddOp op) -> Error {
        float scale = op.getScale().convertToFloat();
        values[op.getResult()] =
            zip(op.getLhs(), op.getRhs(), [&](float x, float y) { return x + scale * y; });
        return Error::success();
      })
      .Case([&](llm::ActOp op) -> Error {
        values[op.getResult()] =
            map(op.getInput(), [&](float x) { return activate(op.getActivation(), x); });
        return Error::success();
      })
      .Case([&](llm::GluOp op) -> Error {
        values[op.getResult()] = zip(op.getGate(), op.getUp(), [&](float gate, float up) {
          return activate(op.getActivation(), gate) * up;
        });
        return Error::success();
      })
      .Case([&](llm::ScaleOp op) -> Error {
        float factor = op.getFactor().convertToFloat();
        values[op.getResult()] = map(op.getInput(), [&](float x) { return x * factor; });
        return Error::success();
      })
      .Case([&](llm::SoftcapOp op) -> Error {
        float cap = op.getCap().convertToFloat();
        values[op.getResult()] = map(op.getInput(), [&](float x) { return softcap(x, cap); });
        return Error::success();
      })
      .Case([&](llm::RopeOp op) -> Error {
        values[op.getResult()] =
            rotated(in(op.getInput()), op.getTableAttr(), int64_t(op.getHeads()));
        return Error::success();
      })
      .Case([&](llm::KvAppendOp op) -> Error {
        append(op.getKvAttr(), in(op.getKey()), in(op.getValue()));
        return Error::success();
      })
      .Case([&](llm::AttendOp op) -> Error {
        values[op.getResult()] = attended(op);
        return Error::success();
      })
      .Case([&](llm::AttentionOp op) -> Error {
        append(op.getKvAttr(), in(op.getKey()), in(op.getValue()));
        values[op.getResult()] = attended(op);
        return Error::success();
      })
      .Case([&](llm::QkvOp op) -> Error {
        values[op.getQuery()] = qkv(op);
        return Error::success();
      })
      .Case([&](llm::OutRowsOp op) -> Error {
        const Rows &x = in(op.getInput());
        Rows y(int64_t(outRows.size()), x.features);
        for (auto [i, m] : llvm::enumerate(outRows))
          std::copy_n(x.row(m), x.features, y.row(int64_t(i)));
        values[op.getResult()] = std::move(y);
        rowsSelected = true;
        return Error::success();
      })
      .Default([&](Operation *op) { return makeError(op, "the interpreter does not know it"); });
}

Expected<std::vector<float>> Interpreter::Impl::step(llvm::ArrayRef<int32_t> stepTokens,
                                                     int64_t stepPosition,
                                                     llvm::ArrayRef<int64_t> stepOutRows) {
  std::vector<int64_t> all(stepTokens.size());
  std::iota(all.begin(), all.end(), 0);
  tokens = stepTokens;
  position = stepPosition;
  outRows = stepOutRows.empty() ? llvm::ArrayRef<int64_t>(all) : stepOutRows;
  rowsSelected = false;
  for (int64_t row : outRows)
    if (row < 0 || row >= int64_t(tokens.size()))
      return llvm::createStringError("logits of row %ld of a step of %zu tokens", long(row),
                                     tokens.size());
  for (const auto &cache : caches)
    if (position < 0 || position > cache.second.length)
      return llvm::createStringError("position %ld leaves a gap after %ld", long(position),
                                     long(cache.second.length));
  for (auto op : function.getOps<llm::EmbedOp>()) {
    if (embedsPositions(op)) {
      if (position + int64_t(tokens.size()) > weight(op.getWeightAttr()).rows)
        return llvm::createStringError("a position has no row in the table of positions");
      continue;
    }
    for (int32_t token : tokens)
      if (token < 0 || token >= weight(op.getWeightAttr()).rows)
        return llvm::createStringError("token %d is not in the vocabulary", token);
  }

  Operation *end = function.getBody().front().getTerminator();
  for (Operation &op : function.getBody().front()) {
    if (&op == end)
      break;
    if (Error error = evaluate(&op))
      return std::move(error);
    for (Value operand : op.getOperands()) // free what is not needed any more
      if (llvm::all_of(operand.getUsers(),
                       [&](Operation *user) { return user == &op || user->isBeforeInBlock(&op); }))
        values.erase(operand);
  }
  Rows logits = std::move(values[end->getOperand(0)]);
  values.clear();
  if (rowsSelected)
    return std::move(logits.data);
  std::vector<float> selected;
  for (int64_t row : outRows)
    selected.insert(selected.end(), logits.row(row), logits.row(row) + logits.features);
  return selected;
}

//===----------------------------------------------------------------------===//
// Interpreter
//===----------------------------------------------------------------------===//

Interpreter::Interpreter(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Interpreter::Interpreter(Interpreter &&) = default;
Interpreter::~Interpreter() = default;

Expected<Interpreter> Interpreter::create(ModuleOp module, llvm::ArrayRef<SourceFile> files) {
  auto impl = std::make_unique<Impl>(module);
  if (Error error = impl->load(files))
    return std::move(error);
  return Interpreter(std::move(impl));
}

Expected<std::vector<float>> Interpreter::step(llvm::ArrayRef<int32_t> tokens, int64_t position,
                                               llvm::ArrayRef<int64_t> outRows) {
  return impl->step(tokens, position, outRows);
}

void Interpreter::reset() {
  for (auto &cache : impl->caches)
    cache.second.clear();
}

int64_t Interpreter::vocabulary() const {
  return cast<RankedTensorType>(impl->function.getResultTypes()[0]).getDimSize(1);
}
