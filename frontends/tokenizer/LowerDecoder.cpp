//===- LowerDecoder.cpp - decoders and post-processors as steps -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/ImportError.h"
#include "frontends/tokenizer/LowerSteps.h"
#include "llvm/ADT/StringExtras.h"

using namespace llmc;
using Op = DecodeStepData::Op;

//===----------------------------------------------------------------------===//
// Decoders
//===----------------------------------------------------------------------===//

namespace {

bool isOneCharacter(llvm::StringRef text) {
  size_t count = llvm::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
  return count == 1;
}

class DecoderLowering {
public:
  explicit DecoderLowering(TextPipelineData &pipeline) : pipeline(pipeline) {}

  void lower(JsonCursor component) {
    std::string type = component.type();
    if (type == "Sequence")
      return component["decoders"].forEach([&](JsonCursor part) { lower(part); });
    if (type == "Fuse") {
      fused = true;
      return;
    }
    if (type == "Replace")
      return lowerReplace(component);
    if (type == "Strip")
      return lowerStrip(component);
    if (type == "Metaspace")
      return lowerMetaspace(component);
    if (fused)
      return component.failUnsupported("the decoder " + llmc::quoted(type) +
                                       " after Fuse is unsupported");
    if (type == "ByteLevel")
      return add(Op::ByteLevel);
    if (type == "ByteFallback")
      return add(Op::ByteFallback);
    if (type == "WordPiece") {
      add(Op::Join, component["prefix"].text("##"), " ");
      if (component["cleanup"].flag(true))
        add(Op::CleanUp);
      return;
    }
    if (type == "BPEDecoder")
      return add(Op::Suffix, component["suffix"].text("</w>"));
    component.failUnsupported("the decoder " + llmc::quoted(type) + " is unsupported");
  }

private:
  void add(Op op, std::string pattern = "", std::string text = "", uint32_t count = 0) {
    pipeline.decoders.push_back({op, std::move(pattern), std::move(text), count});
  }

  void lowerReplace(JsonCursor component) {
    JsonCursor pattern = component["pattern"]["String"];
    std::string text = pattern.text();
    if (!pattern || text.empty())
      return component.failUnsupported("a Replace of a regular expression when decoding is "
                                       "unsupported");
    if (fused && !isOneCharacter(text))
      return component.failUnsupported("a Replace of more than one character after Fuse is "
                                       "unsupported");
    add(Op::Replace, text, component["content"].text());
  }

  void lowerStrip(JsonCursor component) {
    std::string content = component["content"].text(" ");
    auto start = uint32_t(component["start"].integer(0, 0, 1 << 20));
    auto stop = uint32_t(component["stop"].integer(0, 0, 1 << 20));
    if (!isOneCharacter(content))
      return component["content"].failCorrupt("is not one character");
    if (!fused) {
      if (start)
        add(Op::StripLeft, content, "", start);
      if (stop)
        add(Op::StripRight, content, "", stop);
      return;
    }
    if (stop != 0 || content != " ")
      return component.failUnsupported(
          "a Strip after Fuse of anything but leading spaces is unsupported");
    pipeline.stripStart += start;
  }

  void lowerMetaspace(JsonCursor component) {
    std::string replacement = component["replacement"].text("\xE2\x96\x81");
    if (replacement.empty())
      return component["replacement"].failCorrupt("is empty");
    if (fused)
      return component.failUnsupported("the decoder 'Metaspace' after Fuse is unsupported");
    JsonCursor scheme = component["prepend_scheme"];
    if (scheme ? scheme.text() != "never" : component["add_prefix_space"].flag(true))
      add(Op::SkipFirst, replacement);
    add(Op::Replace, replacement, " ");
  }

  TextPipelineData &pipeline;
  bool fused = false; ///< later steps see the whole text, not tokens
};

} // namespace

void llmc::lowerDecoder(JsonCursor component, TextPipelineData &pipeline) {
  if (component)
    DecoderLowering(pipeline).lower(component);
  else // tokens are words
    pipeline.decoders.push_back({Op::Join, "", " ", 0});
}

//===----------------------------------------------------------------------===//
// Post-processors
//===----------------------------------------------------------------------===//

namespace {

/// The template of one text: special tokens, and the text once.
void lowerTemplate(JsonCursor component, TextPipelineData &pipeline) {
  std::vector<int32_t> before, after;
  int texts = 0;
  component["single"].forEach([&](JsonCursor piece) {
    if (JsonCursor sequence = piece["Sequence"]) {
      ++texts;
      if (sequence["id"].text("A") != "A")
        sequence.failUnsupported("a template of one text with a second one is unsupported");
      sequence["type_id"].integer(0, 0, 0);
      return;
    }
    JsonCursor special = piece["SpecialToken"];
    std::string name = special["id"].text();
    special["type_id"].integer(0, 0, 0);
    JsonCursor known = component["special_tokens"][name];
    if (!known)
      return special.failCorrupt("the special token " + llmc::quoted(name) + " is not declared");
    known["ids"].forEach([&](JsonCursor id) {
      (texts ? after : before).push_back(int32_t(id.integer(0, 0, INT32_MAX)));
    });
  });
  if (texts != 1)
    component["single"].failUnsupported("a template that does not hold the text once is "
                                        "unsupported");
  // Templates in a sequence are put around each other.
  pipeline.prefix.insert(pipeline.prefix.begin(), before.begin(), before.end());
  pipeline.suffix.insert(pipeline.suffix.end(), after.begin(), after.end());
}

/// ["[CLS]", 101]
int32_t readPair(JsonCursor pair) {
  std::vector<JsonCursor> parts;
  pair.forEach([&](JsonCursor part) { parts.push_back(part); });
  if (parts.size() != 2) {
    pair.failCorrupt("is no pair of a token and its id");
    return -1;
  }
  return int32_t(parts[1].integer(0, 0, INT32_MAX));
}

} // namespace

void llmc::lowerPostProcessor(JsonCursor component, TextPipelineData &pipeline) {
  if (!component)
    return;
  std::string type = component.type();
  if (type == "Sequence")
    return component["processors"].forEach(
        [&](JsonCursor part) { lowerPostProcessor(part, pipeline); });
  if (type == "ByteLevel") // places in the text only
    return;
  if (type == "TemplateProcessing")
    return lowerTemplate(component, pipeline);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    pipeline.prefix.insert(pipeline.prefix.begin(), readPair(component["cls"]));
    pipeline.suffix.push_back(readPair(component["sep"]));
    return;
  }
  component.failUnsupported("the post-processor " + llmc::quoted(type) + " is unsupported");
}
