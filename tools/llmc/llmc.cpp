//===- llmc.cpp - the compiler's command line -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

using namespace llmc;

/// Prints the one line that a failed command leaves and gives the exit status.
static int finish(llvm::Error error) {
  if (!error)
    return 0;
  llvm::errs() << "llmc: error: " << llvm::toString(std::move(error)) << "\n";
  return 1;
}

int main(int argc, char **argv) {
  CLI::App app("llmc: an ahead-of-time compiler for language models");
  app.require_subcommand(1);
  app.set_version_flag("--version", "llmc 0.1.0");

  CompileOptions compileOptions;
  std::string phase = "emit", activations = "int8";
  CLI::App *compileCommand = app.add_subcommand("compile", "compile a model into one artifact");
  compileCommand->add_option("MODEL", compileOptions.input, "the model (.gguf)")->required();
  compileCommand->add_option("-o,--output", compileOptions.output, "the artifact (default: MODEL's name with .llmc)");
  compileCommand->add_option("--target", compileOptions.targets, "instruction sets: native, x86-64-v3, x86-64-v4+vnni")
      ->delimiter(',');
  compileCommand->add_option("--activations", activations, "int8 (default) or f32, the reference mode")
      ->check(CLI::IsMember({"int8", "f32"}));
  compileCommand->add_option("--context", compileOptions.context, "positions a sequence may have (default: as trained)")
      ->check(CLI::PositiveNumber);
  compileCommand->add_option("--pre", compileOptions.preTokenizer, "use this pre-tokenizer instead of the file's");
  std::vector<std::string> phases;
  for (Phase p : kPhases)
    phases.push_back(phaseName(p).str());
  compileCommand->add_option("--compile-to", phase, "stop after this phase and print its IR")
      ->check(CLI::IsMember(phases));
  compileCommand->add_option("--dump-ir", compileOptions.dumpDir, "write the IR after every phase to this folder");
  compileCommand->add_flag("-q,--quiet", compileOptions.quiet, "no progress");

  CLI11_PARSE(app, argc, argv);

  if (*compileCommand) {
    compileOptions.f32Activations = activations == "f32";
    compileOptions.compileTo = *parsePhase(phase);
    return finish(compile(compileOptions));
  }
  return 0;
}
