//===- ContainerMethods.cpp - the methods of list, tuple, dict, loop ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Templates may change only what they made themselves or got as a copy: the
// context is copied into values for every rendering.
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Objects.h"

#include <algorithm>

namespace llmc::rt::jinja {
namespace {

std::vector<Value> &itemsOf(const Value &self) { return self.asSequence().items; }

StatusOr<Value> listAppend(Runtime &runtime, const Value &self, Args &args) {
  itemsOf(self).push_back(*args[0]);
  runtime.heap.charge(self.asSequence(), sizeof(Value));
  return Value::none();
}

StatusOr<Value> listExtend(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> more, runtime.iterate(*args[0]));
  LLMC_RETURN_IF_ERROR(runtime.tick(more->items.size()));
  std::vector<Value> copied = more->items; // the list may extend itself
  itemsOf(self).insert(itemsOf(self).end(), copied.begin(), copied.end());
  runtime.heap.charge(self.asSequence(), copied.size() * sizeof(Value));
  return Value::none();
}

StatusOr<Value> listInsert(Runtime &runtime, const Value &self, Args &args) {
  std::vector<Value> &items = itemsOf(self);
  LLMC_ASSIGN_OR_RETURN(int64_t index, args.integer(0, 0));
  LLMC_RETURN_IF_ERROR(runtime.tick(items.size() / 16));
  int64_t size = static_cast<int64_t>(items.size());
  index = std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  items.insert(items.begin() + index, *args[1]);
  runtime.heap.charge(self.asSequence(), sizeof(Value));
  return Value::none();
}

StatusOr<Value> listPop(Runtime &runtime, const Value &self, Args &args) {
  std::vector<Value> &items = itemsOf(self);
  LLMC_ASSIGN_OR_RETURN(int64_t index, args.integer(0, -1));
  LLMC_RETURN_IF_ERROR(runtime.tick(items.size() / 16));
  int64_t size = static_cast<int64_t>(items.size());
  if (index < 0)
    index += size;
  if (index < 0 || index >= size)
    return raised(items.empty() ? "pop from empty list" : "pop index out of range");
  Value popped = std::move(items[static_cast<size_t>(index)]);
  items.erase(items.begin() + index);
  return popped;
}

StatusOr<Value> listReverse(Runtime &runtime, const Value &self, Args &) {
  LLMC_RETURN_IF_ERROR(runtime.tick(itemsOf(self).size()));
  std::reverse(itemsOf(self).begin(), itemsOf(self).end());
  return Value::none();
}

StatusOr<Value> sequenceCount(Runtime &runtime, const Value &self, Args &args) {
  int64_t count = 0;
  for (const Value &item : itemsOf(self)) {
    LLMC_ASSIGN_OR_RETURN(bool same, runtime.equals(item, *args[0]));
    count += same;
  }
  return Value::integer(count);
}

StatusOr<Value> sequenceIndex(Runtime &runtime, const Value &self, Args &args) {
  for (size_t i = 0; i < itemsOf(self).size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(bool same, runtime.equals(itemsOf(self)[i], *args[0]));
    if (same)
      return Value::integer(static_cast<int64_t>(i));
  }
  return raised("value is not in the sequence");
}

StatusOr<Value> sequenceCopy(Runtime &runtime, const Value &self, Args &) {
  LLMC_RETURN_IF_ERROR(runtime.tick(itemsOf(self).size()));
  return runtime.list(itemsOf(self));
}

StatusOr<Value> dictGet(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(std::string code, runtime.dictCode(*args[0]));
  if (const Value *value = self.asDict().find(code))
    return *value;
  return args[1] ? *args[1] : Value::none();
}

template <bool wantsKeys, bool wantsValues>
StatusOr<Value> dictView(Runtime &runtime, const Value &self, Args &) {
  const Dict &dict = self.asDict();
  LLMC_RETURN_IF_ERROR(runtime.tick(dict.entries.size()));
  if (wantsKeys && wantsValues)
    return runtime.sequence(runtime.itemPairs(dict), Sequence::Flavor::View);
  std::vector<Value> items;
  for (const Dict::Entry &entry : dict.entries)
    items.push_back(wantsKeys ? entry.key : entry.value);
  return runtime.sequence(std::move(items), Sequence::Flavor::View);
}

Status updateDict(Runtime &runtime, Dict &dict, const Value &source) {
  if (source.isDict()) {
    std::vector<Dict::Entry> entries = source.asDict().entries; // it may be the dict itself
    for (const Dict::Entry &entry : entries)
      LLMC_RETURN_IF_ERROR(runtime.setItem(dict, entry.key, entry.value));
    return {};
  }
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> pairs, runtime.iterate(source));
  for (const Value &pair : pairs->items) {
    LLMC_ASSIGN_OR_RETURN(std::shared_ptr<Sequence> parts, runtime.iterate(pair));
    if (parts->items.size() != 2)
      return raised("a dictionary update sequence needs pairs");
    LLMC_RETURN_IF_ERROR(runtime.setItem(dict, parts->items[0], parts->items[1]));
  }
  return {};
}

