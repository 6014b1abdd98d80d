//===- Tokenizer.cpp - tokenizer data of a GGUF file ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/Tokenizer.h"
#include "frontends/common/ImportError.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llmc;
using namespace llmc::gguf;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using Kind = TokenizerData::Kind;

namespace {

/// Values of tokenizer.ggml.token_type.
enum TokenType : uint8_t { Normal = 1, Unknown = 2, Control = 3 };

/// tokenizer.ggml.model and what its tokenizers do where the file does not say.
struct Model {
  StringRef name;
  Kind kind;
  int32_t bos, eos, unk;
  bool addBos, addSpacePrefix, escapeWhitespaces;
};
constexpr Model kModels[] = {
    {"gpt2", Kind::Bpe, 11, 11, -1, false, false, false},
    {"llama", Kind::Spm, 1, 2, 0, true, true, true},
};

/// What a token's text says about it. Tokens of a role are control text whatever their type, and
/// all but those of `Text` end a turn.
enum class Role { EndOfTurn, FimPad, FimRepository, FimSeparator, FimText };
struct KnownText {
  StringRef text;
  Role role;
};
constexpr KnownText kKnownTexts[] = {
    {"<|eot_id|>", Role::EndOfTurn},
    {"<|im_end|>", Role::EndOfTurn},
    {"<|end|>", Role::EndOfTurn},
    {"<|return|>", Role::EndOfTurn},
    {"<|call|>", Role::EndOfTurn},
    {"<|flush|>", Role::EndOfTurn},
    {"<|calls|>", Role::EndOfTurn},
    {"<end_of_turn>", Role::EndOfTurn},
    {"<|endoftext|>", Role::EndOfTurn},
    {"</s>", Role::EndOfTurn},
    {"<|eom_id|>", Role::EndOfTurn},
    {"<EOT>", Role::EndOfTurn},
    {"_<EOT>", Role::EndOfTurn},
    {"[EOT]", Role::EndOfTurn},
    {"[EOS]", Role::EndOfTurn},
    {"<|end_of_text|>", Role::EndOfTurn},
    {"<end_of_utterance>", Role::EndOfTurn},
    {"<eos>", Role::EndOfTurn},
    {"<｜end▁of▁sentence｜>", Role::EndOfTurn},
    {"<|fim_pad|>", Role::FimPad},
    {"<fim-pad>", Role::FimPad},
    {"<fim_pad>", Role::FimPad},
    {"<PAD>", Role::FimPad},
    {"[PAD]", Role::FimPad},
    {"<|fim_repo|>", Role::FimRepository},
    {"<|repo_name|>", Role::FimRepository},
    {"<fim-repo>", Role::FimRepository},
    {"<REPO>", Role::FimRepository},
    {"<reponame>", Role::FimRepository},
    {"<|file_sep|>", Role::FimSeparator},
    {"<|fim_prefix|>", Role::FimText},
    {"<fim-prefix>", Role::FimText},
    {"<fim_prefix>", Role::FimText},
    {"<PRE>", Role::FimText},
    {"▁<PRE>", Role::FimText},
    {"<|fim_suffix|>", Role::FimText},
    {"<fim-suffix>", Role::FimText},
    {"<fim_suffix>", Role::FimText},
    {"<SUF>", Role::FimText},
    {"▁<SUF>", Role::FimText},
    {"<|fim_middle|>", Role::FimText},
    {"<fim-middle>", Role::FimText},
    {"<fim_middle>", Role::FimText},
    {"<MID>", Role::FimText},
    {"▁<MID>", Role::FimText},
};

class Reader {
public:
  Reader(const GgufFile &file, const GgufImportOptions &options)
      : file(file), options(options), keys(file, "") {}

  Expected<TokenizerData> read();

private:
  void readVocabulary();
  void readMerges();
  void readPreTokenizer();
  void readSpecialTokens(const Model &model);
  /// An array of one element per token, or null where the key is absent.
  const MetaValue *perToken(StringRef key);

  const GgufFile &file;
  const GgufImportOptions &options;
  MetadataReader keys;
  TokenizerData data;
  llvm::DenseMap<StringRef, int32_t> ids; ///< text -> lowest id; views into the file
};

} // namespace

const MetaValue *Reader::perToken(StringRef key) {
  const MetaValue *value = keys.find(key);
  if (!value)
    return nullptr;
  if (value->isArray && value->type != ValueType::String && value->count >= data.tokens.size())
    return value;
  keys.fail(corrupt(file.path(), "metadata " + quoted(key) + " is of type " + value->typeName() +
                                     "; an array of " + Twine(data.tokens.size()) +
                                     " numbers, one per token, is expected"));
  return nullptr;
}

