//===- Subscripts.cpp - attributes, items and slices ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Objects.h"
#include "runtime/text/jinja/Operators.h"
#include "runtime/text/jinja/Unicode.h"

#include <optional>

namespace llmc::rt::jinja {
namespace {

std::string describeObject(const Value &object) {
  return object.isNone() ? "'None'" : "'" + std::string(typeName(object)) + " object'";
}

Value missingAttribute(const Value &object, std::string_view name) {
  return Value::undefined(describeObject(object) + " has no attribute '" + std::string(name) + "'");
}

/// Python's rules for a slice of \p length elements: positions first, first + step, ...
struct SliceRange {
  int64_t first = 0, step = 1;
  size_t count = 0;
};

StatusOr<SliceRange> resolveSlice(int64_t length, const Value &start, const Value &stop,
                                  const Value &step) {
  for (const Value *part : {&start, &stop, &step})
    if (!part->isNone() && !part->isIntegral())
      return raised("slice indices must be integers or None");
  SliceRange range;
  range.step = step.isNone() ? 1 : step.asInt();
  if (range.step == 0)
    return raised("slice step cannot be zero");
  bool forward = range.step > 0;
  int64_t lowest = forward ? 0 : -1, highest = forward ? length : length - 1;
  auto clamp = [&](const Value &part, int64_t otherwise) {
    if (part.isNone())
      return otherwise;
    int64_t at = part.asInt();
    if (at < 0)
      at += length; // cannot overflow: length is not negative
    return at < lowest ? lowest : at > highest ? highest : at;
  };
  range.first = clamp(start, forward ? lowest : highest);
  int64_t end = clamp(stop, forward ? highest : lowest);
  uint64_t distance = 0, stride = forward ? range.step : -static_cast<uint64_t>(range.step);
  if (forward ? range.first < end : end < range.first)
    distance = static_cast<uint64_t>(forward ? end - range.first : range.first - end);
  range.count = distance == 0 ? 0 : (distance - 1) / stride + 1;
  return range;
}

/// The byte at which code point number \p index begins.
size_t byteOffset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index != 0; --index)
    at += decodeUtf8(text, at).bytes;
  return at;
}

StatusOr<Value> sliceString(Runtime &runtime, const Value &string, const Value &start,
                            const Value &stop, const Value &step) {
  const Text &text = string.text();
  LLMC_RETURN_IF_ERROR(runtime.tick(text.size() / 4));
  size_t length = countCodePoints(text.str());
  LLMC_ASSIGN_OR_RETURN(SliceRange range,
                        resolveSlice(static_cast<int64_t>(length), start, stop, step));
  TextBuilder out = runtime.builder();
  if (range.count == 0)
    return runtime.finish(std::move(out), string.isMarkup());
  if (range.step == 1) {
    size_t first = byteOffset(text.str(), static_cast<size_t>(range.first));
    out.add(text, first, first + byteOffset(text.str().substr(first), range.count));
    return runtime.finish(std::move(out), string.isMarkup());
  }
  LLMC_RETURN_IF_ERROR(runtime.reserve(length * sizeof(size_t)));
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); at += decodeUtf8(text.str(), at).bytes)
    starts.push_back(at);
  for (size_t i = 0; i < range.count; ++i) {
    size_t at = starts[static_cast<size_t>(range.first + static_cast<int64_t>(i) * range.step)];
    out.add(text, at, at + decodeUtf8(text.str(), at).bytes);
  }
  return runtime.finish(std::move(out), string.isMarkup());
}

StatusOr<std::optional<Value>> findItem(Runtime &runtime, const Value &object, const Value &key) {
  if (object.isDict()) {
    if (key.isDict() || (key.isSequence() && !key.asSequence().isTuple()))
      return std::optional<Value>();
    LLMC_ASSIGN_OR_RETURN(std::string code, runtime.dictCode(key));
    const Value *value = object.asDict().find(code);
    return value ? std::optional<Value>(*value) : std::nullopt;
  }
  if (!key.isIntegral())
    return std::optional<Value>();
  int64_t index = key.asInt();
  if (object.isSequence() && object.asSequence().isIndexable()) {
    const std::vector<Value> &items = object.asSequence().items;
    int64_t size = static_cast<int64_t>(items.size());
    if (index < 0)
      index += size;
    return index >= 0 && index < size ? std::optional<Value>(items[static_cast<size_t>(index)])
                                      : std::nullopt;
  }
  if (object.isString()) {
    LLMC_RETURN_IF_ERROR(runtime.tick(object.str().size() / 4));
    int64_t size = static_cast<int64_t>(countCodePoints(object.str()));
    if (index < 0)
      index += size;
    if (index < 0 || index >= size)
      return std::optional<Value>();
    size_t at = byteOffset(object.str(), static_cast<size_t>(index));
    Text character = object.text().slice(at, at + decodeUtf8(object.str(), at).bytes);
    return std::optional<Value>(runtime.string(std::move(character), object.isMarkup()));
  }
  return std::optional<Value>();
}

