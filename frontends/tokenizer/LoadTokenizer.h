//===- LoadTokenizer.h - the tokenizer beside a model -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models that are not GGUF files bring their text rules in files of their own,
// as Hugging Face's libraries write them:
//
//   tokenizer.json               vocabulary and rules (required)
//   tokenizer_config.json        names of BOS, EOS and so on; the chat template
//   special_tokens_map.json      the same names, in older folders
//   chat_template.jinja          the chat template
//   generation_config.json, genai_config.json, config.json     token ids
//
// What tokenizer.json says is lowered to the few steps of TextPipelineData. A
// component that cannot be lowered is refused by its name and place.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_TOKENIZER_LOADTOKENIZER_H
#define LLMC_FRONTENDS_TOKENIZER_LOADTOKENIZER_H

#include "compiler/support/ModelSource.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace llmc {

struct LoadedTokenizer {
  TokenizerData tokenizer;
  std::string chatTemplate;
  /// Facts for `inspect`: which files were read.
  std::vector<std::pair<std::string, std::string>> properties;
};

/// Whether `folder` has a tokenizer.json.
bool hasTokenizer(llvm::StringRef folder);

/// The tokenizer in `folder`, or in the tokenizer.json at that path. Errors are ImportErrors of one
/// line that names the file, the place and the reason.
llvm::Expected<LoadedTokenizer> loadTokenizer(llvm::StringRef folder);

/// The tokenizer in the text of a tokenizer.json; `path` is for messages.
llvm::Expected<TokenizerData> parseTokenizerJson(llvm::StringRef path, llvm::StringRef text);

} // namespace llmc

#endif // LLMC_FRONTENDS_TOKENIZER_LOADTOKENIZER_H
