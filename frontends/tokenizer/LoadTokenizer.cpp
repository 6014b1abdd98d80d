//===- LoadTokenizer.cpp - the tokenizer beside a model -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/tokenizer/LoadTokenizer.h"
#include "frontends/common/ImportError.h"
#include "frontends/tokenizer/JsonFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

constexpr const char *kTokenizerJson = "tokenizer.json";

/// Texts of tokens that end a turn, also where no file says so.
constexpr const char *kTurnEnds[] = {
    "<|eot_id|>", "<|im_end|>",    "<|end|>",       "<|return|>",      "<|call|>",
    "<|eom_id|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<end_of_utterance>",
};

class Folder {
public:
  Folder(std::string path, LoadedTokenizer &loaded) : path(std::move(path)), loaded(loaded) {
    const std::vector<std::string> &tokens = loaded.tokenizer.tokens;
    for (size_t id = 0; id < tokens.size(); ++id)
      ids.try_emplace(tokens[id], int32_t(id));
  }

  Error read() {
    TokenizerData &data = loaded.tokenizer;
    if (Error error = readConfig("config.json", [&](JsonCursor root) { readIds(root); }))
      return error;
    if (Error error =
            readConfig("genai_config.json", [&](JsonCursor root) { readIds(root["model"]); }))
      return error;
    if (Error error = readConfig("generation_config.json", [&](JsonCursor root) { readIds(root); }))
      return error;
    auto readTexts = [&](JsonCursor root) { readTokenTexts(root); };
    if (Error error = readConfig("special_tokens_map.json", readTexts))
      return error;
    if (Error error = readConfig("tokenizer_config.json", [&](JsonCursor root) {
          readTokenTexts(root);
          readTemplates(root["chat_template"]);
          readAddSpecial(root);
        }))
      return error;
    if (Error error = readTemplateFile())
      return error;
    for (const char *text : kTurnEnds)
      if (int32_t id = idOf(text); id >= 0 && data.types[id] == kControl)
        ends.push_back(id);
    ends.push_back(data.eos);
    llvm::erase_if(ends, [](int32_t id) { return id < 0; });
    llvm::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    data.endTokens = ends;
    return Error::success();
  }

private:
  static constexpr uint8_t kControl = 3;

  std::string pathOf(StringRef name) const {
    llvm::SmallString<256> joined(path);
    llvm::sys::path::append(joined, name);
    return std::string(joined);
  }

  int32_t idOf(StringRef text) const {
    auto found = ids.find(text);
    return found == ids.end() ? -1 : found->second;
  }

  /// Reads a file of the folder, where it is there.
  Error readConfig(StringRef name, llvm::function_ref<void(JsonCursor)> read) {
    std::string file = pathOf(name);
    if (!llvm::sys::fs::exists(file))
      return Error::success();
    Expected<std::unique_ptr<JsonFile>> json = JsonFile::read(file);
    if (!json)
      return json.takeError();
    read((*json)->root());
    noteFile(name);
    return (*json)->takeError();
  }

  void noteFile(StringRef name) {
    std::string &files = loaded.properties.front().second;
    files += ", " + name.str();
  }

  /// bos_token_id and the like. Ids beyond the tokenizer's vocabulary are the model's business:
  /// configurations name tokens that no tokenizer has.
  void readIds(JsonCursor root) {
    TokenizerData &data = loaded.tokenizer;
    auto take = [&](JsonCursor cursor, llvm::function_ref<void(int32_t)> use) {
      auto one = [&](JsonCursor id) {
        if (!id.isInteger())
          return;
        int64_t value = id.integer(-1, INT32_MIN, INT32_MAX);
        if (value >= 0 && value < int64_t(data.tokens.size()))
          use(int32_t(value));
      };
      cursor.isArray() ? cursor.forEach(one) : one(cursor);
    };
    if (root.isObject()) {
      take(root["bos_token_id"], [&](int32_t id) { data.bos = id; });
      take(root["pad_token_id"], [&](int32_t id) { data.pad = id; });
      bool first = true;
      take(root["eos_token_id"], [&](int32_t id) {
        data.eos = first ? id : data.eos;
        first = false;
        ends.push_back(id);
      });
    }
  }

