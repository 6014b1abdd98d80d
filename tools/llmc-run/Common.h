//===- Common.h - what commands of llmc-run share ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_COMMON_H
#define LLMC_TOOLS_LLMCRUN_COMMON_H

#include "runtime/llm/Model.h"
#include "tools/llmc-run/Options.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace llmc::run {

using Json = nlohmann::ordered_json;

/// Writes to standard output at once; false where that fails.
bool print(std::string_view text);
/// A line of JSON. Text of models need not be UTF-8; JSON must be.
bool printJson(const Json &json);

/// All of a file; "-" is standard input.
rt::StatusOr<std::string> readText(const std::string &path);

struct Loaded {
  std::shared_ptr<const rt::Model> model;
  double seconds;
};
/// Loads the model for the device that was asked for; `textOnly`: for its vocabulary.
rt::StatusOr<Loaded> loadModel(const Options &options, bool textOnly = false);

unsigned threadsOf(const Options &options);

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_COMMON_H
