//===- Commands.cpp - what llmc-run can do --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Commands.h"

#include "runtime/base/Topology.h"
#include "runtime/llm/Bench.h"
#include "runtime/llm/Chat.h"
#include "runtime/llm/NgramDraft.h"
#include "tools/llmc-run/Common.h"
#include "tools/llmc-run/Embed.h"
#include "tools/llmc-run/Graph.h"
#include "tools/llmc-run/Npy.h"
#include "tools/llmc-run/ProfileReport.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace llmc;
using namespace llmc::run;
using namespace llmc::rt;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kMillis = 1e3;

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

/// An object, as JSON or as lines of "key value".
void printTable(const Json &object, bool asJson) {
  if (asJson) {
    printJson(object);
    return;
  }
  for (const auto &[key, value] : object.items())
    print(key + " " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n");
}

/// -p or -f.
StatusOr<std::string> promptText(const Options &options) {
  if (options.prompt)
    return *options.prompt;
  return readText(options.promptFile);
}

StatusOr<const Tokenizer *> tokenizerOf(const Model &model) {
  if (const Tokenizer *tokenizer = model.tokenizer())
    return tokenizer;
  return unsupported(model.artifact().path() +
                     " has no tokenizer; give token ids with --tokens 1,2,3");
}

StatusOr<std::vector<int32_t>> promptTokens(const Options &options, const Model &model) {
  if (options.tokens)
    return *options.tokens;
  LLMC_ASSIGN_OR_RETURN(std::string text, promptText(options));
  LLMC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(model));
  std::vector<int32_t> ids;
  LLMC_RETURN_IF_ERROR(
      tokenizer->encode(text, {.parseSpecial = options.special, .addSpecial = true}, ids));
  return ids;
}

StatusOr<std::unique_ptr<Session>> makeSession(const Options &options,
                                               std::shared_ptr<const Model> model) {
  const unsigned workers = model->cpuVariant() ? threadsOf(options) : 1;
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool, WorkerPool::create(workers));
  return Session::create(std::move(model), std::move(pool), options.session);
}

/// Null where drafts are not asked for.
StatusOr<std::unique_ptr<DraftSource>> makeDraft(const Options &options, const Session &session) {
  if (!options.ngramDrafts)
    return std::unique_ptr<DraftSource>();
  if (session.verifyRows() == 1)
    return unsupported(session.getModel().artifact().path() + " has no code that verifies drafts");
  return std::unique_ptr<DraftSource>(new NgramDraft(session.contextLimit()));
}

/// What is due at the end of a command that has computed.
Status finish(const Options &options, const Session &session) {
  return options.session.profile ? reportProfile(session.getModel(), session.workers().size(),
                                                 session.profiles(), options.profileFile)
                                 : Status();
}

void reportSpeed(const GenerateResult &result, const Options &options, double loadSeconds) {
  const uint32_t computed = result.promptTokens - result.reusedTokens;
  std::fprintf(stderr,
               "prompt %u tokens, %.1f tokens/s; generated %u tokens, %.1f tokens/s; "
               "loaded in %.0f ms\n",
               result.promptTokens, rate(computed, result.prefillSeconds), result.completionTokens,
               rate(result.stepTokens, result.decodeSeconds), loadSeconds * kMillis);
  if (options.ngramDrafts)
    std::fprintf(stderr, "drafts: %u of %u tokens accepted, in %u of %u steps\n", result.accepted,
                 result.drafted, result.verifySteps, result.steps);
}

Json describe(const GenerateResult &result, const std::string &text,
              std::span<const int32_t> tokens, const Options &options, double loadSeconds) {
  const uint32_t computed = result.promptTokens - result.reusedTokens;
  return {{"text", text},
          {"tokens", tokens},
          {"finish_reason", toString(result.finish)},
          {"usage",
           {{"prompt_tokens", result.promptTokens},
            {"completion_tokens", result.completionTokens},
            {"total_tokens", result.promptTokens + result.completionTokens}}},
          {"timings",
           {{"load_ms", loadSeconds * kMillis},
            {"prefill_ms", result.prefillSeconds * kMillis},
            {"decode_ms", result.decodeSeconds * kMillis},
            {"prefill_tok_s", rate(computed, result.prefillSeconds)},
            {"decode_tok_s", rate(result.stepTokens, result.decodeSeconds)}}},
          {"drafts",
           {{"steps", result.steps},
            {"verify_steps", result.verifySteps},
            {"proposed", result.drafted},
            {"accepted", result.accepted}}},
          {"seed", options.generate.sampler.seed}};
}

