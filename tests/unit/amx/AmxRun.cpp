//===- AmxRun.cpp - an artifact on emulated tiles -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   amx-run ARTIFACT --tokens 1,2,... [--variant NAME] [--threads N] [--chunk N]
//                    [--decode N | --verify N] [--refuse]
//   amx-run ARTIFACT --text FILE --against ARTIFACT [--window N] [--windows N]
//
// What llmc-run and llmc eval do, with the runtime told that this processor has
// AMX: on one that has not, the emulator executes the artifact's tile
// instructions. Prints one JSON object: the mode, the variant that was taken,
// checksums of the logits after each of the last N tokens, which are decoded (or
// verified in one step), and of the prompt's last before them; instructions, and whether tiles were
// left in use. --refuse plays an operating system that does not give the registers.
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include "runtime/base/Checksum.h"
#include "runtime/llm/Eval.h"
#include "runtime/schema/llmc_generated.h"
#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/syscall.h>

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::test;
using Json = nlohmann::json;

namespace {
bool emulated = false, refuse = false;

struct Arguments {
  std::string artifact, variant, text, against;
  std::vector<int32_t> tokens;
  uint32_t threads = 2, chunk = 0, decode = 0, verify = 0;
  EvalOptions eval;
};
} // namespace

// Takes the place of the C library's function: the request for tile data is answered here where the
// kernel cannot grant it.
extern "C" long syscall(long number, ...) noexcept {
  long a[6];
  va_list list;
  va_start(list, number);
  for (long &argument : a)
    argument = va_arg(list, long);
  va_end(list);
  constexpr long requestPermission = 0x1023;
  if (number == SYS_arch_prctl && a[0] == requestPermission && (emulated || refuse)) {
    errno = EPERM;
    return refuse ? -1 : 0;
  }
  register long r10 asm("r10") = a[3], r8 asm("r8") = a[4], r9 asm("r9") = a[5];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

static StatusOr<std::unique_ptr<Session>> open(const std::string &path, const std::string &variant,
                                               amx::Mode mode, std::shared_ptr<WorkerPool> pool,
                                               const SessionOptions &options) {
  ModelOptions modelOptions;
  modelOptions.variant = variant;
  modelOptions.features = amx::features(mode);
  LLMC_ASSIGN_OR_RETURN(auto model, Model::load(path, modelOptions));
  return Session::create(std::move(model), std::move(pool), options);
}

static std::string digest(std::span<const float> logits) {
  std::ostringstream text;
  text << std::hex
       << checksum({reinterpret_cast<const uint8_t *>(logits.data()), logits.size_bytes()});
  return text.str();
}

static Status run(const Arguments &arguments, amx::Mode mode, Json &report) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool, WorkerPool::create(arguments.threads));
  if (!arguments.text.empty()) {
    std::ifstream stream(arguments.text);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    const SessionOptions options{.contextLimit = arguments.eval.window};
    LLMC_ASSIGN_OR_RETURN(auto session,
                          open(arguments.artifact, arguments.variant, mode, pool, options));
    LLMC_ASSIGN_OR_RETURN(auto reference, open(arguments.against, "", mode, pool, options));
    std::vector<int32_t> tokens;
    LLMC_RETURN_IF_ERROR(session->getModel().tokenizer()->encode(text, {}, tokens));
    LLMC_ASSIGN_OR_RETURN(EvalResult result,
                          evaluate(*session, reference.get(), tokens, arguments.eval,
                                   [](uint32_t, uint32_t) { return true; }));
    report["variant"] = session->getModel().variant().target()->str();
    report["ppl"] = result.perplexity;
    report["reference_ppl"] = result.referencePerplexity;
    report["mean_kld"] = result.meanKl;
    report["kld_99_9"] = result.kl999;
    report["same_top"] = result.sameTop;
    report["tokens"] = result.tokens;
    return {};
  }
  LLMC_ASSIGN_OR_RETURN(auto session, open(arguments.artifact, arguments.variant, mode, pool,
                                           {.prefillChunk = arguments.chunk}));
  report["variant"] = session->getModel().variant().target()->str();
  const std::span<const int32_t> tokens(arguments.tokens);
  const size_t prompt =
      tokens.size() - std::min<size_t>(arguments.decode + arguments.verify, tokens.size() - 1);
  amx::resetCounts();
  LLMC_RETURN_IF_ERROR(session->prefill(tokens.first(prompt)));
  const amx::Counts n = amx::counts();
  report["logits"] = {digest(session->logits())};
  if (arguments.verify) {
    LLMC_RETURN_IF_ERROR(session->verify(tokens.subspan(prompt)));
    for (uint32_t row = 0; row < tokens.size() - prompt; ++row)
      report["logits"].push_back(digest(session->logits(row)));
  }
  for (int32_t token : tokens.subspan(arguments.verify ? tokens.size() : prompt)) {
    LLMC_RETURN_IF_ERROR(session->decode(token));
    report["logits"].push_back(digest(session->logits()));
  }
  report["prefill_instructions"] = {{"ldtilecfg", n.loadConfigs}, {"tilerelease", n.releases},
                                    {"tilezero", n.zeros},        {"tileload", n.loads},
                                    {"tilestore", n.stores},      {"int8_dots", n.byteDots},
                                    {"bf16_dots", n.bf16Dots}};
  const amx::Counts after = amx::counts();
  report["later_dots"] = after.byteDots + after.bf16Dots - n.byteDots - n.bf16Dots;
  std::atomic<bool> inUse = false;
  pool->run([&](unsigned) { inUse = inUse || amx::tilesInUse(); });
  report["tiles_left_in_use"] = inUse.load();
  return {};
}

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Runs an artifact whose tile instructions may be emulated");
  app.add_option("ARTIFACT", arguments.artifact)->required();
  app.add_option("--tokens", arguments.tokens)->delimiter(',');
  app.add_option("--variant", arguments.variant);
  app.add_option("--threads", arguments.threads);
  app.add_option("--chunk", arguments.chunk);
  app.add_option("--decode", arguments.decode);
  app.add_option("--verify", arguments.verify);
  app.add_flag("--refuse", refuse);
  app.add_option("--text", arguments.text);
  app.add_option("--against", arguments.against);
  app.add_option("--window", arguments.eval.window);
  app.add_option("--windows", arguments.eval.windows);
  CLI11_PARSE(app, argc, argv);
  const amx::Mode mode = amx::install();
  emulated = mode == amx::Mode::Emulated;
  Json report = {{"mode", mode == amx::Mode::None     ? "none"
                          : mode == amx::Mode::Native ? "native"
                                                      : "emulated"}};
  if (Status status = run(arguments, mode, report); !status.ok()) {
    std::cerr << "amx-run: " << status.message() << "\n";
    return 1;
  }
  std::cout << report.dump() << "\n";
  return 0;
}
