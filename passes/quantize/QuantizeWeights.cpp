//===- QuantizeWeights.cpp - weights of fewer bits ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Quantize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/quantize/Passes.h"
#include "llvm/Support/GlobPattern.h"

namespace llmc::quantize {
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#include "passes/quantize/Passes.h.inc"
} // namespace llmc::quantize

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

/// What a matrix is used for; where it is used for several things, the last of these counts.
enum class Role { Matrix, Sensitive, Table };

struct Scheme {
  StringLiteral name, matrix, sensitive, table;
  bool byBits; ///< about the bits of codes, not about where their scales are
};
constexpr Scheme schemes[] = {
    {"int8", "int8_g32", "int8_g32", "int8_g32", true},
    {"int8-channel", "int8_row", "int8_row", "int8_row", false},
    {"int4", "int4_g32_min", "int4_g32_min", "int8_g32", true},
    {"int4-mixed", "iq4_g32", "int6_g64", "int8_g32", true},
};

/// The encoding for each role.
struct Targets {
  const Encoding *matrix = nullptr, *sensitive = nullptr, *table = nullptr;
  bool byBits = false; ///< see Scheme

  const Encoding *of(Role role) const {
    return role == Role::Table ? table : role == Role::Sensitive ? sensitive : matrix;
  }
};

struct Override {
  llvm::GlobPattern pattern;
  const Encoding *encoding; ///< null: keep
  std::string text;
  bool used = false;
};

int codeBits(const Encoding &encoding) { return encoding.format.loBits + encoding.format.hiBits; }

double bitsPerWeight(const Encoding &encoding, int64_t columns) {
  return 8.0 * double(encoding.rowBytes(columns)) / double(columns);
}

struct QuantizeWeights : quantize::impl::QuantizeWeightsPassBase<QuantizeWeights> {
  using QuantizeWeightsPassBase::QuantizeWeightsPassBase;

  void runOnOperation() override {
    if (scheme == "none" && overrides.empty())
      return;
    Targets targets;
    SmallVector<Override> rules;
    if (failed(readScheme(targets)) || failed(readOverrides(rules)))
      return signalPassFailure();
    llvm::DenseMap<StringAttr, Role> roles = findRoles();
    for (auto weight : getOperation().getOps<WeightOp>()) {
      auto role = roles.find(weight.getSymNameAttr());
      if (role == roles.end() || weight.getFinalShape().size() != 2)
        continue;
      const Encoding *target = targets.of(role->second);
      bool byBits = targets.byBits;
      for (Override &rule : rules)
        if (rule.pattern.match(weight.getSymName())) {
          target = rule.encoding;
          byBits = false;
          rule.used = true;
          break;
        }
      if (target && !keeps(weight, *target, byBits))
        weight.appendStep(QuantizeAttr::get(&getContext(), target->name, importance(weight)));
      weight->removeAttr("llm.importance");
    }
    for (const Override &rule : rules)
      if (!rule.used) {
        getOperation().emitError("no matrix has a name like '") << rule.text << "'";
        return signalPassFailure();
      }
  }

private:
  /// The encoding that weights get for a name of the user's.
  FailureOr<const Encoding *> target(StringRef name) {
    const Encoding *encoding = lookupEncoding(name);
    const Encoding *found = encoding ? quantizationTarget(*encoding) : nullptr;
    if (!found)
      return getOperation().emitError("cannot quantize to '")
             << name << "'; use int8, int8-channel, int4, int4-mixed or an encoding like "
             << "int4_g32, int4_g64_min, int5_g32, int6_g128, int8_row, iq4_g32, q4_1, q8_0";
    return found;
  }

  LogicalResult readScheme(Targets &targets) {
    if (scheme == "none")
      return success();
    for (const Scheme &row : schemes)
      if (row.name == scheme) {
        targets = {*target(row.matrix), *target(row.sensitive), *target(row.table), row.byBits};
        return success();
      }
    FailureOr<const Encoding *> all = target(scheme);
    if (failed(all))
      return failure();
    const Encoding *eight = *target("int8_g32");
    targets = {*all, *all, codeBits(**all) >= 8 ? *all : eight};
    return success();
  }

  LogicalResult readOverrides(SmallVectorImpl<Override> &rules) {
    for (const std::string &text : overrides) {
      auto [pattern, name] = StringRef(text).rsplit('=');
      llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern, 16);
      if (pattern.empty() || name.empty() || !glob) {
        llvm::consumeError(glob.takeError());
        return getOperation().emitError("'") << text << "' is not PATTERN=ENCODING";
      }
      const Encoding *encoding = nullptr;
      if (name != "none") {
        FailureOr<const Encoding *> found = target(name);
        if (failed(found))
          return failure();
        encoding = *found;
      }
      rules.push_back({std::move(*glob), encoding, pattern.str()});
    }
    return success();
  }

  llvm::DenseMap<StringAttr, Role> findRoles() {
    llvm::DenseMap<StringAttr, Role> roles;
    auto add = [&](FlatSymbolRefAttr symbol, Role role) {
      auto [it, isNew] = roles.try_emplace(symbol.getAttr(), role);
      if (!isNew)
        it->second = std::max(it->second, role);
    };
    auto addValues = [&](Value value) { // whatever makes the values that a cache keeps
      auto linear = value.getDefiningOp<LinearOp>();
      if (linear && !linear.getGated())
        add(linear.getWeight(cast<OpResult>(value).getResultNumber()), Role::Sensitive);
    };
    getOperation().walk([&](Operation *op) {
      if (auto embed = dyn_cast<EmbedOp>(op)) {
        add(embed.getWeightAttr(), Role::Table);
      } else if (auto linear = dyn_cast<LinearOp>(op)) {
        bool returned = llvm::any_of(
            op->getUsers(), [](Operation *user) { return isa<func::ReturnOp, SoftcapOp>(user); });
        auto from = linear.getInput().getDefiningOp<LinearOp>();
        bool down =
            isa_and_nonnull<GluOp>(linear.getInput().getDefiningOp()) || (from && from.getGated());
        for (unsigned i = 0, e = linear.getWeights().size(); i < e; ++i)
          add(linear.getWeight(i), returned ? Role::Table : down ? Role::Sensitive : Role::Matrix);
      } else if (auto qkv = dyn_cast<QkvOp>(op)) {
        for (unsigned i = 0; i < 3; ++i)
          add(qkv.getWeight(i), i == 2 ? Role::Sensitive : Role::Matrix);
      } else if (auto attention = dyn_cast<AttentionOp>(op)) {
        addValues(attention.getValue());
      } else if (auto append = dyn_cast<KvAppendOp>(op)) {
        addValues(append.getValue());
      }
    });
    return roles;
  }

  /// True where quantizing would lose bits and save none. `byBits`: new codes of as many bits
  /// would cost accuracy to save a little on the scales.
  bool keeps(WeightOp weight, const Encoding &target, bool byBits) {
    const Encoding *source = lookupEncoding(weight.getFinalEncoding());
    if (!source || source->isFloat())
      return false;
    if (byBits && codeBits(*source) <= codeBits(target))
      return true;
    return sameGrid(*source, target) || bitsPerWeight(*source, weight.getColumns()) <=
                                            bitsPerWeight(target, weight.getColumns());
  }

  PartAttr importance(WeightOp weight) { return weight->getAttrOfType<PartAttr>("llm.importance"); }
};
} // namespace