/// What a model without a tokenizer gives instead of text.
void printIds(std::span<const int32_t> tokens) {
  std::string line;
  for (int32_t token : tokens)
    line += (line.empty() ? "" : ",") + std::to_string(token);
  print(line);
}

/// Generates and prints, as text or JSON. Gives the text.
StatusOr<std::string> complete(const Options &options, Generator &generator,
                               std::span<const int32_t> prompt, const Loaded &loaded) {
  std::string text;
  LLMC_ASSIGN_OR_RETURN(GenerateResult result,
                        generator.generate(prompt, [&](std::string_view part) {
                          text += part;
                          return options.json || print(part);
                        }));
  if (options.json) {
    printJson(describe(result, text, generator.completion(), options, loaded.seconds));
    return text;
  }
  if (!loaded.model->tokenizer())
    printIds(generator.completion());
  print("\n");
  reportSpeed(result, options, loaded.seconds);
  return text;
}

Status generate(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
  LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, promptTokens(options, *loaded.model));
  LLMC_ASSIGN_OR_RETURN(auto session, makeSession(options, loaded.model));
  LLMC_ASSIGN_OR_RETURN(auto draft, makeDraft(options, *session));
  LLMC_ASSIGN_OR_RETURN(Generator generator,
                        Generator::create(*session, options.generate, draft.get()));
  LLMC_RETURN_IF_ERROR(complete(options, generator, prompt, loaded).takeStatus());
  return finish(options, *session);
}

/// The next line of standard input, without its end; nothing at the end of the input.
std::optional<std::string> readLine() {
  char *line = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, stdin);
  std::optional<std::string> text;
  if (length >= 0)
    text.emplace(line, length - (length > 0 && line[length - 1] == '\n'));
  std::free(line);
  return text;
}

Status chat(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
  LLMC_ASSIGN_OR_RETURN(ChatRenderer renderer, ChatRenderer::create(loaded.model));
  LLMC_ASSIGN_OR_RETURN(auto session, makeSession(options, loaded.model));
  LLMC_ASSIGN_OR_RETURN(auto draft, makeDraft(options, *session));
  LLMC_ASSIGN_OR_RETURN(Generator generator,
                        Generator::create(*session, options.generate, draft.get()));
  std::vector<ChatMessage> messages;
  if (!options.system.empty())
    messages.push_back({"system", options.system});

  const auto takeTurn = [&](std::string message) -> Status {
    messages.push_back({"user", std::move(message)});
    std::vector<int32_t> prompt;
    LLMC_RETURN_IF_ERROR(renderer.encode(messages, /*addGenerationPrompt=*/true, prompt));
    LLMC_ASSIGN_OR_RETURN(std::string answer, complete(options, generator, prompt, loaded));
    messages.push_back({"assistant", std::move(answer)});
    return {};
  };
  if (options.prompt || !options.promptFile.empty()) {
    LLMC_ASSIGN_OR_RETURN(std::string message, promptText(options));
    LLMC_RETURN_IF_ERROR(takeTurn(std::move(message)));
    return finish(options, *session);
  }
  const bool interactive = isatty(STDIN_FILENO);
  while (true) {
    if (interactive)
      std::fputs("> ", stderr);
    std::optional<std::string> line = readLine();
    if (!line)
      return finish(options, *session);
    if (!line->empty())
      LLMC_RETURN_IF_ERROR(takeTurn(std::move(*line)));
  }
}

Status bench(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
  LLMC_ASSIGN_OR_RETURN(auto session, makeSession(options, loaded.model));
  LLMC_ASSIGN_OR_RETURN(
      BenchResult result,
      runBench(*session, {options.benchPrompt, options.benchTokens, options.repeat}));
  constexpr double giga = 1e-9;
  const Json json = {{"prefill_tok_s", result.prefillTokensPerSecond},
                     {"decode_tok_s", result.decodeTokensPerSecond},
                     {"ttft_ms", result.firstTokenSeconds * kMillis},
                     {"load_ms", loaded.seconds * kMillis},
                     {"read_gb_s", result.readBytesPerSecond * giga},
                     {"bandwidth_gb_s", result.memoryBytesPerSecond * giga},
                     {"spread", result.spread},
                     {"prompt_tokens", options.benchPrompt},
                     {"generated_tokens", options.benchTokens},
                     {"repeat", options.repeat},
                     {"threads", session->workers().size()},
                     {"variant", loaded.model->target()},
                     {"device", loaded.model->device()}};
  printTable(json, options.json);
  return finish(options, *session);
}

