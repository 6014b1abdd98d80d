//===- Dim.cpp - sizes that are known up to symbols -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Dim.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Dim
//===----------------------------------------------------------------------===//

void Dim::add(const Term &term) {
  auto *place =
      std::lower_bound(terms.begin(), terms.end(), term,
                       [](const Term &a, const Term &b) { return a.factors < b.factors; });
  if (place == terms.end() || place->factors != term.factors) {
    if (term.coefficient != 0)
      terms.insert(place, term);
    return;
  }
  // Sizes wrap rather than trap: hostile files reach any number, checks on bytes come later.
  place->coefficient = int64_t(uint64_t(place->coefficient) + uint64_t(term.coefficient));
  if (place->coefficient == 0)
    terms.erase(place);
}

std::optional<int64_t> Dim::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms[0].factors.empty())
    return terms[0].coefficient;
  return std::nullopt;
}

std::optional<unsigned> Dim::asSymbol() const {
  if (terms.size() == 1 && terms[0].factors.size() == 1 && terms[0].coefficient == 1)
    return terms[0].factors[0];
  return std::nullopt;
}

bool Dim::isNonNegative() const {
  return llvm::all_of(terms, [](const Term &t) { return t.coefficient > 0; });
}

bool Dim::isPositive() const {
  return isNonNegative() && !terms.empty() && terms.front().factors.empty();
}

bool Dim::dependsOn(unsigned symbol) const {
  return llvm::any_of(terms, [&](const Term &t) { return llvm::is_contained(t.factors, symbol); });
}

Dim Dim::operator+(const Dim &other) const {
  Dim sum = *this;
  for (const Term &term : other.terms)
    sum.add(term);
  return sum.terms.size() > kMostTerms ? unknown() : sum;
}

Dim Dim::operator*(const Dim &other) const {
  if (terms.size() * other.terms.size() > 8 * kMostTerms)
    return unknown();
  Dim product;
  for (const Term &a : terms)
    for (const Term &b : other.terms) {
      Term term = a;
      term.factors.append(b.factors.begin(), b.factors.end());
      if (term.factors.size() > kMostFactors)
        return unknown();
      llvm::sort(term.factors);
      term.coefficient = int64_t(uint64_t(a.coefficient) * uint64_t(b.coefficient));
      product.add(term);
    }
  return product.terms.size() > kMostTerms ? unknown() : product;
}

Dim Dim::operator-(const Dim &other) const { return *this + other * Dim(-1); }

std::optional<Dim> Dim::dividedBy(const Dim &divisor) const {
  if (isUnknown() || divisor.isUnknown())
    return std::nullopt;
  if (*this == divisor && !terms.empty())
    return Dim(1);
  if (divisor.terms.size() != 1)
    return std::nullopt;
  const Term &by = divisor.terms[0];
  Dim quotient;
  for (Term term : terms) {
    if (term.coefficient % by.coefficient ||
        (by.coefficient == -1 && term.coefficient == INT64_MIN))
      return std::nullopt;
    term.coefficient /= by.coefficient;
    for (unsigned factor : by.factors) {
      auto *place = llvm::find(term.factors, factor);
      if (place == term.factors.end())
        return std::nullopt;
      term.factors.erase(place);
    }
    quotient.add(term);
  }
  return quotient;
}