std::optional<Value> loopAttribute(const LoopObject &loop, std::string_view name) {
  const std::vector<Value> &items = loop.items->items;
  int64_t index = static_cast<int64_t>(loop.index), length = static_cast<int64_t>(items.size());
  auto itemAt = [&](int64_t at) { // the loop's body may have changed the list
    return at >= 0 && at < length ? items[static_cast<size_t>(at)]
                                  : Value::undefined("there is no such item in the loop");
  };
  if (name == "index")
    return Value::integer(index + 1);
  if (name == "index0")
    return Value::integer(index);
  if (name == "revindex")
    return Value::integer(length - index);
  if (name == "revindex0")
    return Value::integer(length - index - 1);
  if (name == "first")
    return Value::boolean(index == 0);
  if (name == "last")
    return Value::boolean(index + 1 == length);
  if (name == "length")
    return Value::integer(length);
  if (name == "depth")
    return Value::integer(loop.depth + 1);
  if (name == "depth0")
    return Value::integer(loop.depth);
  if (name == "previtem")
    return itemAt(index - 1);
  if (name == "nextitem")
    return itemAt(index + 1);
  return std::nullopt;
}

/// Attributes that are not methods.
std::optional<Value> findField(const Value &object, std::string_view name) {
  if (object.isSequence() && object.asSequence().flavor == Sequence::Flavor::Group) {
    if (name == "grouper" || name == "list")
      return object.asSequence().items[name == "list"];
  } else if (object.isObject()) {
    const Object &target = object.asObject();
    if (target.type == Object::Type::Loop)
      return loopAttribute(static_cast<const LoopObject &>(target), name);
    if (target.type == Object::Type::Namespace) {
      const auto &attributes = static_cast<const NamespaceObject &>(target).attributes;
      const Value *value = attributes->find(Dict::textCode(name));
      return value ? std::optional<Value>(*value) : std::nullopt;
    }
    if (target.type == Object::Type::Cycler && name == "current") {
      const auto &cycler = static_cast<const CyclerObject &>(target);
      return cycler.items[cycler.position];
    }
  }
  return std::nullopt;
}

std::optional<Value> findAttribute(Runtime &runtime, const Value &object, std::string_view name) {
  if (std::optional<Value> field = findField(object, name))
    return field;
  if (const Builtin *method = findMethod(object, name))
    return Value::object(runtime.heap.make<MethodObject>(0, *method, object));
  return std::nullopt;
}

} // namespace

StatusOr<Value> getAttribute(Runtime &runtime, const Value &object, std::string_view name) {
  if (object.isUndefined())
    return raised(object.describeUndefined());
  if (std::optional<Value> attribute = findAttribute(runtime, object, name))
    return *attribute;
  if (object.isDict())
    if (const Value *item = object.asDict().find(Dict::textCode(name)))
      return *item;
  return missingAttribute(object, name);
}

StatusOr<Value> getItem(Runtime &runtime, const Value &object, const Value &key) {
  if (object.isUndefined())
    return raised(object.describeUndefined());
  LLMC_ASSIGN_OR_RETURN(std::optional<Value> item, findItem(runtime, object, key));
  if (item)
    return *item;
  if (key.isString()) {
    if (std::optional<Value> attribute = findAttribute(runtime, object, key.str()))
      return *attribute;
    return missingAttribute(object, key.str());
  }
  return Value::undefined(describeObject(object) + " has no such element");
}

StatusOr<Value> getSlice(Runtime &runtime, const Value &object, const Value &start,
                         const Value &stop, const Value &step) {
  if (object.isUndefined())
    return raised(object.describeUndefined());
  if (object.isString())
    return sliceString(runtime, object, start, stop, step);
  if (!object.isSequence() || !object.asSequence().isIndexable())
    return raised("'" + std::string(typeName(object)) + "' object cannot be sliced");
  const Sequence &sequence = object.asSequence();
  LLMC_ASSIGN_OR_RETURN(SliceRange range, resolveSlice(static_cast<int64_t>(sequence.items.size()),
                                                       start, stop, step));
  LLMC_RETURN_IF_ERROR(runtime.tick(range.count));
  std::vector<Value> items;
  for (size_t i = 0; i < range.count; ++i)
    items.push_back(
        sequence.items[static_cast<size_t>(range.first + static_cast<int64_t>(i) * range.step)]);
  return runtime.sequence(std::move(items),
                          sequence.isTuple() ? Sequence::Flavor::Tuple : sequence.flavor);
}

} // namespace llmc::rt::jinja
