//===- LowerSteps.cpp - normalizers and pre-tokenizers as steps -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/tokenizer/LowerSteps.h"
#include "frontends/common/ImportError.h"
#include "frontends/tokenizer/OnigPattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"

using namespace llmc;
using Op = TextStepData::Op;
using Behavior = TextStepData::Behavior;

namespace {

constexpr const char *kMetaspace = "\xE2\x96\x81";

/// What BERT takes for punctuation: Unicode's, and all of ASCII that is no letter or digit.
constexpr const char *kPunctuation = "[\\p{P}$+<=>\\^`|~]";

/// The ideographs around which BERT puts spaces.
constexpr const char *kIdeographs =
    "[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2b73f}"
    "\\x{2b740}-\\x{2b81f}\\x{2b920}-\\x{2ceaf}\\x{f900}-\\x{faff}\\x{2f800}-\\x{2fa1f}]";

constexpr const char *kGpt2Words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

TextStepData step(Op op) {
  TextStepData made;
  made.op = op;
  return made;
}
TextStepData replace(std::string pattern, std::string text, bool literal = false) {
  TextStepData made = step(Op::Replace);
  made.pattern = std::move(pattern);
  made.text = std::move(text);
  made.literal = literal;
  return made;
}
TextStepData split(std::string pattern, Behavior behavior, bool invert = false,
                   bool literal = false) {
  TextStepData made = step(Op::Split);
  made.pattern = std::move(pattern);
  made.behavior = behavior;
  made.invert = invert;
  made.literal = literal;
  return made;
}
TextStepData prepend(std::string text, bool unlessThere, bool firstOnly) {
  TextStepData made = step(Op::Prepend);
  made.text = std::move(text);
  made.unlessThere = unlessThere;
  made.firstOnly = firstOnly;
  return made;
}

/// {"String": ...} or {"Regex": ...}.
void readPattern(JsonCursor pattern, TextStepData &made) {
  if (pattern["String"]) {
    made.literal = true;
    made.pattern = pattern["String"].text();
  } else if (pattern["Regex"]) {
    TranslatedPattern translated = translateOnigPattern(pattern["Regex"].text());
    if (!translated.refused.empty())
      pattern["Regex"].failUnsupported("the regular expression has " + translated.refused +
                                       ", which is unsupported");
    made.pattern = std::move(translated.pattern);
  } else {
    pattern.failCorrupt("has neither String nor Regex");
  }
  if (made.pattern.empty())
    pattern.failUnsupported("an empty pattern is unsupported");
}

Behavior readBehavior(JsonCursor cursor, Behavior absent) {
  if (!cursor)
    return absent;
  static constexpr std::pair<llvm::StringRef, Behavior> kNames[] = {
      {"removed", Behavior::Removed},
      {"isolated", Behavior::Isolated},
      {"mergedwithprevious", Behavior::MergedWithPrevious},
      {"mergedwithnext", Behavior::MergedWithNext},
      {"contiguous", Behavior::Contiguous}};
  std::string name = llvm::StringRef(cursor.text()).lower();
  llvm::erase(name, '_');
  for (auto [known, behavior] : kNames)
    if (name == known)
      return behavior;
  cursor.failUnsupported("the behavior " + llmc::quoted(cursor.text()) + " is unsupported");
  return absent;
}

/// "always", "first" or "never"; older files have add_prefix_space.
enum class Scheme { Always, First, Never };
Scheme readScheme(JsonCursor component) {
  if (JsonCursor scheme = component["prepend_scheme"]) {
    std::string name = scheme.text();
    if (name != "always" && name != "first" && name != "never")
      scheme.failUnsupported(llmc::quoted(name) + " is unsupported");
    return name == "never" ? Scheme::Never : name == "first" ? Scheme::First : Scheme::Always;
  }
  return component["add_prefix_space"].flag(true) ? Scheme::Always : Scheme::Never;
}

std::string readReplacement(JsonCursor component) {
  std::string text = component["replacement"].text(kMetaspace);
  if (text.empty())
    component["replacement"].failCorrupt("is empty");
  return text;
}

void lowerBert(JsonCursor component, std::vector<TextStepData> &steps) {
  if (component["clean_text"].flag(true)) {
    steps.push_back(replace("[\\x{0}-\\x{8}\\x{b}\\x{c}\\x{e}-\\x{1f}\\x{7f}-\\x{9f}"
                            "\\p{Cf}\\p{Co}\\x{fffd}]",
                            ""));
    steps.push_back(replace("\\s", " "));
  }
  if (component["handle_chinese_chars"].flag(true)) {
    steps.push_back(step(Op::Surround));
    steps.back().pattern = kIdeographs;
    steps.back().text = " ";
  }
  bool lowercase = component["lowercase"].flag(true);
  if (component["strip_accents"].flag(lowercase)) {
    steps.push_back(step(Op::Nfd));
    steps.push_back(replace("\\p{Mn}", ""));
  }
  if (lowercase)
    steps.push_back(step(Op::Lowercase));
}

void lowerCharsmap(JsonCursor component, std::vector<TextStepData> &steps) {
  JsonCursor encoded = component["precompiled_charsmap"];
  std::vector<char> bytes;
  if (llvm::Error error = llvm::decodeBase64(encoded.text(), bytes)) {
    llvm::consumeError(std::move(error));
    return encoded.failCorrupt("is no base64");
  }
  if (bytes.empty()) // maps nothing
    return;
  steps.push_back(step(Op::Charsmap));
  steps.back().data.assign(bytes.begin(), bytes.end());
}

} // namespace

