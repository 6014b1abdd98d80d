//===- Tokenizer.h - tokenizer data of a GGUF file --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tokenizer.ggml.model: "gpt2" is byte-level BPE, "llama" is SentencePiece;
// "none", "no_vocab", "test" or no entry: the model takes token ids only.
//
// Files say incompletely which tokens end a turn and which are control text; as
// all programs that read them do, well-known texts decide as well.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_TOKENIZER_H
#define LLMC_FRONTENDS_GGUF_TOKENIZER_H

#include "compiler/support/ModelSource.h"
#include "frontends/gguf/ImportGguf.h"
#include "frontends/gguf/MetadataReader.h"

namespace llmc::gguf {

llvm::Expected<TokenizerData> readTokenizer(const GgufFile &file, const GgufImportOptions &options);

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_TOKENIZER_H
