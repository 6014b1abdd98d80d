//===- Options.cpp - the command line of llmc-run -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Options.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdio>
#include <random>

using namespace llmc::rt;
using namespace llmc::run;

namespace {

std::optional<int> fail(const std::string &message) {
  std::fprintf(stderr, "llmc-run: %s\n", message.c_str());
  return 1;
}

/// Whole numbers separated by commas. Throws what CLI11 reports.
template <typename Number>
std::vector<Number> parseList(const char *option, std::string_view text) {
  std::vector<Number> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const auto [stop, error] =
        std::from_chars(item.data(), item.data() + item.size(), numbers.emplace_back());
    if (error != std::errc() || stop != item.data() + item.size())
      throw CLI::ValidationError(option, "item " + std::to_string(numbers.size()) + ", '" +
                                             std::string(item) + "', is not a whole number");
    begin = end + 1;
  }
  return numbers;
}

uint64_t randomSeed() {
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

void addInput(CLI::App &app, Options &options) {
  auto *group = app.add_option_group("Input");
  group->add_option_function<std::string>(
      "-p,--prompt", [&](const std::string &text) { options.prompt = text; }, "The prompt");
  group->add_option("-f,--file", options.promptFile, "A file with the prompt; - is standard input");
  group->add_option_function<std::string>(
      "--tokens",
      [&](const std::string &text) { options.tokens = parseList<int32_t>("--tokens", text); },
      "The prompt as token ids: 1,2,3");
  group->require_option(0, 1);
  app.add_flag("--special", options.special, "Control text stands for control tokens, both ways");
}

void addCommands(CLI::App &app, Options &options) {
  auto *group = app.add_option_group("What to do", "By default: continue the prompt");
  const auto choose = [&](Command command) { return [&, command] { options.command = command; }; };
  group->add_flag_callback("--chat", choose(Command::Chat),
                           "Hold a conversation: one turn with -p or -f, else a message per line "
                           "of standard input");
  group
      ->add_option("--logits", options.logitsFile,
                   "Write the prompt's logits, float32 [positions, vocabulary], to an .npy file")
      ->each([&](const std::string &) { options.command = Command::Logits; });
  group->add_flag_callback("--embed", choose(Command::Embed),
                           "Print the embedding of -p, or of each line of -f");
  group->add_flag_callback("--tokenize", choose(Command::Tokenize),
                           "Print the token ids of -p or -f as JSON");
  group->add_option_function<std::string>(
      "--detokenize",
      [&](const std::string &text) {
        options.command = Command::Detokenize;
        options.tokens = parseList<int32_t>("--detokenize", text);
      },
      "Print the text of token ids: 1,2,3");
  group->add_option_function<std::string>(
      "--bench",
      [&](const std::string &text) {
        options.command = Command::Bench;
        const auto sizes = parseList<uint32_t>("--bench", text);
        if (sizes.size() != 2 || sizes[0] == 0 || sizes[1] == 0)
          throw CLI::ValidationError("--bench", "needs two numbers above 0, such as 512,128");
        options.benchPrompt = sizes[0];
        options.benchTokens = sizes[1];
      },
      "P,N: measure the speed of P prompt tokens and N generated ones");
  group->add_flag_callback("--bench-verify", choose(Command::BenchVerify),
                           "Measure a step that verifies 1, 2, ... tokens");
  group->add_flag_callback("--print-config", choose(Command::PrintConfig),
                           "Print what would be used: threads, variant, ...");
  group
      ->add_option("--output-dir", options.outputDir,
                   "Run a graph and write each output to NAME.npy in this folder")
      ->each([&](const std::string &) { options.command = Command::RunGraph; });
  group->require_option(0, 1);
  app.add_option_function<std::vector<std::string>>(
         "--input",
         [&](const std::vector<std::string> &texts) {
           for (const std::string &text : texts) {
             // File names may have the sign too; names of inputs hardly do.
             const size_t at = text.find('=');
             if (at == std::string::npos || at == 0 || at + 1 == text.size())
               throw CLI::ValidationError("--input", "'" + text + "' is not NAME=FILE.npy");
             options.inputs.emplace_back(text.substr(0, at), text.substr(at + 1));
           }
         },
         "NAME=FILE.npy: an input of a graph (repeatable)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_option("--output", options.embeddingFile,
                 "Write what --embed gives, float32 [texts, width], to an .npy file");
  app.add_flag_callback(
      "--no-truncate", [&] { options.truncate = false; },
      "Refuse to embed a text that is too long, rather than cut its end off");
  app.add_option("--repeat", options.repeat, "Runs of --bench and --bench-verify (3)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--system", options.system, "The system message of --chat");
  app.add_option("--profile", options.profileFile,
                 "Write the time of every operation and layer to a JSON file, a table to stderr");
  app.add_flag("--json", options.json, "Print one JSON object");
}

void addGeneration(CLI::App &app, GenerateOptions &generate) {
  SamplerOptions &sampler = generate.sampler;
  auto *group = app.add_option_group("Generation");
  group->add_option("-n,--max-tokens", generate.maxTokens,
                    "The most tokens to generate (default: until the model ends)");
  group->add_option("--temp", sampler.temperature, "Temperature; 0 (default) is greedy");
  group->add_option("--top-k", sampler.topK, "Choose among the K most likely tokens; 0: all");
  group->add_option("--top-p", sampler.topP, "Choose among the likeliest with probability P");
  group->add_option("--min-p", sampler.minP, "Drop tokens below P times the best's probability");
  group->add_option("--repeat-penalty", sampler.repeatPenalty,
                    "Make recent tokens less likely; 1: off");
  group->add_option("--repeat-last", sampler.repeatLast, "How many tokens are recent (64)");
  group->add_option("--seed", sampler.seed,
                    "Seed of the random numbers (default: another each time)");
  group->add_option("--stop", generate.stops, "End before this text (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  group->add_flag("--ignore-end", generate.ignoreEnd, "Go on after end tokens");
}

void addDrafts(CLI::App &app, Options &options) {
  auto *group = app.add_option_group("Drafts", "Verify several tokens in a step; changes no token");
  auto *source = group
                     ->add_option_function<std::string>(
                         "--draft", [&](const std::string &) { options.ngramDrafts = true; },
                         "Where drafts come from: ngram, repetitions in the text so far")
                     ->check(CLI::IsMember({"ngram"}));
  group->add_option("--draft-max", options.generate.draft.most, "Drafted tokens in a step (8)")
      ->check(CLI::Range(1, 1024))
      ->needs(source);
  group
      ->add_flag_callback(
          "--draft-always", [&] { options.generate.draft.adaptive = false; },
          "Verify whole drafts, even where plain steps are faster")
      ->needs(source);
}

void addMachine(CLI::App &app, Options &options) {
  auto *group = app.add_option_group("Machine");
  group
      ->add_option("--threads", options.threads,
                   "Worker threads (default: the cores this process may use)")
      ->envname("LLMC_THREADS");
  group->add_option("--chunk", options.session.prefillChunk, "Prompt tokens per step");
  group->add_option("--context", options.session.contextLimit,
                    "Context limit, at most what was compiled");
  group->add_option_function<std::string>(
      "--device",
      [&](const std::string &text) {
        if (Status status = parseDevice(text, options.load); !status.ok())
          throw CLI::ValidationError("--device", status.message());
      },
      "auto (default: a GPU where the artifact has code for it), cpu, cuda or cuda:N");
  group->add_option_function<uint32_t>(
      "--gpu-layers", [&](uint32_t layers) { options.load.gpuLayers = layers; },
      "Compute so many of the first layers on the GPU, the others on the CPU");
  group->add_option("--variant", options.load.variant, "Use this variant of the code");
}

/// What is wrong with a well-formed command line; empty if nothing is.
std::string contradiction(const Options &options) {
  const bool hasText = options.prompt || !options.promptFile.empty();
  if (options.model.empty() && options.command != Command::PrintConfig)
    return "name a compiled model: llmc-run MODEL.llmc -p TEXT";
  if (options.load.device == DeviceKind::Cpu && options.load.gpuLayers.value_or(0) > 0)
    return "--gpu-layers needs a GPU, not --device cpu";
  if (!options.inputs.empty() && options.command != Command::RunGraph)
    return "--input needs --output-dir DIR, where the outputs go";
  if (options.command != Command::Embed && !options.embeddingFile.empty())
    return "--output is where --embed writes to";
  switch (options.command) {
  case Command::Generate:
  case Command::Logits:
    return hasText || options.tokens
               ? ""
               : "nothing to do: give a prompt with -p TEXT, -f FILE or --tokens 1,2,3, or use "
                 "--chat";
  case Command::Embed:
    return hasText || options.tokens
               ? ""
               : "--embed needs -p TEXT, -f FILE with a text on each line, or --tokens 1,2,3";
  case Command::Tokenize:
    return hasText ? "" : "--tokenize needs -p TEXT or -f FILE";
  case Command::Chat:
    return options.tokens ? "--chat takes text, not --tokens" : "";
  case Command::Detokenize:
  case Command::Bench:
  case Command::BenchVerify:
  case Command::PrintConfig:
  case Command::RunGraph:
    return "";
  }
  return "";
}

} // namespace

std::optional<int> llmc::run::parseOptions(int argc, char **argv, Options &options) {
  CLI::App app("Runs a model that llmc has compiled.", "llmc-run");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("model", options.model, "The compiled model, MODEL.llmc");
  addInput(app, options);
  addCommands(app, options);
  addGeneration(app, options.generate);
  addDrafts(app, options);
  addMachine(app, options);

  options.generate.sampler.seed = randomSeed();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    return fail(std::string(error.what()) + " (see llmc-run --help)");
  }
  options.generate.special = options.special;
  options.session.profile = !options.profileFile.empty();
  if (std::string mistake = contradiction(options); !mistake.empty())
    return fail(mistake + " (see llmc-run --help)");
  return std::nullopt;
}
