//===- JsonFile.h - JSON files that are not believed ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cursor stands at a value, or at nothing where the file has none (null counts
// as none). Asking a value for another type than it has is an error of the file;
// the first one is kept, with the value's place ("model.vocab"), and everything
// after it may give defaults: the caller looks once, at the end.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_TOKENIZER_JSONFILE_H
#define LLMC_FRONTENDS_TOKENIZER_JSONFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <nlohmann/json.hpp>

namespace llmc {

class JsonFile;

class JsonCursor {
public:
  JsonCursor() = default;
  JsonCursor(JsonFile *file, const nlohmann::json *value, std::string place)
      : file(file), value(value), placeText(std::move(place)) {}

  explicit operator bool() const { return value != nullptr; }
  bool isString() const { return value && value->is_string(); }
  bool isArray() const { return value && value->is_array(); }
  bool isObject() const { return value && value->is_object(); }
  bool isInteger() const { return value && value->is_number_integer(); }
  const std::string &place() const { return placeText; }

  /// The entry of an object, or nothing.
  JsonCursor operator[](llvm::StringRef key) const;

  std::string text(llvm::StringRef absent = "") const;
  bool flag(bool absent = false) const;
  /// An integer in [low, high].
  int64_t integer(int64_t absent, int64_t low, int64_t high) const;
  double number(double absent) const;
  /// The "type" of an object.
  std::string type() const { return (*this)["type"].text(); }
  /// Entries of an array or an object; none where there is nothing.
  size_t size() const { return value ? value->size() : 0; }
  void forEach(llvm::function_ref<void(JsonCursor)> visit) const;
  void forEachEntry(llvm::function_ref<void(const std::string &, JsonCursor)> visit) const;

  /// Refuses the file, as damaged or as beyond this compiler, because of this value.
  void failCorrupt(const llvm::Twine &message) const;
  void failUnsupported(const llvm::Twine &message) const;

private:
  std::string placeOf(llvm::StringRef key) const;
  void failType(const char *wanted) const;

  JsonFile *file = nullptr;
  const nlohmann::json *value = nullptr;
  std::string placeText;
};

class JsonFile {
public:
  static llvm::Expected<std::unique_ptr<JsonFile>> read(llvm::StringRef path);
  static llvm::Expected<std::unique_ptr<JsonFile>> parse(llvm::StringRef path,
                                                         llvm::StringRef text);

  JsonCursor root() { return {this, &value, ""}; }
  const std::string &path() const { return name; }
  bool failed() const { return !errorText.empty(); }
  /// The first error, or success.
  llvm::Error takeError();

private:
  friend class JsonCursor;
  void fail(bool corrupt, const std::string &place, const llvm::Twine &message);

  std::string name;
  nlohmann::json value;
  std::string errorText;
  bool errorIsCorrupt = false;
};

} // namespace llmc

#endif // LLMC_FRONTENDS_TOKENIZER_JSONFILE_H
