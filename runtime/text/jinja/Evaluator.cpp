//===- Evaluator.cpp - evaluates expressions ------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Interpreter.h"

#include <algorithm>

namespace llmc::rt::jinja {

StatusOr<Value> Interpreter::evaluate(const Expr &expr) {
  if (expr.kind == Expr::Kind::Constant) // by far the most frequent, and cannot fail
    return static_cast<const ConstantExpr &>(expr).value;
  Runtime::Level level(runtime);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(runtime.tick());
  StatusOr<Value> result = evaluateKind(expr);
  if (!result.ok())
    locate(expr.line);
  return result;
}

StatusOr<Value> Interpreter::evaluateKind(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Kind::Constant:
    return static_cast<const ConstantExpr &>(expr).value;
  case Expr::Kind::Name:
    return lookup(static_cast<const NameExpr &>(expr).name);
  case Expr::Kind::List:
  case Expr::Kind::Tuple:
    return evaluateItems(static_cast<const ItemsExpr &>(expr));
  case Expr::Kind::Dict:
    return evaluateDict(static_cast<const DictExpr &>(expr));
  case Expr::Kind::Unary: {
    const auto &unary = static_cast<const UnaryExpr &>(expr);
    LLMC_ASSIGN_OR_RETURN(Value operand, evaluate(*unary.operand));
    return applyUnary(unary.op, operand);
  }
  case Expr::Kind::Binary: {
    const auto &binary = static_cast<const BinaryExpr &>(expr);
    LLMC_ASSIGN_OR_RETURN(Value left, evaluate(*binary.left));
    LLMC_ASSIGN_OR_RETURN(Value right, evaluate(*binary.right));
    return applyBinary(runtime, binary.op, left, right);
  }
  case Expr::Kind::Logical: {
    const auto &logical = static_cast<const LogicalExpr &>(expr);
    LLMC_ASSIGN_OR_RETURN(Value left, evaluate(*logical.left));
    return isTruthy(left) == logical.isAnd ? evaluate(*logical.right)
                                           : StatusOr<Value>(std::move(left));
  }
  case Expr::Kind::Compare:
    return evaluateCompare(static_cast<const CompareExpr &>(expr));
  case Expr::Kind::Concat:
    return evaluateConcat(static_cast<const ConcatExpr &>(expr));
  case Expr::Kind::Conditional: {
    const auto &conditional = static_cast<const ConditionalExpr &>(expr);
    LLMC_ASSIGN_OR_RETURN(Value condition, evaluate(*conditional.condition));
    if (isTruthy(condition))
      return evaluate(*conditional.whenTrue);
    if (conditional.whenFalse)
      return evaluate(*conditional.whenFalse);
    return Value::undefined("the inline if-expression evaluated to false and has no else");
  }
  case Expr::Kind::Attribute: {
    const auto &attribute = static_cast<const AttributeExpr &>(expr);
    LLMC_ASSIGN_OR_RETURN(Value object, evaluate(*attribute.object));
    return getAttribute(runtime, object, attribute.name);
  }
  case Expr::Kind::Item: {
    const auto &item = static_cast<const ItemExpr &>(expr);
    LLMC_ASSIGN_OR_RETURN(Value object, evaluate(*item.object));
    LLMC_ASSIGN_OR_RETURN(Value key, evaluate(*item.key));
    return getItem(runtime, object, key);
  }
  case Expr::Kind::Slice:
    return evaluateSlice(static_cast<const SliceExpr &>(expr));
  case Expr::Kind::Call:
    return evaluateCall(static_cast<const CallExpr &>(expr), nullptr);
  case Expr::Kind::Filter:
  case Expr::Kind::Test:
    return evaluateBuiltin(static_cast<const BuiltinExpr &>(expr));
  }
  return Value();
}

StatusOr<Value> Interpreter::lookup(std::string_view name) {
  for (Scope *at = scope.get(); at; at = at->parent.get())
    if (const Value *value = at->findHere(name))
      return *value;
  if (const Builtin *function = findFunction(name))
    return Value::object(runtime.heap.make<FunctionObject>(0, *function));
  return Value::undefined("'" + std::string(name) + "' is undefined");
}

StatusOr<Value> Interpreter::evaluateItems(const ItemsExpr &expr) {
  std::vector<Value> items;
  for (const ExprPtr &item : expr.items) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*item));
    items.push_back(std::move(value));
  }
  return expr.kind == Expr::Kind::List ? runtime.list(std::move(items))
                                       : runtime.tuple(std::move(items));
}

