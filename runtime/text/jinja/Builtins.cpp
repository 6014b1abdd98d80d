//===- Builtins.cpp - argument binding and lookup of builtins -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"

#include "runtime/text/jinja/Objects.h"

#include <algorithm>

namespace llmc::rt::jinja {

const Value *Args::find(std::string_view name) const {
  for (const auto &[key, value] : named)
    if (key.str() == name)
      return &value;
  return nullptr;
}

Status Args::bind(std::string_view callee, std::string_view parameters) {
  size_t namedUsed = 0;
  while (!parameters.empty()) {
    size_t space = parameters.find(' ');
    std::string_view parameter = parameters.substr(0, space);
    parameters.remove_prefix(space == parameters.npos ? parameters.size() : space + 1);
    bool optional = parameter.ends_with('?');
    parameter.remove_suffix(optional);
    const Value *value = find(parameter);
    namedUsed += value != nullptr;
    if (bound.size() < positional.size()) {
      if (value)
        return raised(std::string(callee) + "() got multiple values for argument '" +
                      std::string(parameter) + "'");
      value = &positional[bound.size()];
    }
    if (!value && !optional)
      return raised(std::string(callee) + "() is missing the argument '" + std::string(parameter) +
                    "'");
    bound.push_back(value);
  }
  if (positional.size() > bound.size())
    return raised(std::string(callee) + "() takes at most " + std::to_string(bound.size()) +
                  " argument(s), " + std::to_string(positional.size()) + " given");
  if (namedUsed < named.size())
    return raised(std::string(callee) + "() got an unexpected keyword argument");
  return {};
}

bool Args::flag(size_t parameter, bool otherwise) const {
  return bound[parameter] ? isTruthy(*bound[parameter]) : otherwise;
}

StatusOr<int64_t> Args::integer(size_t parameter, int64_t otherwise) const {
  const Value *value = bound[parameter];
  if (!value)
    return otherwise;
  if (value->isUndefined())
    return raised(value->describeUndefined());
  if (!value->isIntegral())
    return raised("'" + std::string(typeName(*value)) +
                  "' object cannot be interpreted as an integer");
  return value->asInt();
}

StatusOr<const Text *> Args::text(size_t parameter) const {
  const Value *value = bound[parameter];
  if (!value || value->isNone())
    return static_cast<const Text *>(nullptr);
  if (!value->isString())
    return raised("expected str, not " + std::string(typeName(*value)));
  return &value->text();
}

StatusOr<Value> Builtin::call(Runtime &runtime, const Value &self, Args &args) const {
  if (parameters != "*")
    LLMC_RETURN_IF_ERROR(args.bind(name, parameters));
  return function(runtime, self, args);
}

const Builtin *find(std::span<const Builtin> table, std::string_view name) {
  auto it = std::partition_point(table.begin(), table.end(),
                                 [&](const Builtin &row) { return row.name < name; });
  return it != table.end() && it->name == name ? &*it : nullptr;
}

const Builtin *findFilter(std::string_view name) {
  for (auto table : {stringFilters(), sequenceFilters(), valueFilters()})
    if (const Builtin *filter = find(table, name))
      return filter;
  return nullptr;
}

const Builtin *findTest(std::string_view name) { return find(tests(), name); }

const Builtin *findFunction(std::string_view name) { return find(functions(), name); }

const Builtin *findMethod(const Value &self, std::string_view name) {
  if (self.isString())
    return find(stringMethods(), name);
  if (self.isDict())
    return find(dictMethods(), name);
  if (self.isSequence() && self.asSequence().isIndexable())
    return find(self.asSequence().isTuple() ? tupleMethods() : listMethods(), name);
  if (self.isObject() && self.asObject().type == Object::Type::Loop)
    return find(loopMethods(), name);
  if (self.isObject() && self.asObject().type == Object::Type::Cycler)
    return find(cyclerMethods(), name);
  return nullptr;
}

bool isMethodName(std::string_view name) {
  for (auto table : {stringMethods(), dictMethods(), listMethods(), tupleMethods(), loopMethods(),
                     cyclerMethods()})
    if (find(table, name))
      return true;
  return false;
}

} // namespace llmc::rt::jinja
