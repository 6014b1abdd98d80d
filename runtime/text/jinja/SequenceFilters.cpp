//===- SequenceFilters.cpp - filters on sequences and mappings ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/Operators.h"
#include "runtime/text/jinja/Sorting.h"
#include "runtime/text/jinja/TextOperations.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <set>

namespace llmc::rt::jinja {
namespace {

using SequencePtr = std::shared_ptr<Sequence>;

/// How filters read an attribute of each item: "a.b.0" is item["a"]["b"][0].
class AttributeGetter {
public:
  /// \p attribute is null or none for the item itself.
  static StatusOr<AttributeGetter> make(const Value *attribute, const Value *otherwise = nullptr) {
    AttributeGetter getter;
    getter.otherwise = otherwise;
    if (!attribute || attribute->isNone())
      return getter;
    if (!attribute->isString()) {
      getter.parts.push_back(*attribute);
      return getter;
    }
    for (std::string_view rest = attribute->str();;) {
      std::string_view part = rest.substr(0, rest.find('.'));
      bool numeric = allCodePoints(part, isDecimal);
      std::optional<int64_t> index = numeric ? parseInt(part) : std::nullopt;
      getter.parts.push_back(index ? Value::integer(*index) : Value::literal(part));
      if (part.size() == rest.size())
        return getter;
      rest.remove_prefix(part.size() + 1);
    }
  }

  StatusOr<Value> get(Runtime &runtime, Value item) const {
    for (const Value &part : parts) {
      LLMC_ASSIGN_OR_RETURN(item, getItem(runtime, item, part));
      if (item.isUndefined() && otherwise && !otherwise->isNone())
        item = *otherwise;
    }
    return item;
  }

private:
  std::vector<Value> parts;
  const Value *otherwise = nullptr;
};

StatusOr<Value> withoutCase(Runtime &runtime, Value value, bool caseSensitive) {
  if (caseSensitive || !value.isString())
    return value;
  return mapCase(runtime, value.text(), appendLower, appendLower);
}

StatusOr<Value> filterBatch(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(int64_t size, args.integer(0, 0));
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_RETURN_IF_ERROR(runtime.tick(items->items.size()));
  std::vector<Value> batches, batch;
  for (const Value &item : items->items) {
    if (static_cast<int64_t>(batch.size()) == size)
      batches.push_back(runtime.list(std::exchange(batch, {})));
    batch.push_back(item);
  }
  if (!batch.empty()) {
    int64_t missing = size - static_cast<int64_t>(batch.size());
    if (args[1] && !args[1]->isNone() && missing > 0) {
      LLMC_RETURN_IF_ERROR(runtime.reserve(static_cast<size_t>(missing)));
      LLMC_RETURN_IF_ERROR(runtime.tick(static_cast<size_t>(missing)));
      batch.insert(batch.end(), static_cast<size_t>(missing), *args[1]);
    }
    batches.push_back(runtime.list(std::move(batch)));
  }
  return runtime.iterator(std::move(batches));
}

StatusOr<Value> filterSlice(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(int64_t count, args.integer(0, 0));
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  if (count == 0)
    return raised("integer division or modulo by zero");
  std::vector<Value> slices;
  size_t slicesLeft = count > 0 ? static_cast<size_t>(count) : 0;
  LLMC_RETURN_IF_ERROR(runtime.tick(slicesLeft + items->items.size()));
  const size_t even = slicesLeft ? items->items.size() / slicesLeft : 0;
  const size_t longer = slicesLeft ? items->items.size() % slicesLeft : 0;
  auto at = items->items.begin();
  for (size_t i = 0; i < slicesLeft; ++i) {
    auto end = at + static_cast<ptrdiff_t>(even + (i < longer));
    std::vector<Value> slice(at, end);
    if (args[1] && !args[1]->isNone() && i >= longer)
      slice.push_back(*args[1]);
    slices.push_back(runtime.list(std::move(slice)));
    at = end;
  }
  return runtime.iterator(std::move(slices));
}

StatusOr<Value> filterLength(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(size_t length, runtime.length(self));
  return Value::integer(static_cast<int64_t>(length));
}

StatusOr<Value> filterDictsort(Runtime &runtime, const Value &self, Args &args) {
  if (self.isUndefined())
    return raised(self.describeUndefined());
  if (!self.isDict())
    return raised("'" + std::string(typeName(self)) + "' object has no attribute 'items'");
  LLMC_ASSIGN_OR_RETURN(const Text *by, args.text(1));
  if (by && by->str() != "key" && by->str() != "value")
    return raised("you can only sort by either \"key\" or \"value\"");
  size_t position = by && by->str() == "value";
  std::vector<SortItem> items;
  for (Value &pair : runtime.itemPairs(self.asDict())) {
    LLMC_ASSIGN_OR_RETURN(
        Value key, withoutCase(runtime, pair.asSequence().items[position], args.flag(0, false)));
    items.push_back({std::move(key), std::move(pair)});
  }
  return sortedList(runtime, std::move(items), args.flag(2, false));
}

StatusOr<Value> filterFirst(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  return items->items.empty() ? Value::undefined("no first item, sequence was empty")
                              : items->items.front();
}

StatusOr<Value> filterLast(Runtime &runtime, const Value &self, Args &) {
  if (self.isSequence() && self.asSequence().flavor == Sequence::Flavor::Iterator)
    return raised("'generator' object is not reversible");
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  return items->items.empty() ? Value::undefined("no last item, sequence was empty")
                              : items->items.back();
}

StatusOr<Value> filterGroupby(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(args[0], args[1]));
  bool caseSensitive = args.flag(2, false);
  std::vector<SortItem> sorted;
  for (const Value &item : items->items) {
    LLMC_ASSIGN_OR_RETURN(Value key, getter.get(runtime, item));
    LLMC_ASSIGN_OR_RETURN(key, withoutCase(runtime, std::move(key), caseSensitive));
    sorted.push_back({std::move(key), item});
  }
  LLMC_RETURN_IF_ERROR(sortItems(runtime, sorted, false));
  std::vector<Value> groups;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    std::vector<Value> members;
    for (end = begin; end < sorted.size(); ++end) {
      LLMC_ASSIGN_OR_RETURN(bool same, runtime.equals(sorted[begin].key, sorted[end].key));
      if (!same && end != begin)
        break;
      members.push_back(sorted[end].value);
    }
    LLMC_ASSIGN_OR_RETURN(Value grouper, getter.get(runtime, members.front()));
    groups.push_back(
        runtime.sequence({grouper, runtime.list(std::move(members))}, Sequence::Flavor::Group));
  }
  return runtime.list(std::move(groups));
}

