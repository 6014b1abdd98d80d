//===- CallParser.cpp - calls, filters and tests --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of ExpressionParser that knows what can be called by name, and refuses
// the rest.
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/ExpressionParser.h"

namespace llmc::rt::jinja {

Status ExpressionParser::parseArguments(Expr &owner, Arguments &arguments) {
  int line = current().line;
  LLMC_RETURN_IF_ERROR(expectOperator("("));
  auto ensure = [&](bool condition) {
    return condition ? Status() : fail("invalid order of arguments in a call", line);
  };
  while (!atOperator(")")) {
    ExprPtr value;
    if (skipOperator("*")) {
      LLMC_RETURN_IF_ERROR(ensure(!arguments.spread && !arguments.spreadNamed));
      LLMC_ASSIGN_OR_RETURN(arguments.spread, parseExpression());
      owner.adopt(arguments.spread);
    } else if (skipOperator("**")) {
      LLMC_RETURN_IF_ERROR(ensure(!arguments.spreadNamed));
      LLMC_ASSIGN_OR_RETURN(arguments.spreadNamed, parseExpression());
      owner.adopt(arguments.spreadNamed);
    } else if (at(Token::Kind::Name) && is(next(), Token::Kind::Operator, "=")) {
      LLMC_RETURN_IF_ERROR(ensure(!arguments.spreadNamed));
      Value key = Value::literal(current().text);
      skip();
      skip();
      LLMC_ASSIGN_OR_RETURN(value, parseExpression());
      owner.adopt(value);
      for (const auto &[other, unused] : arguments.named)
        if (other.str() == key.str())
          return fail("keyword argument repeated: " + std::string(key.str()), line);
      arguments.named.emplace_back(std::move(key), std::move(value));
    } else {
      LLMC_RETURN_IF_ERROR(
          ensure(!arguments.spread && !arguments.spreadNamed && arguments.named.empty()));
      LLMC_ASSIGN_OR_RETURN(value, parseExpression());
      owner.adopt(value);
      arguments.positional.push_back(std::move(value));
    }
    if (!skipOperator(","))
      break;
  }
  return expectOperator(")");
}

StatusOr<ExprPtr> ExpressionParser::parseCall(ExprPtr callee) {
  auto node = std::make_unique<CallExpr>(std::move(callee), current().line);
  LLMC_RETURN_IF_ERROR(parseArguments(*node, node->arguments));
  noteCall(*node);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseFilters(ExprPtr operand, bool inlined) {
  while (inlined || skipOperator("|")) {
    inlined = false;
    int line = current().line;
    LLMC_ASSIGN_OR_RETURN(std::string filter, expectIdentifier());
    const Builtin *builtin = findFilter(filter);
    if (!builtin)
      return failUnsupported("unknown filter '" + filter + "'", line);
    auto node =
        std::make_unique<BuiltinExpr>(Expr::Kind::Filter, *builtin, std::move(operand), line);
    if (atOperator("("))
      LLMC_RETURN_IF_ERROR(parseArguments(*node, node->arguments));
    LLMC_RETURN_IF_ERROR(checkBuiltinName(*node));
    LLMC_ASSIGN_OR_RETURN(operand, checked(std::move(node)));
  }
  return operand;
}

StatusOr<ExprPtr> ExpressionParser::parseTest(ExprPtr operand) {
  int line = current().line;
  skip();
  bool negated = skipName("not");
  LLMC_ASSIGN_OR_RETURN(std::string test, expectIdentifier());
  const Builtin *builtin = findTest(test);
  if (!builtin)
    return failUnsupported("unknown test '" + test + "'", line);
  // What is tested for being defined may be called behind the test.
  if ((test == "defined" || test == "undefined") && operand->kind == Expr::Kind::Name)
    storedNames.insert(static_cast<const NameExpr &>(*operand).name);
  auto node = std::make_unique<BuiltinExpr>(Expr::Kind::Test, *builtin, std::move(operand), line);
  bool takesOperand = at(Token::Kind::Name)
                          ? !atName("else") && !atName("or") && !atName("and")
                          : at(Token::Kind::String) || at(Token::Kind::Integer) ||
                                at(Token::Kind::Float) || atOperator("[") || atOperator("{");
  if (atOperator("(")) {
    LLMC_RETURN_IF_ERROR(parseArguments(*node, node->arguments));
  } else if (takesOperand) {
    if (atName("is"))
      return fail("tests cannot be chained with is", line);
    LLMC_ASSIGN_OR_RETURN(ExprPtr argument, parsePrimary());
    LLMC_ASSIGN_OR_RETURN(argument, parsePostfix(std::move(argument)));
    node->adopt(argument);
    node->arguments.positional.push_back(std::move(argument));
  }
  if (!negated)
    return checked(std::move(node));
  auto inverse = std::make_unique<UnaryExpr>(UnaryOp::Not, std::move(node), line);
  return checked(std::move(inverse));
}

/// Filters that apply another filter or a test by its name: refuse a wrong name now.
Status ExpressionParser::checkBuiltinName(const BuiltinExpr &filter) const {
  std::string_view outer = filter.builtin.name;
  bool byAttribute = outer == "selectattr" || outer == "rejectattr";
  bool appliesTest = byAttribute || outer == "select" || outer == "reject";
  const std::vector<ExprPtr> &arguments = filter.arguments.positional;
  if (!(appliesTest || outer == "map") || arguments.size() <= byAttribute ||
      arguments[byAttribute]->kind != Expr::Kind::Constant)
    return {};
  const Value &inner = static_cast<const ConstantExpr &>(*arguments[byAttribute]).value;
  if (!inner.isString() || (appliesTest ? findTest(inner.str()) : findFilter(inner.str())))
    return {};
  return failUnsupported(std::string(appliesTest ? "unknown test '" : "unknown filter '") +
                             std::string(inner.str()) + "'",
                         filter.line);
}

void ExpressionParser::noteCall(const CallExpr &call) {
  if (call.callee->kind == Expr::Kind::Name) {
    const std::string &callee = static_cast<const NameExpr &>(*call.callee).name;
    calledNames.push_back({callee, call.line});
    if (callee == "namespace")
      for (const auto &[key, value] : call.arguments.named)
        storedAttributes.insert(std::string(key.str()));
  } else if (call.callee->kind == Expr::Kind::Attribute) {
    calledMethods.push_back({static_cast<const AttributeExpr &>(*call.callee).name, call.line});
  }
}

Status ExpressionParser::checkCalls() const {
  for (const Use &use : calledNames)
    if (!findFunction(use.name) && !storedNames.contains(use.name))
      return failUnsupported("unknown function '" + use.name + "'", use.line);
  for (const Use &use : calledMethods)
    if (!isMethodName(use.name) && !storedAttributes.contains(use.name))
      return failUnsupported("unknown method '" + use.name + "'", use.line);
  return {};
}

} // namespace llmc::rt::jinja
