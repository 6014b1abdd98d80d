//===- Objects.h - namespaces, functions and other non-data values --------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_OBJECTS_H
#define LLMC_RUNTIME_TEXT_JINJA_OBJECTS_H

#include "runtime/text/jinja/Value.h"

#include <optional>

namespace llmc::rt::jinja {

struct Builtin;
struct ForStatement;
struct MacroDefinition;

/// Variables of one block; lookups go outwards.
struct Scope : HeapNode {
  explicit Scope(std::shared_ptr<Scope> parent) : parent(std::move(parent)) {}
  void dropReferences() override {
    variables.clear();
    parent.reset();
  }
  Value *findHere(std::string_view name) {
    for (auto &[key, value] : variables)
      if (key == name)
        return &value;
    return nullptr;
  }

  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables; ///< names live in the program
};

struct NamespaceObject : Object {
  explicit NamespaceObject(std::shared_ptr<Dict> attributes)
      : Object(Type::Namespace), attributes(std::move(attributes)) {}
  void dropReferences() override { attributes.reset(); }
  std::shared_ptr<Dict> attributes;
};

/// The variable `loop`.
struct LoopObject : Object {
  LoopObject(const ForStatement &statement, std::shared_ptr<Scope> scope,
             std::shared_ptr<Sequence> items, int64_t depth)
      : Object(Type::Loop), statement(statement), scope(std::move(scope)), items(std::move(items)),
        depth(depth) {}
  void dropReferences() override {
    scope.reset();
    items.reset();
    changed.reset();
  }

  const ForStatement &statement; ///< what a recursive call runs again
  std::shared_ptr<Scope> scope;  ///< around the loop
  std::shared_ptr<Sequence> items;
  size_t index = 0; ///< of the current item
  int64_t depth;    ///< of recursive loops, from 0
  std::optional<Value> changed;
};

struct MacroObject : Object {
  MacroObject(const MacroDefinition &definition, std::shared_ptr<Scope> closure)
      : Object(Type::Macro), definition(definition), closure(std::move(closure)) {}
  void dropReferences() override { closure.reset(); }
  const MacroDefinition &definition;
  std::shared_ptr<Scope> closure;
};

/// A method taken from its object, as in `{% set f = text.upper %}`.
struct MethodObject : Object {
  MethodObject(const Builtin &method, Value self)
      : Object(Type::Method), method(method), self(std::move(self)) {}
  void dropReferences() override { self = Value(); }
  const Builtin &method;
  Value self;
};

struct FunctionObject : Object {
  explicit FunctionObject(const Builtin &function) : Object(Type::Function), function(function) {}
  const Builtin &function;
};

struct JoinerObject : Object {
  explicit JoinerObject(Value separator) : Object(Type::Joiner), separator(std::move(separator)) {}
  void dropReferences() override { separator = Value(); }
  Value separator;
  bool used = false;
};

struct CyclerObject : Object {
  explicit CyclerObject(std::vector<Value> items) : Object(Type::Cycler), items(std::move(items)) {}
  void dropReferences() override { items.clear(); }
  std::vector<Value> items; ///< not empty
  size_t position = 0;
};

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_OBJECTS_H
