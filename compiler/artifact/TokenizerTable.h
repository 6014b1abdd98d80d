//===- TokenizerTable.h - the tokenizer's table in the header ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_ARTIFACT_TOKENIZERTABLE_H
#define LLMC_COMPILER_ARTIFACT_TOKENIZERTABLE_H

#include "compiler/support/ModelSource.h"
#include "runtime/schema/llmc_generated.h"

namespace llmc {

flatbuffers::Offset<fb::Tokenizer> buildTokenizer(flatbuffers::FlatBufferBuilder &fbb,
                                                  const TokenizerData &data);

} // namespace llmc

#endif // LLMC_COMPILER_ARTIFACT_TOKENIZERTABLE_H
