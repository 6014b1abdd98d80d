//===- Dim.h - sizes that are known up to symbols ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension is a polynomial with integer coefficients over symbols (batch,
// sequence, past, ...), kept in one canonical form, so that two dimensions are the
// same exactly if they compare equal: past + seq == seq + past. What is no
// polynomial (a quotient that does not come out even, a maximum) is a symbol of
// its own, the same one wherever the same operands meet.
//
// Symbols stand for sizes, so they are never negative.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_DIM_H
#define LLMC_FRONTENDS_ONNX_DIM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace llmc::onnx {

class SymbolTable;

class Dim {
public:
  Dim() = default;
  Dim(int64_t constant) { // NOLINT: a number is a size
    if (constant != 0)
      terms.push_back({{}, constant});
  }
  static Dim symbol(unsigned id) {
    Dim d;
    d.terms.push_back({{id}, 1});
    return d;
  }

  std::optional<int64_t> constant() const;
  bool isConstant() const { return constant().has_value(); }
  /// The symbol, where the dimension is just that.
  std::optional<unsigned> asSymbol() const;
  /// True where no value of the symbols makes it zero or less (or less than zero).
  bool isPositive() const;
  bool isNonNegative() const;
  bool dependsOn(unsigned symbol) const;

  /// A size about which nothing is known, not even that it equals itself; what grows beyond a few
  /// dozen terms becomes it.
  static Dim unknown() { return symbol(kUnknown); }
  bool isUnknown() const { return dependsOn(kUnknown); }

  bool operator==(const Dim &other) const { return terms == other.terms && !isUnknown(); }
  Dim operator+(const Dim &other) const;
  Dim operator-(const Dim &other) const;
  Dim operator*(const Dim &other) const;
  /// The quotient where it comes out even for all values of the symbols.
  std::optional<Dim> dividedBy(const Dim &divisor) const;

  /// The value, given one for every symbol; nothing where one is missing or numbers overflow.
  std::optional<int64_t>
  evaluate(const std::function<std::optional<int64_t>(unsigned)> &symbol) const;
  /// With every symbol replaced by a dimension.
  Dim substitute(const std::function<Dim(unsigned)> &symbol) const;

  /// "past + seq", "2*seq", "7".
  std::string text(const SymbolTable &symbols) const;

private:
  static constexpr unsigned kUnknown = ~0u;
  static constexpr size_t kMostTerms = 48, kMostFactors = 6;
  friend class SymbolTable;
  struct Term {
    llvm::SmallVector<unsigned, 2> factors; ///< sorted, with repetition
    int64_t coefficient;
    bool operator==(const Term &) const = default;
  };
  void add(const Term &term);
  /// Sorted by factors; no coefficient is zero.
  llvm::SmallVector<Term, 1> terms;
};

using Shape = llvm::SmallVector<Dim, 4>;

/// The names of symbols. Derived symbols remember what they were made of.
class SymbolTable {
public:
  /// A symbol by name; the same name is the same symbol.
  Dim named(llvm::StringRef name);
  /// A symbol like no other; `hint` is for people.
  Dim fresh(llvm::StringRef hint);
  /// What an exporter wrote for a dimension: a name, or sums and products of names and numbers.
  Dim parse(llvm::StringRef text);

  /// lhs / rhs rounded down, lhs mod rhs, the larger and the smaller.
  Dim quotient(const Dim &lhs, const Dim &rhs);
  Dim remainder(const Dim &lhs, const Dim &rhs);
  Dim larger(const Dim &lhs, const Dim &rhs);
  Dim smaller(const Dim &lhs, const Dim &rhs);

  llvm::StringRef name(unsigned symbol) const {
    return symbol < symbols.size() ? llvm::StringRef(symbols[symbol].name) : "?";
  }
  size_t size() const { return symbols.size(); }

  /// Evaluates a dimension; `leaf` gives the values of symbols that are not derived.
  std::optional<int64_t>
  evaluate(const Dim &dim, const std::function<std::optional<int64_t>(unsigned)> &leaf) const;

private:
  enum class Op : uint8_t { Leaf, Quotient, Remainder, Larger, Smaller };
  struct Symbol {
    std::string name;
    Op op = Op::Leaf;
    Dim lhs, rhs;
  };
  Dim derive(Op op, llvm::StringRef spelling, const Dim &lhs, const Dim &rhs);
  std::vector<Symbol> symbols;
  llvm::StringMap<unsigned> byName;
};

/// "[1, seq, 576]".
std::string shapeText(llvm::ArrayRef<Dim> shape, const SymbolTable &symbols);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_DIM_H
