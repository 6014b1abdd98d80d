//===- Parser.cpp - template source to a program --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Parser.h"

#include "runtime/text/jinja/ExpressionParser.h"

#include <algorithm>
#include <initializer_list>

namespace llmc::rt::jinja {
namespace {

constexpr size_t maxSourceBytes = size_t(4) << 20;

using StatementPtr = std::unique_ptr<Statement>;
using TagNames = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
public:
  Parser(std::vector<Token> tokens, std::string_view name, const ParseOptions &options)
      : ExpressionParser(std::move(tokens), name), options(options) {}

  StatusOr<Body> parseAll();

private:
  /// Statements up to a tag of \p ends, whose name is then the current token.
  StatusOr<Body> parseUntil(TagNames ends);
  /// The same from behind a tag's expression, through the end of its closing tag's name.
  StatusOr<Body> parseBlock(std::string_view end);
  /// Ends the opening tag, then parses its body up to a tag of \p ends.
  StatusOr<Body> parseBody(TagNames ends);
  StatusOr<StatementPtr> parseStatement();
  StatusOr<StatementPtr> parseFor();
  StatusOr<StatementPtr> parseIf();
  StatusOr<StatementPtr> parseSet();
  StatusOr<StatementPtr> parseWith();
  StatusOr<StatementPtr> parseGeneration();
  StatusOr<StatementPtr> parseMacro();
  StatusOr<StatementPtr> parseCallBlock();
  StatusOr<StatementPtr> parseFilterBlock();
  StatusOr<StatementPtr> parseLoopControl(Statement::Kind kind);
  Status parseParameters(MacroDefinition &definition);
  Status parseMacroBody(MacroDefinition &definition, std::string_view end);

  const ParseOptions &options;
  unsigned loops = 0; ///< around the current statement, inside its macro
};

StatusOr<Body> Parser::parseUntil(TagNames ends) {
  Nesting level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  Body body;
  while (!at(Token::Kind::End)) {
    int line = current().line;
    if (at(Token::Kind::Data)) {
      auto data = std::make_unique<ConstantExpr>(Value::literal(current().text), line);
      skip();
      body.push_back(std::make_unique<PrintStatement>(std::move(data), line));
    } else if (at(Token::Kind::VariableBegin)) {
      skip();
      LLMC_ASSIGN_OR_RETURN(ExprPtr value, parseTuple());
      LLMC_RETURN_IF_ERROR(expect(Token::Kind::VariableEnd));
      body.push_back(std::make_unique<PrintStatement>(std::move(value), line));
    } else {
      LLMC_RETURN_IF_ERROR(expect(Token::Kind::BlockBegin));
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return atName(end); }))
        return body;
      LLMC_ASSIGN_OR_RETURN(StatementPtr statement, parseStatement());
      LLMC_RETURN_IF_ERROR(expect(Token::Kind::BlockEnd));
      body.push_back(std::move(statement));
    }
  }
  if (ends.size() != 0)
    return fail("unexpected end of template, expected '" + std::string(*(ends.end() - 1)) + "'",
                current().line);
  return body;
}

StatusOr<Body> Parser::parseBody(TagNames ends) {
  skipOperator(":"); // allowed, as in Python
  LLMC_RETURN_IF_ERROR(expect(Token::Kind::BlockEnd));
  return parseUntil(ends);
}

StatusOr<Body> Parser::parseBlock(std::string_view end) {
  LLMC_ASSIGN_OR_RETURN(Body body, parseBody({end}));
  skip();
  return body;
}

StatusOr<StatementPtr> Parser::parseStatement() {
  if (!at(Token::Kind::Name))
    return failUnexpected();
  struct Row {
    std::string_view tag;
    StatusOr<StatementPtr> (Parser::*parse)();
  };
  static constexpr Row rows[] = {
      {"for", &Parser::parseFor},
      {"if", &Parser::parseIf},
      {"set", &Parser::parseSet},
      {"with", &Parser::parseWith},
      {"macro", &Parser::parseMacro},
      {"call", &Parser::parseCallBlock},
      {"filter", &Parser::parseFilterBlock},
  };
  for (const Row &row : rows)
    if (atName(row.tag))
      return (this->*row.parse)();
  if (atName("break"))
    return parseLoopControl(Statement::Kind::Break);
  if (atName("continue"))
    return parseLoopControl(Statement::Kind::Continue);
  if (options.generationTag && atName("generation"))
    return parseGeneration();
  return failUnsupported("unknown tag '" + current().text + "'", current().line);
}

