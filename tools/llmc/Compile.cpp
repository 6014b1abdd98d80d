//===- Compile.cpp - llmc compile -----------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"
#include "tools/llmc/Commands.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <memory>

using namespace llmc;
using namespace llmc::tool;

/// Rules as they are, and those of files, a line each; '#' begins a comment.
static llvm::Error readQuantMap(llvm::ArrayRef<std::string> arguments,
                                std::vector<std::string> &rules) {
  for (const std::string &argument : arguments) {
    if (llvm::StringRef(argument).contains('=')) {
      rules.push_back(argument);
      continue;
    }
    llvm::Expected<std::string> text = readFile(argument);
    if (!text)
      return text.takeError();
    for (llvm::StringRef line : llvm::split(*text, '\n'))
      if (llvm::StringRef rule = line.split('#').first.trim(); !rule.empty())
        rules.push_back(rule.str());
  }
  return llvm::Error::success();
}

void llmc::tool::addCompile(CLI::App &app, Action &action) {
  struct Arguments {
    CompileOptions options;
    std::string phase = phaseName(Phase::Emit).str(), activations, numerics;
    std::vector<std::string> quantMap;
  };
  auto arguments = std::make_shared<Arguments>();
  CompileOptions &options = arguments->options;
  CLI::App *command = app.add_subcommand("compile", "Compile a model into one artifact");
  command->add_option("MODEL", options.input, "The model (.gguf or .onnx)")->required();
  command->add_option("-o,--output", options.output,
                      "The artifact (default: MODEL's name with .llmc, in this folder)");
  command
      ->add_option("--target", options.targets,
                   "Instruction sets, one variant of the code for each (default: native): "
                   "native, x86-64-v3, x86-64-v4+vnni, ...")
      ->delimiter(',');
  command
      ->add_option("--activations", arguments->activations,
                   "int8, f32, the reference mode, or mixed: what comes out of norms stays float32 "
                   "(default: mixed for sentence encoders, else int8)")
      ->check(CLI::IsMember({"int8", "f32", "mixed"}));
  command
      ->add_option("--numerics", arguments->numerics,
                   "strict: prefill and decode give the same bits; fast: they may differ where "
                   "that is faster (default: strict, but for targets where it is much slower)")
      ->check(CLI::IsMember({"strict", "fast"}));
  command
      ->add_option("--context", options.context,
                   "Positions a sequence may have (default: as trained)")
      ->check(CLI::PositiveNumber);
  command->add_option(
      "--tokenizer", options.tokenizer,
      "Use the tokenizer.json and chat template in this folder, or those of a .gguf");
  command
      ->add_option(
          "--pooling", options.pooling,
          "Of a sentence encoder, what the rows of a text become: mean, cls, last, or none "
          "(default: as the files beside the model say, else mean)")
      ->check(CLI::IsMember({"none", "mean", "cls", "last"}));
  command->add_flag_callback(
      "--normalize", [&options] { options.normalize = true; }, "Give embeddings length 1");
  command->add_flag_callback(
      "--no-normalize", [&options] { options.normalize = false; },
      "Leave embeddings as they are (default: as the files beside the model say, else length 1)");
  command->add_option("--quant", options.quant,
                      "Quantize matrices: none (default), int8, int8-channel, int4, int4-mixed, or "
                      "an encoding such as int4_g64_min");
  command
      ->add_option("--quant-map", arguments->quantMap,
                   "PATTERN=ENCODING for weights of such names (* for any text, none keeps), or a "
                   "file of such lines; the first that matches counts")
      ->allow_extra_args(false);
  command->add_option("--calibrate", options.calibrate,
                      "A text to run the model on first: errors of columns that are multiplied "
                      "with large numbers then weigh more");
  command
      ->add_option("--max-kl", options.maxKl,
                   "Fail where quantizing costs more mean KL divergence from the source")
      ->check(CLI::NonNegativeNumber);
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
  command
      ->add_option("--shape", options.shapes,
                   "NAME=2x128: sizes of an ONNX input that the file leaves open (repeatable)")
      ->allow_extra_args(false);
  command
      ->add_option("--set", options.constants,
                   "NAME=FILE.pb: make an ONNX input a constant, given as a TensorProto "
                   "(repeatable)")
      ->allow_extra_args(false);
  command->add_flag("--quick", options.quick, "Compile fast, to slower code");
  command->add_flag("-q,--quiet", options.quiet, "No progress");

  command->callback([arguments, &action] {
    action = [arguments] {
      CompileOptions &options = arguments->options;
      options.activations = llvm::StringSwitch<Activations>(arguments->activations)
                                .Case("int8", Activations::Int8)
                                .Case("mixed", Activations::Mixed)
                                .Case("f32", Activations::F32)
                                .Default(Activations::Default);
      if (!arguments->numerics.empty())
        options.numerics = arguments->numerics == "fast" ? Numerics::Fast : Numerics::Strict;
      options.compileTo = *parsePhase(arguments->phase);
      if (llvm::Error error = readQuantMap(arguments->quantMap, options.quantOverrides))
        return error;
      return compile(options);
    };
  });
}
