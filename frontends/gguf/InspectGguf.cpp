//===- InspectGguf.cpp - what is in a GGUF file ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/InspectGguf.h"
#include "frontends/common/ImportError.h"
#include "frontends/gguf/GgufSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace llmc;
using namespace llmc::gguf;
using llvm::StringRef;

/// Element i as text; numbers only.
static std::string elementText(const MetaValue &value, uint64_t i) {
  if (value.type == ValueType::Bool)
    return *value.asBool(i) ? "true" : "false";
  if (std::optional<int64_t> number = value.asSigned(i))
    return std::to_string(*number);
  return numberText(value.asNumber(i).value_or(0));
}

static std::string valueText(const MetaValue &value) {
  if (std::optional<StringRef> text = value.asString())
    return quoted(*text);
  if (!value.isArray)
    return elementText(value, 0);
  constexpr uint64_t kShown = 8;
  std::vector<std::string> items;
  if (value.type == ValueType::String)
    value.forEachString([&](uint64_t i, StringRef text) {
      if (i < kShown)
        items.push_back(quoted(text));
    });
  else
    for (uint64_t i = 0; i < std::min(value.count, kShown); ++i)
      items.push_back(elementText(value, i));
  return "[" + llvm::join(items, ", ") + (value.count > kShown ? ", ...]" : "]");
}

static double mean(const Tensor &tensor, const uint8_t *data) {
  uint64_t columns = tensor.shape.back(), rows = tensor.elements() / columns;
  std::vector<float> row(columns);
  double sum = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    dequantizeRow(*tensor.encoding, data + i * tensor.encoding->rowBytes(columns), row.data(),
                  columns);
    sum = std::accumulate(row.begin(), row.end(), sum);
  }
  return sum / double(tensor.elements());
}

llvm::Expected<GgufListing> llmc::inspectGguf(StringRef path, bool stats) {
  llvm::Expected<GgufSet> set = GgufSet::open(path);
  if (!set)
    return set.takeError();
  GgufListing listing;
  listing.version = set->primary().version();
  for (const Entry &entry : set->primary().entries())
    listing.metadata.push_back({entry.key.str(), entry.value.typeName(), valueText(entry.value)});
  for (auto [i, file] : llvm::enumerate(set->parts())) {
    listing.files.push_back(file.path().str());
    for (const Tensor &tensor : file.tensors()) {
      std::optional<double> tensorMean;
      if (stats)
        tensorMean = mean(tensor, file.data(tensor));
      listing.tensors.push_back({tensor.name.str(),
                                 tensor.encoding->name.str(),
                                 {tensor.shape.begin(), tensor.shape.end()},
                                 i,
                                 tensor.offset,
                                 tensor.bytes,
                                 tensorMean});
    }
  }
  return listing;
}