void Reader::readVocabulary() {
  const MetaValue *tokens = keys.find("tokenizer.ggml.tokens");
  if (!tokens || !tokens->isArray || tokens->type != ValueType::String || tokens->count == 0 ||
      tokens->count > uint64_t(INT32_MAX))
    return keys.fail(corrupt(file.path(), "metadata 'tokenizer.ggml.tokens' is missing or no "
                                          "array of strings"));
  data.tokens.reserve(tokens->count);
  tokens->forEachString([&](uint64_t i, StringRef text) {
    ids.try_emplace(text, int32_t(i));
    data.tokens.push_back(text.empty() ? "[EMPTY_" + std::to_string(i) + "]" : text.str());
  });
  data.types.assign(data.tokens.size(), Normal);
  if (const MetaValue *types = perToken("tokenizer.ggml.token_type"))
    for (size_t i = 0; i < data.types.size(); ++i)
      data.types[i] = uint8_t(std::min<uint64_t>(types->asUnsigned(i).value_or(0), UINT8_MAX));
  if (data.kind != Kind::Spm)
    return;
  data.scores.assign(data.tokens.size(), 0.0f);
  if (const MetaValue *scores = perToken("tokenizer.ggml.scores"))
    for (size_t i = 0; i < data.scores.size(); ++i)
      data.scores[i] = float(scores->asNumber(i).value_or(0));
}

/// A merge is "left right"; the space that parts them is the first after the first byte. Merges of
/// texts that are no tokens cannot lead to a token and are left out.
void Reader::readMerges() {
  const MetaValue *merges = keys.find("tokenizer.ggml.merges");
  if (!merges || !merges->isArray || (merges->type != ValueType::String && merges->count != 0))
    return keys.fail(corrupt(file.path(), "metadata 'tokenizer.ggml.merges' is missing or no "
                                          "array of strings, which BPE needs"));
  merges->forEachString([&](uint64_t, StringRef merge) {
    size_t space = merge.find(' ', 1);
    if (space == StringRef::npos)
      return;
    auto left = ids.find(merge.take_front(space)), right = ids.find(merge.drop_front(space + 1));
    if (left != ids.end() && right != ids.end())
      data.merges.push_back(uint64_t(left->second) << 32 | uint32_t(right->second));
  });
}

void Reader::readPreTokenizer() {
  std::string inFile = keys.text("tokenizer.ggml.pre", "default");
  data.pre = options.preOverride.value_or(inFile);
  if (!options.findPre)
    return;
  std::optional<PreTokenizerDefaults> defaults = options.findPre(data.pre);
  if (!defaults)
    return keys.fail(unsupported(
        file.path(),
        "pre-tokenizer " + quoted(data.pre) +
            (options.preOverride ? " (--pre)" : " (tokenizer.ggml.pre)") +
            " is unknown; choose a known one with --pre NAME: " + options.knownPreList));
  data.ignoreMerges = defaults->ignoreMerges;
  data.addBos = defaults->addBos;
}

void Reader::readSpecialTokens(const Model &model) {
  size_t vocabulary = data.tokens.size();
  auto id = [&](StringRef name, int32_t fallback) {
    return keys.tokenId(("tokenizer.ggml." + name).str(), fallback, vocabulary);
  };
  data.bos = id("bos_token_id", model.bos);
  data.eos = id("eos_token_id", model.eos);
  data.unk = id("unknown_token_id", model.unk);
  data.pad = id("padding_token_id", -1);

  // A role of fill-in-the-middle belongs to one token: the file's, or the first by its text.
  int32_t roles[] = {-1, id("fim_pad_token_id", -1), id("fim_rep_token_id", -1),
                     id("fim_sep_token_id", -1)};
  std::vector<int32_t> ends = {data.eos, id("eot_token_id", -1), id("eom_token_id", -1)};
  for (const KnownText &known : kKnownTexts) {
    auto it = ids.find(known.text);
    if (it == ids.end())
      continue;
    if (known.role == Role::EndOfTurn)
      ends.push_back(it->second);
    else if (known.role != Role::FimText) {
      int32_t &holder = roles[int(known.role)];
      if (holder >= 0 && holder != it->second)
        continue;
      holder = it->second;
    }
    data.types[it->second] = Control;
  }
  ends.insert(ends.end(), std::begin(roles), std::end(roles));
  llvm::erase_if(ends, [](int32_t token) { return token < 0; });
  llvm::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  data.endTokens = std::move(ends);

  data.addBos = keys.flag("tokenizer.ggml.add_bos_token", data.addBos);
  data.addEos = keys.flag("tokenizer.ggml.add_eos_token", false);
  data.addSpacePrefix = keys.flag("tokenizer.ggml.add_space_prefix", model.addSpacePrefix);
  data.removeExtraWhitespaces = keys.flag("tokenizer.ggml.remove_extra_whitespaces", false);
}

Expected<TokenizerData> Reader::read() {
  std::string name = keys.text("tokenizer.ggml.model", "none");
  if (Error error = keys.takeError())
    return std::move(error);
  if (name == "none" || name == "no_vocab" || name == "test")
    return std::move(data);
  const Model *model = llvm::find_if(kModels, [&](const Model &m) { return m.name == name; });
  if (model == std::end(kModels))
    return unsupported(file.path(), "tokenizer.ggml.model is " + quoted(name) +
                                        ", which is unsupported; gpt2 and llama are read");
  data.kind = model->kind;
  data.addBos = model->addBos;
  data.escapeWhitespaces = model->escapeWhitespaces;
  readVocabulary();
  if (!keys.failed() && data.kind == Kind::Bpe) {
    readMerges();
    readPreTokenizer();
  }
  if (!keys.failed())
    readSpecialTokens(*model);
  if (Error error = keys.takeError())
    return std::move(error);
  return std::move(data);
}

Expected<TokenizerData> gguf::readTokenizer(const GgufFile &file,
                                            const GgufImportOptions &options) {
  return Reader(file, options).read();
}