std::optional<int64_t>
Dim::evaluate(const std::function<std::optional<int64_t>(unsigned)> &symbol) const {
  int64_t sum = 0;
  for (const Term &term : terms) {
    int64_t product = term.coefficient;
    for (unsigned factor : term.factors) {
      std::optional<int64_t> value = symbol(factor);
      if (!value || __builtin_mul_overflow(product, *value, &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

Dim Dim::substitute(const std::function<Dim(unsigned)> &symbol) const {
  Dim sum;
  for (const Term &term : terms) {
    Dim product(term.coefficient);
    for (unsigned factor : term.factors)
      product = product * symbol(factor);
    sum = sum + product;
  }
  return sum;
}

std::string Dim::text(const SymbolTable &symbols) const {
  if (terms.empty())
    return "0";
  std::string text;
  // Symbols first, the number last, as people write it.
  auto print = [&](const Term &term) {
    int64_t coefficient = term.coefficient;
    if (!text.empty()) {
      text += coefficient < 0 ? " - " : " + ";
      coefficient = coefficient == INT64_MIN ? coefficient : std::abs(coefficient);
    }
    if (term.factors.empty() || coefficient != 1)
      text += std::to_string(coefficient) + (term.factors.empty() ? "" : "*");
    text += llvm::join(
        llvm::map_range(term.factors, [&](unsigned f) { return symbols.name(f).str(); }), "*");
  };
  for (const Term &term : terms)
    if (!term.factors.empty())
      print(term);
  for (const Term &term : terms)
    if (term.factors.empty())
      print(term);
  return text;
}

std::string onnx::shapeText(llvm::ArrayRef<Dim> shape, const SymbolTable &symbols) {
  return "[" +
         llvm::join(llvm::map_range(shape, [&](const Dim &d) { return d.text(symbols); }), ", ") +
         "]";
}

//===----------------------------------------------------------------------===//
// SymbolTable
//===----------------------------------------------------------------------===//

Dim SymbolTable::named(StringRef name) {
  auto [it, isNew] = byName.try_emplace(name, unsigned(symbols.size()));
  if (isNew)
    symbols.push_back({name.str(), Op::Leaf, {}, {}});
  return Dim::symbol(it->second);
}

Dim SymbolTable::fresh(StringRef hint) {
  std::string name = hint.str();
  for (unsigned n = 1; byName.contains(name); ++n)
    name = (hint + "." + llvm::Twine(n + symbols.size())).str();
  return named(name);
}

Dim SymbolTable::derive(Op op, StringRef spelling, const Dim &lhs, const Dim &rhs) {
  if (lhs.isUnknown() || rhs.isUnknown())
    return Dim::unknown();
  std::string name = (spelling + "(" + lhs.text(*this) + ", " + rhs.text(*this) + ")").str();
  constexpr size_t kLongestName = 400;
  if (name.size() > kLongestName)
    return Dim::unknown();
  Dim symbol = named(name);
  Symbol &entry = symbols[*symbol.asSymbol()];
  entry.op = op;
  entry.lhs = lhs;
  entry.rhs = rhs;
  return symbol;
}

Dim SymbolTable::quotient(const Dim &lhs, const Dim &rhs) {
  std::optional<int64_t> a = lhs.constant(), b = rhs.constant();
  if (a && b && *b != 0 && !(*a == INT64_MIN && *b == -1)) {
    int64_t q = *a / *b;
    return Dim(q - (*a % *b != 0 && (*a < 0) != (*b < 0)));
  }
  if (std::optional<Dim> even = lhs.dividedBy(rhs))
    return *even;
  return derive(Op::Quotient, "floordiv", lhs, rhs);
}

Dim SymbolTable::remainder(const Dim &lhs, const Dim &rhs) {
  if (lhs.dividedBy(rhs))
    return Dim(0);
  std::optional<int64_t> a = lhs.constant(), b = rhs.constant();
  if (a && b && *b > 0 && *a >= 0)
    return Dim(*a % *b);
  return derive(Op::Remainder, "mod", lhs, rhs);
}

Dim SymbolTable::larger(const Dim &lhs, const Dim &rhs) {
  if ((lhs - rhs).isNonNegative())
    return lhs;
  if ((rhs - lhs).isNonNegative())
    return rhs;
  return derive(Op::Larger, "max", lhs, rhs);
}

Dim SymbolTable::smaller(const Dim &lhs, const Dim &rhs) {
  if ((lhs - rhs).isNonNegative())
    return rhs;
  if ((rhs - lhs).isNonNegative())
    return lhs;
  return derive(Op::Smaller, "min", lhs, rhs);
}

Dim SymbolTable::parse(StringRef text) {
  // Sums of products of names and numbers, without parentheses: "past_length + 2*seq". Exporters
  // also use arbitrary labels; those are names as a whole.
  Dim sum;
  StringRef rest = text.trim();
  if (rest.empty() || rest.size() > 200)
    return named(text);
  int64_t sign = 1;
  while (true) {
    size_t end = rest.find_first_of("+-");
    Dim product(sign);
    llvm::SmallVector<StringRef, 2> factors;
    rest.substr(0, end).split(factors, '*');
    if (factors.size() > 4)
      return named(text);
    for (StringRef factor : factors) {
      factor = factor.trim();
      int64_t number;
      if (factor.empty())
        return named(text);
      if (!factor.getAsInteger(10, number))
        product = product * Dim(number);
      else if (llvm::all_of(factor,
                            [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }))
        product = product * named(factor);
      else
        return named(text);
    }
    sum = sum + product;
    if (end == StringRef::npos)
      return sum;
    sign = rest[end] == '+' ? 1 : -1;
    rest = rest.substr(end + 1).trim();
    if (rest.empty())
      return named(text);
  }
}

std::optional<int64_t>
SymbolTable::evaluate(const Dim &dim,
                      const std::function<std::optional<int64_t>(unsigned)> &leaf) const {
  return dim.evaluate([&](unsigned id) -> std::optional<int64_t> {
    if (id >= symbols.size())
      return std::nullopt;
    const Symbol &symbol = symbols[id];
    if (symbol.op == Op::Leaf)
      return leaf(id);
    std::optional<int64_t> a = evaluate(symbol.lhs, leaf), b = evaluate(symbol.rhs, leaf);
    if (!a || !b)
      return std::nullopt;
    bool divides = symbol.op == Op::Quotient || symbol.op == Op::Remainder;
    if (divides && (*b == 0 || (*b == -1 && *a == INT64_MIN)))
      return std::nullopt;
    switch (symbol.op) {
    case Op::Quotient:
      return *a / *b - (*a % *b != 0 && (*a < 0) != (*b < 0));
    case Op::Remainder:
      return *a % *b + (*a % *b != 0 && (*a < 0) != (*b < 0) ? *b : 0);
    case Op::Larger:
      return std::max(*a, *b);
    case Op::Smaller:
      return std::min(*a, *b);
    case Op::Leaf:
      break;
    }
    return std::nullopt;
  });
}
