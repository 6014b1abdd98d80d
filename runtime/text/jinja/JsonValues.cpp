//===- JsonValues.cpp - JSON to values and back ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/JsonValues.h"

#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/Sorting.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace llmc::rt::jinja {
namespace {

class Importer {
public:
  explicit Importer(Runtime &runtime) : runtime(runtime) {}

  StatusOr<Value> import(const Json &json, Trust trust) {
    Runtime::Level level(runtime);
    LLMC_RETURN_IF_ERROR(level.check());
    LLMC_RETURN_IF_ERROR(runtime.tick());
    switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max()))
        return Value::integer(json.get<int64_t>());
      return Value::floating(json.get<double>());
    case Json::value_t::number_float:
      return Value::floating(json.get<double>());
    case Json::value_t::string:
      return runtime.string(Text(json.get_ref<const std::string &>(), trust));
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json &item : json) {
        LLMC_ASSIGN_OR_RETURN(Value value, import(item, trust));
        items.push_back(std::move(value));
      }
      return runtime.list(std::move(items));
    }
    case Json::value_t::object: {
      std::shared_ptr<Dict> dict = runtime.makeDict();
      for (const auto &[key, item] : json.items()) {
        LLMC_ASSIGN_OR_RETURN(Value value, import(item, trust));
        dict->set(Dict::textCode(key), runtime.string(Text(key, trust)), std::move(value));
      }
      return Value::dict(std::move(dict));
    }
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
    }
    return Value::none();
  }

private:
  Runtime &runtime;
};

class Dumper {
public:
  Dumper(Runtime &runtime, const JsonStyle &style)
      : runtime(runtime), style(style), out(runtime.builder()) {}

  Status dump(const Value &value, size_t depth);
  TextBuilder take() { return std::move(out); }

private:
  void addString(const Text &text);
  Status addKey(const Value &key);
  void breakLine(size_t depth);
  Status dumpSequence(const Sequence &sequence, size_t depth);
  Status dumpDict(const Dict &dict, size_t depth);

  Runtime &runtime;
  const JsonStyle &style;
  TextBuilder out;
};

std::string jsonFloat(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value < 0 ? "-Infinity" : "Infinity";
  return formatFloat(value);
}

void Dumper::addString(const Text &text) {
  out.add("\"");
  std::string_view bytes = text.str();
  auto addUnit = [&](uint32_t unit, Trust trust) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", unit & 0xFFFF);
    out.add(escape, trust);
  };
  for (size_t at = 0; at < bytes.size() && !out.overflowed();) {
    CodePoint c = decodeUtf8(bytes, at);
    Trust trust = text.trustAt(at);
    constexpr std::string_view special = "\"\\\n\r\t\f\b", letters = "\"\\nrtfb";
    size_t found = c.value < 0x80 ? special.find(static_cast<char>(c.value)) : special.npos;
    if (found != special.npos) {
      out.add(std::string{'\\', letters[found]}, trust);
    } else if (c.value < 0x20 || (style.ensureAscii && c.value >= 0x7F && c.value < 0x10000)) {
      if (c.value == 0x7F)
        out.add("\x7f", trust);
      else
        addUnit(c.value, trust);
    } else if (style.ensureAscii && c.value >= 0x10000) {
      addUnit(0xD800 + ((c.value - 0x10000) >> 10), trust);
      addUnit(0xDC00 + ((c.value - 0x10000) & 0x3FF), trust);
    } else {
      out.add(text, at, at + c.bytes);
    }
    at += c.bytes;
  }
  out.add("\"");
}

Status Dumper::addKey(const Value &key) {
  switch (key.kind()) {
  case Value::Kind::String:
    addString(key.text());
    return {};
  case Value::Kind::None:
    addString(Text("null"));
    return {};
  case Value::Kind::Bool:
    addString(Text(key.asBool() ? "true" : "false"));
    return {};
  case Value::Kind::Int:
    addString(Text(std::to_string(key.asInt())));
    return {};
  case Value::Kind::Float:
    addString(Text(jsonFloat(key.asDouble())));
    return {};
  default:
    return raised("keys must be str, int, float, bool or None, not " + std::string(typeName(key)));
  }
}

