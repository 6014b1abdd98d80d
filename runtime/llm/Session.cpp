//===- Session.cpp - one sequence being computed --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Session.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::rt;

namespace {

/// Room for the logits of many prompt rows at once; smaller chunks are taken rather than more
/// memory.
constexpr size_t kLogitsBytes = 64u << 20;

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
  const uint32_t compiled = model->info().context_length();
  if (options.contextLimit > compiled)
    return outOfRange("a context of " + std::to_string(options.contextLimit) +
                      " tokens is more than the " + std::to_string(compiled) + " that " +
                      model->artifact().path() + " was compiled for; compile it with --context " +
                      std::to_string(options.contextLimit));
  limit = options.contextLimit ? options.contextLimit : compiled;
  promptObserver = options.promptObserver;
  history.reserve(limit);

  const fb::Variant &variant = model->variant();
  uint64_t arenaSize = 0, scratchSize = 0;
  for (const fb::Program *program : *variant.programs()) {
    arenaSize = std::max(arenaSize, program->arena_size());
    scratchSize = std::max(scratchSize, program->scratch_size());
  }
  const fb::KvPlan &plan = *model->artifact().header().kv();
  LLMC_ASSIGN_OR_RETURN(arena, PageBuffer::reserve(arenaSize, "arena"));
  LLMC_ASSIGN_OR_RETURN(kv, PageBuffer::reserve(plan.size(), "KV cache"));

  const BaseAddresses bases{arena.data(), model->artifact().weights().data(), kv.data()};
  const auto kernels = model->code().kernels();
  size_t ranges = 0;
  for (auto [name, phase] :
       {std::pair(kDecodeProgram, &decodePhase), std::pair(kPrefillProgram, &prefillPhase),
        std::pair(kVerifyProgram, &verifyPhase)}) {
    const fb::Program *program = findProgram(variant, name);
    if (!program)
      continue;
    phase->program = Program(*program, kernels, bases);
    ranges = std::max(ranges, phase->program.rangeCount());
    if (options.profile)
      phase->profile = std::make_unique<ProgramProfile>(*program);
  }
  LLMC_ASSIGN_OR_RETURN(scratch, WorkerScratch::create(pool->size(), scratchSize, ranges));

  const uint32_t most = prefillPhase.program.maxRows();
  chunk = options.prefillChunk ? std::min(options.prefillChunk, most) : most;
  const size_t rowBytes = size_t(model->vocabSize()) * sizeof(float);
  logitsRows = static_cast<uint32_t>(std::clamp<size_t>(kLogitsBytes / rowBytes, 1, chunk));
  logitsRows = std::max(logitsRows, verifyRows());
  LLMC_ASSIGN_OR_RETURN(logitsArea, PageBuffer::reserve(logitsRows * rowBytes, "logits"));
  LLMC_ASSIGN_OR_RETURN(maximaArea, PageBuffer::reserve(logitsRows * maximaPerRow() * sizeof(float),
                                                        "maxima of logits"));
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

void Session::step(const Phase &phase, std::span<const int32_t> tokens, uint32_t outBegin,
                   uint32_t outRows) {
  const llmc_step_t step{static_cast<int32_t>(tokens.size()),
                         static_cast<int32_t>(history.size()),
                         static_cast<int32_t>(outBegin),
                         static_cast<int32_t>(outRows),
                         tokens.data(),
                         logitsRow(0),
                         reinterpret_cast<float *>(maximaArea.data())};
  if (promptObserver && &phase == &prefillPhase)
    phase.program.run(*pool, scratch, step, *promptObserver);
  else
    phase.program.run(*pool, scratch, step, phase.profile.get());
  history.insert(history.end(), tokens.begin(), tokens.end());
}

void Session::prefillStep(std::span<const int32_t> tokens, uint32_t outBegin, uint32_t outRows) {
  const bool allPrompt = prompt == history.size();
  step(prefillPhase, tokens, outBegin, outRows);
  if (allPrompt)
    prompt = position();
}

Status Session::prefill(std::span<const int32_t> tokens) {
  LLMC_RETURN_IF_ERROR(check(tokens));
  while (!tokens.empty()) {
    const auto rows = static_cast<uint32_t>(std::min<size_t>(chunk, tokens.size()));
    const bool last = rows == tokens.size();
    prefillStep(tokens.first(rows), rows - 1, last ? 1 : 0);
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
    prefillStep(tokens.first(rows), 0, rows);
    if (!sink(first, {logitsRow(0), size_t(rows) * model->vocabSize()}))
      break;
    tokens = tokens.subspan(rows);
  }
  return {};
}

Status Session::decode(int32_t token) {
  const std::span<const int32_t> tokens(&token, 1);
  LLMC_RETURN_IF_ERROR(check(tokens));
  step(decodePhase, tokens, 0, 1);
  return {};
}

Status Session::verify(std::span<const int32_t> tokens) {
  if (tokens.size() == 1)
    return decode(tokens[0]);
  LLMC_RETURN_IF_ERROR(check(tokens));
  if (tokens.size() > verifyRows())
    return outOfRange(std::to_string(tokens.size()) + " tokens are more than the " +
                      std::to_string(verifyRows()) + " that can be verified in one step");
  step(verifyPhase, tokens, 0, static_cast<uint32_t>(tokens.size()));
  return {};
}

LogitRow Session::tokenLogits(uint32_t row) const {
  const Tokenizer *tokenizer = model->tokenizer();
  const size_t known = tokenizer ? tokenizer->vocabularySize() : model->vocabSize();
  const size_t count = std::min<size_t>(known, model->vocabSize());
  const auto *maxima = reinterpret_cast<const float *>(maximaArea.data()) + row * maximaPerRow();
  return {logits(row).first(count), {maxima, count / LLMC_LOGIT_BLOCK}};
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
  for (const Phase *phase : {&prefillPhase, &decodePhase, &verifyPhase})
    if (phase->profile)
      result.push_back(phase->profile.get());
  return result;
}

void Session::reset() {
  history.clear();
  prompt = 0;
}
