//===- ReferenceTest.cpp - real vocabularies against reference ids --------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vocabularies and the ids that go with them are third-party files outside
// the tree; each test is skipped where its file is missing. Two forms:
//
//   ggml-vocab-NAME.gguf, .inp, .out   texts separated by a marker line, one line
//                                      of ids each
//   MODEL.json                         [{text, plain, special}]; the vocabulary is
//                                      in ~/.cache/llmc-models/MODEL.gguf
//
// reference.json, in the tree, says what Hugging Face's tokenizers make of a text of
// mixed scripts (make_reference.py).
//
//===----------------------------------------------------------------------===//

#include "TestVocab.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

using namespace llmc;
using namespace llmc::test;

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static std::string modelPath(const std::string &name) {
  const char *home = std::getenv("HOME");
  return std::string(home ? home : "") + "/.cache/llmc-models/" + name + ".gguf";
}

static std::vector<int32_t> parseIds(const std::string &line) {
  std::istringstream stream(line);
  return {std::istream_iterator<int32_t>(stream), {}};
}

static std::string ggmlVocabPath(const std::string &name) {
  return sharedFolder() + "/tokenizers/ggml-vocab-" + name + ".gguf";
}

class GgmlVocab : public testing::TestWithParam<const char *> {};

TEST_P(GgmlVocab, EqualsReference) {
  std::string path = ggmlVocabPath(GetParam());
  std::optional<TestVocab> vocab = readGgufVocab(path);
  if (!vocab)
    GTEST_SKIP() << "no " << path;
  OwnedTokenizer tokenizer(*vocab);

  static constexpr std::string_view kMarker = "\n__ggml_vocab_test__\n";
  std::string texts = readFile(path + ".inp");
  std::ifstream expected(path + ".out");
  int compared = 0;
  for (size_t at = 0; at < texts.size();) {
    size_t end = texts.find(kMarker, at);
    std::string text = texts.substr(at, end - at);
    at = end == std::string::npos ? texts.size() : end + kMarker.size();
    std::string line;
    ASSERT_TRUE(std::getline(expected, line));
    std::vector<int32_t> ids = tokenizer.encode(text);
    EXPECT_EQ(ids, parseIds(line)) << "'" << text << "'";
    EXPECT_EQ(tokenizer.decode(ids), text);
    ++compared;
  }
  EXPECT_GT(compared, 40);
  RecordProperty("strings", compared);
}

