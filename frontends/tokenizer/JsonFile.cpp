//===- JsonFile.cpp - JSON files that are not believed --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/tokenizer/JsonFile.h"
#include "frontends/common/ImportError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llmc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// JsonFile
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<JsonFile>> JsonFile::read(StringRef path) {
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  if (!bytes)
    return unreadable(path, "cannot be read: " + bytes.getError().message());
  return parse(path, (*bytes)->getBuffer());
}

Expected<std::unique_ptr<JsonFile>> JsonFile::parse(StringRef path, StringRef text) {
  auto file = std::make_unique<JsonFile>();
  file->name = path.str();
  file->value =
      nlohmann::json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (file->value.is_discarded())
    return corrupt(path, "is no valid JSON; fetch the file again");
  if (!file->value.is_object())
    return corrupt(path, "holds no JSON object; fetch the file again");
  return file;
}

void JsonFile::fail(bool isCorrupt, const std::string &place, const Twine &message) {
  if (failed())
    return;
  errorText = (place.empty() ? message : place + ": " + message).str();
  errorIsCorrupt = isCorrupt;
}

Error JsonFile::takeError() {
  if (!failed())
    return Error::success();
  std::string text;
  std::swap(text, errorText);
  return errorIsCorrupt ? corrupt(name, text) : unsupported(name, text);
}

//===----------------------------------------------------------------------===//
// JsonCursor
//===----------------------------------------------------------------------===//

/// Keys come from the file: other than plain ones are quoted and shortened.
std::string JsonCursor::placeOf(StringRef key) const {
  bool plain = key.size() <= 40 && llvm::all_of(key, [](char c) {
                 return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.';
               });
  std::string shown = plain ? key.str() : llmc::quoted(key);
  return placeText.empty() ? shown : placeText + "." + shown;
}

JsonCursor JsonCursor::operator[](StringRef key) const {
  if (!value)
    return {file, nullptr, placeOf(key)};
  if (!value->is_object()) {
    failType("an object");
    return {file, nullptr, placeOf(key)};
  }
  auto found = value->find(key.str());
  bool there = found != value->end() && !found->is_null();
  return {file, there ? &*found : nullptr, placeOf(key)};
}

std::string JsonCursor::text(StringRef absent) const {
  if (!value)
    return absent.str();
  if (value->is_string())
    return value->get_ref<const std::string &>();
  failType("a string");
  return absent.str();
}

bool JsonCursor::flag(bool absent) const {
  if (!value)
    return absent;
  if (value->is_boolean())
    return value->get<bool>();
  failType("true or false");
  return absent;
}

int64_t JsonCursor::integer(int64_t absent, int64_t low, int64_t high) const {
  if (!value)
    return absent;
  if (!value->is_number_integer()) {
    failType("an integer");
    return absent;
  }
  bool huge = value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX);
  int64_t number = huge ? INT64_MAX : value->get<int64_t>();
  if (!huge && number >= low && number <= high)
    return number;
  failCorrupt(Twine(number) + " is outside of " + Twine(low) + " to " + Twine(high));
  return absent;
}

double JsonCursor::number(double absent) const {
  if (!value)
    return absent;
  if (value->is_number())
    return value->get<double>();
  failType("a number");
  return absent;
}

void JsonCursor::forEach(llvm::function_ref<void(JsonCursor)> visit) const {
  if (!value)
    return;
  if (!value->is_array())
    return failType("an array");
  size_t index = 0;
  for (const nlohmann::json &item : *value) {
    if (file->failed())
      return;
    visit({file, &item, placeText + "[" + std::to_string(index++) + "]"});
  }
}

void JsonCursor::forEachEntry(
    llvm::function_ref<void(const std::string &, JsonCursor)> visit) const {
  if (!value)
    return;
  if (!value->is_object())
    return failType("an object");
  for (auto it = value->begin(); it != value->end() && !file->failed(); ++it)
    visit(it.key(), {file, &it.value(), placeOf(it.key())});
}

void JsonCursor::failCorrupt(const Twine &message) const {
  if (file)
    file->fail(/*isCorrupt=*/true, placeText, message);
}
void JsonCursor::failUnsupported(const Twine &message) const {
  if (file)
    file->fail(/*isCorrupt=*/false, placeText, message);
}
void JsonCursor::failType(const char *wanted) const {
  failCorrupt(Twine("is ") + value->type_name() + ", where " + wanted + " is expected");
}
