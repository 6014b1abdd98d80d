//===- Runtime.h - one rendering: heap, limits, Python's object protocol --===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What operators, filters, tests and methods share: making values, charging for
// work, and str(), repr(), ==, <, iter(), hash() as Python defines them.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_RUNTIME_H
#define LLMC_RUNTIME_TEXT_JINJA_RUNTIME_H

#include "runtime/base/Status.h"
#include "runtime/text/jinja/Template.h"
#include "runtime/text/jinja/Value.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt::jinja {

/// What Python would raise; the interpreter adds the template and the line.
inline Status raised(std::string message) { return invalidArgument(std::move(message)); }

class Runtime {
public:
  explicit Runtime(const RenderOptions &options) : options(options), heap(options.maxMemoryBytes) {}

  const RenderOptions options;
  Heap heap;

  /// Charges \p work steps; fails when steps or memory are used up.
  Status tick(size_t work = 1);
  /// Charges for searching \p needle in \p haystack.
  Status tickSearch(size_t haystack, size_t needle) { return tick(haystack * (needle / 64 + 1)); }

  /// One level of recursion, for as long as it lives.
  class Level {
  public:
    explicit Level(Runtime &runtime) : runtime(runtime) { ++runtime.depth; }
    ~Level() { --runtime.depth; }
    Level(const Level &) = delete;
    Status check() const;

  private:
    Runtime &runtime;
  };

  // Making values.
  Value string(Text text, bool markup = false);
  Value string(std::string_view trusted) { return string(Text(trusted)); }
  TextBuilder builder() const { return TextBuilder(heap.room()); }
  StatusOr<Value> finish(TextBuilder builder, bool markup = false);
  Value sequence(std::vector<Value> items, Sequence::Flavor flavor);
  Value list(std::vector<Value> items) {
    return sequence(std::move(items), Sequence::Flavor::List);
  }
  Value tuple(std::vector<Value> items) {
    return sequence(std::move(items), Sequence::Flavor::Tuple);
  }
  Value iterator(std::vector<Value> items) {
    return sequence(std::move(items), Sequence::Flavor::Iterator);
  }
  std::shared_ptr<Dict> makeDict() { return heap.make<Dict>(0); }
  /// Fails before a result of \p bytes is made that would not fit.
  Status reserve(size_t bytes) const;

  // Python's protocol. Errors read as Python's do.
  Status appendStr(TextBuilder &out, const Value &value);
  Status appendRepr(TextBuilder &out, const Value &value);
  StatusOr<Value> str(const Value &value);
  StatusOr<bool> equals(const Value &a, const Value &b);
  StatusOr<bool> less(const Value &a, const Value &b);
  /// The items in order; of an iterator those that are left, which uses it up.
  StatusOr<std::shared_ptr<Sequence>> iterate(const Value &value);
  StatusOr<size_t> length(const Value &value);
  /// A text that is equal for two keys exactly when Python's dict takes them for one.
  StatusOr<std::string> dictCode(const Value &key);
  Status setItem(Dict &dict, const Value &key, Value value);
  /// The (key, value) pairs of a dict as tuples.
  std::vector<Value> itemPairs(const Dict &dict);

private:
  Status appendItems(TextBuilder &out, const Sequence &sequence);
  StatusOr<bool> equalItems(const Sequence &a, const Sequence &b);
  StatusOr<bool> equalEntries(const Dict &a, const Dict &b);

  size_t steps = 0;
  unsigned depth = 0;
};

/// Code points of \p text as single-character strings.
StatusOr<std::vector<Value>> characters(Runtime &runtime, const Text &text);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_RUNTIME_H
