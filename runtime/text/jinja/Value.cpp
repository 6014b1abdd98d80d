//===- Value.cpp - the values of a template -------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Value.h"

namespace llmc::rt::jinja {

Value Value::undefined(std::string_view what) {
  constexpr size_t longest = 120; // names may come from the user and be huge
  Value v;
  v.node = std::make_shared<TextNode>(Text(what.substr(0, longest)));
  return v;
}

Value Value::boolean(bool b) {
  Value v(Kind::Bool);
  v.payload.b = b;
  return v;
}

Value Value::integer(int64_t i) {
  Value v(Kind::Int);
  v.payload.i = i;
  return v;
}

Value Value::floating(double d) {
  Value v(Kind::Float);
  v.payload.d = d;
  return v;
}

Value Value::literal(std::string_view text) {
  return string(std::make_shared<TextNode>(Text(text)), false);
}

Value Value::string(std::shared_ptr<TextNode> text, bool markup) {
  Value v(Kind::String);
  v.payload.b = markup;
  v.node = std::move(text);
  return v;
}

Value Value::sequence(std::shared_ptr<Sequence> sequence) {
  Value v(Kind::Sequence);
  v.node = std::move(sequence);
  return v;
}

Value Value::dict(std::shared_ptr<Dict> dict) {
  Value v(Kind::Dict);
  v.node = std::move(dict);
  return v;
}

Value Value::object(std::shared_ptr<Object> object) {
  Value v(Kind::Object);
  v.node = std::move(object);
  return v;
}

const Text &Value::text() const { return static_cast<const TextNode &>(*node).text; }
Sequence &Value::asSequence() const { return static_cast<Sequence &>(*node); }
Dict &Value::asDict() const { return static_cast<Dict &>(*node); }
Object &Value::asObject() const { return static_cast<Object &>(*node); }

std::shared_ptr<Sequence> Value::shareSequence() const {
  return std::static_pointer_cast<Sequence>(node);
}

std::string Value::describeUndefined() const {
  return node ? std::string(static_cast<const TextNode &>(*node).text.str()) : "value is undefined";
}

bool Value::sameAs(const Value &other) const {
  if (tag != other.tag)
    return false;
  switch (tag) {
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::Bool:
    return payload.b == other.payload.b;
  case Kind::Int:
    return payload.i == other.payload.i;
  case Kind::Float:
    return payload.d == other.payload.d;
  case Kind::String:
    return node == other.node || str() == other.str();
  case Kind::Sequence:
  case Kind::Dict:
  case Kind::Object:
    return node == other.node;
  }
  return false;
}

Heap::~Heap() {
  // Nodes released by the walk stay allocated until it is over.
  draining = true;
  for (HeapNode *node = head; node; node = node->next)
    node->dropReferences();
  drain();
}

void Heap::link(HeapNode &node, size_t bytes) {
  node.heap = this;
  node.next = head;
  if (head)
    head->previous = &node;
  head = &node;
  charge(node, bytes);
}

void Heap::charge(HeapNode &node, size_t bytes) {
  node.charged += bytes;
  live += bytes;
}

void Heap::release(HeapNode *node) {
  released.push_back(node);
  if (!draining) {
    draining = true;
    drain();
    draining = false;
  }
}

void Heap::drain() {
  while (!released.empty()) {
    HeapNode *node = released.back();
    released.pop_back();
    live -= node->charged;
    (node->previous ? node->previous->next : head) = node->next;
    if (node->next)
      node->next->previous = node->previous;
    delete node;
  }
}

void Dict::dropReferences() {
  entries.clear();
  index.clear();
}

const Value *Dict::find(const std::string &code) const {
  auto it = index.find(code);
  return it == index.end() ? nullptr : &entries[it->second].value;
}

void Dict::set(const std::string &code, const Value &key, Value value) {
  auto [it, isNew] = index.try_emplace(code, entries.size());
  if (!isNew) {
    entries[it->second].value = std::move(value);
    return;
  }
  entries.push_back({key, std::move(value)});
  if (heap)
    heap->charge(*this, 2 * code.size() + sizeof(Entry) + 64);
}

void Dict::erase(const std::string &code) {
  auto it = index.find(code);
  if (it == index.end())
    return;
  size_t at = it->second;
  entries.erase(entries.begin() + static_cast<ptrdiff_t>(at));
  index.erase(it);
  for (auto &[other, position] : index)
    if (position > at)
      --position;
}

bool isTruthy(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
  case Value::Kind::None:
    return false;
  case Value::Kind::Bool:
  case Value::Kind::Int:
    return value.asInt() != 0;
  case Value::Kind::Float:
    return value.asDouble() != 0;
  case Value::Kind::String:
    return !value.text().empty();
  case Value::Kind::Sequence: // an iterator does not know whether it is empty
    return value.asSequence().flavor == Sequence::Flavor::Iterator ||
           !value.asSequence().items.empty();
  case Value::Kind::Dict:
    return !value.asDict().entries.empty();
  case Value::Kind::Object:
    return true;
  }
  return false;
}

std::string_view typeName(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
    return "Undefined";
  case Value::Kind::None:
    return "NoneType";
  case Value::Kind::Bool:
    return "bool";
  case Value::Kind::Int:
    return "int";
  case Value::Kind::Float:
    return "float";
  case Value::Kind::String:
    return "str";
  case Value::Kind::Sequence:
    switch (value.asSequence().flavor) {
    case Sequence::Flavor::List:
      return "list";
    case Sequence::Flavor::Tuple:
    case Sequence::Flavor::Group:
      return "tuple";
    case Sequence::Flavor::Iterator:
      return "generator";
    case Sequence::Flavor::View:
      return "dict view";
    }
    return "list";
  case Value::Kind::Dict:
    return "dict";
  case Value::Kind::Object:
    switch (value.asObject().type) {
    case Object::Type::Namespace:
      return "Namespace";
    case Object::Type::Loop:
      return "LoopContext";
    case Object::Type::Macro:
      return "Macro";
    case Object::Type::Method:
    case Object::Type::Function:
      return "function";
    case Object::Type::Joiner:
      return "Joiner";
    case Object::Type::Cycler:
      return "Cycler";
    }
    return "object";
  }
  return "object";
}

} // namespace llmc::rt::jinja
