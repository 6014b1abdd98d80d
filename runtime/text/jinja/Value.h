//===- Value.h - the values of a template ---------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python's data model as far as templates can see it. A Value is a small tagged
// handle; strings and containers are reference-counted nodes of a Heap.
//
// A template is hostile input, so the heap gives three guarantees that plain
// reference counting does not: its live bytes are counted against a limit,
// releasing an arbitrarily deep structure uses constant stack, and cycles
// (`ns.self = ns`) are freed when the heap goes.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_VALUE_H
#define LLMC_RUNTIME_TEXT_JINJA_VALUE_H

#include "runtime/text/jinja/Text.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt::jinja {

class Heap;

struct HeapNode {
  virtual ~HeapNode() = default;
  /// Lets go of every value held, so that cycles through this node fall apart.
  virtual void dropReferences() {}

  Heap *heap = nullptr; ///< null for the literals of a template, which outlive every render
  HeapNode *previous = nullptr, *next = nullptr;
  size_t charged = 0; ///< bytes
};

struct TextNode;
struct Sequence;
struct Dict;
struct Object;

class Value {
public:
  enum class Kind : uint8_t { Undefined, None, Bool, Int, Float, String, Sequence, Dict, Object };

  Value() = default; ///< undefined
  static Value undefined(std::string_view what);
  static Value none() { return Value(Kind::None); }
  static Value boolean(bool b);
  static Value integer(int64_t i);
  static Value floating(double d);
  /// A string outside of any heap: a literal.
  static Value literal(std::string_view text);
  static Value string(std::shared_ptr<TextNode> text, bool markup);
  static Value sequence(std::shared_ptr<Sequence> sequence);
  static Value dict(std::shared_ptr<Dict> dict);
  static Value object(std::shared_ptr<Object> object);

  Kind kind() const { return tag; }
  bool isUndefined() const { return tag == Kind::Undefined; }
  bool isNone() const { return tag == Kind::None; }
  bool isBool() const { return tag == Kind::Bool; }
  bool isFloat() const { return tag == Kind::Float; }
  bool isString() const { return tag == Kind::String; }
  bool isSequence() const { return tag == Kind::Sequence; }
  bool isDict() const { return tag == Kind::Dict; }
  bool isObject() const { return tag == Kind::Object; }
  /// An int in Python's eyes: bool is a subclass of it.
  bool isIntegral() const { return tag == Kind::Int || tag == Kind::Bool; }
  bool isNumber() const { return isIntegral() || tag == Kind::Float; }

  bool asBool() const { return payload.b; }
  int64_t asInt() const { return tag == Kind::Bool ? payload.b : payload.i; }
  double asDouble() const { return tag == Kind::Float ? payload.d : static_cast<double>(asInt()); }
  const Text &text() const;
  std::string_view str() const { return text().str(); }
  /// Marked safe for HTML: adding a plain string to it escapes that string.
  bool isMarkup() const { return isString() && payload.b; }
  Sequence &asSequence() const;
  Dict &asDict() const;
  Object &asObject() const;
  std::shared_ptr<Sequence> shareSequence() const;
  /// Why an undefined value is undefined.
  std::string describeUndefined() const;

  /// Identity, as `is` in Python: the same node, or equal constants.
  bool sameAs(const Value &other) const;

private:
  explicit Value(Kind kind) : tag(kind) {}

  Kind tag = Kind::Undefined;
  union Payload {
    int64_t i = 0;
    double d;
    bool b;
  } payload;
  std::shared_ptr<HeapNode> node;
};

/// All nodes made while rendering once.
class Heap {
public:
  explicit Heap(size_t limit) : limit(limit) {}
  Heap(const Heap &) = delete;
  Heap &operator=(const Heap &) = delete;
  ~Heap();

  /// Makes a node and charges \p payloadBytes beyond its own size for it.
  template <typename Node, typename... Fields>
  std::shared_ptr<Node> make(size_t payloadBytes, Fields &&...fields) {
    std::shared_ptr<Node> node(new Node(std::forward<Fields>(fields)...), Release{});
    link(*node, sizeof(Node) + payloadBytes);
    return node;
  }
  void charge(HeapNode &node, size_t bytes);

  bool exhausted() const { return live > limit; }
  size_t room() const { return live < limit ? limit - live : 0; }

private:
  struct Release {
    void operator()(HeapNode *node) const { node->heap->release(node); }
  };
  void link(HeapNode &node, size_t bytes);
  void release(HeapNode *node);
  void drain();

  size_t limit, live = 0; // bytes
  HeapNode *head = nullptr;
  std::vector<HeapNode *> released; ///< waiting to be deleted, so that deletion never recurses
  bool draining = false;
};

struct TextNode : HeapNode {
  explicit TextNode(Text text) : text(std::move(text)) {}
  Text text;
};

/// Everything that is iterated in order.
struct Sequence : HeapNode {
  enum class Flavor : uint8_t {
    List,
    Tuple,
    Group,    ///< an item of groupby: the tuple (grouper, list)
    Iterator, ///< a generator: usable once, without length or index
    View,     ///< dict.keys(), values(), items(): length, but no index
  };
  Sequence(std::vector<Value> items, Flavor flavor) : items(std::move(items)), flavor(flavor) {}
  void dropReferences() override { items.clear(); }
  bool isTuple() const { return flavor == Flavor::Tuple || flavor == Flavor::Group; }
  bool isIndexable() const { return flavor == Flavor::List || isTuple(); }

  std::vector<Value> items;
  Flavor flavor;
};

/// Insertion-ordered, keys equal as in Python (1 == 1.0 == True).
struct Dict : HeapNode {
  struct Entry {
    Value key, value;
  };
  void dropReferences() override;

  /// Codes identify keys: see dictCode() in Runtime.h; of a string it is textCode().
  static std::string textCode(std::string_view text) { return "s" + std::string(text); }
  const Value *find(const std::string &code) const;
  void set(const std::string &code, const Value &key, Value value);
  void erase(const std::string &code);

  std::vector<Entry> entries;

private:
  std::map<std::string, size_t> index;
};

/// Namespaces, loops and everything that can be called; see Objects.h.
struct Object : HeapNode {
  enum class Type : uint8_t { Namespace, Loop, Macro, Method, Function, Joiner, Cycler };
  explicit Object(Type type) : type(type) {}
  Type type;
};

bool isTruthy(const Value &value);
/// The name of a value's Python type: 'str', 'NoneType', 'dict', ...
std::string_view typeName(const Value &value);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_VALUE_H
