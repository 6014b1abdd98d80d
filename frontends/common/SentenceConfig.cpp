//===- SentenceConfig.cpp - what stands beside a sentence encoder ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/SentenceConfig.h"
#include "frontends/common/ImportError.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static std::string join(StringRef folder, StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return std::string(path);
}

static Expected<llvm::json::Value> readJson(const std::string &path) {
  constexpr uint64_t kMostBytes = 1 << 20;
  auto bytes = llvm::MemoryBuffer::getFile(path);
  if (!bytes)
    return unreadable(path, "cannot be read: " + bytes.getError().message());
  if ((*bytes)->getBufferSize() > kMostBytes)
    return corrupt(path, "is too large for what it should be");
  Expected<llvm::json::Value> value = llvm::json::parse((*bytes)->getBuffer());
  if (!value)
    return corrupt(path, "is no JSON: " + quoted(llvm::toString(value.takeError())));
  return value;
}

/// One of our poolings of the flags or the name in a module's configuration.
static Expected<std::string> readPooling(const std::string &path) {
  Expected<llvm::json::Value> value = readJson(path);
  if (!value)
    return value.takeError();
  const llvm::json::Object *config = value->getAsObject();
  if (!config)
    return corrupt(path, "is no JSON object");
  constexpr StringRef prefix = "pooling_mode_";
  std::vector<std::string> modes;
  if (std::optional<StringRef> mode = config->getString("pooling_mode"))
    modes.push_back(mode->str());
  else
    for (const auto &[key, flag] : *config)
      if (StringRef name = key; name.consume_front(prefix) && flag.getAsBoolean().value_or(false))
        modes.push_back(name.str());
  llvm::sort(modes); // objects have no order
  std::string asked;
  for (const std::string &mode : modes)
    asked += (asked.empty() ? "" : " and ") + quoted(mode);
  if (modes.size() == 1)
    for (auto [theirs, ours] :
         {std::pair("mean_tokens", "mean"), std::pair("mean", "mean"),
          std::pair("cls_token", "cls"), std::pair("cls", "cls"), std::pair("lasttoken", "last")})
      if (modes[0] == theirs)
        return ours;
  return unsupported(path, "asks for the pooling " + (asked.empty() ? "of no kind" : asked) +
                               "; mean, cls and last are supported: choose one with --pooling");
}

Expected<std::optional<SentenceConfig>> llmc::readSentenceConfig(StringRef folder) {
  std::string path = join(folder, "modules.json");
  if (!llvm::sys::fs::exists(path))
    return std::nullopt;
  Expected<llvm::json::Value> value = readJson(path);
  if (!value)
    return value.takeError();
  const llvm::json::Array *modules = value->getAsArray();
  if (!modules)
    return corrupt(path, "is no list of modules");
  SentenceConfig result;
  result.pooling = "none";
  for (const llvm::json::Value &element : *modules) {
    const llvm::json::Object *module = element.getAsObject();
    StringRef type = module ? module->getString("type").value_or("") : "";
    type = type.rsplit('.').second.empty() ? type : type.rsplit('.').second;
    StringRef place = module ? module->getString("path").value_or("") : "";
    if (type == "Pooling") {
      // A module has its configuration in a folder below.
      if (llvm::sys::path::is_absolute(place) || place.contains(".."))
        return corrupt(path, "has a module outside its folder, " + quoted(place));
      Expected<std::string> pooling = readPooling(join(join(folder, place), "config.json"));
      if (!pooling)
        return pooling.takeError();
      result.pooling = *pooling;
    } else if (type == "Normalize") {
      result.normalize = true;
    } else if (type != "Transformer") {
      return unsupported(path, "has a module of type " + quoted(type) +
                                   "; Transformer, Pooling and Normalize are supported: choose "
                                   "what to do without it with --pooling");
    }
  }
  std::string limits = join(folder, "sentence_bert_config.json");
  if (llvm::sys::fs::exists(limits)) {
    Expected<llvm::json::Value> config = readJson(limits);
    if (!config)
      return config.takeError();
    constexpr int64_t kLongest = int64_t(1) << 30;
    if (const llvm::json::Object *object = config->getAsObject())
      if (std::optional<int64_t> length = object->getInteger("max_seq_length");
          length && *length > 0 && *length <= kLongest)
        result.maxTokens = *length;
  }
  return result;
}