void Dumper::breakLine(size_t depth) {
  if (!style.indent)
    return;
  out.add("\n");
  for (size_t i = 0; i < depth && !out.overflowed(); ++i)
    out.add(*style.indent);
}

Status Dumper::dumpSequence(const Sequence &sequence, size_t depth) {
  if (sequence.items.empty()) {
    out.add("[]");
    return {};
  }
  out.add("[");
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i != 0)
      out.add(style.itemSeparator);
    breakLine(depth + 1);
    LLMC_RETURN_IF_ERROR(dump(sequence.items[i], depth + 1));
  }
  breakLine(depth);
  out.add("]");
  return {};
}

Status Dumper::dumpDict(const Dict &dict, size_t depth) {
  if (dict.entries.empty()) {
    out.add("{}");
    return {};
  }
  LLMC_RETURN_IF_ERROR(runtime.tick(dict.entries.size()));
  std::vector<SortItem> entries;
  for (const Dict::Entry &entry : dict.entries)
    entries.push_back({entry.key, entry.value});
  if (style.sortKeys)
    LLMC_RETURN_IF_ERROR(sortItems(runtime, entries, false));
  out.add("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i != 0)
      out.add(style.itemSeparator);
    breakLine(depth + 1);
    LLMC_RETURN_IF_ERROR(addKey(entries[i].key));
    out.add(style.keySeparator);
    LLMC_RETURN_IF_ERROR(dump(entries[i].value, depth + 1));
  }
  breakLine(depth);
  out.add("}");
  return {};
}

Status Dumper::dump(const Value &value, size_t depth) {
  Runtime::Level level(runtime);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(runtime.tick());
  switch (value.kind()) {
  case Value::Kind::None:
    out.add("null");
    return {};
  case Value::Kind::Bool:
    out.add(value.asBool() ? "true" : "false");
    return {};
  case Value::Kind::Int:
    out.add(std::to_string(value.asInt()));
    return {};
  case Value::Kind::Float:
    out.add(jsonFloat(value.asDouble()));
    return {};
  case Value::Kind::String:
    addString(value.text());
    return runtime.tick(value.text().size() / 8);
  case Value::Kind::Dict:
    return dumpDict(value.asDict(), depth);
  case Value::Kind::Sequence:
    if (value.asSequence().isIndexable())
      return dumpSequence(value.asSequence(), depth);
    [[fallthrough]];
  case Value::Kind::Undefined:
  case Value::Kind::Object:
    return raised("Object of type " + std::string(typeName(value)) + " is not JSON serializable");
  }
  return {};
}

} // namespace

StatusOr<Value> importJson(Runtime &runtime, const Json &json, Trust trust) {
  return Importer(runtime).import(json, trust);
}

StatusOr<Value> importVariable(Runtime &runtime, const std::string &key, const Json &json) {
  const std::vector<std::string> &untrusted = runtime.options.untrustedKeys;
  if (std::find(untrusted.begin(), untrusted.end(), key) == untrusted.end())
    return importJson(runtime, json, Trust::Trusted);
  LLMC_ASSIGN_OR_RETURN(Value value, importJson(runtime, json, Trust::Untrusted));
  if (value.isSequence())
    for (const Value &item : value.asSequence().items) {
      const Value *role = item.isDict() ? item.asDict().find(Dict::textCode("role")) : nullptr;
      if (role && role->isString())
        item.asDict().set(Dict::textCode("role"), *role, runtime.string(Text(role->str())));
    }
  return value;
}

StatusOr<Value> dumpJson(Runtime &runtime, const Value &value, const JsonStyle &style) {
  Dumper dumper(runtime, style);
  LLMC_RETURN_IF_ERROR(dumper.dump(value, 0));
  return runtime.finish(dumper.take());
}

} // namespace llmc::rt::jinja
