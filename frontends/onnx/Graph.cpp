//===- Graph.cpp - an ONNX model in memory --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Graph.h"
#include "frontends/common/ImportError.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;

const Attribute *Node::find(StringRef attribute) const {
  for (const Attribute &a : attributes)
    if (a.name == attribute)
      return &a;
  return nullptr;
}

int64_t Node::integer(StringRef attribute, int64_t otherwise) const {
  const Attribute *a = find(attribute);
  return a && a->kind == Attribute::Kind::Int ? a->integer : otherwise;
}

float Node::number(StringRef attribute, float otherwise) const {
  const Attribute *a = find(attribute);
  return a && a->kind == Attribute::Kind::Float ? a->number : otherwise;
}

StringRef Node::text(StringRef attribute, StringRef otherwise) const {
  const Attribute *a = find(attribute);
  return a && a->kind == Attribute::Kind::String ? a->text : otherwise;
}

llvm::ArrayRef<int64_t> Node::integers(StringRef attribute) const {
  const Attribute *a = find(attribute);
  return a ? llvm::ArrayRef<int64_t>(a->integers) : llvm::ArrayRef<int64_t>();
}

std::string Node::describe() const {
  StringRef shown = name;
  if (shown.empty())
    for (const Value *value : outputs)
      if (value && !value->name.empty()) {
        shown = value->name;
        break;
      }
  std::string text = "node " + quoted(shown) + " (";
  if (!domain.empty())
    text += quoted(domain).substr(1, quoted(domain).size() - 2) + ".";
  return text + quoted(op).substr(1, quoted(op).size() - 2) + ")";
}
