//===- Interpreter.cpp - runs statements ----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Interpreter.h"

#include "runtime/text/jinja/JsonValues.h"

namespace llmc::rt::jinja {

StatusOr<Text> Interpreter::run(const Json &context) {
  if (!context.is_object())
    return invalidArgument(program.name + ": the context of a template must be a JSON object");
  auto locatedError = [&](const Status &status) {
    std::string place = program.name + (errorLine ? ":" + std::to_string(errorLine) : "");
    return Status(status.code(), place + ": " + status.message());
  };
  Enter contextScope(*this, nullptr);
  for (const auto &[key, json] : context.items()) {
    StatusOr<Value> value = importVariable(runtime, key, json);
    if (!value.ok())
      return locatedError(value.status());
    define(key, value.take());
  }
  Enter rootScope(*this, scope);
  TextBuilder out(runtime.options.maxOutputBytes);
  StatusOr<Flow> flow = execute(program.body, out);
  if (!flow.ok())
    return locatedError(flow.status());
  return out.take();
}

void Interpreter::define(std::string_view name, Value value) {
  if (Value *variable = scope->findHere(name)) {
    *variable = std::move(value);
    return;
  }
  scope->variables.emplace_back(name, std::move(value));
  runtime.heap.charge(*scope, sizeof(scope->variables[0]));
}

Status Interpreter::assign(const Target &target, const Value &value) {
  switch (target.kind) {
  case Target::Kind::Name:
    define(target.name, value);
    return {};
  case Target::Kind::Attribute: {
    LLMC_ASSIGN_OR_RETURN(Value space, lookup(target.name));
    if (!space.isObject() || space.asObject().type != Object::Type::Namespace)
      return raised("cannot assign attribute on non-namespace object");
    auto &attributes = static_cast<NamespaceObject &>(space.asObject()).attributes;
    return runtime.setItem(*attributes, Value::literal(target.attribute), value);
  }
  case Target::Kind::Tuple: {
    LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> values, runtime.iterate(value));
    size_t expected = target.items.size(), got = values->items.size();
    if (got < expected)
      return raised("not enough values to unpack (expected " + std::to_string(expected) + ", got " +
                    std::to_string(got) + ")");
    if (got > expected)
      return raised("too many values to unpack (expected " + std::to_string(expected) + ")");
    std::vector<Value> items = values->items; // an assignment may change the sequence
    for (size_t i = 0; i < expected; ++i)
      LLMC_RETURN_IF_ERROR(assign(target.items[i], items[i]));
    return {};
  }
  }
  return {};
}

StatusOr<Interpreter::Flow> Interpreter::capture(const Body &body, Value &result) {
  TextBuilder out = runtime.builder();
  LLMC_ASSIGN_OR_RETURN(Flow flow, execute(body, out));
  LLMC_ASSIGN_OR_RETURN(result, runtime.finish(std::move(out)));
  return flow;
}

StatusOr<Interpreter::Flow> Interpreter::execute(const Body &body, TextBuilder &out) {
  for (const std::unique_ptr<Statement> &statement : body) {
    StatusOr<Flow> flow = execute(*statement, out);
    if (flow.ok() && out.overflowed())
      flow = Status(StatusCode::ResourceExhausted, "the template prints more than allowed");
    if (!flow.ok())
      locate(statement->line);
    if (!flow.ok() || flow.value() != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

StatusOr<Interpreter::Flow> Interpreter::execute(const Statement &statement, TextBuilder &out) {
  Runtime::Level level(runtime);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(runtime.tick());
  switch (statement.kind) {
  case Statement::Kind::Print: {
    LLMC_ASSIGN_OR_RETURN(Value value,
                          evaluate(*static_cast<const PrintStatement &>(statement).value));
    LLMC_RETURN_IF_ERROR(runtime.appendStr(out, value));
    return Flow::Next;
  }
  case Statement::Kind::If:
    return executeIf(static_cast<const IfStatement &>(statement), out);
  case Statement::Kind::For: {
    const auto &loop = static_cast<const ForStatement &>(statement);
    LLMC_ASSIGN_OR_RETURN(Value iterable, evaluate(*loop.iterable));
    return executeFor(loop, iterable, 0, out);
  }
  case Statement::Kind::Set: {
    const auto &set = static_cast<const SetStatement &>(statement);
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*set.value));
    LLMC_RETURN_IF_ERROR(assign(set.target, value));
    return Flow::Next;
  }
  case Statement::Kind::SetBlock:
    return executeSetBlock(static_cast<const SetBlockStatement &>(statement));
  case Statement::Kind::With:
    return executeWith(static_cast<const WithStatement &>(statement), out);
  case Statement::Kind::Macro: {
    const MacroDefinition &macro = static_cast<const MacroStatement &>(statement).macro;
    define(macro.name, Value::object(runtime.heap.make<MacroObject>(0, macro, scope)));
    return Flow::Next;
  }
  case Statement::Kind::CallBlock:
    LLMC_RETURN_IF_ERROR(executeCallBlock(static_cast<const CallBlockStatement &>(statement), out));
    return Flow::Next;
  case Statement::Kind::FilterBlock:
    return executeFilterBlock(static_cast<const FilterBlockStatement &>(statement), out);
  case Statement::Kind::Break:
    return Flow::Break;
  case Statement::Kind::Continue:
    return Flow::Continue;
  }
  return Flow::Next;
}

StatusOr<Interpreter::Flow> Interpreter::executeIf(const IfStatement &statement, TextBuilder &out) {
  for (const auto &[condition, body] : statement.branches) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*condition));
    if (isTruthy(value))
      return execute(body, out);
  }
  return execute(statement.otherwise, out);
}