StatusOr<Value> filterItems(Runtime &runtime, const Value &self, Args &) {
  if (self.isUndefined())
    return runtime.iterator({});
  if (!self.isDict())
    return raised("can only get item pairs from a mapping");
  LLMC_RETURN_IF_ERROR(runtime.tick(self.asDict().entries.size()));
  return runtime.iterator(runtime.itemPairs(self.asDict()));
}

StatusOr<Value> filterJoin(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(args[1]));
  std::vector<Value> values;
  for (const Value &item : items->items) {
    LLMC_ASSIGN_OR_RETURN(Value value, getter.get(runtime, item));
    values.push_back(std::move(value));
  }
  LLMC_ASSIGN_OR_RETURN(Value separator, runtime.str(args[0] ? *args[0] : Value()));
  return joinValues(runtime, separator.text(), values, false);
}

StatusOr<Value> filterList(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_RETURN_IF_ERROR(runtime.tick(items->items.size()));
  return runtime.list(items->items);
}

/// The arguments behind the first \p used, for the filter or test that is applied to each item.
Args remaining(const Args &args, size_t used) {
  Args rest;
  rest.positional.assign(args.positional.begin() + static_cast<ptrdiff_t>(used),
                         args.positional.end());
  rest.named = args.named;
  return rest;
}