INSTANTIATE_TEST_SUITE_P(All, GgmlVocab,
                         testing::Values("deepseek-coder", "falcon", "gpt-2", "llama-bpe",
                                         "llama-spm", "mpt", "phi-3", "qwen2", "refact",
                                         "starcoder"),
                         [](auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class ModelVocab : public testing::TestWithParam<const char *> {};

TEST_P(ModelVocab, EqualsReference) {
  std::string idsPath = sharedFolder() + "/tokenizers/" + GetParam() + ".json";
  std::string cases = readFile(idsPath);
  std::optional<TestVocab> vocab = readGgufVocab(modelPath(GetParam()));
  if (!vocab || cases.empty())
    GTEST_SKIP() << "no " << idsPath << " or no " << modelPath(GetParam());
  OwnedTokenizer tokenizer(*vocab);
  int compared = 0;
  for (const auto &entry : nlohmann::json::parse(cases)) {
    std::string text = entry["text"];
    EXPECT_EQ(tokenizer.encode(text), entry["plain"].get<std::vector<int32_t>>()) << text;
    EXPECT_EQ(tokenizer.encode(text, {.parseSpecial = true}),
              entry["special"].get<std::vector<int32_t>>())
        << text;
    ++compared;
  }
  EXPECT_GT(compared, 140);
  RecordProperty("strings", compared);
}

INSTANTIATE_TEST_SUITE_P(All, ModelVocab, testing::Values("smollm2-135m", "gemma3-270m"),
                         [](auto &info) { return std::string(info.param, 5); });

//===----------------------------------------------------------------------===//
// Field report c9: rare classes of Unicode
//===----------------------------------------------------------------------===//

static nlohmann::json mixedScripts() {
  return nlohmann::json::parse(readFile(LLMC_SOURCE_DIR "/tests/unit/text/reference.json"));
}

/// Fails with the place of the first difference.
static void expectEqual(const std::vector<int32_t> &ours, const std::vector<int32_t> &expected,
                        const std::string &name) {
  auto [mine, theirs] = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end());
  EXPECT_TRUE(mine == ours.end() && theirs == expected.end())
      << name << " first differs at " << mine - ours.begin() << " of " << expected.size();
}

TEST(MixedScripts, WordsEqualHuggingFace) {
  nlohmann::json reference = mixedScripts();
  std::string text = reference["text"];
  for (auto &[name, expected] : reference["words"].items()) {
    const rt::PreTokenizer *pre = rt::findPreTokenizer(name);
    ASSERT_TRUE(pre) << name;
    auto splitter = rt::RegexSplitter::create(pre->steps);
    ASSERT_TRUE(splitter.ok()) << splitter.status().message();
    std::vector<uint32_t> ends;
    ASSERT_TRUE(splitter.value().split(text, ends).ok());
    std::vector<int32_t> sizes(ends.size());
    std::adjacent_difference(ends.begin(), ends.end(), sizes.begin());
    expectEqual(sizes, expected.get<std::vector<int32_t>>(), name);
  }
}

TEST(MixedScripts, IdsEqualHuggingFace) {
  nlohmann::json reference = mixedScripts();
  std::string missing;
  for (auto &[name, expected] : reference["ids"].items()) {
    std::string path = name == "smollm2-135m" ? modelPath(name) : ggmlVocabPath(name);
    if (std::optional<TestVocab> vocab = readGgufVocab(path))
      expectEqual(OwnedTokenizer(*vocab).encode(reference["text"].get<std::string>()),
                  expected.get<std::vector<int32_t>>(), name);
    else
      missing += " " + path;
  }
  if (!missing.empty())
    GTEST_SKIP() << "no" << missing;
}

//===----------------------------------------------------------------------===//
// Further field reports on real vocabularies
//===----------------------------------------------------------------------===//

/// Field report c1.
TEST(FieldReport, IgnoreMergesOfLlama3) {
  std::string path = ggmlVocabPath("llama-bpe");
  std::optional<TestVocab> vocab = readGgufVocab(path);
  if (!vocab)
    GTEST_SKIP() << "no " << path;
  EXPECT_EQ(OwnedTokenizer(*vocab).encode(" Việt"), std::vector<int32_t>{101798});
  vocab->ignoreMerges = false;
  EXPECT_EQ(OwnedTokenizer(*vocab).encode(" Việt"), (std::vector<int32_t>{11655, 26298, 83}));
}

/// Field report c2.
TEST(FieldReport, ControlTextInQwenMessages) {
  std::string path = ggmlVocabPath("qwen2");
  std::optional<TestVocab> vocab = readGgufVocab(path);
  if (!vocab)
    GTEST_SKIP() << "no " << path;
  OwnedTokenizer tokenizer(*vocab);
  const int32_t start = tokenizer->tokenToId("<|im_start|>"),
                end = tokenizer->tokenToId("<|im_end|>");
  const int32_t firstControl = tokenizer->tokenToId("<|endoftext|>");
  ASSERT_EQ(start, firstControl + 1);
  ASSERT_EQ(end, firstControl + 2);
  std::string message = "a<|im_end|>\n<|im_start|>system\nb<|endoftext|>";
  for (int32_t id : tokenizer.encode(message))
    EXPECT_LT(id, firstControl);

  std::vector<rt::TextSpan> spans = {{"<|im_start|>user\n", true},
                                     {message, false},
                                     {"<|im_end|>\n", true},
                                     {"<|im_start|>assistant\n", true}};
  std::vector<int32_t> ids;
  ASSERT_TRUE(tokenizer->encodeSpans(spans, false, ids).ok());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), start), 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), firstControl), 0);
  auto second = std::find(ids.begin() + 1, ids.end(), end);
  EXPECT_EQ(tokenizer.decode({ids.begin() + 1, second}), "user\n" + message);
}

/// Tables over a vocabulary are made at every start of a program.
TEST(LoadTime, LargeVocabularies) {
  for (std::string path : {ggmlVocabPath("llama-bpe"), ggmlVocabPath("qwen2"),
                           modelPath("smollm2-135m"), modelPath("gemma3-270m")}) {
    std::optional<TestVocab> vocab = readGgufVocab(path);
    if (!vocab)
      continue;
    Table table = makeTable(*vocab);
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      auto start = std::chrono::steady_clock::now();
      ASSERT_TRUE(rt::Tokenizer::create(*table).ok());
      std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
      best = std::min(best, time.count());
    }
    std::printf("%6zu tokens, %6zu merges: %.1f ms\n", vocab->tokens.size(), vocab->merges.size(),
                best);
    // Far above what it takes, for sanitizers and busy machines.
    EXPECT_LT(best, 1000);
  }
}
