//===- ExpressionParser.h - tokens to expressions -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recursive descent over Jinja's expression grammar, loosest binding first:
//
//   conditional  a if b else c          math1    + -
//   or, and, not                        concat   ~
//   compare      == < in not in ...     math2    * / // %
//                                       power    **
//   unary  + -   primary, then postfix  .name [item] (call), then |filter and `is test`
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_EXPRESSIONPARSER_H
#define LLMC_RUNTIME_TEXT_JINJA_EXPRESSIONPARSER_H

#include "runtime/base/Status.h"
#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Lexer.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt::jinja {

class ExpressionParser {
public:
  ExpressionParser(std::vector<Token> tokens, std::string_view name)
      : tokens(std::move(tokens)), name(name) {}

  // The token stream.
  const Token &current() const { return tokens[pos]; }
  const Token &next() const { return tokens[pos + 1 < tokens.size() ? pos + 1 : pos]; }
  void skip() { pos += pos + 1 < tokens.size(); }
  bool at(Token::Kind kind) const { return current().kind == kind; }
  bool atName(std::string_view text) const { return is(current(), Token::Kind::Name, text); }
  bool atOperator(std::string_view text) const {
    return is(current(), Token::Kind::Operator, text);
  }
  bool skipName(std::string_view text);
  bool skipOperator(std::string_view text);
  Status expectOperator(std::string_view text);
  Status expect(Token::Kind kind);
  StatusOr<std::string> expectIdentifier();

  Status fail(std::string_view message, int line) const;
  Status failUnsupported(std::string_view message, int line) const;
  Status failUnexpected() const;

  StatusOr<ExprPtr> parseExpression(bool withConditional = true);
  /// An expression, or several with commas, which are a tuple.
  StatusOr<ExprPtr> parseTuple(bool withConditional = true, bool inParentheses = false);
  /// Where a value is stored; \p withNamespace allows `ns.name`.
  StatusOr<Target> parseTarget(bool withNamespace);
  StatusOr<std::string> parseStoredName();
  /// `| filter | filter`, applied to \p operand, which may be null. With \p inlined the first bar
  /// is absent.
  StatusOr<ExprPtr> parseFilters(ExprPtr operand, bool inlined = false);

  /// Once all is parsed: fails for a call that can only fail.
  Status checkCalls() const;

  /// One level of nesting, for as long as it lives.
  class Nesting {
  public:
    explicit Nesting(ExpressionParser &parser) : parser(parser) { ++parser.nesting; }
    ~Nesting() { --parser.nesting; }
    Nesting(const Nesting &) = delete;
    Status check() const;

  private:
    ExpressionParser &parser;
  };

  /// The macro whose body is being parsed, or null.
  MacroDefinition *macro = nullptr;

private:
  static bool is(const Token &token, Token::Kind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }
  /// Refuses \p node if the tree below it is too deep.
  StatusOr<ExprPtr> checked(ExprPtr node) const;
  /// Chains of `and`, or of `or`, whose operands are chains of `and`.
  StatusOr<ExprPtr> parseLogical(bool isAnd);
  StatusOr<ExprPtr> parseNot();
  StatusOr<ExprPtr> parseCompare();
  StatusOr<ExprPtr> parseConcat();
  /// Left-associative binary operators of one level, 0 (loosest) to 2.
  StatusOr<ExprPtr> parseBinary(unsigned level);
  StatusOr<ExprPtr> parseUnary(bool withFilter = true);
  StatusOr<ExprPtr> parsePrimary();
  StatusOr<ExprPtr> parseName();
  StatusOr<ExprPtr> parseList();
  StatusOr<ExprPtr> parseDict();
  StatusOr<ExprPtr> parsePostfix(ExprPtr operand);
  StatusOr<ExprPtr> parseFiltersAndTests(ExprPtr operand);
  StatusOr<ExprPtr> parseAttribute(ExprPtr object);
  StatusOr<ExprPtr> parseSubscript(ExprPtr object);
  StatusOr<ExprPtr> parseSlice(ExprPtr object, ExprPtr start, int line);
  StatusOr<ExprPtr> parseCall(ExprPtr callee);
  StatusOr<ExprPtr> parseTest(ExprPtr operand);
  StatusOr<Target> parseTargetItem(bool withNamespace);
  Status parseArguments(Expr &owner, Arguments &arguments);
  Status checkBuiltinName(const BuiltinExpr &filter) const;
  void noteCall(const CallExpr &call);

  std::vector<Token> tokens;
  std::string_view name;
  size_t pos = 0;
  unsigned nesting = 0;

  struct Use {
    std::string name;
    int line;
  };
  std::vector<Use> calledNames, calledMethods;
  /// Names that may hold something callable; those given are set by macros and loops.
  std::set<std::string, std::less<>> storedNames = {"caller", "kwargs", "loop", "varargs"};
  std::set<std::string, std::less<>> storedAttributes;
};

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_EXPRESSIONPARSER_H
