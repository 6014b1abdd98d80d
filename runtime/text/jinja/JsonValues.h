//===- JsonValues.h - JSON to values and back -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_JSONVALUES_H
#define LLMC_RUNTIME_TEXT_JINJA_JSONVALUES_H

#include "runtime/text/jinja/Runtime.h"

#include <optional>

namespace llmc::rt::jinja {

/// \p trust is that of all strings and keys. An integer beyond int64 becomes a float.
StatusOr<Value> importJson(Runtime &runtime, const Json &json, Trust trust);

/// The variable \p key of the context, with the trust that the options give it.
StatusOr<Value> importVariable(Runtime &runtime, const std::string &key, const Json &json);

/// The options of Python's json.dumps.
struct JsonStyle {
  bool ensureAscii = false;
  bool sortKeys = false;
  std::optional<Text> indent; ///< per level; none for one line
  Text itemSeparator = Text(", ");
  Text keySeparator = Text(": ");
};

StatusOr<Value> dumpJson(Runtime &runtime, const Value &value, const JsonStyle &style);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_JSONVALUES_H
