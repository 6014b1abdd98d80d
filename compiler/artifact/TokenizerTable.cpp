//===- TokenizerTable.cpp - the tokenizer's table in the header -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/TokenizerTable.h"
#include "runtime/schema/HashIndex.h"

using namespace llmc;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// The enums of both sides have one order.
static_assert(int(TokenizerData::Kind::Unigram) == int(fb::TokenizerKind::Unigram));
static_assert(int(TextStepData::Op::Split) == int(fb::TextOp::Split));
static_assert(int(TextStepData::Op::Replace) == int(fb::TextOp::Replace));
static_assert(int(TextStepData::Behavior::Contiguous) == int(fb::SplitBehavior::Contiguous));
static_assert(int(DecodeStepData::Op::Suffix) == int(fb::DecodeOp::Suffix));
static_assert(int(DecodeStepData::Op::Join) == int(fb::DecodeOp::Join));
static_assert(int(AddedTokenData::Normalized) == int(fb::AddedFlags::Normalized));

// Texts may hold zeros.
static std::vector<Offset<fb::TextStep>> buildSteps(FlatBufferBuilder &fbb,
                                                    const std::vector<TextStepData> &steps) {
  std::vector<Offset<fb::TextStep>> built;
  for (const TextStepData &s : steps)
    built.push_back(fb::CreateTextStep(fbb, fb::TextOp(s.op), fbb.CreateString(s.pattern),
                                       fbb.CreateString(s.text), fbb.CreateVector(s.data),
                                       s.literal, fb::SplitBehavior(s.behavior), s.invert,
                                       s.unlessThere, s.firstOnly));
  return built;
}

static Offset<fb::TextPipeline> buildPipeline(FlatBufferBuilder &fbb, const TextPipelineData &p) {
  std::vector<Offset<fb::TextStep>> normalizers = buildSteps(fbb, p.normalizers);
  std::vector<Offset<fb::TextStep>> preTokenizers = buildSteps(fbb, p.preTokenizers);
  std::vector<Offset<fb::DecodeStep>> decoders;
  for (const DecodeStepData &step : p.decoders)
    decoders.push_back(fb::CreateDecodeStep(fbb, fb::DecodeOp(step.op),
                                            fbb.CreateString(step.pattern),
                                            fbb.CreateString(step.text), step.count));
  std::vector<fb::AddedToken> added;
  for (const AddedTokenData &token : p.added)
    added.emplace_back(token.id, token.flags);
  return fb::CreateTextPipelineDirect(fbb, &normalizers, &preTokenizers, &decoders, p.stripStart,
                                      &added, &p.prefix, &p.suffix, p.byteLevel, p.byteFallback,
                                      p.fuseUnk, p.continuingPrefix.c_str(), p.wordSuffix.c_str(),
                                      p.maxWordChars, &p.logProbs);
}

Offset<fb::Tokenizer> llmc::buildTokenizer(FlatBufferBuilder &fbb, const TokenizerData &t) {
  std::vector<uint8_t> text;
  std::vector<uint32_t> offsets{0};
  for (const std::string &token : t.tokens) {
    text.insert(text.end(), token.begin(), token.end());
    offsets.push_back(text.size());
  }
  std::vector<uint32_t> textIndex, mergeIndex;
  if (t.kind != TokenizerData::Kind::None)
    textIndex = indexTexts(reinterpret_cast<const char *>(text.data()), offsets);
  if (t.kind == TokenizerData::Kind::Bpe)
    mergeIndex = indexMerges(t.merges);
  Offset<fb::TextPipeline> pipeline;
  if (t.pipeline)
    pipeline = buildPipeline(fbb, *t.pipeline);
  return fb::CreateTokenizerDirect(fbb, fb::TokenizerKind(t.kind), t.pre.c_str(), &text, &offsets,
                                   &t.types, &t.scores, &t.merges, t.bos, t.eos, t.unk, t.pad,
                                   &t.endTokens, t.addBos, t.addEos, t.addSpacePrefix,
                                   t.ignoreMerges, t.escapeWhitespaces, t.removeExtraWhitespaces,
                                   &textIndex, &mergeIndex, pipeline);
}