StatusOr<Value> mapAttribute(Runtime &runtime, const Sequence &items, const Args &args) {
  if (args.named.size() > 1u + (args.find("default") != nullptr))
    return raised("map() got an unexpected keyword argument");
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter,
                        AttributeGetter::make(args.find("attribute"), args.find("default")));
  std::vector<Value> result;
  for (const Value &item : items.items) {
    LLMC_ASSIGN_OR_RETURN(Value value, getter.get(runtime, item));
    result.push_back(std::move(value));
  }
  return runtime.iterator(std::move(result));
}

StatusOr<Value> filterMap(Runtime &runtime, const Value &self, Args &args) {
  if (!isTruthy(self)) // as Jinja, which does not complain about none
    return runtime.iterator({});
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  if (args.positional.empty() && args.find("attribute"))
    return mapAttribute(runtime, *items, args);
  if (args.positional.empty() || !args.positional[0].isString())
    return raised("map() needs the name of a filter");
  const Builtin *filter = findFilter(args.positional[0].str());
  if (!filter)
    return raised("no filter named '" + std::string(args.positional[0].str()) + "'");
  std::vector<Value> result;
  for (size_t i = 0; i < items->items.size(); ++i) {
    LLMC_RETURN_IF_ERROR(runtime.tick());
    Args rest = remaining(args, 1);
    Value item = items->items[i];
    LLMC_ASSIGN_OR_RETURN(Value value, filter->call(runtime, item, rest));
    result.push_back(std::move(value));
  }
  return runtime.iterator(std::move(result));
}

/// The items whose test (or truth, without a test) is \p wanted.
StatusOr<Value> selectItems(Runtime &runtime, const Value &self, const Args &args, size_t used,
                            const AttributeGetter &getter, bool wanted) {
  const Builtin *test = nullptr;
  if (args.positional.size() > used) {
    const Value &name = args.positional[used];
    test = name.isString() ? findTest(name.str()) : nullptr;
    if (!test)
      return raised("no test with the given name");
  }
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  std::vector<Value> result;
  for (const Value &item : items->items) {
    LLMC_RETURN_IF_ERROR(runtime.tick());
    LLMC_ASSIGN_OR_RETURN(Value value, getter.get(runtime, item));
    if (test) {
      Args rest = remaining(args, used + 1);
      LLMC_ASSIGN_OR_RETURN(value, test->call(runtime, value, rest));
    }
    if (isTruthy(value) == wanted)
      result.push_back(item);
  }
  return runtime.iterator(std::move(result));
}

template <bool wanted>
StatusOr<Value> filterSelect(Runtime &runtime, const Value &self, Args &args) {
  if (!isTruthy(self))
    return runtime.iterator({});
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(nullptr));
  return selectItems(runtime, self, args, 0, getter, wanted);
}

template <bool wanted>
StatusOr<Value> filterSelectAttribute(Runtime &runtime, const Value &self, Args &args) {
  if (!isTruthy(self))
    return runtime.iterator({});
  if (args.positional.empty())
    return raised("missing parameter for attribute name");
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(&args.positional[0]));
  return selectItems(runtime, self, args, 1, getter, wanted);
}

template <bool wantsLargest>
StatusOr<Value> filterExtreme(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(args[1]));
  if (items->items.empty())
    return Value::undefined("no aggregated item, sequence was empty");
  Value best, bestKey;
  for (size_t i = 0; i < items->items.size(); ++i) {
    const Value &item = items->items[i];
    LLMC_ASSIGN_OR_RETURN(Value key, getter.get(runtime, item));
    LLMC_ASSIGN_OR_RETURN(key, withoutCase(runtime, std::move(key), args.flag(0, false)));
    if (i != 0) {
      LLMC_ASSIGN_OR_RETURN(bool better,
                            wantsLargest ? runtime.less(bestKey, key) : runtime.less(key, bestKey));
      if (!better)
        continue;
    }
    best = item;
    bestKey = std::move(key);
  }
  return best;
}