StatusOr<StatementPtr> Parser::parseFor() {
  auto node = std::make_unique<ForStatement>(current().line);
  skip();
  LLMC_ASSIGN_OR_RETURN(node->target, parseTarget(false));
  if (!skipName("in"))
    return failUnexpected();
  LLMC_ASSIGN_OR_RETURN(node->iterable, parseTuple(false));
  if (skipName("if")) {
    LLMC_ASSIGN_OR_RETURN(node->filter, parseExpression());
  }
  node->recursive = skipName("recursive");
  ++loops;
  LLMC_ASSIGN_OR_RETURN(node->body, parseBody({"else", "endfor"}));
  --loops;
  if (skipName("else")) {
    // A recursive loop is a function of its own, from which one cannot leave the loop around it.
    unsigned outer = std::exchange(loops, node->recursive ? 0 : loops);
    LLMC_ASSIGN_OR_RETURN(node->otherwise, parseBody({"endfor"}));
    loops = outer;
  }
  skip();
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseIf() {
  auto node = std::make_unique<IfStatement>(current().line);
  do {
    skip(); // "if" or "elif"
    LLMC_ASSIGN_OR_RETURN(ExprPtr condition, parseTuple(false));
    LLMC_ASSIGN_OR_RETURN(Body body, parseBody({"elif", "else", "endif"}));
    node->branches.emplace_back(std::move(condition), std::move(body));
  } while (atName("elif"));
  if (skipName("else")) {
    LLMC_ASSIGN_OR_RETURN(node->otherwise, parseBody({"endif"}));
  }
  skip();
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseSet() {
  int line = current().line;
  skip();
  LLMC_ASSIGN_OR_RETURN(Target target, parseTarget(true));
  if (skipOperator("=")) {
    auto node = std::make_unique<SetStatement>(line);
    node->target = std::move(target);
    LLMC_ASSIGN_OR_RETURN(node->value, parseTuple());
    return StatementPtr(std::move(node));
  }
  auto node = std::make_unique<SetBlockStatement>(line);
  node->target = std::move(target);
  LLMC_ASSIGN_OR_RETURN(node->filter, parseFilters(nullptr));
  LLMC_ASSIGN_OR_RETURN(node->body, parseBlock("endset"));
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseWith() {
  auto node = std::make_unique<WithStatement>(current().line);
  skip();
  while (!at(Token::Kind::BlockEnd)) {
    if (!node->assignments.empty())
      LLMC_RETURN_IF_ERROR(expectOperator(","));
    Target target;
    target.line = current().line;
    LLMC_ASSIGN_OR_RETURN(target.name, parseStoredName());
    LLMC_RETURN_IF_ERROR(expectOperator("="));
    LLMC_ASSIGN_OR_RETURN(ExprPtr value, parseExpression());
    node->assignments.emplace_back(std::move(target), std::move(value));
  }
  LLMC_ASSIGN_OR_RETURN(node->body, parseBlock("endwith"));
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseGeneration() {
  auto node = std::make_unique<WithStatement>(current().line);
  skip();
  LLMC_ASSIGN_OR_RETURN(node->body, parseBlock("endgeneration"));
  return StatementPtr(std::move(node));
}

Status Parser::parseParameters(MacroDefinition &definition) {
  LLMC_RETURN_IF_ERROR(expectOperator("("));
  while (!atOperator(")")) {
    if (!definition.parameters.empty())
      LLMC_RETURN_IF_ERROR(expectOperator(","));
    MacroDefinition::Parameter parameter;
    LLMC_ASSIGN_OR_RETURN(parameter.name, parseStoredName());
    if (skipOperator("=")) {
      LLMC_ASSIGN_OR_RETURN(parameter.otherwise, parseExpression());
    } else if (!definition.parameters.empty() && definition.parameters.back().otherwise) {
      return fail("non-default argument follows default argument", current().line);
    }
    for (const MacroDefinition::Parameter &other : definition.parameters)
      if (other.name == parameter.name)
        return fail("duplicate argument '" + parameter.name + "'", current().line);
    definition.parameters.push_back(std::move(parameter));
  }
  return expectOperator(")");
}

Status Parser::parseMacroBody(MacroDefinition &definition, std::string_view end) {
  MacroDefinition *outer = std::exchange(macro, &definition);
  unsigned outerLoops = std::exchange(loops, 0);
  LLMC_ASSIGN_OR_RETURN(definition.body, parseBlock(end));
  macro = outer;
  loops = outerLoops;
  return {};
}

StatusOr<StatementPtr> Parser::parseMacro() {
  auto node = std::make_unique<MacroStatement>(current().line);
  skip();
  LLMC_ASSIGN_OR_RETURN(node->macro.name, parseStoredName());
  LLMC_RETURN_IF_ERROR(parseParameters(node->macro));
  LLMC_RETURN_IF_ERROR(parseMacroBody(node->macro, "endmacro"));
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseCallBlock() {
  auto node = std::make_unique<CallBlockStatement>(current().line);
  skip();
  node->caller.name = "caller";
  if (atOperator("("))
    LLMC_RETURN_IF_ERROR(parseParameters(node->caller));
  LLMC_ASSIGN_OR_RETURN(ExprPtr call, parseExpression());
  if (call->kind != Expr::Kind::Call)
    return fail("expected a call", node->line);
  node->call.reset(static_cast<CallExpr *>(call.release()));
  LLMC_RETURN_IF_ERROR(parseMacroBody(node->caller, "endcall"));
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseFilterBlock() {
  auto node = std::make_unique<FilterBlockStatement>(current().line);
  skip();
  LLMC_ASSIGN_OR_RETURN(node->filter, parseFilters(nullptr, true));
  LLMC_ASSIGN_OR_RETURN(node->body, parseBlock("endfilter"));
  return StatementPtr(std::move(node));
}

StatusOr<StatementPtr> Parser::parseLoopControl(Statement::Kind kind) {
  auto node = std::make_unique<SimpleStatement>(kind, current().line);
  if (loops == 0)
    return fail("'" + current().text + "' outside of a loop", current().line);
  skip();
  return StatementPtr(std::move(node));
}

StatusOr<Body> Parser::parseAll() {
  LLMC_ASSIGN_OR_RETURN(Body body, parseUntil({}));
  LLMC_RETURN_IF_ERROR(checkCalls());
  return body;
}

} // namespace

StatusOr<std::shared_ptr<const Program>>
parseProgram(std::string_view source, std::string_view name, const ParseOptions &options) {
  if (source.size() > maxSourceBytes)
    return unsupported(std::string(name) + ": template is larger than 4 MiB");
  LLMC_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source, name));
  auto program = std::make_shared<Program>();
  program->name = name;
  LLMC_ASSIGN_OR_RETURN(program->body, Parser(std::move(tokens), name, options).parseAll());
  return std::shared_ptr<const Program>(std::move(program));
}

} // namespace llmc::rt::jinja
