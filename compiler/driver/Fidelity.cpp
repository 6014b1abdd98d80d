//===- Fidelity.cpp - what a lossy compilation costs ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Fidelity.h"
#include "runtime/base/Topology.h"
#include "runtime/llm/Eval.h"

using namespace llmc;
using namespace llmc::rt;

static constexpr uint32_t kWindow = 256, kWindows = 6;

/// Ids without a pattern that a model could find; the same on every machine.
static std::vector<int32_t> madeUpTokens(uint32_t vocab, uint32_t count) {
  std::vector<int32_t> tokens;
  uint64_t state = 1;
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(int32_t((state >> 33) % vocab));
  }
  return tokens;
}

static StatusOr<Fidelity> measure(const std::string &path, const std::string &source,
                                  const std::function<void(uint64_t, uint64_t)> &progress) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool, WorkerPool::create(usableCores()));
  LLMC_ASSIGN_OR_RETURN(auto model, Model::load(path, {.device = DeviceKind::Cpu}));
  LLMC_ASSIGN_OR_RETURN(auto reference, Model::load(source, {.device = DeviceKind::Cpu}));
  const uint32_t window = std::min(kWindow, uint32_t(model->info().context_length()));
  std::vector<int32_t> tokens;
  if (const Tokenizer *tokenizer = model->tokenizer()) {
    const llvm::StringRef text = fidelityText();
    LLMC_RETURN_IF_ERROR(tokenizer->encode({text.data(), text.size()}, {}, tokens));
  } else {
    tokens = madeUpTokens(model->vocabSize(), 2 * kWindow);
  }
  const SessionOptions limits = {.contextLimit = window};
  LLMC_ASSIGN_OR_RETURN(auto session, Session::create(std::move(model), pool, limits));
  LLMC_ASSIGN_OR_RETURN(auto against, Session::create(std::move(reference), pool, limits));
  LLMC_ASSIGN_OR_RETURN(EvalResult result,
                        evaluate(*session, against.get(), tokens, {window, kWindows},
                                 [&](uint32_t done, uint32_t total) {
                                   progress(done, total);
                                   return true;
                                 }));
  return Fidelity{result.perplexity, result.referencePerplexity, result.meanKl, result.sameTop,
                  result.tokens};
}

llvm::Expected<Fidelity>
llmc::measureFidelity(const std::string &model, const std::string &source,
                      const std::function<void(uint64_t, uint64_t)> &progress) {
  StatusOr<Fidelity> result = measure(model, source, progress);
  if (!result.ok())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), result.status().message());
  return result.value();
}