StatusOr<Value> filterReverse(Runtime &runtime, const Value &self, Args &) {
  if (self.isString())
    return getSlice(runtime, self, Value::none(), Value::none(), Value::integer(-1));
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_RETURN_IF_ERROR(runtime.tick(items->items.size()));
  std::vector<Value> reversed(items->items.rbegin(), items->items.rend());
  // A generator cannot be walked backwards, so Jinja makes a list of it first.
  bool isGenerator = self.isSequence() && self.asSequence().flavor == Sequence::Flavor::Iterator;
  return isGenerator || self.isUndefined() ? runtime.list(std::move(reversed))
                                           : runtime.iterator(std::move(reversed));
}

StatusOr<Value> filterSort(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  bool caseSensitive = args.flag(1, false);
  std::vector<AttributeGetter> getters;
  if (args[2] && args[2]->isString()) {
    for (std::string_view rest = args[2]->str();;) { // "a,b" sorts by a, then by b
      std::string_view part = rest.substr(0, rest.find(','));
      Value attribute = Value::literal(part);
      LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(&attribute));
      getters.push_back(std::move(getter));
      if (part.size() == rest.size())
        break;
      rest.remove_prefix(part.size() + 1);
    }
  } else {
    LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(args[2]));
    getters.push_back(std::move(getter));
  }
  std::vector<SortItem> sorted;
  for (const Value &item : items->items) {
    std::vector<Value> keys;
    for (const AttributeGetter &getter : getters) {
      LLMC_ASSIGN_OR_RETURN(Value key, getter.get(runtime, item));
      LLMC_ASSIGN_OR_RETURN(key, withoutCase(runtime, std::move(key), caseSensitive));
      keys.push_back(std::move(key));
    }
    sorted.push_back({runtime.list(std::move(keys)), item});
  }
  return sortedList(runtime, std::move(sorted), args.flag(0, false));
}

StatusOr<Value> filterSum(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(args[0]));
  Value total = args[1] ? *args[1] : Value::integer(0);
  if (total.isString())
    return raised("sum() can't sum strings");
  for (const Value &item : items->items) {
    LLMC_ASSIGN_OR_RETURN(Value value, getter.get(runtime, item));
    LLMC_ASSIGN_OR_RETURN(total, applyBinary(runtime, BinaryOp::Add, total, value));
  }
  return total;
}

StatusOr<Value> filterUnique(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(SequencePtr items, runtime.iterate(self));
  LLMC_ASSIGN_OR_RETURN(AttributeGetter getter, AttributeGetter::make(args[1]));
  std::set<std::string> seen;
  std::vector<Value> result;
  for (const Value &item : items->items) {
    LLMC_ASSIGN_OR_RETURN(Value key, getter.get(runtime, item));
    LLMC_ASSIGN_OR_RETURN(key, withoutCase(runtime, std::move(key), args.flag(0, false)));
    LLMC_ASSIGN_OR_RETURN(std::string code, runtime.dictCode(key));
    if (seen.insert(std::move(code)).second)
      result.push_back(item);
  }
  return runtime.iterator(std::move(result));
}

constexpr Builtin table[] = {
    {"batch", "linecount fill_with?", filterBatch},
    {"count", "", filterLength},
    {"dictsort", "case_sensitive? by? reverse?", filterDictsort},
    {"first", "", filterFirst},
    {"groupby", "attribute default? case_sensitive?", filterGroupby},
    {"items", "", filterItems},
    {"join", "d? attribute?", filterJoin},
    {"last", "", filterLast},
    {"length", "", filterLength},
    {"list", "", filterList},
    {"map", "*", filterMap},
    {"max", "case_sensitive? attribute?", filterExtreme<true>},
    {"min", "case_sensitive? attribute?", filterExtreme<false>},
    {"reject", "*", filterSelect<false>},
    {"rejectattr", "*", filterSelectAttribute<false>},
    {"reverse", "", filterReverse},
    {"select", "*", filterSelect<true>},
    {"selectattr", "*", filterSelectAttribute<true>},
    {"slice", "slices fill_with?", filterSlice},
    {"sort", "reverse? case_sensitive? attribute?", filterSort},
    {"sum", "attribute? start?", filterSum},
    {"unique", "case_sensitive? attribute?", filterUnique},
};

} // namespace

std::span<const Builtin> sequenceFilters() { return table; }

} // namespace llmc::rt::jinja
