//===- Runtime.cpp - one rendering: heap, limits, Python's object protocol ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Runtime.h"

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/Objects.h"
#include "runtime/text/jinja/Unicode.h"

namespace llmc::rt::jinja {
namespace {

Status tooLarge() {
  return {StatusCode::ResourceExhausted, "the template needs more memory than allowed"};
}

} // namespace

Status Runtime::tick(size_t work) {
  steps += work;
  if (steps > options.maxSteps)
    return {StatusCode::ResourceExhausted, "the template takes more steps than allowed"};
  return heap.exhausted() ? tooLarge() : Status();
}

Status Runtime::Level::check() const {
  if (runtime.depth > runtime.options.maxDepth)
    return {StatusCode::ResourceExhausted, "maximum recursion depth exceeded"};
  return {};
}

Value Runtime::string(Text text, bool markup) {
  size_t bytes = text.size();
  return Value::string(heap.make<TextNode>(bytes, std::move(text)), markup);
}

StatusOr<Value> Runtime::finish(TextBuilder builder, bool markup) {
  if (builder.overflowed())
    return tooLarge();
  LLMC_RETURN_IF_ERROR(tick(builder.size() / 8));
  return string(builder.take(), markup);
}

Value Runtime::sequence(std::vector<Value> items, Sequence::Flavor flavor) {
  size_t bytes = items.size() * sizeof(Value);
  return Value::sequence(heap.make<Sequence>(bytes, std::move(items), flavor));
}

Status Runtime::reserve(size_t bytes) const { return bytes > heap.room() ? tooLarge() : Status(); }

Status Runtime::appendItems(TextBuilder &out, const Sequence &sequence) {
  bool first = true;
  for (const Value &item : sequence.items) {
    if (!first)
      out.add(", ");
    first = false;
    LLMC_RETURN_IF_ERROR(appendRepr(out, item));
  }
  return {};
}

Status Runtime::appendRepr(TextBuilder &out, const Value &value) {
  Level level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(tick());
  switch (value.kind()) {
  case Value::Kind::Undefined:
    out.add("Undefined");
    return {};
  case Value::Kind::None:
    out.add("None");
    return {};
  case Value::Kind::Bool:
    out.add(value.asBool() ? "True" : "False");
    return {};
  case Value::Kind::Int:
    out.add(std::to_string(value.asInt()));
    return {};
  case Value::Kind::Float:
    out.add(formatFloat(value.asDouble()));
    return {};
  case Value::Kind::String:
    LLMC_RETURN_IF_ERROR(tick(value.text().size() / 16));
    out.add(value.isMarkup() ? "Markup(" : "");
    appendQuoted(out, value.text());
    out.add(value.isMarkup() ? ")" : "");
    return {};
  case Value::Kind::Sequence: {
    const Sequence &sequence = value.asSequence();
    if (!sequence.isIndexable()) {
      out.add("<" + std::string(typeName(value)) + " object>");
      return {};
    }
    out.add(sequence.isTuple() ? "(" : "[");
    LLMC_RETURN_IF_ERROR(appendItems(out, sequence));
    if (sequence.isTuple() && sequence.items.size() == 1)
      out.add(",");
    out.add(sequence.isTuple() ? ")" : "]");
    return {};
  }
  case Value::Kind::Dict: {
    out.add("{");
    bool first = true;
    for (const Dict::Entry &entry : value.asDict().entries) {
      if (!first)
        out.add(", ");
      first = false;
      LLMC_RETURN_IF_ERROR(appendRepr(out, entry.key));
      out.add(": ");
      LLMC_RETURN_IF_ERROR(appendRepr(out, entry.value));
    }
    out.add("}");
    return {};
  }
  case Value::Kind::Object:
    if (value.asObject().type == Object::Type::Namespace) {
      const auto &space = static_cast<const NamespaceObject &>(value.asObject());
      out.add("<Namespace ");
      LLMC_RETURN_IF_ERROR(appendRepr(out, Value::dict(space.attributes)));
      out.add(">");
      return {};
    }
    out.add("<" + std::string(typeName(value)) + " object>");
    return {};
  }
  return {};
}

Status Runtime::appendStr(TextBuilder &out, const Value &value) {
  if (value.isUndefined())
    return {};
  if (!value.isString())
    return appendRepr(out, value);
  out.add(value.text());
  return tick(value.text().size() / 8);
}

StatusOr<Value> Runtime::str(const Value &value) {
  if (value.isString())
    return value;
  TextBuilder out = builder();
  LLMC_RETURN_IF_ERROR(appendStr(out, value));
  return finish(std::move(out));
}

StatusOr<bool> Runtime::equalItems(const Sequence &a, const Sequence &b) {
  if (a.isTuple() != b.isTuple() || a.items.size() != b.items.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(bool same, equals(a.items[i], b.items[i]));
    if (!same)
      return false;
  }
  return true;
}

StatusOr<bool> Runtime::equalEntries(const Dict &a, const Dict &b) {
  if (a.entries.size() != b.entries.size())
    return false;
  for (const Dict::Entry &entry : a.entries) {
    LLMC_ASSIGN_OR_RETURN(std::string code, dictCode(entry.key));
    const Value *other = b.find(code);
    if (!other)
      return false;
    LLMC_ASSIGN_OR_RETURN(bool same, equals(entry.value, *other));
    if (!same)
      return false;
  }
  return true;
}

StatusOr<bool> Runtime::equals(const Value &a, const Value &b) {
  Level level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(tick());
  if (a.isNumber() && b.isNumber()) {
    if (a.isFloat() || b.isFloat())
      return a.asDouble() == b.asDouble();
    return a.asInt() == b.asInt();
  }
  if (a.sameAs(b))
    return true;
  if (a.isSequence() && b.isSequence() && a.asSequence().isIndexable() &&
      b.asSequence().isIndexable())
    return equalItems(a.asSequence(), b.asSequence());
  if (a.isDict() && b.isDict())
    return equalEntries(a.asDict(), b.asDict());
  return false;
}

StatusOr<bool> Runtime::less(const Value &a, const Value &b) {
  Level level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(tick());
  if (a.isUndefined() || b.isUndefined())
    return raised((a.isUndefined() ? a : b).describeUndefined());
  if (a.isNumber() && b.isNumber()) {
    if (a.isFloat() || b.isFloat())
      return a.asDouble() < b.asDouble();
    return a.asInt() < b.asInt();
  }
  if (a.isString() && b.isString()) // UTF-8 sorts by code point
    return a.str() < b.str();
  if (a.isSequence() && b.isSequence() && a.asSequence().isIndexable() &&
      b.asSequence().isIndexable() && a.asSequence().isTuple() == b.asSequence().isTuple()) {
    const std::vector<Value> &left = a.asSequence().items, &right = b.asSequence().items;
    for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
      LLMC_ASSIGN_OR_RETURN(bool same, equals(left[i], right[i]));
      if (!same)
        return less(left[i], right[i]);
    }
    return left.size() < right.size();
  }
  return raised("'<' not supported between instances of '" + std::string(typeName(a)) + "' and '" +
                std::string(typeName(b)) + "'");
}

