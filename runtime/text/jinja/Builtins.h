//===- Builtins.h - filters, tests, methods and functions -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything a template can call by name is a row of a table: its name, its
// parameters and its implementation. The parser looks names up to refuse unknown
// ones, the interpreter to call them.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_BUILTINS_H
#define LLMC_RUNTIME_TEXT_JINJA_BUILTINS_H

#include "runtime/text/jinja/Runtime.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc::rt::jinja {

/// The arguments of a call. After bind(), parameters are read by their position in the
/// declaration; absent ones read as null.
class Args {
public:
  std::vector<Value> positional;
  std::vector<std::pair<Value, Value>> named; ///< keys are strings

  /// \p parameters: names separated by a space, optional ones followed by '?'.
  Status bind(std::string_view callee, std::string_view parameters);

  const Value *operator[](size_t parameter) const { return bound[parameter]; }
  const Value *find(std::string_view name) const;
  bool flag(size_t parameter, bool otherwise) const;
  StatusOr<int64_t> integer(size_t parameter, int64_t otherwise) const;
  /// The argument as a string; null where it is absent or none.
  StatusOr<const Text *> text(size_t parameter) const;

private:
  std::vector<const Value *> bound;
};

struct Builtin {
  using Function = StatusOr<Value> (*)(Runtime &runtime, const Value &self, Args &args);
  std::string_view name;
  /// As for Args::bind; "*" leaves the arguments as they are.
  std::string_view parameters;
  Function function;

  StatusOr<Value> call(Runtime &runtime, const Value &self, Args &args) const;
};

// Sorted by name.
std::span<const Builtin> stringFilters();
std::span<const Builtin> sequenceFilters();
std::span<const Builtin> valueFilters();
std::span<const Builtin> tests();
std::span<const Builtin> stringMethods();
std::span<const Builtin> listMethods();
std::span<const Builtin> tupleMethods();
std::span<const Builtin> dictMethods();
std::span<const Builtin> cyclerMethods();
std::span<const Builtin> loopMethods();
std::span<const Builtin> functions();

/// What dict(), dict.update() and namespace() do with their arguments.
Status fillDict(Runtime &runtime, Dict &dict, const Args &args);

/// The row of \p table called \p name, or null.
const Builtin *find(std::span<const Builtin> table, std::string_view name);
const Builtin *findFilter(std::string_view name);
const Builtin *findTest(std::string_view name);
const Builtin *findFunction(std::string_view name);
/// The method \p name of \p self.
const Builtin *findMethod(const Value &self, std::string_view name);
/// Whether any type has a method \p name.
bool isMethodName(std::string_view name);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_BUILTINS_H
