//===- TestVocab.cpp - vocabularies for tests -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestVocab.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <unordered_map>

using namespace llmc;
using namespace llmc::test;

int32_t TestVocab::add(std::string text, fb::TokenType type, float score) {
  types.resize(tokens.size(), static_cast<uint8_t>(fb::TokenType::Normal));
  scores.resize(tokens.size());
  tokens.push_back(std::move(text));
  types.push_back(static_cast<uint8_t>(type));
  scores.push_back(score);
  return static_cast<int32_t>(tokens.size() - 1);
}

void TestVocab::addBytes() {
  for (int value = 0; value < 256; ++value) {
    if (kind == fb::TokenizerKind::Bpe) {
      char byte = static_cast<char>(value);
      std::string stored;
      rt::Vocabulary::appendByteLevel({&byte, 1}, stored);
      add(stored);
    } else {
      char stored[8];
      std::snprintf(stored, sizeof(stored), "<0x%02X>", value);
      add(stored, fb::TokenType::Byte);
    }
  }
}

int32_t TestVocab::id(const std::string &text) const {
  auto found = std::find(tokens.begin(), tokens.end(), text);
  return found == tokens.end() ? -1 : static_cast<int32_t>(found - tokens.begin());
}

int32_t TestVocab::addMerge(const std::string &left, const std::string &right) {
  merges.push_back({id(left), id(right)});
  return add(left + right);
}

std::pair<std::string, std::vector<uint32_t>> TestVocab::textColumns() const {
  std::string text;
  std::vector<uint32_t> offsets{0};
  for (const std::string &token : tokens) {
    text += token;
    offsets.push_back(static_cast<uint32_t>(text.size()));
  }
  return {text, offsets};
}

std::vector<uint64_t> TestVocab::mergeColumn() const {
  std::vector<uint64_t> column;
  for (auto [left, right] : merges)
    column.push_back(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right));
  return column;
}

void TestVocab::makeIndexes() {
  const auto [text, offsets] = textColumns();
  textIndex = indexTexts(text.data(), offsets);
  mergeIndex = indexMerges(mergeColumn());
}

