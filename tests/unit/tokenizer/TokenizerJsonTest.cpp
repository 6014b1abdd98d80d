//===- TokenizerJsonTest.cpp - files written by hand, tokens by hand ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the end-to-end tests compare with Hugging Face's library, here without it.
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/TokenizerTable.h"
#include "frontends/tokenizer/LoadTokenizer.h"
#include "runtime/text/Tokenizer.h"
#include <gtest/gtest.h>

using namespace llmc;
using Ids = std::vector<int32_t>;

namespace {

/// A tokenizer of a file's text; tests take what is wrong with it as text.
struct Loaded {
  explicit Loaded(const std::string &json) {
    llvm::Expected<TokenizerData> data = parseTokenizerJson("t.json", json);
    if (!data) {
      error = llvm::toString(data.takeError());
      return;
    }
    fbb.Finish(buildTokenizer(fbb, *data));
    auto made = rt::Tokenizer::create(flatbuffers::GetRoot<fb::Tokenizer>(fbb.GetBufferPointer()));
    if (made.ok())
      tokenizer = made.take();
    else
      error = made.status().message();
  }
  Ids encode(std::string_view text, rt::EncodeOptions options = {.parseSpecial = true}) const {
    Ids ids;
    EXPECT_TRUE(tokenizer) << error;
    if (tokenizer)
      EXPECT_TRUE(tokenizer->encode(text, options, ids).ok());
    return ids;
  }
  std::string decode(const Ids &ids) const {
    std::string text;
    if (tokenizer)
      EXPECT_TRUE(tokenizer->decode(ids, /*special=*/false, text).ok());
    return text;
  }

  flatbuffers::FlatBufferBuilder fbb;
  std::unique_ptr<rt::Tokenizer> tokenizer;
  std::string error;
};

std::string file(const std::string &model, const std::string &more = "") {
  return "{" + more + (more.empty() ? "" : ",") + "\"model\":" + model + "}";
}

constexpr const char *kBpe =
    R"({"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4,"<u>":5,"<s>":6},)"
    R"("merges":["a b",["ab","c"]],"unk_token":"<u>")";
constexpr const char *kWordPiece =
    R"({"type":"WordPiece","vocab":{"[UNK]":0,"un":1,"##aff":2,"##able":3,"##a":4,"!":5},)"
    R"("unk_token":"[UNK]","max_input_chars_per_word":10})";
constexpr const char *kUnigram =
    R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["b",-1.5],["ab",-2],)"
    R"(["abb",-5]]})";

TEST(TokenizerJson, BpeMergesInOrderAndFusesUnknown) {
  Loaded plain(file(std::string(kBpe) + "}"));
  EXPECT_EQ(plain.encode("abcab"), (Ids{4, 3}));
  EXPECT_EQ(plain.encode("axxb"), (Ids{0, 5, 5, 1}));
  Loaded fused(file(std::string(kBpe) + R"(,"fuse_unk":true})"));
  EXPECT_EQ(fused.encode("axxb"), (Ids{0, 5, 1}));
}

TEST(TokenizerJson, WordPieceTakesTheLongest) {
  Loaded t(file(kWordPiece, R"("pre_tokenizer":{"type":"BertPreTokenizer"},)"
                            R"("decoder":{"type":"WordPiece","prefix":"##","cleanup":true})"));
  EXPECT_EQ(t.encode("unaffable! un"), (Ids{1, 2, 3, 5, 1}));
  EXPECT_EQ(t.encode("unx un"), (Ids{0, 1}));
  EXPECT_EQ(t.encode("unaaaaaaaaa"), (Ids{0})) << "11 characters";
  EXPECT_EQ(t.decode({1, 2, 3, 5, 1}), "unaffable! un");
}

TEST(TokenizerJson, UnigramTakesTheMostProbable) {
  Loaded t(file(kUnigram, R"("decoder":{"type":"Fuse"})"));
  EXPECT_EQ(t.encode("abb"), (Ids{3, 2})) << "-3.5 against -4 and -5";
  EXPECT_EQ(t.encode("axyb"), (Ids{1, 0, 2}));
}

TEST(TokenizerJson, NormalizersAndPreTokenizers) {
  Loaded t(file(std::string(kBpe) + "}",
                R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFD"},)"
                R"({"type":"StripAccents"},{"type":"Lowercase"},{"type":"Replace",)"
                R"("pattern":{"String":"z"},"content":"a"}]},)"
                R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
                R"({"type":"Split","pattern":{"Regex":"b"},"behavior":"MergedWithNext"}]})"));
  EXPECT_EQ(t.encode("\u00c4 zB"), (Ids{0, 0, 1}));
  EXPECT_EQ(t.encode("abc"), (Ids{0, 1, 2})) << "cut before b";
}

TEST(TokenizerJson, AddedTokens) {
  const char *added =
      R"("added_tokens":[{"id":6,"content":"<s>","special":true,"normalized":false},)"
      R"({"id":7,"content":"A<","lstrip":true,"rstrip":true,"normalized":false},)"
      R"({"id":8,"content":"cab","single_word":true,"normalized":true}],)"
      R"("normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"WhitespaceSplit"})";
  Loaded t(file(std::string(kBpe) + "}", added));
  EXPECT_EQ(t.encode("b<s>b"), (Ids{1, 6, 1}));
  EXPECT_EQ(t.encode("b<s>b", {}), (Ids{1, 5, 5, 5, 1})) << "not trusted";
  EXPECT_EQ(t.encode("b  A< b"), (Ids{1, 7, 1}));
  EXPECT_EQ(t.encode("CAB b"), (Ids{8, 1}));
  EXPECT_EQ(t.encode("CABb"), (Ids{2, 3, 1})) << "no word of its own";
}

