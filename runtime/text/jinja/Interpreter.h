//===- Interpreter.h - runs a program -------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_INTERPRETER_H
#define LLMC_RUNTIME_TEXT_JINJA_INTERPRETER_H

#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Objects.h"
#include "runtime/text/jinja/Runtime.h"

#include <memory>

namespace llmc::rt::jinja {

/// Renders a program once.
class Interpreter {
public:
  Interpreter(const Program &program, const RenderOptions &options)
      : program(program), runtime(options) {}

  /// \p context must outlive the call. Errors begin with "NAME:LINE: ".
  StatusOr<Text> run(const Json &context);

private:
  enum class Flow : uint8_t { Next, Break, Continue };

  /// Makes a new scope the current one, for as long as it lives.
  class Enter {
  public:
    Enter(Interpreter &interpreter, std::shared_ptr<Scope> parent)
        : scope(interpreter.scope),
          outer(std::exchange(scope, interpreter.runtime.heap.make<Scope>(0, std::move(parent)))) {}
    ~Enter() { scope = std::move(outer); }
    Enter(const Enter &) = delete;

  private:
    std::shared_ptr<Scope> &scope;
    std::shared_ptr<Scope> outer;
  };

  // Statements (Interpreter.cpp).
  StatusOr<Flow> execute(const Body &body, TextBuilder &out);
  StatusOr<Flow> execute(const Statement &statement, TextBuilder &out);
  StatusOr<Flow> executeIf(const IfStatement &statement, TextBuilder &out);
  /// \p depth counts the calls of a recursive loop.
  StatusOr<Flow> executeFor(const ForStatement &statement, const Value &iterable, int64_t depth,
                            TextBuilder &out);
  StatusOr<std::shared_ptr<Sequence>> loopItems(const ForStatement &statement,
                                                const Value &iterable);
  StatusOr<Flow> executeSetBlock(const SetBlockStatement &statement);
  StatusOr<Flow> executeWith(const WithStatement &statement, TextBuilder &out);
  Status executeCallBlock(const CallBlockStatement &statement, TextBuilder &out);
  StatusOr<Flow> executeFilterBlock(const FilterBlockStatement &statement, TextBuilder &out);
  /// Runs \p body; \p result is what it prints, as a string.
  StatusOr<Flow> capture(const Body &body, Value &result);
  Status assign(const Target &target, const Value &value);
  void define(std::string_view name, Value value);

  // Expressions (Evaluator.cpp).
  StatusOr<Value> evaluate(const Expr &expr);
  StatusOr<Value> evaluateKind(const Expr &expr);
  StatusOr<Value> lookup(std::string_view name);
  StatusOr<Value> evaluateItems(const ItemsExpr &expr);
  StatusOr<Value> evaluateDict(const DictExpr &expr);
  StatusOr<Value> evaluateCompare(const CompareExpr &expr);
  StatusOr<Value> evaluateConcat(const ConcatExpr &expr);
  StatusOr<Value> evaluateSlice(const SliceExpr &expr);
  StatusOr<Value> evaluateBuiltin(const BuiltinExpr &expr);
  StatusOr<Value> evaluateCall(const CallExpr &expr, const Value *caller);
  /// Applies a chain of filters whose innermost operand is left out.
  StatusOr<Value> applyFilters(const Expr &filters, Value operand);
  StatusOr<Args> evaluateArguments(const Arguments &arguments);
  StatusOr<Value> call(const Value &callee, Args &args);
  StatusOr<Value> callMacro(const MacroObject &macro, Args &args);
  StatusOr<Value> callLoop(const LoopObject &loop, Args &args);
  Status bindParameters(const MacroDefinition &definition, Args &args);

  /// Remembers where an error came up first.
  void locate(int line) {
    if (errorLine == 0)
      errorLine = line;
  }

  const Program &program;
  Runtime runtime;
  std::shared_ptr<Scope> scope;
  const Value *piped = nullptr; ///< the operand that applyFilters() hands to the innermost filter
  int errorLine = 0;
};

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_INTERPRETER_H
