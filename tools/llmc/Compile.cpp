//===- Compile.cpp - llmc compile -----------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"
#include "tools/llmc/Commands.h"
#include <memory>

using namespace llmc;

void llmc::tool::addCompile(CLI::App &app, Action &action) {
  struct Arguments {
    CompileOptions options;
    std::string phase = phaseName(Phase::Emit).str(), activations = "int8", numerics;
  };
  auto arguments = std::make_shared<Arguments>();
  CompileOptions &options = arguments->options;
  CLI::App *command = app.add_subcommand("compile", "Compile a model into one artifact");
  command->add_option("MODEL", options.input, "The model (.gguf)")->required();
  command->add_option("-o,--output", options.output,
                      "The artifact (default: MODEL's name with .llmc, in this folder)");
  command
      ->add_option("--target", options.targets,
                   "Instruction sets, one variant of the code for each (default: native): "
                   "native, x86-64-v3, x86-64-v4+vnni, ...")
      ->delimiter(',');
  command
      ->add_option("--activations", arguments->activations,
                   "int8 (default) or f32, the reference mode")
      ->check(CLI::IsMember({"int8", "f32"}));
  command
      ->add_option("--numerics", arguments->numerics,
                   "strict: prefill and decode give the same bits; fast: they may differ where "
                   "that is faster (default: strict, but for targets where it is much slower)")
      ->check(CLI::IsMember({"strict", "fast"}));
  command
      ->add_option("--context", options.context,
                   "Positions a sequence may have (default: as trained)")
      ->check(CLI::PositiveNumber);
  command->add_option("--tokenizer", options.tokenizer,
                      "Use the tokenizer.json and chat template in this folder");
  command->add_option("--pre", options.preTokenizer,
                      "Use this pre-tokenizer instead of the file's");
  std::vector<std::string> phases;
  for (Phase phase : kPhases)
    phases.push_back(phaseName(phase).str());
  command->add_option("--compile-to", arguments->phase, "Stop after this phase and print its IR")
      ->check(CLI::IsMember(phases));
  command->add_option("--report", options.reportPath,
                      "Write phases, weights and programs to this JSON file");
  command->add_option("--dump-ir", options.dumpDir,
                      "Write the IR after every phase to this folder");
  command->add_flag("-q,--quiet", options.quiet, "No progress");

  command->callback([arguments, &action] {
    action = [arguments] {
      CompileOptions &options = arguments->options;
      options.f32Activations = arguments->activations == "f32";
      if (!arguments->numerics.empty())
        options.numerics = arguments->numerics == "fast" ? Numerics::Fast : Numerics::Strict;
      options.compileTo = *parsePhase(arguments->phase);
      return compile(options);
    };
  });
}
