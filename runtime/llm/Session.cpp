//===- Session.cpp - one sequence being computed --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Session.h"

#include "runtime/device/SplitExecutor.h"
#include "runtime/device/cpu/CpuExecutor.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::rt;

namespace {

/// Room for the logits of many prompt rows at once; smaller chunks are taken rather than more
/// memory.
constexpr size_t kLogitsBytes = 64u << 20;
/// The same where a device writes them to pinned memory, which takes time to be had.
constexpr size_t kPinnedLogitsBytes = 16u << 20;

/// How many positions a sequence of `length` may give up such that `layer` still has all that the
/// earlier position sees.
uint32_t rollbackReach(const fb::KvLayer &layer, uint32_t length) {
  return length <= layer.capacity() ? length : layer.capacity() - layer.window() + 1;
}

} // namespace

StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Model> model,
                                                   std::shared_ptr<WorkerPool> pool,
                                                   const SessionOptions &options) {
  std::unique_ptr<Session> session(new Session(std::move(model), std::move(pool)));
  LLMC_RETURN_IF_ERROR(session->reserve(options));
  return session;
}

Status Session::reserve(const SessionOptions &options) {
  if (!model->canCompute())
    return unsupported(model->artifact().path() +
                       " holds a vocabulary only: it can tokenize, not generate");
  if (model->isGraph())
    return unsupported(model->artifact().path() +
                       " is a graph of tensors: give its inputs with --input NAME=FILE.npy");
  if (model->isEncoder())
    return unsupported(model->artifact().path() +
                       " is a sentence encoder: it embeds texts (--embed), it does not generate");
  const uint32_t compiled = model->info().context_length();
  if (options.contextLimit > compiled)
    return outOfRange("a context of " + std::to_string(options.contextLimit) +
                      " tokens is more than the " + std::to_string(compiled) + " that " +
                      model->artifact().path() + " was compiled for; compile it with --context " +
                      std::to_string(options.contextLimit));
  limit = options.contextLimit ? options.contextLimit : compiled;
  history.reserve(limit);

  const PerPhase<const fb::Program *> programs = programsOf(model->variant());
  const uint32_t most = programs[Phase::Prefill]->max_rows();
  chunk = options.prefillChunk ? std::min(options.prefillChunk, most) : most;
  if (programs[Phase::Verify])
    mostDrafted = programs[Phase::Verify]->max_rows();
  const size_t room = model->cuda() && !model->cpuVariant() ? kPinnedLogitsBytes : kLogitsBytes;
  const size_t rowBytes = size_t(model->vocabSize()) * sizeof(float);
  logitsRows = static_cast<uint32_t>(std::clamp<size_t>(room / rowBytes, 1, chunk));
  logitsRows = std::max(logitsRows, mostDrafted);

  ExecutorOptions forExecutor{model->vocabSize(), logitsRows, {}, options.promptObserver};
  for (size_t i = 0; i < kPhases && options.profile; ++i)
    if (const auto phase = static_cast<Phase>(i); programs[phase]) {
      measured[phase] = std::make_unique<ProgramProfile>(*programs[phase]);
      forExecutor.profiles[phase] = measured[phase].get();
    }
  return makeExecutor(forExecutor);
}

Status Session::makeExecutor(const ExecutorOptions &options) {
  if (options.promptObserver && model->cuda())
    return unsupported("what dispatches compute can be looked at on the CPU only");
  const uint64_t kvBytes = model->artifact().header().kv()->size();
  std::unique_ptr<CpuExecutor> onCpu;
  if (const fb::Variant *variant = model->cpuVariant()) {
    CpuWork work{
        programsOf(*variant), {}, model->code().kernels(), model->cpuWeights().data(), kvBytes};
    for (size_t i = 0; i < kPhases; ++i)
      if (const fb::Boundary *boundary = model->boundaries()[static_cast<Phase>(i)])
        work.first[static_cast<Phase>(i)] = boundary->dispatch();
    LLMC_ASSIGN_OR_RETURN(onCpu, CpuExecutor::create(work, pool, options));
  }
  if (std::shared_ptr<const CudaModel> cuda = model->cuda()) {
    CudaWork work{programsOf(*cuda->variant), model->cudaKvBytes(), model->boundaries(), nullptr};
    if (onCpu)
      work.hostArena = onCpu->arenaData();
    auto made = CudaExecutor::create(std::move(cuda), work, options);
    if (made.status().code() == StatusCode::ResourceExhausted)
      return Status(made.status().code(),
                    made.status().message() +
                        "; fewer layers there (--gpu-layers) or a shorter --context need less");
    LLMC_ASSIGN_OR_RETURN(std::unique_ptr<CudaExecutor> onGpu, std::move(made));
    if (onCpu)
      executor = std::make_unique<SplitExecutor>(std::move(onGpu), std::move(onCpu));
    else
      executor = std::move(onGpu);
  } else {
    executor = std::move(onCpu);
  }
  return {};
}