StatusOr<Value> Interpreter::evaluateDict(const DictExpr &expr) {
  std::shared_ptr<Dict> dict = runtime.makeDict();
  for (const auto &[keyExpr, valueExpr] : expr.entries) {
    LLMC_ASSIGN_OR_RETURN(Value key, evaluate(*keyExpr));
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*valueExpr));
    LLMC_RETURN_IF_ERROR(runtime.setItem(*dict, key, std::move(value)));
  }
  return Value::dict(std::move(dict));
}

StatusOr<Value> Interpreter::evaluateCompare(const CompareExpr &expr) {
  LLMC_ASSIGN_OR_RETURN(Value left, evaluate(*expr.first));
  for (const auto &[op, operand] : expr.rest) {
    LLMC_ASSIGN_OR_RETURN(Value right, evaluate(*operand));
    LLMC_ASSIGN_OR_RETURN(bool holds, applyCompare(runtime, op, left, right));
    if (!holds)
      return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

StatusOr<Value> Interpreter::evaluateConcat(const ConcatExpr &expr) {
  TextBuilder out = runtime.builder();
  for (const ExprPtr &part : expr.parts) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*part));
    LLMC_RETURN_IF_ERROR(runtime.appendStr(out, value));
  }
  return runtime.finish(std::move(out));
}

StatusOr<Value> Interpreter::evaluateSlice(const SliceExpr &expr) {
  LLMC_ASSIGN_OR_RETURN(Value object, evaluate(*expr.object));
  Value parts[3];
  const ExprPtr *exprs[] = {&expr.start, &expr.stop, &expr.step};
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = Value::none();
    if (*exprs[i]) {
      LLMC_ASSIGN_OR_RETURN(parts[i], evaluate(**exprs[i]));
    }
  }
  return getSlice(runtime, object, parts[0], parts[1], parts[2]);
}

StatusOr<Value> Interpreter::evaluateBuiltin(const BuiltinExpr &expr) {
  Value operand;
  if (expr.operand) {
    LLMC_ASSIGN_OR_RETURN(operand, evaluate(*expr.operand));
  } else {
    operand = *piped;
  }
  LLMC_ASSIGN_OR_RETURN(Args args, evaluateArguments(expr.arguments));
  return expr.builtin.call(runtime, operand, args);
}

StatusOr<Value> Interpreter::applyFilters(const Expr &filters, Value operand) {
  const Value *outer = std::exchange(piped, &operand);
  StatusOr<Value> result = evaluate(filters);
  piped = outer;
  return result;
}

StatusOr<Args> Interpreter::evaluateArguments(const Arguments &arguments) {
  Args args;
  for (const ExprPtr &expr : arguments.positional) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*expr));
    args.positional.push_back(std::move(value));
  }
  for (const auto &[key, expr] : arguments.named) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*expr));
    args.named.emplace_back(key, std::move(value));
  }
  if (arguments.spread) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*arguments.spread));
    LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> items, runtime.iterate(value));
    args.positional.insert(args.positional.end(), items->items.begin(), items->items.end());
  }
  if (arguments.spreadNamed) {
    LLMC_ASSIGN_OR_RETURN(Value value, evaluate(*arguments.spreadNamed));
    if (!value.isDict())
      return raised("argument after ** must be a mapping, not " + std::string(typeName(value)));
    for (const Dict::Entry &entry : value.asDict().entries) {
      if (!entry.key.isString())
        return raised("keywords must be strings");
      if (args.find(entry.key.str()))
        return raised("got multiple values for keyword argument '" + std::string(entry.key.str()) +
                      "'");
      args.named.emplace_back(entry.key, entry.value);
      LLMC_RETURN_IF_ERROR(runtime.tick(args.named.size()));
    }
  }
  return args;
}

StatusOr<Value> Interpreter::evaluateCall(const CallExpr &expr, const Value *caller) {
  LLMC_ASSIGN_OR_RETURN(Value callee, evaluate(*expr.callee));
  LLMC_ASSIGN_OR_RETURN(Args args, evaluateArguments(expr.arguments));
  if (caller)
    args.named.emplace_back(Value::literal("caller"), *caller);
  return call(callee, args);
}

