//===- TokenizerJson.cpp - vocabulary and rules of a tokenizer.json -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/ImportError.h"
#include "frontends/tokenizer/LoadTokenizer.h"
#include "frontends/tokenizer/LowerSteps.h"
#include "llvm/ADT/StringMap.h"

using namespace llmc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using Kind = TokenizerData::Kind;

namespace {

/// Values of tokenizer.ggml.token_type, which types are given in.
enum TokenType : uint8_t { Normal = 1, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

class Reader {
public:
  explicit Reader(JsonFile &file) : file(file), root(file.root()) {}
  Expected<TokenizerData> read();

private:
  void readModel();
  void readVocabulary();
  void readPieces();
  void readMerges();
  void readAddedTokens();
  void readUnknown();
  void checkOptions();
  void markByteTokens();
  void setToken(JsonCursor place, int64_t id, const std::string &text);
  int32_t idOf(StringRef text) const {
    auto found = ids.find(text);
    return found == ids.end() ? -1 : found->second;
  }
  /// Room for ids that no token has, in proportion to what the file holds.
  int64_t idLimit() const {
    return 4 * int64_t(model["vocab"].size() + root["added_tokens"].size()) + (1 << 16);
  }

  JsonFile &file;
  JsonCursor root, model;
  TokenizerData data;
  TextPipelineData pipeline;
  llvm::StringMap<int32_t> ids; ///< text -> the id that the vocabulary gives it
};

} // namespace

void Reader::setToken(JsonCursor place, int64_t id, const std::string &text) {
  if (id >= int64_t(data.tokens.size())) {
    data.tokens.resize(size_t(id) + 1);
    data.types.resize(size_t(id) + 1, Unused);
  }
  if (data.types[id] != Unused && data.tokens[id] != text)
    return place.failCorrupt("the tokens " + llmc::quoted(data.tokens[id]) + " and " +
                             llmc::quoted(text) + " have one id, " + llvm::Twine(id));
  data.tokens[id] = text;
  data.types[id] = Normal;
  ids.try_emplace(text, int32_t(id));
}

void Reader::readVocabulary() {
  JsonCursor vocabulary = model["vocab"];
  int64_t limit = idLimit();
  vocabulary.forEachEntry(
      [&](const std::string &text, JsonCursor id) { setToken(id, id.integer(0, 0, limit), text); });
}

/// Unigram: [piece, log probability], in the order of their ids.
void Reader::readPieces() {
  model["vocab"].forEach([&](JsonCursor pair) {
    std::vector<JsonCursor> parts;
    pair.forEach([&](JsonCursor part) { parts.push_back(part); });
    if (parts.size() != 2)
      return pair.failCorrupt("is no pair of a piece and its score");
    setToken(pair, int64_t(data.tokens.size()), parts[0].text());
    double score = parts[1].number(0);
    if (!(score > -1e30 && score < 1e30))
      return parts[1].failCorrupt("is no usable score");
    pipeline.logProbs.push_back(score);
  });
}

/// "left right", or ["left", "right"].
void Reader::readMerges() {
  model["merges"].forEach([&](JsonCursor merge) {
    std::string left, right;
    if (merge.isString()) {
      std::string text = merge.text();
      size_t space = text.find(' ', 1);
      if (space == std::string::npos)
        return merge.failCorrupt("is no pair of tokens");
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else {
      std::vector<JsonCursor> parts;
      merge.forEach([&](JsonCursor part) { parts.push_back(part); });
      if (parts.size() != 2)
        return merge.failCorrupt("is no pair of tokens");
      left = parts[0].text();
      right = parts[1].text();
    }
    int32_t leftId = idOf(left), rightId = idOf(right);
    if (leftId < 0 || rightId < 0)
      return merge.failCorrupt("is of " + llmc::quoted(leftId < 0 ? left : right) +
                               ", which the vocabulary does not have");
    StringRef tail = StringRef(right);
    tail.consume_front(pipeline.continuingPrefix);
    if (idOf(left + tail.str()) < 0)
      return merge.failCorrupt("makes " + llmc::quoted(left + tail.str()) +
                               ", which the vocabulary does not have");
    data.merges.push_back(uint64_t(leftId) << 32 | uint32_t(rightId));
  });
}

void Reader::readUnknown() {
  if (data.kind == Kind::Unigram) {
    data.unk = int32_t(model["unk_id"].integer(-1, 0, int64_t(data.tokens.size()) - 1));
    return;
  }
  JsonCursor unknown = model["unk_token"];
  if (!unknown)
    return;
  data.unk = idOf(unknown.text());
  // BPE asks for it when it is needed; here it need not be there.
  if (data.unk < 0 && data.kind == Kind::WordPiece)
    unknown.failCorrupt("is " + llmc::quoted(unknown.text()) +
                        ", which the vocabulary does not have");
}

void Reader::checkOptions() {
  if (model["dropout"].number(0) != 0)
    model["dropout"].failUnsupported(
        "tokens that depend on chance are unsupported; set it to null");
}

void Reader::readModel() {
  model = root["model"];
  if (!model)
    return root.failCorrupt("has no model");
  std::string type = model.type();
  // Files of the first versions do not say; what they hold tells.
  if (type.empty())
    type = model["merges"]                     ? "BPE"
           : model["vocab"].isArray()          ? "Unigram"
           : model["max_input_chars_per_word"] ? "WordPiece"
                                               : "";
  pipeline.continuingPrefix = model["continuing_subword_prefix"].text();
  pipeline.byteFallback = model["byte_fallback"].flag(false);
  if (type == "BPE") {
    data.kind = Kind::Bpe;
    pipeline.wordSuffix = model["end_of_word_suffix"].text();
    pipeline.fuseUnk = model["fuse_unk"].flag(false);
    data.ignoreMerges = model["ignore_merges"].flag(false);
    checkOptions();
    readVocabulary();
    readMerges();
  } else if (type == "WordPiece") {
    data.kind = Kind::WordPiece;
    pipeline.continuingPrefix = model["continuing_subword_prefix"].text("##");
    pipeline.maxWordChars = uint32_t(model["max_input_chars_per_word"].integer(100, 0, INT32_MAX));
    readVocabulary();
  } else if (type == "Unigram") {
    data.kind = Kind::Unigram;
    pipeline.fuseUnk = true;
    readPieces();
  } else {
    return model.failUnsupported("the model " + llmc::quoted(type) +
                                 " is unsupported; BPE, WordPiece and Unigram are read");
  }
  if (data.tokens.empty() && !file.failed())
    return model["vocab"].failCorrupt("is empty");
  readUnknown();
}

void Reader::readAddedTokens() {
  int64_t limit = idLimit();
  root["added_tokens"].forEach([&](JsonCursor token) {
    std::string text = token["content"].text();
    int64_t id = token["id"].integer(-1, 0, limit);
    if (file.failed())
      return;
    if (text.empty()) // matches nowhere
      return;
    // The vocabulary's own id for this text goes first.
    if (int32_t known = idOf(text); known >= 0)
      id = known;
    if (id < 0)
      return token.failCorrupt("has no id");
    setToken(token, id, text);
    if (file.failed())
      return;
    data.types[id] = token["special"].flag(false) ? Control : UserDefined;
    AddedTokenData added{int32_t(id), 0};
    added.flags |= token["lstrip"].flag(false) ? AddedTokenData::TakesLeft : 0;
    added.flags |= token["rstrip"].flag(false) ? AddedTokenData::TakesRight : 0;
    added.flags |= token["single_word"].flag(false) ? AddedTokenData::SingleWord : 0;
    added.flags |= token["normalized"].flag(true) ? AddedTokenData::Normalized : 0;
    pipeline.added.push_back(added);
  });
}

/// "<0x0A>" stands for a byte where the model or the decoder says so.
void Reader::markByteTokens() {
  bool decoded = llvm::any_of(pipeline.decoders, [](const DecodeStepData &step) {
    return step.op == DecodeStepData::Op::ByteFallback;
  });
  if (!pipeline.byteFallback && !decoded)
    return;
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    if (int32_t id = idOf({std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">"}); id >= 0)
      if (data.types[id] == Normal)
        data.types[id] = Byte;
}

Expected<TokenizerData> Reader::read() {
  readModel();
  readAddedTokens();
  lowerNormalizer(root["normalizer"], pipeline.normalizers);
  lowerPreTokenizer(root["pre_tokenizer"], pipeline.preTokenizers);
  lowerDecoder(root["decoder"], pipeline);
  lowerPostProcessor(root["post_processor"], pipeline);
  if (Error error = file.takeError())
    return std::move(error);

  auto inVocabulary = [&](const std::vector<int32_t> &tokens) {
    return llvm::all_of(tokens, [&](int32_t id) { return id < int64_t(data.tokens.size()); });
  };
  if (!inVocabulary(pipeline.prefix) || !inVocabulary(pipeline.suffix))
    return corrupt(file.path(), "post_processor: a token's id is outside the vocabulary of " +
                                    llvm::Twine(data.tokens.size()));
  auto isByteLevel = [](const TextStepData &step) {
    return step.op == TextStepData::Op::ByteLevel;
  };
  pipeline.byteLevel =
      data.kind == Kind::Bpe && (llvm::any_of(pipeline.preTokenizers, isByteLevel) ||
                                 llvm::any_of(pipeline.normalizers, isByteLevel));
  markByteTokens();
  if (data.kind == Kind::Unigram)
    pipeline.logProbs.resize(data.tokens.size());
  data.pipeline = std::move(pipeline);
  return std::move(data);
}

Expected<TokenizerData> llmc::parseTokenizerJson(StringRef path, StringRef text) {
  Expected<std::unique_ptr<JsonFile>> file = JsonFile::parse(path, text);
  if (!file)
    return file.takeError();
  return Reader(**file).read();
}