void llmc::lowerNormalizer(JsonCursor component, std::vector<TextStepData> &steps) {
  if (!component)
    return;
  std::string type = component.type();
  if (type == "Sequence")
    return component["normalizers"].forEach([&](JsonCursor part) { lowerNormalizer(part, steps); });
  if (type == "NFC")
    return steps.push_back(step(Op::Nfc));
  if (type == "NFD")
    return steps.push_back(step(Op::Nfd));
  if (type == "NFKC")
    return steps.push_back(step(Op::Nfkc));
  if (type == "NFKD")
    return steps.push_back(step(Op::Nfkd));
  if (type == "Lowercase")
    return steps.push_back(step(Op::Lowercase));
  if (type == "ByteLevel")
    return steps.push_back(step(Op::ByteLevel));
  if (type == "StripAccents")
    return steps.push_back(replace("\\p{M}", ""));
  if (type == "BertNormalizer")
    return lowerBert(component, steps);
  if (type == "Precompiled")
    return lowerCharsmap(component, steps);
  if (type == "Strip") {
    if (component["strip_left"].flag(true))
      steps.push_back(replace("\\A\\s+", ""));
    if (component["strip_right"].flag(true))
      steps.push_back(replace("\\s+\\z", ""));
    return;
  }
  if (type == "Prepend")
    return steps.push_back(prepend(component["prepend"].text(), false, false));
  if (type == "Replace") {
    TextStepData made = replace("", component["content"].text());
    readPattern(component["pattern"], made);
    return steps.push_back(std::move(made));
  }
  if (type == "Nmt") {
    steps.push_back(replace("[\\x{1}-\\x{8}\\x{b}\\x{e}-\\x{1f}\\x{7f}\\x{8f}\\x{9f}]", ""));
    steps.push_back(replace("[\\t\\n\\x{c}\\r\\x{1680}\\x{200b}-\\x{200f}\\x{2028}\\x{2029}"
                            "\\x{2581}\\x{feff}\\x{fffd}]",
                            " "));
    return;
  }
  component.failUnsupported("the normalizer " + llmc::quoted(type) + " is unsupported");
}

void llmc::lowerPreTokenizer(JsonCursor component, std::vector<TextStepData> &steps) {
  if (!component)
    return;
  std::string type = component.type();
  if (type == "Sequence")
    return component["pretokenizers"].forEach(
        [&](JsonCursor part) { lowerPreTokenizer(part, steps); });
  if (type == "ByteLevel") {
    if (component["add_prefix_space"].flag(true))
      steps.push_back(prepend(" ", /*unlessThere=*/true, /*firstOnly=*/false));
    if (component["use_regex"].flag(true))
      steps.push_back(split(kGpt2Words, Behavior::Isolated));
    return steps.push_back(step(Op::ByteLevel));
  }
  if (type == "Split") {
    TextStepData made = split("", readBehavior(component["behavior"], Behavior::Removed),
                              component["invert"].flag(false));
    readPattern(component["pattern"], made);
    return steps.push_back(std::move(made));
  }
  if (type == "Digits")
    return steps.push_back(split("\\p{N}", component["individual_digits"].flag(false)
                                               ? Behavior::Isolated
                                               : Behavior::Contiguous));
  if (type == "Metaspace") {
    std::string replacement = readReplacement(component);
    steps.push_back(replace(" ", replacement, /*literal=*/true));
    if (Scheme scheme = readScheme(component); scheme != Scheme::Never)
      steps.push_back(prepend(replacement, /*unlessThere=*/true, scheme == Scheme::First));
    if (component["split"].flag(true))
      steps.push_back(split(replacement, Behavior::MergedWithNext, false, /*literal=*/true));
    return;
  }
  if (type == "Punctuation")
    return steps.push_back(
        split(kPunctuation, readBehavior(component["behavior"], Behavior::Isolated)));
  if (type == "Whitespace") { // the words of Rust's regex
    std::string word = std::string(kWordItems) + "\\x{200c}\\x{200d}";
    return steps.push_back(split("[" + word + "]+|[^\\s" + word + "]+", Behavior::Removed,
                                 /*invert=*/true));
  }
  if (type == "WhitespaceSplit")
    return steps.push_back(split("\\s", Behavior::Removed));
  if (type == "BertPreTokenizer") {
    steps.push_back(split("\\s", Behavior::Removed));
    return steps.push_back(split(kPunctuation, Behavior::Isolated));
  }
  if (type == "CharDelimiterSplit") {
    std::string delimiter = component["delimiter"].text();
    if (delimiter.empty())
      return component.failCorrupt("has no delimiter");
    return steps.push_back(split(delimiter, Behavior::Removed, false, /*literal=*/true));
  }
  component.failUnsupported("the pre-tokenizer " + llmc::quoted(type) + " is unsupported");
}
