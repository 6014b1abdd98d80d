//===- PreTokenizer.h - the named pre-tokenizers of BPE models -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A byte-level BPE model says by name (GGUF: tokenizer.ggml.pre) how text is cut
// into words before the merges run. The names are those that llama.cpp writes;
// the regular expressions are those of the models' own tokenizer.json.
//
// A pre-tokenizer is a list of steps. The first step sees the whole text; each
// further step sees every piece that the earlier ones left, as a text of its
// own (lookarounds do not see the neighbours). A step cuts its input before and
// after every match; what lies between two matches is a piece too.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_PRETOKENIZER_H
#define LLMC_RUNTIME_TEXT_PRETOKENIZER_H

#include <span>
#include <string>
#include <string_view>

namespace llmc::rt {

struct SplitStep {
  /// A PCRE pattern in which \s and \S mean Unicode's White_Space.
  std::string_view pattern;
  /// Cuts each match further into groups of three characters, counted from its
  /// end. As a lookahead this would take quadratic time.
  bool groupsOfThree = false;
};

struct PreTokenizer {
  std::string_view name;
  std::span<const SplitStep> steps;
  /// What models with this pre-tokenizer do where their file does not say.
  bool ignoreMerges = false; ///< a word that is a token is taken whole
  bool addBos = false;       ///< texts begin with the BOS token
};

/// All known pre-tokenizers, in alphabetical order.
std::span<const PreTokenizer> knownPreTokenizers();

/// The pre-tokenizer of that name, or null.
const PreTokenizer *findPreTokenizer(std::string_view name);

inline bool isKnownPreTokenizer(std::string_view name) { return findPreTokenizer(name) != nullptr; }

/// One line for the user: the unknown name, the known ones, and the override.
std::string unknownPreTokenizerMessage(std::string_view name);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_PRETOKENIZER_H