StatusOr<Value> Interpreter::call(const Value &callee, Args &args) {
  if (callee.isUndefined())
    return raised(callee.describeUndefined());
  if (callee.isObject()) {
    Object &object = callee.asObject();
    switch (object.type) {
    case Object::Type::Macro:
      return callMacro(static_cast<const MacroObject &>(object), args);
    case Object::Type::Loop:
      return callLoop(static_cast<const LoopObject &>(object), args);
    case Object::Type::Method: {
      const auto &method = static_cast<const MethodObject &>(object);
      return method.method.call(runtime, method.self, args);
    }
    case Object::Type::Function:
      return static_cast<const FunctionObject &>(object).function.call(runtime, Value(), args);
    case Object::Type::Joiner: {
      auto &joiner = static_cast<JoinerObject &>(object);
      return std::exchange(joiner.used, true) ? joiner.separator : runtime.string("");
    }
    case Object::Type::Namespace:
    case Object::Type::Cycler:
      break;
    }
  }
  return raised("'" + std::string(typeName(callee)) + "' object is not callable");
}

/// Defines the parameters of a macro, and varargs, kwargs and caller where its body uses them.
Status Interpreter::bindParameters(const MacroDefinition &definition, Args &args) {
  const std::string callee = "macro '" + definition.name + "'";
  size_t count = definition.parameters.size();
  std::shared_ptr<Dict> kwargs = runtime.makeDict();
  bool hasCaller = false;
  for (auto &[key, value] : args.named) {
    auto isNamed = [&](const MacroDefinition::Parameter &p) { return p.name == key.str(); };
    auto parameter =
        std::find_if(definition.parameters.begin(), definition.parameters.end(), isNamed);
    if (parameter != definition.parameters.end()) {
      if (static_cast<size_t>(parameter - definition.parameters.begin()) < args.positional.size())
        return raised(callee + " got multiple values for argument '" + parameter->name + "'");
      define(parameter->name, value);
    } else if (key.str() == "caller" && definition.usesCaller) {
      hasCaller = true;
      define("caller", value);
    } else if (definition.usesKwargs) {
      LLMC_RETURN_IF_ERROR(runtime.setItem(*kwargs, key, value));
    } else {
      return raised(callee + " takes no keyword argument '" + std::string(key.str()) + "'");
    }
  }
  if (args.positional.size() > count && !definition.usesVarargs)
    return raised(callee + " takes not more than " + std::to_string(count) + " argument(s)");
  if (definition.usesVarargs) {
    size_t taken = std::min(count, args.positional.size());
    define("varargs", runtime.tuple({args.positional.begin() + static_cast<ptrdiff_t>(taken),
                                     args.positional.end()}));
  }
  if (definition.usesKwargs)
    define("kwargs", Value::dict(kwargs));
  if (definition.usesCaller && !hasCaller)
    define("caller", Value::undefined("No caller defined"));
  for (size_t i = 0; i < count; ++i) {
    const MacroDefinition::Parameter &parameter = definition.parameters[i];
    if (i < args.positional.size()) {
      define(parameter.name, args.positional[i]);
    } else if (!scope->findHere(parameter.name)) {
      Value value = Value::undefined("parameter '" + parameter.name + "' was not provided");
      if (parameter.otherwise) { // may refer to the parameters before
        LLMC_ASSIGN_OR_RETURN(value, evaluate(*parameter.otherwise));
      }
      define(parameter.name, std::move(value));
    }
  }
  return {};
}

StatusOr<Value> Interpreter::callMacro(const MacroObject &macro, Args &args) {
  const MacroDefinition &definition = macro.definition;
  Enter macroScope(*this, macro.closure);
  LLMC_RETURN_IF_ERROR(bindParameters(definition, args));
  Value result;
  LLMC_ASSIGN_OR_RETURN([[maybe_unused]] Flow flow, capture(definition.body, result));
  return result;
}

StatusOr<Value> Interpreter::callLoop(const LoopObject &loop, Args &args) {
  if (!loop.statement.recursive)
    return raised("the loop must have the 'recursive' marker to be called");
  LLMC_RETURN_IF_ERROR(args.bind("loop", "iterable"));
  Enter loopScope(*this, loop.scope);
  TextBuilder out = runtime.builder();
  LLMC_ASSIGN_OR_RETURN([[maybe_unused]] Flow flow,
                        executeFor(loop.statement, *args[0], loop.depth + 1, out));
  return runtime.finish(std::move(out));
}

} // namespace llmc::rt::jinja
