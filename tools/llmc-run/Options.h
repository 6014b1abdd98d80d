//===- Options.h - the command line of llmc-run -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_OPTIONS_H
#define LLMC_TOOLS_LLMCRUN_OPTIONS_H

#include "runtime/llm/Generator.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc::run {

/// What to do with the model.
enum class Command {
  Generate,
  Chat,
  Logits,
  Tokenize,
  Detokenize,
  Bench,
  BenchVerify,
  PrintConfig,
  RunGraph,
  Embed
};

struct Options {
  Command command = Command::Generate;
  std::string model;

  // Input, one of:
  std::optional<std::string> prompt;
  std::string promptFile;
  std::optional<std::vector<int32_t>> tokens;

  rt::GenerateOptions generate;
  std::string system;
  bool ngramDrafts = false;
  bool special = false;
  bool json = false;
  std::string logitsFile;
  /// Of a graph: name of the input and file.
  std::vector<std::pair<std::string, std::string>> inputs;
  std::string outputDir;
  std::string embeddingFile; ///< empty: embeddings are printed
  bool truncate = true;      ///< a text that is too long to embed loses its end
  std::string profileFile;   ///< empty: do not measure
  uint32_t benchPrompt = 0, benchTokens = 0, repeat = 3;

  rt::ModelOptions load; ///< device and code
  unsigned threads = 0;  ///< 0: the cores that this process may use
  rt::SessionOptions session;
};

/// Reads the command line. Gives the process' exit status where there is nothing more to do: after
/// --help, or after a mistake, which it has reported.
std::optional<int> parseOptions(int argc, char **argv, Options &options);

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_OPTIONS_H