Status Session::check(std::span<const int32_t> tokens) const {
  if (tokens.empty())
    return invalidArgument("there are no tokens to compute");
  if (tokens.size() > limit - history.size())
    return outOfRange("the context is full: " + std::to_string(history.size() + tokens.size()) +
                      " tokens are needed and " + std::to_string(limit) +
                      " fit; shorten the prompt or compile with a larger --context");
  const auto vocab = model->vocabSize();
  for (size_t i = 0; i < tokens.size(); ++i)
    if (static_cast<uint32_t>(tokens[i]) >= vocab)
      return outOfRange("token " + std::to_string(i) + " has the id " + std::to_string(tokens[i]) +
                        "; the vocabulary has the ids 0 to " + std::to_string(vocab - 1));
  return {};
}

Status Session::step(Phase phase, std::span<const int32_t> tokens, uint32_t outBegin,
                     uint32_t outRows) {
  LLMC_RETURN_IF_ERROR(executor->run(phase, {tokens, position(), outBegin, outRows}));
  if (measured[phase])
    ++measured[phase]->steps;
  history.insert(history.end(), tokens.begin(), tokens.end());
  return {};
}

Status Session::prefillStep(std::span<const int32_t> tokens, uint32_t outBegin, uint32_t outRows) {
  const bool allPrompt = prompt == history.size();
  LLMC_RETURN_IF_ERROR(step(Phase::Prefill, tokens, outBegin, outRows));
  if (allPrompt)
    prompt = position();
  return {};
}

Status Session::prefill(std::span<const int32_t> tokens) {
  LLMC_RETURN_IF_ERROR(check(tokens));
  while (!tokens.empty()) {
    const auto rows = static_cast<uint32_t>(std::min<size_t>(chunk, tokens.size()));
    const bool last = rows == tokens.size();
    LLMC_RETURN_IF_ERROR(prefillStep(tokens.first(rows), rows - 1, last ? 1 : 0));
    tokens = tokens.subspan(rows);
  }
  return {};
}

Status Session::prefill(std::span<const int32_t> tokens, LogitsSink sink) {
  LLMC_RETURN_IF_ERROR(check(tokens));
  const uint32_t most = std::min(chunk, logitsRows);
  while (!tokens.empty()) {
    const auto rows = static_cast<uint32_t>(std::min<size_t>(most, tokens.size()));
    const uint32_t first = position();
    LLMC_RETURN_IF_ERROR(prefillStep(tokens.first(rows), 0, rows));
    if (!sink(first, {executor->logits(0, rows), size_t(rows) * model->vocabSize()}))
      break;
    tokens = tokens.subspan(rows);
  }
  return {};
}

Status Session::decode(int32_t token) {
  const std::span<const int32_t> tokens(&token, 1);
  LLMC_RETURN_IF_ERROR(check(tokens));
  return step(Phase::Decode, tokens, 0, 1);
}

Status Session::verify(std::span<const int32_t> tokens) {
  if (tokens.size() == 1)
    return decode(tokens[0]);
  LLMC_RETURN_IF_ERROR(check(tokens));
  if (tokens.size() > verifyRows())
    return outOfRange(std::to_string(tokens.size()) + " tokens are more than the " +
                      std::to_string(verifyRows()) + " that can be verified in one step");
  return step(Phase::Verify, tokens, 0, static_cast<uint32_t>(tokens.size()));
}

size_t Session::tokenCount() const {
  const Tokenizer *tokenizer = model->tokenizer();
  const size_t known = tokenizer ? tokenizer->vocabularySize() : model->vocabSize();
  return std::min<size_t>(known, model->vocabSize());
}

LogitRow Session::tokenLogits(uint32_t row) const {
  const size_t count = tokenCount();
  return {logits(row).first(count), {executor->maxima(row), count / LLMC_LOGIT_BLOCK}};
}

int32_t Session::mostLikely(uint32_t row) const {
  const std::span<const int32_t> picks = executor->picks();
  // A pick that is no token says nothing of those that are.
  if (row < picks.size() && static_cast<uint32_t>(picks[row]) < tokenCount())
    return picks[row];
  return greedyToken(tokenLogits(row));
}

Status Session::rollback(uint32_t position) {
  if (position > history.size())
    return outOfRange("cannot roll back to position " + std::to_string(position) + " from " +
                      std::to_string(history.size()));
  const uint32_t distance = this->position() - position;
  for (const fb::KvLayer *layer : *model->artifact().header().kv()->layers())
    if (position != 0 && distance > rollbackReach(*layer, this->position()))
      return outOfRange("cannot roll back " + std::to_string(distance) +
                        " positions: the sliding window of layer " +
                        std::to_string(layer->layer()) + " keeps only " +
                        std::to_string(rollbackReach(*layer, this->position())));
  history.resize(position);
  prompt = std::min(prompt, position);
  return {};
}

std::vector<const ProgramProfile *> Session::profiles() const {
  std::vector<const ProgramProfile *> result;
  for (const auto &profile : measured)
    if (profile)
      result.push_back(profile.get());
  return result;
}

void Session::reset() {
  history.clear();
  prompt = 0;
}