StatusOr<Value> dictUpdate(Runtime &runtime, const Value &self, Args &args) {
  LLMC_RETURN_IF_ERROR(fillDict(runtime, self.asDict(), args));
  return Value::none();
}

StatusOr<Value> dictPop(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(std::string code, runtime.dictCode(*args[0]));
  LLMC_RETURN_IF_ERROR(runtime.tick(self.asDict().entries.size()));
  const Value *found = self.asDict().find(code);
  if (!found)
    return args[1] ? StatusOr<Value>(*args[1]) : StatusOr<Value>(raised("pop(): no such key"));
  Value value = *found;
  self.asDict().erase(code);
  return value;
}

StatusOr<Value> dictSetdefault(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(std::string code, runtime.dictCode(*args[0]));
  if (const Value *value = self.asDict().find(code))
    return *value;
  Value value = args[1] ? *args[1] : Value::none();
  self.asDict().set(code, *args[0], value);
  return value;
}

StatusOr<Value> dictCopy(Runtime &runtime, const Value &self, Args &) {
  std::shared_ptr<Dict> copy = runtime.makeDict();
  LLMC_RETURN_IF_ERROR(updateDict(runtime, *copy, self));
  return Value::dict(std::move(copy));
}

StatusOr<Value> cyclerNext(Runtime &, const Value &self, Args &) {
  auto &cycler = static_cast<CyclerObject &>(self.asObject());
  Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

StatusOr<Value> cyclerReset(Runtime &, const Value &self, Args &) {
  static_cast<CyclerObject &>(self.asObject()).position = 0;
  return Value::none();
}

StatusOr<Value> loopCycle(Runtime &, const Value &self, Args &args) {
  if (args.positional.empty())
    return raised("no items for cycling given");
  size_t index = static_cast<const LoopObject &>(self.asObject()).index;
  return args.positional[index % args.positional.size()];
}

/// Whether the arguments differ from those of the call before.
StatusOr<Value> loopChanged(Runtime &runtime, const Value &self, Args &args) {
  auto &loop = static_cast<LoopObject &>(self.asObject());
  Value now = runtime.tuple(args.positional);
  bool same = false;
  if (loop.changed) {
    LLMC_ASSIGN_OR_RETURN(same, runtime.equals(*loop.changed, now));
  }
  loop.changed = std::move(now);
  return Value::boolean(!same);
}

constexpr Builtin listTable[] = {
    {"append", "object", listAppend},  {"copy", "", sequenceCopy},
    {"count", "value", sequenceCount}, {"extend", "iterable", listExtend},
    {"index", "value", sequenceIndex}, {"insert", "index object", listInsert},
    {"pop", "index?", listPop},        {"reverse", "", listReverse},
};

constexpr Builtin tupleTable[] = {
    {"count", "value", sequenceCount},
    {"index", "value", sequenceIndex},
};

constexpr Builtin dictTable[] = {
    {"copy", "", dictCopy},
    {"get", "key default?", dictGet},
    {"items", "", dictView<true, true>},
    {"keys", "", dictView<true, false>},
    {"pop", "key default?", dictPop},
    {"setdefault", "key default?", dictSetdefault},
    {"update", "*", dictUpdate},
    {"values", "", dictView<false, true>},
};

constexpr Builtin cyclerTable[] = {
    {"next", "", cyclerNext},
    {"reset", "", cyclerReset},
};

constexpr Builtin loopTable[] = {
    {"changed", "*", loopChanged},
    {"cycle", "*", loopCycle},
};

} // namespace

Status fillDict(Runtime &runtime, Dict &dict, const Args &args) {
  if (args.positional.size() > 1)
    return raised("expected at most 1 positional argument");
  if (!args.positional.empty())
    LLMC_RETURN_IF_ERROR(updateDict(runtime, dict, args.positional[0]));
  for (const auto &[key, value] : args.named)
    dict.set(Dict::textCode(key.str()), key, value);
  return {};
}

std::span<const Builtin> listMethods() { return listTable; }
std::span<const Builtin> tupleMethods() { return tupleTable; }
std::span<const Builtin> dictMethods() { return dictTable; }
std::span<const Builtin> cyclerMethods() { return cyclerTable; }
std::span<const Builtin> loopMethods() { return loopTable; }

} // namespace llmc::rt::jinja
