//===- PreTokenizer.cpp - the named pre-tokenizers of BPE models ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/PreTokenizer.h"

#include <algorithm>

using namespace llmc::rt;

//===----------------------------------------------------------------------===//
// Parts that several patterns share
//===----------------------------------------------------------------------===//

// English contractions, and a letter of any case that may begin or go on a word.
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
// The same without Han, as complements: PCRE has no class intersection.
#define UPPER_NOT_HAN "[^\\p{sc:Han}\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}]"
#define LOWER_NOT_HAN "[^\\p{sc:Han}\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}]"
#define OTHER "[^\\r\\n\\p{L}\\p{N}]?"
#define SPACES R"(\s+(?!\S)|\s+)"
#define LINES_AND_SPACES R"(\s*[\r\n]+|)" SPACES
#define SYMBOLS R"( ?[^\s\p{L}\p{N}]+)"
#define SYMBOLS_AND_LINES SYMBOLS R"([\r\n]*|)" LINES_AND_SPACES
#define SYMBOLS_LINES_SLASHES SYMBOLS R"([\r\n/]*|)" LINES_AND_SPACES
#define ASCII_PUNCTUATION R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"
#define LETTER_WORDS OTHER R"(\p{L}+|)"
#define DEEPSEEK_WORDS                                                                             \
  ASCII_PUNCTUATION R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)"
#define CJK "[一-龥぀-ゟ゠-ヿ]+"
#define CJK_HANGUL "[一-龥ࠀ-一가-퟿]+"

//===----------------------------------------------------------------------===//
// The families
//===----------------------------------------------------------------------===//

static constexpr SplitStep kDefault[] = {
    {R"([\p{P}\$\+<=>\^~\|]+)"}, {GPT2}, {R"(\p{N}+)"}, {"[0-9][0-9][0-9]"}};
static constexpr SplitStep kGpt2[] = {{GPT2}};
static constexpr SplitStep kDigitGpt2[] = {{R"(\p{N})"}, {GPT2}};
static constexpr SplitStep kLlama3[] = {
    {CONTRACTION "|" LETTER_WORDS R"(\p{N}{1,3}|)" SYMBOLS_AND_LINES}};
static constexpr SplitStep kQwen2[] = {
    {CONTRACTION "|" LETTER_WORDS R"(\p{N}|)" SYMBOLS_AND_LINES}};
