//===- Sorting.h - Python's sorted() --------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A comparison of two values can fail, and with NaN it need not be an order, so
// the standard library's sorts are of no use here.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_SORTING_H
#define LLMC_RUNTIME_TEXT_JINJA_SORTING_H

#include "runtime/text/jinja/Runtime.h"

#include <vector>

namespace llmc::rt::jinja {

struct SortItem {
  Value key, value;
};

/// Sorts by key, stably in both directions. Fails where two keys have no order.
Status sortItems(Runtime &runtime, std::vector<SortItem> &items, bool descending);
/// The values of \p items in the order of their keys.
StatusOr<Value> sortedList(Runtime &runtime, std::vector<SortItem> items, bool descending);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_SORTING_H