TEST(TokenizerJson, TokensAroundATextComeOnce) {
  Loaded t(file(std::string(kBpe) + "}",
                R"("added_tokens":[{"id":6,"content":"<s>","special":true,"normalized":false}],)"
                R"("post_processor":{"type":"TemplateProcessing","single":[)"
                R"({"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},)"
                R"({"SpecialToken":{"id":"<s>","type_id":0}}],"pair":[],)"
                R"("special_tokens":{"<s>":{"id":"<s>","ids":[6],"tokens":["<s>"]}}})"));
  EXPECT_EQ(t.encode("a", {.addSpecial = true}), (Ids{6, 0, 6}));
  EXPECT_EQ(t.encode("<s>a", {.parseSpecial = true, .addSpecial = true}), (Ids{6, 0, 6}));
}

TEST(TokenizerJson, BytesThatAreNoTextAreKept) {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    char name[24];
    std::snprintf(name, sizeof name, "%s\"<0x%02X>\":%d", byte ? "," : "", byte, byte);
    vocabulary += name;
  }
  Loaded t(file(R"({"type":"BPE","byte_fallback":true,"merges":[],"vocab":{)" + vocabulary + "}}",
                R"("decoder":{"type":"ByteFallback"})"));
  EXPECT_EQ(t.encode("\xC3\xFF"), (Ids{0xC3, 0xFF}));
  EXPECT_EQ(t.encode("\u00e9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(t.decode({0xC3, 0xA9}), "\u00e9");
}

TEST(TokenizerJson, SlowPatternsAreRefusedAtTheText) {
  Loaded t(file(std::string(kBpe) + "}",
                R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+$"},)"
                R"("behavior":"Isolated"})"));
  ASSERT_TRUE(t.tokenizer) << t.error;
  Ids ids;
  EXPECT_FALSE(t.tokenizer->encode(std::string(64, 'a') + "b", {}, ids).ok());
}

TEST(TokenizerJson, RefusesByNameAndPlace) {
  auto error = [](const std::string &json) { return Loaded(json).error; };
  EXPECT_EQ(error("[]"), "t.json: holds no JSON object; fetch the file again");
  EXPECT_EQ(error("{}"), "t.json: has no model");
  EXPECT_EQ(error(file(R"({"type":"WordLevel","vocab":{"a":0}})")),
            "t.json: model: the model 'WordLevel' is unsupported; BPE, WordPiece and Unigram are "
            "read");
  EXPECT_EQ(error(file(std::string(kBpe) + "}", R"("normalizer":{"type":"X"})")),
            "t.json: normalizer: the normalizer 'X' is unsupported");
  EXPECT_EQ(error(file(std::string(kBpe) + R"(,"dropout":0.5})")),
            "t.json: model.dropout: tokens that depend on chance are unsupported; set it to null");
  EXPECT_EQ(error(file(R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})")),
            "t.json: model.vocab.b: the tokens 'a' and 'b' have one id, 0");
  EXPECT_EQ(error(file(std::string(kBpe) + "}", R"("decoder":{"type":"Sequence","decoders":[)"
                                                R"({"type":"Fuse"},{"type":"ByteFallback"}]})")),
            "t.json: decoder.decoders[1]: the decoder 'ByteFallback' after Fuse is unsupported");
}

} // namespace
