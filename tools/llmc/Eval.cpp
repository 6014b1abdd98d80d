//===- Eval.cpp - llmc eval -----------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Eval.h"
#include "compiler/driver/Progress.h"
#include "runtime/base/Topology.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Report.h"
#include <memory>

using namespace llmc;
using namespace llmc::tool;
using namespace llmc::rt;

namespace {
struct EvalArguments {
  std::string model, reference, text;
  EvalOptions options;
  ModelOptions load; ///< of the model; the reference is computed where it can be
  unsigned threads = 0;
  bool json = false;
};
} // namespace

static StatusOr<std::unique_ptr<Session>> openSession(const std::string &path,
                                                      const ModelOptions &load,
                                                      std::shared_ptr<WorkerPool> pool,
                                                      const EvalOptions &options) {
  LLMC_ASSIGN_OR_RETURN(auto model, Model::load(path, load));
  if (!model->fallback().empty())
    llvm::errs() << "llmc: " << path << ": using the CPU: " << model->fallback() << "\n";
  if (options.window > model->info().context_length())
    return outOfRange(path + ": a window of " + std::to_string(options.window) +
                      " tokens does not fit the context of " +
                      std::to_string(model->info().context_length()));
  return Session::create(std::move(model), std::move(pool), {.contextLimit = options.window});
}

static StatusOr<EvalResult> score(const EvalArguments &arguments, const std::string &text) {
  const EvalOptions &options = arguments.options;
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool,
                        WorkerPool::create(arguments.threads ? arguments.threads : usableCores()));
  LLMC_ASSIGN_OR_RETURN(auto session, openSession(arguments.model, arguments.load, pool, options));
  std::unique_ptr<Session> reference;
  if (!arguments.reference.empty()) {
    LLMC_ASSIGN_OR_RETURN(reference, openSession(arguments.reference, {}, pool, options));
  }
  const Tokenizer *tokenizer = session->getModel().tokenizer();
  if (!tokenizer)
    return unsupported(arguments.model + ": has no tokenizer, so it cannot score a text");
  std::vector<int32_t> tokens;
  LLMC_RETURN_IF_ERROR(tokenizer->encode(text, {}, tokens));

  Progress progress(/*enabled=*/true);
  progress.begin("scoring " + arguments.text);
  auto result =
      evaluate(*session, reference.get(), tokens, options, [&](uint32_t done, uint32_t total) {
        progress.update(done, total);
        return true;
      });
  if (!result.ok())
    return Status(result.status().code(),
                  arguments.model + " on " + arguments.text + ": " + result.status().message());
  return result;
}

static llvm::Error eval(const EvalArguments &arguments) {
  llvm::Expected<std::string> text = readFile(arguments.text);
  if (!text)
    return text.takeError();
  StatusOr<EvalResult> scored = score(arguments, *text);
  if (!scored.ok())
    return makeError(scored.status());
  const EvalResult &result = scored.value();
  Json report = {{"ppl", result.perplexity}, {"tokens", result.tokens}};
  if (!arguments.reference.empty()) {
    report["mean_kld"] = result.meanKl;
    report["kld_99_9"] = result.kl999;
    report["same_top"] = result.sameTop;
    report["reference_ppl"] = result.referencePerplexity;
  }
  report["nll_per_window"] = result.windowNll;
  printReport(report, arguments.json);
  return llvm::Error::success();
}

void llmc::tool::addEval(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App *command =
      app.add_subcommand("eval", "Measure perplexity on a text, and divergence from a reference");
  command->add_option("MODEL", arguments->model, "The compiled model (.llmc)")->required();
  command->add_option("--text", arguments->text, "The text")->required();
  command->add_option("--window", arguments->options.window,
                      "Tokens of a window, of which the second half is scored (512)");
  command->add_option("--windows", arguments->options.windows, "At most so many windows");
  command->add_option("--against", arguments->reference,
                      "Compare with this compiled model, such as one with --activations f32");
  command->add_option("--threads", arguments->threads,
                      "Worker threads (default: the cores this process may use)");
  command->add_option_function<std::string>(
      "--device",
      [arguments](const std::string &text) {
        if (Status status = parseDevice(text, arguments->load); !status.ok())
          throw CLI::ValidationError("--device", status.message());
      },
      "Where MODEL is computed: auto (default), cpu, cuda or cuda:N");
  command->add_option_function<uint32_t>(
      "--gpu-layers", [arguments](uint32_t layers) { arguments->load.gpuLayers = layers; },
      "Compute so many of MODEL's first layers on the GPU, the others on the CPU");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &action] { action = [arguments] { return eval(*arguments); }; });
}