Status benchVerify(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
  LLMC_ASSIGN_OR_RETURN(auto session, makeSession(options, loaded.model));
  LLMC_ASSIGN_OR_RETURN(VerifyCosts costs, measureVerify(*session, {.repeat = options.repeat}));
  Json rows = Json::array();
  for (size_t i = 0; i < costs.seconds.size(); ++i)
    rows.push_back({{"tokens", i + 1},
                    {"ms", costs.seconds[i] * kMillis},
                    {"relative", costs.seconds[i] / costs.seconds[0]}});
  if (options.json) {
    printJson({{"steps", rows},
               {"position", costs.position},
               {"threads", session->workers().size()},
               {"variant", loaded.model->target()},
               {"device", loaded.model->device()}});
  } else {
    std::printf("%6s %10s %9s\n", "tokens", "ms", "relative");
    for (const Json &row : rows)
      std::printf("%6d %10.3f %9.2f\n", row["tokens"].get<int>(), row["ms"].get<double>(),
                  row["relative"].get<double>());
  }
  return finish(options, *session);
}

Status writeLogits(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
  LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, promptTokens(options, *loaded.model));
  LLMC_ASSIGN_OR_RETURN(auto session, makeSession(options, loaded.model));
  NpyWriter file(options.logitsFile, prompt.size(), loaded.model->vocabSize());
  LLMC_RETURN_IF_ERROR(session->prefill(
      prompt, [&](uint32_t, std::span<const float> rows) { return file.append(rows); }));
  return file.finish();
}

Status tokenize(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options, /*textOnly=*/true));
  LLMC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(*loaded.model));
  LLMC_ASSIGN_OR_RETURN(std::string text, promptText(options));
  std::vector<int32_t> ids;
  LLMC_RETURN_IF_ERROR(tokenizer->encode(text, {.parseSpecial = options.special}, ids));
  printJson(Json{{"ids", ids}});
  return {};
}

Status detokenize(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options, /*textOnly=*/true));
  LLMC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(*loaded.model));
  std::string text;
  LLMC_RETURN_IF_ERROR(tokenizer->decode(*options.tokens, options.special, text));
  options.json ? printJson(Json{{"text", text}}) : print(text);
  return {};
}

/// What would be used; without a model only what depends on the machine.
Status printConfig(const Options &options) {
  const std::optional<double> quota = cgroupCpuQuota();
  Json config = {{"threads", threadsOf(options)},
                 {"affinity_cpus", affinityCpus().size()},
                 {"cpu_quota", quota ? Json(*quota) : Json(nullptr)},
                 {"cpu_features", CpuFeatures::host().toString()}};
  if (!options.model.empty()) {
    LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
    const Model &model = *loaded.model;
    config["model"] = model.artifact().path();
    config["mapped"] = model.artifact().isMapped();
    config["variant"] = model.canCompute() ? Json(model.target()) : Json(nullptr);
    config["device"] = model.canCompute() ? Json(model.device()) : Json(nullptr);
    config["context"] =
        options.session.contextLimit ? options.session.contextLimit : model.info().context_length();
  }
  printTable(config, options.json);
  return {};
}

} // namespace

Status llmc::run::execute(const Options &options) {
  switch (options.command) {
  case Command::Generate:
    return generate(options);
  case Command::Logits:
    return writeLogits(options);
  case Command::Tokenize:
    return tokenize(options);
  case Command::Detokenize:
    return detokenize(options);
  case Command::PrintConfig:
    return printConfig(options);
  case Command::Chat:
    return chat(options);
  case Command::Bench:
    return bench(options);
  case Command::BenchVerify:
    return benchVerify(options);
  case Command::RunGraph:
    return runGraph(options);
  case Command::Embed:
    return embed(options);
  }
  return internalError("unknown command");
}
