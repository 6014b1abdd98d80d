//===- LowerSteps.h - components of a tokenizer.json as steps ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Normalizers and pre-tokenizers become the steps of TextStepData, decoders those
// of DecodeStepData, the post-processor the tokens around a text. Errors go to the
// file that the component lies in.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_TOKENIZER_LOWERSTEPS_H
#define LLMC_FRONTENDS_TOKENIZER_LOWERSTEPS_H

#include "compiler/support/ModelSource.h"
#include "frontends/tokenizer/JsonFile.h"

namespace llmc {

void lowerNormalizer(JsonCursor component, std::vector<TextStepData> &steps);
void lowerPreTokenizer(JsonCursor component, std::vector<TextStepData> &steps);
void lowerDecoder(JsonCursor component, TextPipelineData &pipeline);

void lowerPostProcessor(JsonCursor component, TextPipelineData &pipeline);

} // namespace llmc

#endif // LLMC_FRONTENDS_TOKENIZER_LOWERSTEPS_H
