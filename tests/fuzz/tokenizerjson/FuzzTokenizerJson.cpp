//===- FuzzTokenizerJson.cpp - any bytes as a tokenizer.json --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a file. It is refused with an ImportError of one line, or its table
// is refused by the runtime, or it gives a tokenizer whose tokens are in its
// vocabulary and whose texts are valid UTF-8.
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/TokenizerTable.h"
#include "frontends/common/ImportError.h"
#include "frontends/tokenizer/LoadTokenizer.h"
#include "runtime/text/TextStream.h"
#include "runtime/text/Utf8.h"
#include <cstdlib>

using namespace llmc;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      llvm::errs() << "line " << __LINE__ << ": " #condition " does not hold\n";                   \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

// LLVM's allocators poison memory by hand where they are compiled with ASan; the shared libLLVM is
// not, and would not take the poison away.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

static void checkText(const rt::Tokenizer &tokenizer, std::string_view text) {
  for (bool special : {false, true}) {
    std::vector<int32_t> ids;
    if (!tokenizer.encode(text, {.parseSpecial = special, .addSpecial = special}, ids).ok())
      return;
    for (int32_t id : ids)
      CHECK(tokenizer.contains(id));
    std::string back;
    CHECK(tokenizer.decode(ids, special, back).ok());
    CHECK(rt::validUtf8Prefix(back) == back.size());
  }
  // Text that is not trusted makes no control tokens, but for the unknown one.
  std::vector<int32_t> plain;
  rt::TextSpan span{text, false};
  if (!tokenizer.encodeSpans({&span, 1}, false, plain).ok())
    return;
  for (int32_t id : plain)
    CHECK(tokenizer.type(id) != fb::TokenType::Control || id == tokenizer.unk());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<TokenizerData> parsed = parseTokenizerJson("fuzz.json", text);
  if (!parsed) {
    llvm::handleAllErrors(parsed.takeError(), [](const ImportError &error) {
      CHECK(error.getMessage().starts_with("fuzz.json: "));
      CHECK(!error.getMessage().contains('\n'));
    });
    return 0;
  }
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(buildTokenizer(fbb, *parsed));
  auto tokenizer =
      rt::Tokenizer::create(flatbuffers::GetRoot<fb::Tokenizer>(fbb.GetBufferPointer()));
  if (!tokenizer.ok())
    return 0;
  for (std::string_view sample :
       {"", " a  b\n", "Hello, world! 123", "\xC3\x84pfel A\xCC\x88 \xE2\x96\x81x",
        "\xFF\xC3 a\x80", "<s>[CLS]<x> ab<x>",
        "\xE4\xB8\xAD\xE6\x96\x87\xF0\x9F\x91\xA9\xE2\x80\x8D"})
    checkText(*tokenizer.value(), sample);
  return 0;
}
