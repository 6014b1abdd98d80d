//===- Sorting.cpp - Python's sorted() ------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Sorting.h"

#include <algorithm>

namespace llmc::rt::jinja {

Status sortItems(Runtime &runtime, std::vector<SortItem> &items, bool descending) {
  // A bottom-up merge sort.
  std::vector<SortItem> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      size_t left = begin, middle = std::min(begin + width, items.size());
      size_t right = middle, end = std::min(begin + 2 * width, items.size());
      for (size_t at = begin; at < end; ++at) {
        bool takeRight = left == middle;
        if (!takeRight && right < end) {
          const Value &a = items[left].key, &b = items[right].key;
          LLMC_ASSIGN_OR_RETURN(takeRight, descending ? runtime.less(a, b) : runtime.less(b, a));
        }
        merged[at] = std::move(items[takeRight ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
  return {};
}

StatusOr<Value> sortedList(Runtime &runtime, std::vector<SortItem> items, bool descending) {
  LLMC_RETURN_IF_ERROR(sortItems(runtime, items, descending));
  std::vector<Value> values;
  for (SortItem &item : items)
    values.push_back(std::move(item.value));
  return runtime.list(std::move(values));
}

} // namespace llmc::rt::jinja