Table llmc::test::makeTable(const TestVocab &vocab) {
  const auto [text, offsets] = vocab.textColumns();
  const std::vector<uint64_t> merges = vocab.mergeColumn();
  flatbuffers::FlatBufferBuilder builder;
  auto pre = builder.CreateString(vocab.pre);
  auto textVector =
      builder.CreateVector(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  auto offsetVector = builder.CreateVector(offsets);
  auto typeVector = builder.CreateVector(vocab.types);
  auto scoreVector = builder.CreateVector(vocab.scores);
  auto mergeVector = builder.CreateVector(merges);
  auto endVector = builder.CreateVector(vocab.endTokens);
  auto textIndex = builder.CreateVector(vocab.textIndex);
  auto mergeIndex = builder.CreateVector(vocab.mergeIndex);
  fb::TokenizerBuilder table(builder);
  table.add_kind(vocab.kind);
  table.add_pre(pre);
  table.add_text(textVector);
  table.add_offsets(offsetVector);
  table.add_types(typeVector);
  table.add_scores(scoreVector);
  table.add_merges(mergeVector);
  table.add_end_tokens(endVector);
  table.add_text_index(textIndex);
  table.add_merge_index(mergeIndex);
  table.add_bos(vocab.bos);
  table.add_eos(vocab.eos);
  table.add_unk(vocab.unk);
  table.add_add_bos(vocab.addBos);
  table.add_add_eos(vocab.addEos);
  table.add_add_space_prefix(vocab.addSpacePrefix);
  table.add_ignore_merges(vocab.ignoreMerges);
  builder.Finish(table.Finish());
  return {{builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()}};
}

[[noreturn]] static void die(const rt::Status &status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::abort();
}

OwnedTokenizer::OwnedTokenizer(const TestVocab &vocab) : table(makeTable(vocab)) {
  auto made = rt::Tokenizer::create(*table);
  if (!made.ok())
    die(made.status());
  tokenizer = made.take();
}

std::vector<int32_t> OwnedTokenizer::encode(std::string_view text,
                                            rt::EncodeOptions options) const {
  std::vector<int32_t> ids;
  if (rt::Status status = tokenizer->encode(text, options, ids); !status.ok())
    die(status);
  return ids;
}

std::string OwnedTokenizer::decode(const std::vector<int32_t> &ids, bool special) const {
  std::string text;
  if (rt::Status status = tokenizer->decode(ids, special, text); !status.ok())
    die(status);
  return text;
}

//===----------------------------------------------------------------------===//
// GGUF metadata. The files are trusted; at() stops at what is not as expected.
//===----------------------------------------------------------------------===//

namespace {
class GgufReader {
public:
  explicit GgufReader(std::ifstream &file) : file(file) {}
  template <typename T> T number() {
    T value{};
    file.read(reinterpret_cast<char *>(&value), sizeof(T));
    return value;
  }
  std::string string() {
    std::string text(number<uint64_t>(), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  }
  /// A number, of any of GGUF's scalar types but 64-bit ones.
  double scalar(uint32_t type) {
    switch (type) {
    case 0:
    case 7:
      return number<uint8_t>();
    case 1:
      return number<int8_t>();
    case 2:
      return number<uint16_t>();
    case 3:
      return number<int16_t>();
    case 4:
      return number<uint32_t>();
    case 5:
      return number<int32_t>();
    case 6:
      return number<float>();
    default:
      return static_cast<double>(number<uint64_t>());
    }
  }
  /// One entry of the metadata, into one of the maps.
  void entry() {
    std::string key = string();
    uint32_t type = number<uint32_t>();
    if (type == kString) {
      strings[key] = {string()};
    } else if (type == kArray) {
      uint32_t itemType = number<uint32_t>();
      for (uint64_t n = number<uint64_t>(); n; --n)
        itemType == kString ? strings[key].push_back(string())
                            : numbers[key].push_back(scalar(itemType));
    } else {
      numbers[key] = {scalar(type)};
    }
  }
  double number(const std::string &key, double otherwise) const {
    auto found = numbers.find("tokenizer.ggml." + key);
    return found == numbers.end() ? otherwise : found->second.at(0);
  }

  static constexpr uint32_t kString = 8, kArray = 9;
  std::ifstream &file;
  std::map<std::string, std::vector<std::string>> strings;
  std::map<std::string, std::vector<double>> numbers;
};
} // namespace

std::optional<TestVocab> llmc::test::readGgufVocab(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  GgufReader reader(file);
  reader.number<uint64_t>(); // magic, version
  reader.number<uint64_t>(); // tensors
  for (uint64_t n = reader.number<uint64_t>(); n; --n)
    reader.entry();

  TestVocab vocab;
  bool spm = reader.strings.at("tokenizer.ggml.model")[0] == "llama";
  vocab.kind = spm ? fb::TokenizerKind::Spm : fb::TokenizerKind::Bpe;
  vocab.tokens = reader.strings.at("tokenizer.ggml.tokens");
  for (double type : reader.numbers["tokenizer.ggml.token_type"])
    vocab.types.push_back(static_cast<uint8_t>(type));
  for (double score : reader.numbers["tokenizer.ggml.scores"])
    vocab.scores.push_back(static_cast<float>(score));
  std::unordered_map<std::string, int32_t> ids;
  for (const std::string &token : vocab.tokens)
    ids.emplace(token, static_cast<int32_t>(ids.size()));
  for (const std::string &merge : reader.strings["tokenizer.ggml.merges"]) {
    size_t space = merge.find(' ', 1);
    vocab.merges.push_back({ids.at(merge.substr(0, space)), ids.at(merge.substr(space + 1))});
  }
  auto pre = reader.strings.find("tokenizer.ggml.pre");
  vocab.pre = pre == reader.strings.end() ? "default" : pre->second[0];
  const rt::PreTokenizer *defaults = spm ? nullptr : rt::findPreTokenizer(vocab.pre);
  vocab.bos = static_cast<int32_t>(reader.number("bos_token_id", spm ? 1 : -1));
  vocab.eos = static_cast<int32_t>(reader.number("eos_token_id", spm ? 2 : -1));
  vocab.unk = static_cast<int32_t>(reader.number("unknown_token_id", spm ? 0 : -1));
  vocab.addBos = reader.number("add_bos_token", spm || (defaults && defaults->addBos)) != 0;
  vocab.addEos = reader.number("add_eos_token", 0) != 0;
  vocab.addSpacePrefix = reader.number("add_space_prefix", spm) != 0;
  vocab.ignoreMerges = defaults && defaults->ignoreMerges;
  return vocab;
}

std::string llmc::test::sharedFolder() {
  const char *folder = std::getenv("LLMC_SHARED");
  return folder ? folder : LLMC_SOURCE_DIR "/../shared";
}
