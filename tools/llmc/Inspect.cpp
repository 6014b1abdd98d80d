//===- Inspect.cpp - llmc inspect -----------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc/Inspect.h"
#include "runtime/schema/Prefix.h"
#include "tools/llmc/Commands.h"
#include "llvm/Support/FileSystem.h"
#include <memory>

using namespace llmc;
using namespace llmc::tool;

/// The first bytes say what a file is, whatever its name. A file that is too short to say is left
/// to the GGUF reader, which knows what is missing.
static llvm::Expected<bool> isArtifact(const std::string &path) {
  llvm::Expected<llvm::sys::fs::file_t> file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return makeError("cannot open " + path + ": " + llvm::toString(file.takeError()));
  char magic[sizeof kArtifactMagic] = {};
  llvm::Expected<size_t> count = llvm::sys::fs::readNativeFile(*file, magic);
  llvm::sys::fs::closeFile(*file);
  if (!count)
    return makeError("cannot read " + path + ": " + llvm::toString(count.takeError()));
  return std::equal(std::begin(magic), std::end(magic), std::begin(kArtifactMagic),
                    [](char a, uint8_t b) { return uint8_t(a) == b; });
}

static llvm::Error inspect(const InspectOptions &options, bool json) {
  llvm::Expected<bool> compiled = isArtifact(options.path);
  if (!compiled)
    return compiled.takeError();
  llvm::Expected<Json> report = *compiled ? inspectArtifact(options) : inspectGgufFile(options);
  if (!report)
    return report.takeError();
  printReport(*report, json);
  return llvm::Error::success();
}

void llmc::tool::addInspect(CLI::App &app, Action &action) {
  struct Arguments {
    InspectOptions options;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  InspectOptions &options = arguments->options;
  CLI::App *command = app.add_subcommand("inspect", "Say what is in a model or an artifact");
  command->add_option("FILE", options.path, "A .gguf or .llmc file")->required();
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->add_flag("--rope", options.rope, "Print the rotary embeddings of a .gguf file");
  command->add_flag("--stats", options.stats,
                    "Read all weights of a .gguf file; print their means");
  command->callback([arguments, &action] {
    action = [arguments] { return inspect(arguments->options, arguments->json); };
  });
}
