//===- Inspect.cpp - llmc inspect -----------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc/Inspect.h"
#include "frontends/onnx/ModelReader.h"
#include "runtime/schema/Prefix.h"
#include "tools/llmc/Commands.h"
#include "llvm/Support/FileSystem.h"
#include <memory>

using namespace llmc;
using namespace llmc::tool;

namespace {
enum class Format { Artifact, Gguf, Onnx };
} // namespace

/// The first bytes say what a file is, whatever its name. A file that is too short to say is left
/// to the GGUF reader, which knows what is missing.
static llvm::Expected<Format> formatOf(const std::string &path) {
  llvm::Expected<llvm::sys::fs::file_t> file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return makeError("cannot open " + path + ": " + llvm::toString(file.takeError()));
  char magic[sizeof kArtifactMagic] = {};
  llvm::Expected<size_t> count = llvm::sys::fs::readNativeFile(*file, magic);
  llvm::sys::fs::closeFile(*file);
  if (!count)
    return makeError("cannot read " + path + ": " + llvm::toString(count.takeError()));
  if (std::equal(std::begin(magic), std::end(magic), std::begin(kArtifactMagic),
                 [](char a, uint8_t b) { return uint8_t(a) == b; }))
    return Format::Artifact;
  return onnx::isOnnxFile(path) ? Format::Onnx : Format::Gguf;
}

static llvm::Expected<Json> reportOf(const InspectOptions &options, Format format) {
  switch (format) {
  case Format::Artifact:
    return inspectArtifact(options);
  case Format::Gguf:
    return inspectGgufFile(options);
  case Format::Onnx:
    return inspectOnnxFile(options);
  }
  return makeError("unknown format");
}

static llvm::Error inspect(const InspectOptions &options, bool json) {
  llvm::Expected<Format> format = formatOf(options.path);
  if (!format)
    return format.takeError();
  llvm::Expected<Json> report = reportOf(options, *format);
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
  command->add_option("FILE", options.path, "A .gguf, .onnx or .llmc file")->required();
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->add_flag("--rope", options.rope, "Print the rotary embeddings of a .gguf file");
  command->add_flag("--stats", options.stats,
                    "Read all weights of a .gguf file; print their means");
  command->callback([arguments, &action] {
    action = [arguments] { return inspect(arguments->options, arguments->json); };
  });
}