static constexpr SplitStep kQwen35[] = {
    {CONTRACTION "|" OTHER
                 R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" LINES_AND_SPACES}};
static constexpr SplitStep kTurkish[] = {{LETTER_WORDS R"(\p{N}|)" SYMBOLS_AND_LINES}};
static constexpr SplitStep kMiniCpm5[] = {
    {R"(\p{N}{1,3})"}, {CONTRACTION "|" LETTER_WORDS R"(\p{N}+|)" SYMBOLS_AND_LINES}};
static constexpr SplitStep kLaguna[] = {
    {R"([^\n]+|\n+)"}, {CONTRACTION "|" LETTER_WORDS R"(\p{N}|)" SYMBOLS_AND_LINES}};
static constexpr SplitStep kJais2[] = {
    {CONTRACTION "|" LETTER_WORDS R"(\p{N}{1,3}|)" SYMBOLS
                 R"([\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S))"
                 R"(|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))"
                 R"(|\s{1,2}(?!\S)|\s)"}};
static constexpr SplitStep kSeedCoder[] = {
    {CONTRACTION "|" LETTER_WORDS R"(\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" LINES_AND_SPACES}};
static constexpr SplitStep kBailing[] = {
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
     R"(|\s*[\r\n]|)" SPACES}};
// Possessive repeats: nothing follows that could want a character back.
static constexpr SplitStep kExaoneMoe[] = {
    {CONTRACTION "|" OTHER R"((?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}|)" SYMBOLS
                 R"([\r\n/]?|\s*[\r\n]|)" SPACES}};
static constexpr SplitStep kTekken[] = {
    {OTHER UPPER "*" LOWER "+|" OTHER UPPER "+" LOWER R"(*|\p{N}|)" SYMBOLS_LINES_SLASHES}};
static constexpr SplitStep kGpt4o[] = {{OTHER UPPER "*" LOWER "+" CONTRACTION "?|" OTHER UPPER
                                                    "+" LOWER "*" CONTRACTION
                                                    R"(?|\p{N}{1,3}|)" SYMBOLS_LINES_SLASHES}};
// Digits that end a word. The lookbehind keeps a run that does not from being tried
// at each of its digits.
static constexpr SplitStep kTinyAya[] = {
    {R"((?<!\d)\d++(?![\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]))", /*groupsOfThree=*/true}, kGpt4o[0]};
static constexpr SplitStep kSuperBpe[] = {{R"(\p{N}+)"}, {R"(\d+)", /*groupsOfThree=*/true}};
static constexpr SplitStep kKimiK2[] = {{R"(\p{sc:Han}+|)" OTHER UPPER_NOT_HAN "*" LOWER_NOT_HAN
                                         "+" CONTRACTION "?|" OTHER UPPER_NOT_HAN "+" LOWER_NOT_HAN
                                         "*" CONTRACTION R"(?|\p{N}{1,3}|)" SYMBOLS_AND_LINES}};
static constexpr SplitStep kYoutu[] = {{"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" CJK},
                                       {OTHER UPPER "*" LOWER "+" CONTRACTION "?|" OTHER UPPER
                                                    "+" LOWER "*" CONTRACTION
                                                    R"(?|\p{N}|)" SYMBOLS_LINES_SLASHES}};
static constexpr SplitStep kDeepSeekLlm[] = {
    {R"([\r\n])"},
    {R"(\s?[)"
     "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵ"
     "Ϸ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅ"
     "ὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝ"
     "ℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎ"
     "ꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
     "]+"},
    {R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)"},
    {R"((?<!\s)\s+$)"}, // the lookbehind only keeps it linear
    {CJK_HANGUL},
    {R"(\p{N}+)"}};
static constexpr SplitStep kDeepSeekCoder[] = {
    {R"([\r\n])"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {CJK_HANGUL}, {R"(\p{N})"}};
static constexpr SplitStep kDeepSeek3[] = {
    {R"(\p{N}{1,3})"}, {CJK}, {DEEPSEEK_WORDS R"([\r\n]*|)" LINES_AND_SPACES}};
static constexpr SplitStep kSpark25[] = {
    {R"(\p{N}{1,3})"}, {CJK}, {DEEPSEEK_WORDS R"(|[\r\n]|)" SPACES}, {R"(\p{N})"}};
static constexpr SplitStep kAfmoe[] = {
    kTinyAya[0],
    {"[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-"
     "႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"},
    {DEEPSEEK_WORDS R"([\r\n]*|)" LINES_AND_SPACES}};
static constexpr SplitStep kFalcon[] = {{R"([\p{P}\$\+<=>\^~\|`]+)"}, {GPT2}, {"[0-9][0-9][0-9]"}};
static constexpr SplitStep kBloom[] = {{R"( ?[^(\s|.,!?…。，、।۔،)]+)"}};
static constexpr SplitStep kViking[] = {kBloom[0], {R"(\p{N})"}};
static constexpr SplitStep kChameleon[] = {{"<sentinel:[0-9]+>"},       {"IMGIMG[A-I]{1,4}Z"},
                                           {R"([\t\n]|    |  )"},       {R"(\p{N})"},
                                           {R"([\p{P}!-/:-@\[-`{-~])"}, {GPT2}};

//===----------------------------------------------------------------------===//
// The names
//===----------------------------------------------------------------------===//

// Sorted by name. Columns: name, family, ignoreMerges, addBos.
static constexpr PreTokenizer kPreTokenizers[] = {
    {"a.x-4.0", kGpt2, false, false},
    {"afmoe", kAfmoe, false, false},
    {"bailingmoe", kBailing, false, false},
    {"bailingmoe2", kBailing, false, false},
    {"bloom", kBloom, false, false},
    {"chameleon", kChameleon, false, true},
    {"chatglm-bpe", kLlama3, false, false},
    {"codeshell", kDigitGpt2, false, false},
    {"cohere2moe", kTinyAya, false, false},
    {"command-r", kDigitGpt2, false, false},
    {"dbrx", kLlama3, false, false},
    {"deepseek-coder", kDeepSeekCoder, false, false},
    {"deepseek-llm", kDeepSeekLlm, false, false},
    {"deepseek-r1-qwen", kQwen2, false, false},
    {"deepseek-v3", kDeepSeek3, false, false},
    {"default", kDefault, false, false},
    {"exaone", kDigitGpt2, false, false},
    {"exaone-moe", kExaoneMoe, false, false},
    {"exaone4", kGpt2, false, false},
    {"f2llmv2", kQwen2, false, false},
    {"falcon", kFalcon, false, false},
    {"falcon-h1", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"gigachat", kGpt2, false, false},
    {"glm4", kLlama3, true, false},
    {"glm5", kLlama3, true, false},
    {"gpt-2", kGpt2, false, false},
    {"gpt-4o", kGpt4o, false, false},
    {"gpt3-finnish", kBloom, false, false},
    {"granite-docling", kGpt2, false, false},
    {"granite-embed-multi-97m", kGpt4o, true, false},
    {"grok-2", kQwen2, false, false},
    {"hunyuan", kQwen2, false, false},
    {"hunyuan-dense", kDeepSeek3, false, false},
    {"hy_v4", kDeepSeek3, false, false},
    {"jais", kGpt2, false, false},
    {"jais-2", kJais2, false, false},
    {"jina-de", kGpt2, false, false},
    {"jina-es", kGpt2, false, false},
    {"jina-v2-de", kGpt2, false, false},
    {"jina-v2-es", kGpt2, false, false},
    {"jina-v5-nano", kLlama3, true, true},
    {"joyai-llm", kDeepSeek3, false, false},
    {"kanana2", kGpt4o, false, false},
    {"kimi-k2", kKimiK2, false, false},
    {"kormo", kQwen2, false, false},
    {"laguna", kLaguna, false, false},
    {"lfm2", kLlama3, true, true},
    {"llada-moe", kBailing, false, false},
    {"llama-bpe", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama4", kGpt4o, false, false},
    {"megrez", kQwen2, false, false},
    {"mellum", kGpt2, false, false},
    {"mellum2", kDigitGpt2, false, false},
    {"midm-2.0", kLlama3, true, true},
    {"minerva-7b", kDigitGpt2, false, false},
    {"minicpm5", kMiniCpm5, true, false},
    {"minimax-m2", kGpt4o, false, false},
    {"modern-bert", kGpt2, false, false},
    {"mpt", kGpt2, false, false},
    {"olmo", kGpt2, false, false},
    {"phi-2", kGpt2, false, false},
    {"pixtral", kLlama3, true, true},
    {"poro-chat", kBloom, false, false},
    {"qwen2", kQwen2, false, false},
    {"qwen35", kQwen35, false, false},
    {"refact", kDigitGpt2, false, false},
    {"seed-coder", kSeedCoder, false, false},
    {"smaug-bpe", kLlama3, false, false},
    {"smollm", kDigitGpt2, false, false},
    {"solar-open", kQwen2, false, false},
    {"spark2_5", kSpark25, false, false},
    {"stablelm2", kQwen2, false, false},
    {"starcoder", kDigitGpt2, false, false},
    {"superbpe", kSuperBpe, false, false},
    {"talkie", kGpt4o, false, false},
    {"tekken", kTekken, true, true},
    {"tiny_aya", kTinyAya, false, false},
    {"trillion", kGpt2, false, false},
    {"ufakzeka", kTurkish, false, false},
    {"viking", kViking, false, false},
    {"youtu", kYoutu, true, false},
};

static_assert(std::is_sorted(std::begin(kPreTokenizers), std::end(kPreTokenizers),
                             [](auto &a, auto &b) { return a.name < b.name; }));

std::span<const PreTokenizer> llmc::rt::knownPreTokenizers() { return kPreTokenizers; }

const PreTokenizer *llmc::rt::findPreTokenizer(std::string_view name) {
  auto *found = std::lower_bound(std::begin(kPreTokenizers), std::end(kPreTokenizers), name,
                                 [](auto &row, std::string_view key) { return row.name < key; });
  return found != std::end(kPreTokenizers) && found->name == name ? found : nullptr;
}

std::string llmc::rt::unknownPreTokenizerMessage(std::string_view name) {
  std::string message = "unknown pre-tokenizer '" + std::string(name) +
                        "'; compile with --pre NAME, where NAME is one of";
  const char *separator = " ";
  for (const PreTokenizer &known : kPreTokenizers) {
    message.append(separator).append(known.name);
    separator = ", ";
  }
  return message;
}
