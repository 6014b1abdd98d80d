//===- TokenizerTest.cpp - tokenizer data of GGUF files -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"
#include "llvm/ADT/StringExtras.h"

using namespace llmc;
using namespace llmc::test;

static GgufImportOptions knowing(std::vector<std::string> names) {
  GgufImportOptions options;
  options.knownPreList = llvm::join(names, ", ");
  options.findPre = [names](llvm::StringRef name) -> std::optional<PreTokenizerDefaults> {
    if (llvm::is_contained(names, name))
      return PreTokenizerDefaults{/*ignoreMerges=*/true, /*addBos=*/true};
    return std::nullopt;
  };
  return options;
}

TEST(Tokenizer, Bpe) {
  TokenizerData t = TestModel(fixture("rand-bpe.gguf"), knowing({"gpt-2"})).model.tokenizer;
  EXPECT_EQ(t.kind, TokenizerData::Kind::Bpe);
  EXPECT_EQ(t.pre, "gpt-2");
  ASSERT_EQ(t.tokens.size(), 261u);
  EXPECT_EQ(t.tokens[256], "ab");
  // The merge of a text that is no token is left out.
  EXPECT_EQ(t.merges,
            (std::vector<uint64_t>{uint64_t('a') << 32 | 'b', uint64_t(256) << 32 | 'c'}));
  EXPECT_EQ(t.eos, 259);
  EXPECT_EQ(t.endTokens, (std::vector<int32_t>{259, 260})); // eos, <|im_end|>
  EXPECT_EQ(t.types[0], 1);
  EXPECT_EQ(t.types[260], 3);
  EXPECT_TRUE(t.addBos && t.ignoreMerges); // what the pre-tokenizer says
  EXPECT_FALSE(t.addSpacePrefix || t.escapeWhitespaces);
}

TEST(Tokenizer, Spm) {
  TokenizerData t = TestModel(fixture("rand-spm.gguf"), knowing({})).model.tokenizer;
  EXPECT_EQ(t.kind, TokenizerData::Kind::Spm);
  ASSERT_EQ(t.tokens.size(), 320u);
  ASSERT_EQ(t.scores.size(), 320u);
  EXPECT_EQ(t.tokens[259], "▁");
  EXPECT_EQ(t.scores[260], -2.0f);
  EXPECT_EQ(t.types[3], 6); // <0x00>
  EXPECT_EQ(t.bos, 1);
  EXPECT_EQ(t.unk, 0);
  EXPECT_EQ(t.endTokens, (std::vector<int32_t>{2}));
  EXPECT_TRUE(t.addBos && t.addSpacePrefix && t.escapeWhitespaces);
}

TEST(Tokenizer, UnknownPreTokenizerIsRefusedAndCanBeOverridden) {
  mlir::MLIRContext context;
  GgufImportOptions options = knowing({"llama-bpe", "qwen2"});
  auto refused = importGguf(fixture("pre-unknown.gguf"), context, options);
  ASSERT_FALSE(bool(refused));
  Refusal refusal = refusalOf(refused.takeError());
  EXPECT_EQ(refusal.kind, ImportError::Kind::Unsupported);
  for (const char *text : {"'no-such'", "--pre", "llama-bpe, qwen2"})
    EXPECT_NE(refusal.message.find(text), std::string::npos) << refusal.message;

  GgufImportOptions overridden = options;
  overridden.preOverride = "qwen2";
  TokenizerData a = TestModel(fixture("pre-unknown.gguf"), overridden).model.tokenizer;
  TokenizerData b = TestModel(fixture("pre-qwen2.gguf"), options).model.tokenizer;
  EXPECT_EQ(a.pre, "qwen2");
  EXPECT_EQ(std::tie(a.pre, a.tokens, a.merges, a.types, a.addBos, a.ignoreMerges),
            std::tie(b.pre, b.tokens, b.merges, b.types, b.addBos, b.ignoreMerges));
}

TEST(Tokenizer, NoneNeedsNoTokens) {
  TestModel model(fixture("rand.gguf"));
  EXPECT_EQ(model.model.tokenizer.kind, TokenizerData::Kind::None);
  EXPECT_TRUE(model.model.tokenizer.tokens.empty());
}