StatusOr<std::vector<Value>> characters(Runtime &runtime, const Text &text) {
  LLMC_RETURN_IF_ERROR(runtime.tick(text.size()));
  std::vector<Value> result;
  for (size_t at = 0; at < text.size();) {
    size_t next = at + decodeUtf8(text.str(), at).bytes;
    result.push_back(runtime.string(text.slice(at, next)));
    if (runtime.heap.exhausted())
      return tooLarge();
    at = next;
  }
  return result;
}

StatusOr<std::shared_ptr<Sequence>> Runtime::iterate(const Value &value) {
  std::vector<Value> items;
  switch (value.kind()) {
  case Value::Kind::Undefined:
    break;
  case Value::Kind::String: {
    LLMC_ASSIGN_OR_RETURN(items, characters(*this, value.text()));
    break;
  }
  case Value::Kind::Sequence: {
    Sequence &sequence = value.asSequence();
    LLMC_RETURN_IF_ERROR(tick(sequence.items.size() / 16));
    if (sequence.flavor != Sequence::Flavor::Iterator)
      return value.shareSequence();
    items.swap(sequence.items);
    break;
  }
  case Value::Kind::Dict: {
    const Dict &dict = value.asDict();
    LLMC_RETURN_IF_ERROR(tick(dict.entries.size()));
    for (const Dict::Entry &entry : dict.entries)
      items.push_back(entry.key);
    break;
  }
  case Value::Kind::Object:
    // A loop iterates over what is left of it, which no template does; refuse it with the rest.
  case Value::Kind::None:
  case Value::Kind::Bool:
  case Value::Kind::Int:
  case Value::Kind::Float:
    return raised("'" + std::string(typeName(value)) + "' object is not iterable");
  }
  return list(std::move(items)).shareSequence();
}

StatusOr<size_t> Runtime::length(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
    return size_t(0);
  case Value::Kind::String:
    LLMC_RETURN_IF_ERROR(tick(value.text().size() / 16));
    return countCodePoints(value.str());
  case Value::Kind::Dict:
    return value.asDict().entries.size();
  case Value::Kind::Sequence:
    if (value.asSequence().flavor != Sequence::Flavor::Iterator)
      return value.asSequence().items.size();
    [[fallthrough]];
  default:
    return raised("object of type '" + std::string(typeName(value)) + "' has no len()");
  }
}

StatusOr<std::string> Runtime::dictCode(const Value &key) {
  Level level(*this);
  LLMC_RETURN_IF_ERROR(level.check());
  LLMC_RETURN_IF_ERROR(tick());
  switch (key.kind()) {
  case Value::Kind::Undefined:
    return std::string("u");
  case Value::Kind::None:
    return std::string("N");
  case Value::Kind::Bool:
  case Value::Kind::Int:
    return "n" + std::to_string(key.asInt());
  case Value::Kind::Float: {
    double d = key.asDouble();
    bool whole = d >= -9e15 && d <= 9e15 && d == static_cast<double>(static_cast<int64_t>(d));
    return "n" + (whole ? std::to_string(static_cast<int64_t>(d)) : formatFloat(d));
  }
  case Value::Kind::String:
    return Dict::textCode(key.str());
  case Value::Kind::Sequence:
    if (key.asSequence().isTuple()) {
      std::string code = "t";
      for (const Value &item : key.asSequence().items) {
        LLMC_ASSIGN_OR_RETURN(std::string part, dictCode(item));
        code += std::to_string(part.size()) + ":" + part;
        LLMC_RETURN_IF_ERROR(reserve(code.size()));
      }
      return code;
    }
    [[fallthrough]];
  case Value::Kind::Dict:
    return raised("unhashable type: '" + std::string(typeName(key)) + "'");
  case Value::Kind::Object:
    return "o" + std::to_string(reinterpret_cast<uintptr_t>(&key.asObject()));
  }
  return std::string();
}

Status Runtime::setItem(Dict &dict, const Value &key, Value value) {
  LLMC_ASSIGN_OR_RETURN(std::string code, dictCode(key));
  dict.set(code, key, std::move(value));
  return {};
}

std::vector<Value> Runtime::itemPairs(const Dict &dict) {
  std::vector<Value> pairs;
  for (const Dict::Entry &entry : dict.entries)
    pairs.push_back(tuple({entry.key, entry.value}));
  return pairs;
}

} // namespace llmc::rt::jinja