  /// bos_token and the like: a text, or an object with its content.
  void readTokenTexts(JsonCursor root) {
    TokenizerData &data = loaded.tokenizer;
    auto take = [&](StringRef key, int32_t &id) {
      JsonCursor token = root[key];
      JsonCursor content = token.isObject() ? token["content"] : token;
      if (!content.isString())
        return;
      if (int32_t found = idOf(content.text()); found >= 0)
        id = found;
    };
    take("bos_token", data.bos);
    take("eos_token", data.eos);
    take("pad_token", data.pad);
  }

  /// A template, or a list of named ones.
  void readTemplates(JsonCursor templates) {
    if (templates.isString())
      loaded.chatTemplate = templates.text();
    else
      templates.forEach([&](JsonCursor entry) {
        if (entry["name"].text() == "default" || loaded.chatTemplate.empty())
          loaded.chatTemplate = entry["template"].text();
      });
  }

  Error readTemplateFile() {
    std::string file = pathOf("chat_template.jinja");
    if (!llvm::sys::fs::exists(file))
      return Error::success();
    auto bytes = llvm::MemoryBuffer::getFile(file);
    if (!bytes)
      return unreadable(file, "cannot be read: " + bytes.getError().message());
    loaded.chatTemplate = (*bytes)->getBuffer().str();
    noteFile("chat_template.jinja");
    return Error::success();
  }

  /// For these classes add_bos_token and add_eos_token stand above the post-processor.
  void readAddSpecial(JsonCursor root) {
    TokenizerData &data = loaded.tokenizer;
    std::string name = root["tokenizer_class"].text();
    StringRef family(name);
    family.consume_back("Fast");
    if (!llvm::is_contained({"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer"}, family))
      return;
    std::vector<int32_t> &prefix = data.pipeline->prefix, &suffix = data.pipeline->suffix;
    if (JsonCursor addBos = root["add_bos_token"]) {
      prefix.clear();
      if (addBos.flag() && data.bos >= 0)
        prefix.push_back(data.bos);
    }
    if (JsonCursor addEos = root["add_eos_token"]) {
      suffix.clear();
      if (addEos.flag() && data.eos >= 0)
        suffix.push_back(data.eos);
    }
  }

  std::string path;
  LoadedTokenizer &loaded;
  llvm::StringMap<int32_t> ids;
  std::vector<int32_t> ends;
};

std::string tokenizerPath(StringRef folder) {
  llvm::SmallString<256> path(folder);
  if (llvm::sys::path::filename(folder) != kTokenizerJson)
    llvm::sys::path::append(path, kTokenizerJson);
  return std::string(path);
}

} // namespace

bool llmc::hasTokenizer(StringRef folder) { return llvm::sys::fs::exists(tokenizerPath(folder)); }

Expected<LoadedTokenizer> llmc::loadTokenizer(StringRef folder) {
  std::string path = tokenizerPath(folder);
  if (!llvm::sys::fs::exists(path))
    return unreadable(folder, "there is no tokenizer.json; name the folder that has it with "
                              "--tokenizer DIR");
  auto bytes =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return unreadable(path, "cannot be read: " + bytes.getError().message());
  Expected<TokenizerData> tokenizer = parseTokenizerJson(path, (*bytes)->getBuffer());
  if (!tokenizer)
    return tokenizer.takeError();
  LoadedTokenizer loaded;
  loaded.tokenizer = std::move(*tokenizer);
  loaded.properties.emplace_back("tokenizer.files", kTokenizerJson);
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  if (Error error = Folder(parent.empty() ? "." : parent.str(), loaded).read())
    return std::move(error);
  return loaded;
}
