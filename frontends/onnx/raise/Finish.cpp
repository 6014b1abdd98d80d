//===- Finish.cpp - the canonical form of a raised model ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters order nodes as they like and name weights as they like. The canonical
// form, which other frontends give too, has ops by their distance from the tokens,
// symbols by first use, and weights named by what they do in their layer.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;

/// Erases what nothing needs, and sorts by level, then by the order in which operands ask for it.
void Raiser::order() {
  mlir::Block &block = function.getBody().front();
  llvm::MapVector<mlir::Operation *, size_t> levels; // in post-order
  llvm::SmallVector<std::pair<mlir::Operation *, unsigned>> work = {{block.getTerminator(), 0}};
  llvm::DenseSet<mlir::Operation *> seen = {block.getTerminator()};
  while (!work.empty()) {
    auto &[op, next] = work.back();
    if (next < op->getNumOperands()) {
      mlir::Operation *def = op->getOperand(next++).getDefiningOp();
      if (def && seen.insert(def).second)
        work.push_back({def, 0});
      continue;
    }
    size_t level = 0;
    for (mlir::Value operand : op->getOperands())
      if (mlir::Operation *def = operand.getDefiningOp())
        level = std::max(level, levels.lookup(def) + 1);
    levels[op] = level;
    work.pop_back();
  }
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!levels.contains(&op))
      op.erase();
  auto sorted = levels.takeVector();
  llvm::stable_sort(sorted, [](const auto &a, const auto &b) { return a.second < b.second; });
  for (auto &[op, level] : sorted)
    op->moveBefore(&block, block.end());
}

namespace {

/// The name of every symbol by its use.
class Namer {
public:
  explicit Namer(mlir::func::FuncOp function) : function(function) {}
  void run();
  llvm::MapVector<StringRef, std::string> names; ///< old -> new, in order of use

private:
  void layers();
  std::string roleOf(mlir::Operation *op);
  std::string linearRole(mlir::Operation *op);
  std::string normRole(mlir::Operation *op);
  void name(mlir::Attribute symbol, const std::string &text);
  bool isTaken(const std::string &text) {
    for (const auto &[old, given] : names)
      if (given == text)
        return true;
    return false;
  }

  mlir::func::FuncOp function;
  int64_t kvs = 0, ropes = 0;
  bool isPostNorm = false;
};

} // namespace

static std::optional<int64_t> layerOf(mlir::Operation *op) {
  auto layer = op->getAttrOfType<mlir::IntegerAttr>("llm.layer");
  return layer ? std::optional(layer.getInt()) : std::nullopt;
}

/// The norm that a sum goes through alone before anything else, as where norms follow layers.
static mlir::Operation *normOfSum(mlir::Operation *sum) {
  auto norm =
      sum->hasOneUse() ? llvm::dyn_cast<llm::NormOp>(*sum->getUsers().begin()) : llm::NormOp();
  // A norm before a layer is one of the layer's input; the sum itself goes on without it.
  return norm ? norm.getOperation() : nullptr;
}

/// A layer ends with the last sum before the next attention, or with its norm.
void Namer::layers() {
  std::vector<mlir::Operation *> ops, ends;
  mlir::Operation *sum = nullptr, *embedded = nullptr;
  bool attended = false;
  function.walk([&](llm::NormOp norm) {
    isPostNorm |= llvm::any_of(norm->getUsers(), llvm::IsaPred<llm::AddOp>) &&
                  llvm::isa_and_present<llm::AddOp>(norm.getInput().getDefiningOp());
  });
  for (mlir::Operation &op : function.getBody().front().without_terminator()) {
    ops.push_back(&op);
    if (llvm::isa<llm::AttentionOp>(op)) {
      if (attended && sum)
        ends.push_back(sum);
      else if (sum)
        embedded = sum;
      attended = true;
      sum = nullptr;
    } else if (llvm::isa<llm::AddOp>(op)) {
      sum = &op;
    }
  }
  if (attended && sum)
    ends.push_back(sum);
  auto withNorm = [&](mlir::Operation *end) {
    mlir::Operation *norm = isPostNorm && end ? normOfSum(end) : nullptr;
    return norm ? norm : end;
  };
  embedded = withNorm(embedded);
  for (mlir::Operation *&end : ends)
    end = withNorm(end);
  mlir::Builder b(function.getContext());
  size_t layer = 0;
  for (mlir::Operation *op : ops) {
    if (layer >= ends.size())
      break;
    if (embedded) { // what comes before the layers
      embedded = op == embedded ? nullptr : embedded;
      continue;
    }
    if (!llvm::isa<llm::EmbedOp>(op))
      op->setAttr("llm.layer", b.getI64IntegerAttr(int64_t(layer)));
    if (op == ends[layer])
      ++layer;
  }
}

/// The next op that is not a norm, rope or such on the way.
static mlir::Operation *consumer(mlir::Operation *op) {
  while (op->getNumResults() == 1 && !op->getResult(0).use_empty()) {
    mlir::Operation *user = *op->getResult(0).getUsers().begin();
    if (!llvm::isa<llm::NormOp, llm::RopeOp, llm::ScaleOp>(user))
      return user;
    op = user;
  }
  return nullptr;
}

/// What the op's result is for the consumer: operand number.
static unsigned operandOf(mlir::Operation *op, mlir::Operation *user) {
  while (op) {
    mlir::Operation *next = nullptr;
    for (mlir::OpOperand &use : op->getResult(0).getUses()) {
      if (use.getOwner() == user)
        return use.getOperandNumber();
      next = use.getOwner();
    }
    op = next && next->getNumResults() == 1 ? next : nullptr;
  }
  return 0;
}

