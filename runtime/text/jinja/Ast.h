//===- Ast.h - a parsed template ------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nodes own their children. The parser bounds their nesting, so that recursion
// over a tree, destruction included, uses bounded stack.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_AST_H
#define LLMC_RUNTIME_TEXT_JINJA_AST_H

#include "runtime/text/jinja/Operators.h"
#include "runtime/text/jinja/Value.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llmc::rt::jinja {

struct Builtin;

struct Expr {
  enum class Kind : uint8_t {
    Constant,
    Name,
    List,
    Tuple,
    Dict,
    Unary,
    Binary,
    Logical,
    Compare,
    Concat,
    Conditional,
    Attribute,
    Item,
    Slice,
    Call,
    Filter,
    Test,
  };
  Expr(Kind kind, int line) : kind(kind), line(line) {}
  virtual ~Expr() = default;
  /// Counts \p child, which may be null, into the depth.
  void adopt(const std::unique_ptr<Expr> &child) {
    if (child && depth <= child->depth)
      depth = child->depth + 1;
  }

  const Kind kind;
  const int line;
  int depth = 1; ///< of the tree below, 1 for a leaf
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr : Expr {
  ConstantExpr(Value value, int line) : Expr(Kind::Constant, line), value(std::move(value)) {}
  Value value;
};

struct NameExpr : Expr {
  NameExpr(std::string name, int line) : Expr(Kind::Name, line), name(std::move(name)) {}
  std::string name;
};

/// A list or a tuple.
struct ItemsExpr : Expr {
  ItemsExpr(Kind kind, std::vector<ExprPtr> items, int line)
      : Expr(kind, line), items(std::move(items)) {
    for (const ExprPtr &item : this->items)
      adopt(item);
  }
  std::vector<ExprPtr> items;
};

struct DictExpr : Expr {
  explicit DictExpr(int line) : Expr(Kind::Dict, line) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct UnaryExpr : Expr {
  UnaryExpr(UnaryOp op, ExprPtr operand, int line)
      : Expr(Kind::Unary, line), op(op), operand(std::move(operand)) {
    adopt(this->operand);
  }
  UnaryOp op;
  ExprPtr operand;
};

struct BinaryExpr : Expr {
  BinaryExpr(BinaryOp op, ExprPtr left, ExprPtr right, int line)
      : Expr(Kind::Binary, line), op(op), left(std::move(left)), right(std::move(right)) {
    adopt(this->left);
    adopt(this->right);
  }
  BinaryOp op;
  ExprPtr left, right;
};

/// `left and right`, `left or right`: one of the two operands.
struct LogicalExpr : Expr {
  LogicalExpr(bool isAnd, ExprPtr left, ExprPtr right, int line)
      : Expr(Kind::Logical, line), isAnd(isAnd), left(std::move(left)), right(std::move(right)) {
    adopt(this->left);
    adopt(this->right);
  }
  bool isAnd;
  ExprPtr left, right;
};

/// `first op a op b ...`, as a chain.
struct CompareExpr : Expr {
  CompareExpr(ExprPtr first, int line) : Expr(Kind::Compare, line), first(std::move(first)) {
    adopt(this->first);
  }
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

/// `a ~ b ~ ...`
struct ConcatExpr : Expr {
  ConcatExpr(std::vector<ExprPtr> parts, int line)
      : Expr(Kind::Concat, line), parts(std::move(parts)) {
    for (const ExprPtr &part : this->parts)
      adopt(part);
  }
  std::vector<ExprPtr> parts;
};

/// `whenTrue if condition else whenFalse`; without else, undefined.
struct ConditionalExpr : Expr {
  ConditionalExpr(ExprPtr condition, ExprPtr whenTrue, ExprPtr whenFalse, int line)
      : Expr(Kind::Conditional, line), condition(std::move(condition)),
        whenTrue(std::move(whenTrue)), whenFalse(std::move(whenFalse)) {
    adopt(this->condition);
    adopt(this->whenTrue);
    adopt(this->whenFalse);
  }
  ExprPtr condition, whenTrue, whenFalse;
};

struct AttributeExpr : Expr {
  AttributeExpr(ExprPtr object, std::string name, int line)
      : Expr(Kind::Attribute, line), object(std::move(object)), name(std::move(name)) {
    adopt(this->object);
  }
  ExprPtr object;
  std::string name;
};

struct ItemExpr : Expr {
  ItemExpr(ExprPtr object, ExprPtr key, int line)
      : Expr(Kind::Item, line), object(std::move(object)), key(std::move(key)) {
    adopt(this->object);
    adopt(this->key);
  }
  ExprPtr object, key;
};

/// Parts that are left out are null.
struct SliceExpr : Expr {
  SliceExpr(ExprPtr object, ExprPtr start, ExprPtr stop, ExprPtr step, int line)
      : Expr(Kind::Slice, line), object(std::move(object)), start(std::move(start)),
        stop(std::move(stop)), step(std::move(step)) {
    for (const ExprPtr *part : {&this->object, &this->start, &this->stop, &this->step})
      adopt(*part);
  }
  ExprPtr object, start, stop, step;
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<Value, ExprPtr>> named; ///< by literal strings
  ExprPtr spread, spreadNamed;                  ///< *args, **kwargs
};

struct CallExpr : Expr {
  CallExpr(ExprPtr callee, int line) : Expr(Kind::Call, line), callee(std::move(callee)) {
    adopt(this->callee);
  }
  ExprPtr callee;
  Arguments arguments;
};

/// A filter or a test. The operand is null in `{% filter f %}` and `{% set x | f %}`, where it is
/// the rendered body.
struct BuiltinExpr : Expr {
  BuiltinExpr(Kind kind, const Builtin &builtin, ExprPtr operand, int line)
      : Expr(kind, line), builtin(builtin), operand(std::move(operand)) {
    adopt(this->operand);
  }
  const Builtin &builtin;
  ExprPtr operand;
  Arguments arguments;
};

/// Where `set`, `for` and `with` store.
struct Target {
  enum class Kind : uint8_t { Name, Attribute, Tuple };
  Kind kind = Kind::Name;
  int line = 0;
  std::string name;
  std::string attribute; ///< of the namespace `name`
  std::vector<Target> items;
};

struct Statement {
  enum class Kind : uint8_t {
    Print,
    If,
    For,
    Set,
    SetBlock,
    With,
    Macro,
    CallBlock,
    FilterBlock,
    Break,
    Continue,
  };
  Statement(Kind kind, int line) : kind(kind), line(line) {}
  virtual ~Statement() = default;
  const Kind kind;
  const int line;
};
using Body = std::vector<std::unique_ptr<Statement>>;

/// Template data is a constant that is printed.
struct PrintStatement : Statement {
  PrintStatement(ExprPtr value, int line) : Statement(Kind::Print, line), value(std::move(value)) {}
  ExprPtr value;
};

struct IfStatement : Statement {
  explicit IfStatement(int line) : Statement(Kind::If, line) {}
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};

struct ForStatement : Statement {
  explicit ForStatement(int line) : Statement(Kind::For, line) {}
  Target target;
  ExprPtr iterable, filter; ///< filter may be null
  bool recursive = false;
  Body body, otherwise;
};

struct SetStatement : Statement {
  explicit SetStatement(int line) : Statement(Kind::Set, line) {}
  Target target;
  ExprPtr value;
};

struct SetBlockStatement : Statement {
  explicit SetBlockStatement(int line) : Statement(Kind::SetBlock, line) {}
  Target target;
  ExprPtr filter; ///< may be null
  Body body;
};

/// Also a {% generation %} block, which is a scope without assignments.
struct WithStatement : Statement {
  explicit WithStatement(int line) : Statement(Kind::With, line) {}
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
};

/// A macro, or the body of a call block, which is the macro `caller`.
struct MacroDefinition {
  struct Parameter {
    std::string name;
    ExprPtr otherwise; ///< may be null
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool usesCaller = false, usesVarargs = false, usesKwargs = false;
};

struct MacroStatement : Statement {
  explicit MacroStatement(int line) : Statement(Kind::Macro, line) {}
  MacroDefinition macro;
};

struct CallBlockStatement : Statement {
  explicit CallBlockStatement(int line) : Statement(Kind::CallBlock, line) {}
  std::unique_ptr<CallExpr> call;
  MacroDefinition caller;
};

struct FilterBlockStatement : Statement {
  explicit FilterBlockStatement(int line) : Statement(Kind::FilterBlock, line) {}
  ExprPtr filter;
  Body body;
};

struct SimpleStatement : Statement {
  using Statement::Statement; ///< break or continue
};

/// What a Template holds.
struct Program {
  std::string name;
  Body body;
};

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_AST_H
