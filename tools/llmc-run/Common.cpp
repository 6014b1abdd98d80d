//===- Common.cpp - what commands of llmc-run share -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Common.h"

#include "runtime/base/Topology.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

using namespace llmc::run;
using namespace llmc::rt;

bool llmc::run::print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

bool llmc::run::printJson(const Json &json) {
  return print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

StatusOr<std::string> llmc::run::readText(const std::string &path) {
  std::FILE *file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return notFound("cannot open " + path + ": " + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, file))
    text.append(buffer, count);
  const int error = std::ferror(file) ? errno : 0;
  if (file != stdin)
    std::fclose(file);
  if (error)
    return notFound("cannot read " + path + ": " + std::strerror(error));
  return text;
}

StatusOr<Loaded> llmc::run::loadModel(const Options &options, bool textOnly) {
  const auto start = std::chrono::steady_clock::now();
  ModelOptions load = options.load;
  load.textOnly = textOnly;
  LLMC_ASSIGN_OR_RETURN(auto model, Model::load(options.model, load));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!model->fallback().empty())
    std::fprintf(stderr, "llmc-run: using the CPU: %s\n", model->fallback().c_str());
  return Loaded{std::move(model), elapsed.count()};
}

unsigned llmc::run::threadsOf(const Options &options) {
  return options.threads ? options.threads : usableCores();
}
