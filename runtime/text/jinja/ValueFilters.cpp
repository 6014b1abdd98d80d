//===- ValueFilters.cpp - filters on numbers and single values ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/JsonValues.h"
#include "runtime/text/jinja/Operators.h"

#include <cmath>
#include <limits>

namespace llmc::rt::jinja {
namespace {

StatusOr<Value> filterAbs(Runtime &, const Value &self, Args &) {
  if (self.isFloat())
    return Value::floating(std::fabs(self.asDouble()));
  if (self.isUndefined())
    return raised(self.describeUndefined());
  if (!self.isIntegral())
    return raised("bad operand type for abs(): '" + std::string(typeName(self)) + "'");
  return self.asInt() < 0 ? applyUnary(UnaryOp::Minus, self)
                          : StatusOr<Value>(Value::integer(self.asInt()));
}

StatusOr<Value> filterAttr(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *name, args.text(0));
  if (!name)
    return raised("attr() needs the name of an attribute");
  if (self.isDict() && !findMethod(self, name->str())) // attributes only, not items
    return Value::undefined("'dict object' has no attribute '" + std::string(name->str()) + "'");
  return getAttribute(runtime, self, name->str());
}

StatusOr<Value> filterDefault(Runtime &runtime, const Value &self, Args &args) {
  bool replace = self.isUndefined() || (args.flag(1, false) && !isTruthy(self));
  if (!replace)
    return self;
  return args[0] ? *args[0] : runtime.string("");
}

/// What int() makes of a float; nothing if it does not fit.
std::optional<int64_t> truncated(double value) {
  bool fits = value > -9.3e18 && value < 9.3e18 && std::trunc(value) >= -0x1p63 &&
              std::trunc(value) < 0x1p63;
  return fits ? std::optional<int64_t>(static_cast<int64_t>(value)) : std::nullopt;
}

StatusOr<Value> filterInt(Runtime &, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(int64_t base, args.integer(1, 10));
  if (base != 0 && (base < 2 || base > 36))
    return raised("int() base must be >= 2 and <= 36, or 0");
  if (self.isUndefined())
    return raised(self.describeUndefined());
  std::optional<int64_t> result;
  if (self.isIntegral()) {
    result = self.asInt();
  } else if (self.isFloat()) {
    result = truncated(self.asDouble());
  } else if (self.isString()) {
    result = parseInt(self.str(), static_cast<int>(base));
    if (!result)
      if (std::optional<double> number = parseFloat(self.str()))
        result = truncated(*number);
  }
  if (result)
    return Value::integer(*result);
  return args[0] ? *args[0] : Value::integer(0);
}

StatusOr<Value> filterFloat(Runtime &, const Value &self, Args &args) {
  if (self.isUndefined())
    return raised(self.describeUndefined());
  if (self.isNumber())
    return Value::floating(self.asDouble());
  if (self.isString())
    if (std::optional<double> number = parseFloat(self.str()))
      return Value::floating(*number);
  return args[0] ? *args[0] : Value::floating(0);
}

StatusOr<Value> filterRound(Runtime &, const Value &self, Args &args) {
  if (self.isUndefined())
    return raised(self.describeUndefined());
  if (!self.isNumber())
    return raised("round() needs a number, not " + std::string(typeName(self)));
  LLMC_ASSIGN_OR_RETURN(int64_t precision, args.integer(0, 0));
  LLMC_ASSIGN_OR_RETURN(const Text *method, args.text(1));
  std::string_view how = method ? method->str() : "common";
  if (precision < -300 || precision > 300)
    return raised("round() precision is out of range");
  if (how == "common" && self.isIntegral() && precision >= 0)
    return Value::integer(self.asInt());
  double value = self.asDouble(), scale = std::pow(10.0, static_cast<double>(precision));
  if (how == "ceil" || how == "floor") {
    double scaled = value * scale;
    return Value::floating((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (how != "common")
    return raised("method must be common, ceil or floor");
  if (!std::isfinite(value))
    return Value::floating(value);
  if (precision >= 0)
    return Value::floating(parseFloat(formatFixed(value, static_cast<int>(precision))).value_or(0));
  double rounded = std::nearbyint(value * scale) / scale;
  if (!self.isIntegral())
    return Value::floating(rounded);
  return Value::integer(truncated(rounded).value_or(self.asInt()));
}

StatusOr<Value> filterTojson(Runtime &runtime, const Value &self, Args &args) {
  JsonStyle style;
  style.ensureAscii = args.flag(0, false);
  style.sortKeys = args.flag(3, false);
  const Value *indent = args[1];
  if (indent && indent->isString()) {
    style.indent = indent->text();
  } else if (indent && !indent->isNone()) {
    LLMC_ASSIGN_OR_RETURN(int64_t width, args.integer(1, 0));
    LLMC_RETURN_IF_ERROR(runtime.reserve(width > 0 ? static_cast<size_t>(width) : 0));
    style.indent = Text(std::string(width > 0 ? static_cast<size_t>(width) : 0, ' '));
  }
  if (style.indent)
    style.itemSeparator = Text(",");
  if (args[2] && !args[2]->isNone()) {
    const Value &separators = *args[2];
    bool valid = separators.isSequence() && separators.asSequence().isIndexable() &&
                 separators.asSequence().items.size() == 2;
    for (size_t i = 0; valid && i < 2; ++i)
      valid = separators.asSequence().items[i].isString();
    if (!valid)
      return raised("tojson() separators must be two strings");
    style.itemSeparator = separators.asSequence().items[0].text();
    style.keySeparator = separators.asSequence().items[1].text();
  }
  return dumpJson(runtime, self, style);
}

StatusOr<Value> filterFromJson(Runtime &runtime, const Value &self, Args &) {
  if (!self.isString())
    return raised("the JSON object must be str, not " + std::string(typeName(self)));
  LLMC_RETURN_IF_ERROR(runtime.tick(self.text().size()));
  Json json = Json::parse(self.str(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return raised("from_json() got invalid JSON");
  return importJson(runtime, json, self.text().overallTrust());
}

constexpr Builtin table[] = {
    {"abs", "", filterAbs},
    {"attr", "name", filterAttr},
    {"d", "default_value? boolean?", filterDefault},
    {"default", "default_value? boolean?", filterDefault},
    {"float", "default?", filterFloat},
    {"from_json", "", filterFromJson},
    {"int", "default? base?", filterInt},
    {"round", "precision? method?", filterRound},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filterTojson},
};

} // namespace

std::span<const Builtin> valueFilters() { return table; }

} // namespace llmc::rt::jinja
