//===- ExpressionParser.cpp - tokens to expressions -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/ExpressionParser.h"

#include <algorithm>
#include <optional>
#include <span>

namespace llmc::rt::jinja {
namespace {

/// Bounds the stack of the parser: one level takes about a dozen calls.
constexpr unsigned maxNesting = 100;
/// Bounds the stack of the interpreter and of destruction; chains of operators count too.
constexpr int maxTreeDepth = 300;

bool isLiteralName(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

std::optional<CompareOp> compareOpOf(const Token &token) {
  constexpr std::pair<std::string_view, CompareOp> ops[] = {
      {"==", CompareOp::Equal},     {"!=", CompareOp::NotEqual}, {"<", CompareOp::Less},
      {"<=", CompareOp::LessEqual}, {">", CompareOp::Greater},   {">=", CompareOp::GreaterEqual},
  };
  if (token.kind == Token::Kind::Operator)
    for (auto [text, op] : ops)
      if (token.text == text)
        return op;
  return std::nullopt;
}

} // namespace

Status ExpressionParser::Nesting::check() const {
  return parser.nesting > maxNesting ? parser.fail("nested too deeply", parser.current().line)
                                     : Status();
}

Status ExpressionParser::fail(std::string_view message, int line) const {
  return corrupt(std::string(name) + ":" + std::to_string(line) + ": " + std::string(message));
}

Status ExpressionParser::failUnsupported(std::string_view message, int line) const {
  return unsupported(std::string(name) + ":" + std::to_string(line) + ": " + std::string(message));
}

Status ExpressionParser::failUnexpected() const {
  switch (current().kind) {
  case Token::Kind::End:
    return fail("unexpected end of template", current().line);
  case Token::Kind::BlockEnd:
  case Token::Kind::VariableEnd:
    return fail("unexpected end of tag", current().line);
  case Token::Kind::Name:
  case Token::Kind::Operator:
    return fail("unexpected '" + current().text + "'", current().line);
  default:
    return fail("unexpected literal or text", current().line);
  }
}

bool ExpressionParser::skipName(std::string_view text) {
  bool found = atName(text);
  if (found)
    skip();
  return found;
}

bool ExpressionParser::skipOperator(std::string_view text) {
  bool found = atOperator(text);
  if (found)
    skip();
  return found;
}

Status ExpressionParser::expectOperator(std::string_view text) {
  return skipOperator(text) ? Status() : failUnexpected();
}

Status ExpressionParser::expect(Token::Kind kind) {
  if (!at(kind))
    return failUnexpected();
  skip();
  return {};
}

StatusOr<std::string> ExpressionParser::expectIdentifier() {
  if (!at(Token::Kind::Name))
    return failUnexpected();
  std::string text = current().text;
  skip();
  return text;
}

StatusOr<ExprPtr> ExpressionParser::checked(ExprPtr node) const {
  if (node->depth > maxTreeDepth)
    return fail("expression is too deep", node->line);
  return node;
}

StatusOr<ExprPtr> ExpressionParser::parseExpression(bool withConditional) {
  Nesting level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  int line = current().line;
  LLMC_ASSIGN_OR_RETURN(ExprPtr value, parseLogical(false));
  while (withConditional && skipName("if")) {
    LLMC_ASSIGN_OR_RETURN(ExprPtr condition, parseLogical(false));
    ExprPtr otherwise;
    if (skipName("else")) {
      LLMC_ASSIGN_OR_RETURN(otherwise, parseExpression());
    }
    auto node = std::make_unique<ConditionalExpr>(std::move(condition), std::move(value),
                                                  std::move(otherwise), line);
    LLMC_ASSIGN_OR_RETURN(value, checked(std::move(node)));
  }
  return value;
}

StatusOr<ExprPtr> ExpressionParser::parseLogical(bool isAnd) {
  auto parseOperand = [&] { return isAnd ? parseNot() : parseLogical(true); };
  LLMC_ASSIGN_OR_RETURN(ExprPtr left, parseOperand());
  while (atName(isAnd ? "and" : "or")) {
    int line = current().line;
    skip();
    LLMC_ASSIGN_OR_RETURN(ExprPtr right, parseOperand());
    auto node = std::make_unique<LogicalExpr>(isAnd, std::move(left), std::move(right), line);
    LLMC_ASSIGN_OR_RETURN(left, checked(std::move(node)));
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::parseNot() {
  if (!atName("not"))
    return parseCompare();
  Nesting level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  int line = current().line;
  skip();
  LLMC_ASSIGN_OR_RETURN(ExprPtr operand, parseNot());
  auto node = std::make_unique<UnaryExpr>(UnaryOp::Not, std::move(operand), line);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseCompare() {
  int line = current().line;
  LLMC_ASSIGN_OR_RETURN(ExprPtr first, parseBinary(0));
  auto node = std::make_unique<CompareExpr>(std::move(first), line);
  while (true) {
    std::optional<CompareOp> op = compareOpOf(current());
    if (!op && atName("in"))
      op = CompareOp::In;
    if (!op && atName("not") && is(next(), Token::Kind::Name, "in")) {
      skip();
      op = CompareOp::NotIn;
    }
    if (!op)
      break;
    skip();
    LLMC_ASSIGN_OR_RETURN(ExprPtr operand, parseBinary(0));
    node->adopt(operand);
    node->rest.emplace_back(*op, std::move(operand));
  }
  if (node->rest.empty())
    return std::move(node->first);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseBinary(unsigned level) {
  struct Row {
    std::string_view text;
    BinaryOp op;
  };
  static constexpr Row math1[] = {{"+", BinaryOp::Add}, {"-", BinaryOp::Subtract}};
  static constexpr Row math2[] = {{"*", BinaryOp::Multiply},
                                  {"/", BinaryOp::Divide},
                                  {"//", BinaryOp::FloorDivide},
                                  {"%", BinaryOp::Modulo}};
  static constexpr Row power[] = {{"**", BinaryOp::Power}};
  static constexpr std::span<const Row> levels[] = {math1, math2, power};

  auto parseOperand = [&] {
    return level == 0 ? parseConcat() : level == 1 ? parseBinary(2) : parseUnary();
  };
  LLMC_ASSIGN_OR_RETURN(ExprPtr left, parseOperand());
  while (true) {
    std::span<const Row> rows = levels[level];
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row &candidate) { return atOperator(candidate.text); });
    if (row == rows.end())
      return left;
    int line = current().line;
    skip();
    LLMC_ASSIGN_OR_RETURN(ExprPtr right, parseOperand());
    auto node = std::make_unique<BinaryExpr>(row->op, std::move(left), std::move(right), line);
    LLMC_ASSIGN_OR_RETURN(left, checked(std::move(node)));
  }
}

StatusOr<ExprPtr> ExpressionParser::parseConcat() {
  int line = current().line;
  LLMC_ASSIGN_OR_RETURN(ExprPtr first, parseBinary(1));
  if (!atOperator("~"))
    return first;
  std::vector<ExprPtr> parts;
  parts.push_back(std::move(first));
  while (skipOperator("~")) {
    LLMC_ASSIGN_OR_RETURN(ExprPtr part, parseBinary(1));
    parts.push_back(std::move(part));
  }
  auto node = std::make_unique<ConcatExpr>(std::move(parts), line);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseUnary(bool withFilter) {
  Nesting level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  int line = current().line;
  ExprPtr value;
  if (atOperator("-") || atOperator("+")) {
    UnaryOp op = atOperator("-") ? UnaryOp::Minus : UnaryOp::Plus;
    skip();
    LLMC_ASSIGN_OR_RETURN(ExprPtr operand, parseUnary(false));
    auto node = std::make_unique<UnaryExpr>(op, std::move(operand), line);
    LLMC_ASSIGN_OR_RETURN(value, checked(std::move(node)));
  } else {
    LLMC_ASSIGN_OR_RETURN(value, parsePrimary());
  }
  LLMC_ASSIGN_OR_RETURN(value, parsePostfix(std::move(value)));
  return withFilter ? parseFiltersAndTests(std::move(value)) : StatusOr<ExprPtr>(std::move(value));
}

StatusOr<ExprPtr> ExpressionParser::parseName() {
  const Token &token = current();
  int line = token.line;
  std::string text = token.text;
  skip();
  if (text == "true" || text == "True" || text == "false" || text == "False")
    return ExprPtr(std::make_unique<ConstantExpr>(Value::boolean((text[0] | 0x20) == 't'), line));
  if (text == "none" || text == "None")
    return ExprPtr(std::make_unique<ConstantExpr>(Value::none(), line));
  if (macro) {
    macro->usesCaller = macro->usesCaller || text == "caller";
    macro->usesVarargs = macro->usesVarargs || text == "varargs";
    macro->usesKwargs = macro->usesKwargs || text == "kwargs";
  }
  return ExprPtr(std::make_unique<NameExpr>(std::move(text), line));
}

StatusOr<ExprPtr> ExpressionParser::parsePrimary() {
  int line = current().line;
  switch (current().kind) {
  case Token::Kind::Name:
    return parseName();
  case Token::Kind::String: {
    std::string text;
    for (; at(Token::Kind::String); skip())
      text += current().text;
    return ExprPtr(std::make_unique<ConstantExpr>(Value::literal(text), line));
  }
  case Token::Kind::Integer: {
    Value value = Value::integer(current().integer);
    skip();
    return ExprPtr(std::make_unique<ConstantExpr>(std::move(value), line));
  }
  case Token::Kind::Float: {
    Value value = Value::floating(current().number);
    skip();
    return ExprPtr(std::make_unique<ConstantExpr>(std::move(value), line));
  }
  default:
    break;
  }
  if (skipOperator("(")) {
    LLMC_ASSIGN_OR_RETURN(ExprPtr inner, parseTuple(true, true));
    LLMC_RETURN_IF_ERROR(expectOperator(")"));
    return inner;
  }
  if (atOperator("["))
    return parseList();
  if (atOperator("{"))
    return parseDict();
  return failUnexpected();
}

StatusOr<ExprPtr> ExpressionParser::parseTuple(bool withConditional, bool inParentheses) {
  int line = current().line;
  std::vector<ExprPtr> items;
  bool isTuple = false;
  auto atEnd = [&] {
    return at(Token::Kind::VariableEnd) || at(Token::Kind::BlockEnd) || atOperator(")");
  };
  while (!atEnd()) {
    LLMC_ASSIGN_OR_RETURN(ExprPtr item, parseExpression(withConditional));
    items.push_back(std::move(item));
    if (!skipOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && !items.empty())
    return std::move(items.front());
  if (!isTuple && !inParentheses)
    return failUnexpected();
  auto node = std::make_unique<ItemsExpr>(Expr::Kind::Tuple, std::move(items), line);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseList() {
  int line = current().line;
  skip();
  std::vector<ExprPtr> items;
  while (!atOperator("]")) {
    LLMC_ASSIGN_OR_RETURN(ExprPtr item, parseExpression());
    items.push_back(std::move(item));
    if (!skipOperator(","))
      break;
  }
  LLMC_RETURN_IF_ERROR(expectOperator("]"));
  auto node = std::make_unique<ItemsExpr>(Expr::Kind::List, std::move(items), line);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseDict() {
  auto node = std::make_unique<DictExpr>(current().line);
  skip();
  while (!atOperator("}")) {
    LLMC_ASSIGN_OR_RETURN(ExprPtr key, parseExpression());
    LLMC_RETURN_IF_ERROR(expectOperator(":"));
    LLMC_ASSIGN_OR_RETURN(ExprPtr value, parseExpression());
    node->adopt(key);
    node->adopt(value);
    node->entries.emplace_back(std::move(key), std::move(value));
    if (!skipOperator(","))
      break;
  }
  LLMC_RETURN_IF_ERROR(expectOperator("}"));
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parsePostfix(ExprPtr operand) {
  while (true) {
    if (atOperator(".")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseAttribute(std::move(operand)));
    } else if (atOperator("[")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseSubscript(std::move(operand)));
    } else if (atOperator("(")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseCall(std::move(operand)));
    } else {
      return operand;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::parseFiltersAndTests(ExprPtr operand) {
  while (true) {
    if (atOperator("|")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseFilters(std::move(operand)));
    } else if (atName("is")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseTest(std::move(operand)));
    } else if (atOperator("(")) {
      LLMC_ASSIGN_OR_RETURN(operand, parseCall(std::move(operand)));
    } else {
      return operand;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::parseAttribute(ExprPtr object) {
  int line = current().line;
  skip();
  if (at(Token::Kind::Integer)) { // x.0 is x[0]
    auto key = std::make_unique<ConstantExpr>(Value::integer(current().integer), line);
    skip();
    auto node = std::make_unique<ItemExpr>(std::move(object), std::move(key), line);
    return checked(std::move(node));
  }
  LLMC_ASSIGN_OR_RETURN(std::string attribute, expectIdentifier());
  auto node = std::make_unique<AttributeExpr>(std::move(object), std::move(attribute), line);
  return checked(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::parseSlice(ExprPtr object, ExprPtr start, int line) {
  ExprPtr stop, step;
  LLMC_RETURN_IF_ERROR(expectOperator(":"));
  if (!atOperator(":") && !atOperator("]")) {
    LLMC_ASSIGN_OR_RETURN(stop, parseExpression());
  }
  if (skipOperator(":") && !atOperator("]")) {
    LLMC_ASSIGN_OR_RETURN(step, parseExpression());
  }
  LLMC_RETURN_IF_ERROR(expectOperator("]"));
  return checked(std::make_unique<SliceExpr>(std::move(object), std::move(start), std::move(stop),
                                             std::move(step), line));
}

StatusOr<ExprPtr> ExpressionParser::parseSubscript(ExprPtr object) {
  int line = current().line;
  skip();
  std::vector<ExprPtr> keys;
  while (!atOperator("]")) {
    ExprPtr key;
    if (!atOperator(":")) {
      LLMC_ASSIGN_OR_RETURN(key, parseExpression());
    }
    if (atOperator(":")) {
      if (!keys.empty())
        return failUnsupported("slices in several dimensions are not supported", line);
      return parseSlice(std::move(object), std::move(key), line);
    }
    keys.push_back(std::move(key));
    if (!skipOperator(","))
      break;
  }
  LLMC_RETURN_IF_ERROR(expectOperator("]"));
  ExprPtr key;
  if (keys.size() == 1) {
    key = std::move(keys.front());
  } else {
    key = std::make_unique<ItemsExpr>(Expr::Kind::Tuple, std::move(keys), line);
  }
  auto node = std::make_unique<ItemExpr>(std::move(object), std::move(key), line);
  return checked(std::move(node));
}

StatusOr<std::string> ExpressionParser::parseStoredName() {
  int line = current().line;
  LLMC_ASSIGN_OR_RETURN(std::string text, expectIdentifier());
  if (isLiteralName(text))
    return fail("cannot assign to '" + text + "'", line);
  storedNames.insert(text);
  return text;
}

StatusOr<Target> ExpressionParser::parseTargetItem(bool withNamespace) {
  Nesting level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  if (skipOperator("(")) {
    LLMC_ASSIGN_OR_RETURN(Target inner, parseTarget(withNamespace));
    LLMC_RETURN_IF_ERROR(expectOperator(")"));
    return inner;
  }
  Target target;
  target.line = current().line;
  LLMC_ASSIGN_OR_RETURN(target.name, parseStoredName());
  if (withNamespace && skipOperator(".")) {
    target.kind = Target::Kind::Attribute;
    LLMC_ASSIGN_OR_RETURN(target.attribute, expectIdentifier());
    storedAttributes.insert(target.attribute);
  }
  return target;
}

StatusOr<Target> ExpressionParser::parseTarget(bool withNamespace) {
  LLMC_ASSIGN_OR_RETURN(Target first, parseTargetItem(withNamespace));
  if (!atOperator(","))
    return first;
  Target tuple;
  tuple.kind = Target::Kind::Tuple;
  tuple.line = first.line;
  tuple.items.push_back(std::move(first));
  while (skipOperator(",") && (at(Token::Kind::Name) || atOperator("(")) && !atName("in")) {
    LLMC_ASSIGN_OR_RETURN(Target item, parseTargetItem(withNamespace));
    tuple.items.push_back(std::move(item));
  }
  return tuple;
}

} // namespace llmc::rt::jinja
