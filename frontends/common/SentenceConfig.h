//===- SentenceConfig.h - what stands beside a sentence encoder -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// sentence-transformers saves a model as a chain of modules, modules.json: the
// transformer, how its rows become one (1_Pooling/config.json), whether that gets
// length 1. sentence_bert_config.json says after how many tokens a text is cut.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_COMMON_SENTENCECONFIG_H
#define LLMC_FRONTENDS_COMMON_SENTENCECONFIG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace llmc {

struct SentenceConfig {
  std::string pooling; ///< "mean", "cls", "last", or "none"
  bool normalize = false;
  int64_t maxTokens = 0; ///< 0: nothing is said
};

/// What the files in `folder` say; nothing where there is no modules.json. Modules and poolings
/// that are not known are errors of one line, as are files that cannot be understood.
llvm::Expected<std::optional<SentenceConfig>> readSentenceConfig(llvm::StringRef folder);

} // namespace llmc

#endif // LLMC_FRONTENDS_COMMON_SENTENCECONFIG_H