std::string Namer::linearRole(mlir::Operation *op) {
  mlir::Operation *from = op->getOperand(0).getDefiningOp();
  if (from && llvm::isa<llm::AttentionOp>(from))
    return "attn_output";
  if (from && llvm::isa<llm::GluOp, llm::ActOp>(from))
    return "ffn_down";
  mlir::Operation *user = consumer(op);
  if (!user)
    return "";
  if (llvm::isa<llm::AttentionOp>(user)) {
    const char *roles[] = {"attn_q", "attn_k", "attn_v"};
    return roles[std::min(operandOf(op, user), 2u)];
  }
  if (llvm::isa<llm::GluOp>(user))
    return operandOf(op, user) == 0 ? "ffn_gate" : "ffn_up";
  return llvm::isa<llm::ActOp>(user) ? "ffn_up" : "";
}

std::string Namer::normRole(mlir::Operation *op) {
  mlir::Operation *from = op->getOperand(0).getDefiningOp(), *user = consumer(op);
  if (!user || !from)
    return "";
  if (auto sum = llvm::dyn_cast<llm::AddOp>(from); sum && isPostNorm) {
    for (mlir::Value operand : sum->getOperands())
      if (auto linear = operand.getDefiningOp<llm::LinearOp>())
        return linearRole(linear) == "attn_output" ? "attn_output_norm" : "layer_output_norm";
    return "";
  }
  auto producesLinear = llvm::isa<llm::LinearOp>(from);
  if (producesLinear && llvm::isa<llm::AttentionOp>(user))
    return operandOf(op, user) == 0 ? "attn_q_norm" : "attn_k_norm";
  if (producesLinear && llvm::isa<llm::AddOp>(user))
    return linearRole(from) == "attn_output" ? "post_attention_norm" : "post_ffw_norm";
  if (!llvm::isa<llm::LinearOp>(user))
    return "";
  return StringRef(linearRole(user)).starts_with("attn") ? "attn_norm" : "ffn_norm";
}

std::string Namer::roleOf(mlir::Operation *op) {
  if (auto embed = llvm::dyn_cast<llm::EmbedOp>(op))
    return embed.getTokens() == function.getArgument(1) ? "position_embd" : "token_embd";
  bool isNorm = llvm::isa<llm::NormOp>(op);
  std::optional<int64_t> layer = layerOf(op);
  if (!layer)
    return isNorm ? (isPostNorm ? "token_embd_norm" : "output_norm") : "output";
  std::string role = isNorm ? normRole(op) : linearRole(op);
  return role.empty() ? role : "blk." + std::to_string(*layer) + "." + role;
}

void Namer::name(mlir::Attribute attribute, const std::string &text) {
  auto symbol = llvm::dyn_cast_or_null<mlir::FlatSymbolRefAttr>(attribute);
  if (!symbol || names.contains(symbol.getValue()))
    return;
  // A role that is taken, or none: the weight keeps a number.
  std::string unique = text;
  for (size_t n = 1; unique.empty() || isTaken(unique); ++n)
    unique = (text.empty() ? std::string("weight") : text) + "." + std::to_string(n);
  names[symbol.getValue()] = unique;
}

void Namer::run() {
  layers();
  for (mlir::Operation &op : function.getBody().front()) {
    std::string role;
    auto of = [&](const char *kind) { return role.empty() ? role : role + "." + kind; };
    llvm::TypeSwitch<mlir::Operation *>(&op)
        .Case([&](llm::EmbedOp embed) {
          role = roleOf(&op);
          name(embed.getWeightAttr(), of("weight"));
        })
        .Case([&](llm::LinearOp linear) {
          role = roleOf(&op);
          name(linear.getWeight(0), of("weight"));
          name(linear.getBias(0), of("bias"));
        })
        .Case([&](llm::NormOp norm) {
          role = roleOf(&op);
          name(norm.getNorm().getWeight(), of("weight"));
          name(norm.getNorm().getBias(), of("bias"));
        })
        .Case([&](llm::RopeOp rope) {
          if (!names.contains(rope.getTable()))
            name(rope.getTableAttr(), "rope." + std::to_string(ropes++));
        })
        .Case([&](llm::AttentionOp attention) {
          name(attention.getKvAttr(), "kv." + std::to_string(kvs++));
        })
        .Default([](mlir::Operation *) {});
  }
}

void Raiser::nameAll(RaisedModel &) {
  Namer namer(function);
  namer.run();
  mlir::SymbolTable table(*module);
  llvm::SmallVector<mlir::Operation *> used;
  for (const auto &[old, name] : namer.names)
    used.push_back(table.lookup(old));
  // Two passes, since a new name may be another symbol's old one.
  mlir::AttrTypeReplacer replacer;
  replacer.addReplacement([&](mlir::FlatSymbolRefAttr symbol) -> std::optional<mlir::Attribute> {
    auto it = namer.names.find(symbol.getValue());
    if (it == namer.names.end())
      return std::nullopt;
    return mlir::FlatSymbolRefAttr::get(&context, it->second);
  });
  replacer.recursivelyReplaceElementsIn(function.getOperation(), /*replaceAttrs=*/true);
  for (auto [op, entry] : llvm::zip_equal(used, namer.names)) {
    mlir::SymbolTable::setSymbolName(op, entry.second);
    op->moveBefore(function);
  }
  llvm::DenseSet<mlir::Operation *> kept(used.begin(), used.end());
  for (mlir::Operation &op : llvm::make_early_inc_range(*module->getBody()))
    if (!kept.contains(&op) && &op != function.getOperation())
      op.erase();
}
