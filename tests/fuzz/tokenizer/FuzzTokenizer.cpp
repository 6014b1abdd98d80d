//===- FuzzTokenizer.cpp - any table, any text ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a small vocabulary and a text. Half of the vocabularies are sound
// and can write every byte: what they encode must come back. The others hold
// whatever the input says, and need only be refused or used without harm.
//
//===----------------------------------------------------------------------===//

#include "runtime/text/TextStream.h"
#include "runtime/text/Utf8.h"

#include <cstdio>
#include <cstdlib>
#include <fuzzer/FuzzedDataProvider.h>

using namespace llmc;
using namespace llmc::rt;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition);                   \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

namespace {
struct Columns {
  std::string text;
  std::vector<uint32_t> offsets{0};
  std::vector<uint8_t> types;
  std::vector<float> scores;
  std::vector<uint64_t> merges;
  std::vector<int32_t> ends;

  void add(std::string_view token, fb::TokenType type, float score) {
    text += token;
    offsets.push_back(static_cast<uint32_t>(text.size()));
    types.push_back(static_cast<uint8_t>(type));
    scores.push_back(score);
  }
};
} // namespace

static void addBytes(Columns &columns, bool bpe) {
  for (int value = 0; value < 256; ++value) {
    char byte = static_cast<char>(value);
    std::string stored;
    if (bpe) {
      Vocabulary::appendByteLevel({&byte, 1}, stored);
    } else {
      char name[8];
      snprintf(name, sizeof(name), "<0x%02X>", value);
      stored = name;
    }
    columns.add(stored, bpe ? fb::TokenType::Normal : fb::TokenType::Byte, 0);
  }
  if (!bpe)
    columns.add(kStoredSpace, fb::TokenType::Normal, -1);
}

static void addTokens(Columns &columns, FuzzedDataProvider &data, bool bpe) {
  for (int n = data.ConsumeIntegralInRange(0, 12); n; --n) {
    std::string raw = data.ConsumeRandomLengthString(8), stored;
    fb::TokenType type = data.ConsumeBool()   ? fb::TokenType::Normal
                         : data.ConsumeBool() ? fb::TokenType::UserDefined
                                              : fb::TokenType::Control;
    if (bpe && type == fb::TokenType::Normal)
      Vocabulary::appendByteLevel(raw, stored);
    else
      stored = raw;
    columns.add(stored, type, static_cast<float>(data.ConsumeIntegralInRange(-20, 20)));
  }
  uint32_t count = static_cast<uint32_t>(columns.types.size());
  for (int n = data.ConsumeIntegralInRange(0, 12); n; --n) {
    uint64_t left = data.ConsumeIntegralInRange<uint32_t>(0, count - 1);
    columns.merges.push_back(left << 32 | data.ConsumeIntegralInRange<uint32_t>(0, count - 1));
  }
}

static void spoil(Columns &columns, FuzzedDataProvider &data) {
  auto any = [&](auto &column) {
    if (column.empty() || !data.ConsumeBool())
      return;
    if (data.ConsumeBool())
      column.resize(data.ConsumeIntegralInRange<size_t>(0, column.size() + 1));
    for (int n = data.ConsumeIntegralInRange(0, 3); n && !column.empty(); --n) {
      auto &value = column[data.ConsumeIntegralInRange<size_t>(0, column.size() - 1)];
      std::vector<uint8_t> bytes = data.ConsumeBytes<uint8_t>(sizeof(value));
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t *>(&value));
    }
  };
  any(columns.text);
  any(columns.offsets);
  any(columns.types);
  any(columns.scores);
  any(columns.merges);
}

static std::string streamOf(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (int32_t id : ids) {
    CHECK(decoder.push(id, out).ok());
    CHECK(validUtf8Prefix(out) == out.size());
  }
  decoder.flush(out);
  return out;
}

static void checkText(const Tokenizer &tokenizer, std::string_view text, bool sound,
                      FuzzedDataProvider &data) {
  std::vector<int32_t> plain, parsed;
  CHECK(tokenizer.encode(text, {}, plain).ok());
  CHECK(tokenizer.encode(text, {.parseSpecial = true, .addSpecial = true}, parsed).ok());
  for (int32_t id : parsed)
    CHECK(tokenizer.contains(id));
  std::string pieces;
  for (int32_t id : plain) {
    CHECK(tokenizer.contains(id) && tokenizer.type(id) != fb::TokenType::Control);
    CHECK(tokenizer.appendPiece(id, false, pieces).ok());
  }
  if (sound && !tokenizer.addsSpacePrefix() && text.find(kStoredSpace) == std::string_view::npos)
    CHECK(pieces == text);

  std::string decoded;
  CHECK(tokenizer.decode(plain, false, decoded).ok());
  CHECK(decoded == streamOf(tokenizer, plain));

  // Untrusted spans are plain text, wherever they are cut.
  size_t cut = data.ConsumeIntegralInRange<size_t>(0, text.size());
  std::vector<TextSpan> spans = {{text.substr(0, cut), false}, {text.substr(cut), false}};
  std::vector<int32_t> spanned;
  CHECK(tokenizer.encodeSpans(spans, false, spanned).ok());
  CHECK(spanned == plain);

  // A stop string ends the text where it first stands, whatever the pieces.
  std::vector<std::string> stops = {data.ConsumeRandomLengthString(4)};
  StopMatcher matcher(stops);
  std::string shown;
  matcher.push(text.substr(0, cut), shown);
  matcher.push(text.substr(cut), shown);
  matcher.flush(shown);
  size_t found = stops[0].empty() ? std::string_view::npos : text.find(stops[0]);
  CHECK(shown == text.substr(0, found));
  CHECK(matcher.stopped() == (found != std::string_view::npos));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  bool bpe = data.ConsumeBool(), sound = data.ConsumeBool();
  Columns columns;
  if (sound || data.ConsumeBool())
    addBytes(columns, bpe);
  else
    columns.add("a", fb::TokenType::Normal, 0);
  addTokens(columns, data, bpe);
  if (!sound)
    spoil(columns, data);

  auto names = knownPreTokenizers();
  std::string pre(names[data.ConsumeIntegralInRange<size_t>(0, names.size() - 1)].name);
  flatbuffers::FlatBufferBuilder builder;
  auto name = builder.CreateString(pre);
  auto text = builder.CreateVector(reinterpret_cast<const uint8_t *>(columns.text.data()),
                                   columns.text.size());
  auto offsets = builder.CreateVector(columns.offsets);
  auto types = builder.CreateVector(columns.types);
  auto scores = builder.CreateVector(columns.scores);
  auto merges = builder.CreateVector(columns.merges);
  fb::TokenizerBuilder table(builder);
  table.add_kind(bpe ? fb::TokenizerKind::Bpe : fb::TokenizerKind::Spm);
  table.add_pre(name);
  table.add_text(text);
  table.add_offsets(offsets);
  table.add_types(types);
  table.add_scores(scores);
  table.add_merges(merges);
  table.add_bos(data.ConsumeIntegralInRange(-2, 300));
  table.add_unk(data.ConsumeIntegralInRange(-2, 300));
  table.add_add_bos(data.ConsumeBool());
  table.add_ignore_merges(data.ConsumeBool());
  table.add_add_space_prefix(data.ConsumeBool());
  builder.Finish(table.Finish());

  auto tokenizer =
      Tokenizer::create(flatbuffers::GetRoot<fb::Tokenizer>(builder.GetBufferPointer()));
  if (!tokenizer.ok())
    return 0;
  checkText(*tokenizer.value(), data.ConsumeRandomLengthString(), sound, data);
  return 0;
}