StatusOr<std::shared_ptr<Sequence>> Interpreter::loopItems(const ForStatement &statement,
                                                           const Value &iterable) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> items, runtime.iterate(iterable));
  if (!statement.filter)
    return items;
  std::vector<Value> kept;
  for (size_t i = 0; i < items->items.size(); ++i) {
    Value item = items->items[i];
    Enter filterScope(*this, scope);
    LLMC_RETURN_IF_ERROR(assign(statement.target, item));
    LLMC_ASSIGN_OR_RETURN(Value keep, evaluate(*statement.filter));
    if (isTruthy(keep))
      kept.push_back(std::move(item));
  }
  return runtime.list(std::move(kept)).shareSequence();
}

StatusOr<Interpreter::Flow> Interpreter::executeFor(const ForStatement &statement,
                                                    const Value &iterable, int64_t depth,
                                                    TextBuilder &out) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> items, loopItems(statement, iterable));
  auto loop = runtime.heap.make<LoopObject>(0, statement, scope, items, depth);
  bool completed = false; // Jinja's else runs unless some iteration reached the end of the body
  for (; loop->index < items->items.size(); ++loop->index) {
    LLMC_RETURN_IF_ERROR(runtime.tick());
    Value item = items->items[loop->index];
    Enter bodyScope(*this, scope);
    LLMC_RETURN_IF_ERROR(assign(statement.target, item));
    define("loop", Value::object(loop));
    LLMC_ASSIGN_OR_RETURN(Flow flow, execute(statement.body, out));
    if (flow == Flow::Break)
      break;
    completed = completed || flow == Flow::Next;
  }
  if (completed)
    return Flow::Next;
  Enter elseScope(*this, scope);
  return execute(statement.otherwise, out);
}

StatusOr<Interpreter::Flow> Interpreter::executeSetBlock(const SetBlockStatement &statement) {
  Value value;
  {
    Enter bodyScope(*this, scope);
    LLMC_ASSIGN_OR_RETURN(Flow flow, capture(statement.body, value));
    if (flow != Flow::Next) // leaves the loop around the block, which then sets nothing
      return flow;
  }
  if (statement.filter) {
    LLMC_ASSIGN_OR_RETURN(value, applyFilters(*statement.filter, std::move(value)));
  }
  LLMC_RETURN_IF_ERROR(assign(statement.target, value));
  return Flow::Next;
}

StatusOr<Interpreter::Flow> Interpreter::executeWith(const WithStatement &statement,
                                                     TextBuilder &out) {
  std::vector<Value> values; // none of them sees the others
  for (const auto &[target, expr] : statement.assignments) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*expr));
    values.push_back(std::move(value));
  }
  Enter bodyScope(*this, scope);
  for (size_t i = 0; i < values.size(); ++i)
    LLMC_RETURN_IF_ERROR(assign(statement.assignments[i].first, values[i]));
  return execute(statement.body, out);
}

Status Interpreter::executeCallBlock(const CallBlockStatement &statement, TextBuilder &out) {
  Value caller = Value::object(runtime.heap.make<MacroObject>(0, statement.caller, scope));
  LLMC_ASSIGN_OR_RETURN(Value result, evaluateCall(*statement.call, &caller));
  return runtime.appendStr(out, result);
}

StatusOr<Interpreter::Flow> Interpreter::executeFilterBlock(const FilterBlockStatement &statement,
                                                            TextBuilder &out) {
  Value body;
  {
    Enter bodyScope(*this, scope);
    LLMC_ASSIGN_OR_RETURN(Flow flow, capture(statement.body, body));
    if (flow != Flow::Next)
      return flow;
  }
  LLMC_ASSIGN_OR_RETURN(Value result, applyFilters(*statement.filter, std::move(body)));
  LLMC_RETURN_IF_ERROR(runtime.appendStr(out, result));
  return Flow::Next;
}

} // namespace llmc::rt::jinja
