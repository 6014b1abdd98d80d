//===- MetadataReader.cpp - typed access to a model's metadata ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/MetadataReader.h"
#include "frontends/common/ImportError.h"
#include <cmath>

using namespace llmc;
using namespace llmc::gguf;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

std::string MetadataReader::fullKey(StringRef key) const {
  if (key.consume_front("%."))
    return (architecture + "." + key).str();
  return key.str();
}

void MetadataReader::fail(Error error) {
  if (hasFailed) {
    llvm::consumeError(std::move(error));
    return;
  }
  hasFailed = true;
  llvm::cantFail(std::move(firstError));
  firstError = std::move(error);
}

Error MetadataReader::takeError() {
  hasFailed = false;
  Error error = std::move(firstError);
  firstError = Error::success();
  return error;
}

void MetadataReader::wrongType(StringRef key, const MetaValue &value, StringRef expected) {
  fail(corrupt(file.path(), "metadata " + quoted(fullKey(key)) + " is of type " + value.typeName() +
                                " (or out of range); " + expected + " is expected"));
}

const MetaValue *MetadataReader::require(StringRef key) {
  const MetaValue *value = find(key);
  if (!value)
    fail(corrupt(file.path(), "metadata " + quoted(fullKey(key)) + " is missing"));
  return value;
}

uint64_t MetadataReader::count(StringRef key, uint64_t fallback) {
  const MetaValue *value = find(key);
  if (!value)
    return fallback;
  // Counts index arrays and multiply: nothing real comes near 2^31.
  std::optional<uint64_t> number = value->isArray ? std::nullopt : value->asUnsigned();
  if (number && *number <= uint64_t(INT32_MAX))
    return *number;
  wrongType(key, *value, "a count");
  return fallback;
}

uint64_t MetadataReader::requiredCount(StringRef key) { return require(key) ? count(key, 0) : 0; }

double MetadataReader::number(StringRef key, double fallback) {
  const MetaValue *value = find(key);
  if (!value)
    return fallback;
  std::optional<double> number = value->isArray ? std::nullopt : value->asNumber();
  if (number && std::isfinite(*number))
    return *number;
  wrongType(key, *value, "a finite number");
  return fallback;
}

double MetadataReader::requiredNumber(StringRef key) { return require(key) ? number(key, 0) : 0; }

bool MetadataReader::flag(StringRef key, bool fallback) {
  const MetaValue *value = find(key);
  if (!value)
    return fallback;
  if (std::optional<bool> flag = value->isArray ? std::nullopt : value->asBool())
    return *flag;
  wrongType(key, *value, "a bool");
  return fallback;
}

std::string MetadataReader::text(StringRef key, StringRef fallback) {
  const MetaValue *value = find(key);
  if (!value)
    return fallback.str();
  if (std::optional<StringRef> text = value->asString())
    return text->str();
  wrongType(key, *value, "a string");
  return fallback.str();
}

int32_t MetadataReader::tokenId(StringRef key, int32_t fallback, size_t vocabulary) {
  if (fallback >= 0 && size_t(fallback) >= vocabulary)
    fallback = -1;
  const MetaValue *value = find(key);
  if (!value)
    return fallback;
  std::optional<int64_t> id = value->isArray ? std::nullopt : value->asSigned();
  if (!id) {
    wrongType(key, *value, "a token id");
    return fallback;
  }
  return *id >= 0 && uint64_t(*id) < vocabulary ? int32_t(*id) : fallback;
}

std::vector<uint64_t> MetadataReader::perLayer(StringRef key, size_t layers,
                                               std::optional<uint64_t> fallback) {
  const MetaValue *value = find(key);
  if (!value || !value->isArray)
    return std::vector<uint64_t>(layers, fallback ? count(key, *fallback) : requiredCount(key));
  if (value->count != layers) {
    fail(corrupt(file.path(), "metadata " + quoted(fullKey(key)) + " has " + Twine(value->count) +
                                  " values, the model has " + Twine(layers) + " layers"));
    return std::vector<uint64_t>(layers, 0);
  }
  std::vector<uint64_t> values;
  for (size_t i = 0; i < layers; ++i) {
    std::optional<uint64_t> number = value->asUnsigned(i);
    if (!number && value->asBool(i)) // arrays of bool say which layers have a window
      number = *value->asBool(i);
    if (!number || *number > uint64_t(INT32_MAX)) {
      wrongType(key, *value, "an array of counts");
      return std::vector<uint64_t>(layers, 0);
    }
    values.push_back(*number);
  }
  return values;
}
