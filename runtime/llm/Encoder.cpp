//===- Encoder.cpp - texts to embeddings ----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

using namespace llmc;
using namespace llmc::rt;

StatusOr<std::unique_ptr<Encoder>> Encoder::create(std::shared_ptr<const Model> model,
                                                   std::shared_ptr<WorkerPool> pool,
                                                   const EncoderOptions &options) {
  std::unique_ptr<Encoder> encoder(new Encoder(std::move(model), std::move(pool)));
  LLMC_RETURN_IF_ERROR(encoder->reserve(options));
  return encoder;
}

Status Encoder::reserve(const EncoderOptions &options) {
  const std::string &path = model->artifact().path();
  if (!model->isEncoder() || !model->canCompute())
    return unsupported(path +
                       (!model->canCompute() ? " holds a vocabulary only"
                        : model->isGraph()   ? " is a graph of tensors"
                                             : " is a language model") +
                       "; embeddings come from sentence encoders");
  if (!model->cpuVariant())
    return unsupported(path +
                       " is computed on a CUDA device, where encoders cannot be; use the CPU");
  const uint32_t compiled = model->info().context_length();
  if (options.contextLimit > compiled)
    return outOfRange("texts of " + std::to_string(options.contextLimit) +
                      " tokens are longer than the " + std::to_string(compiled) + " that " + path +
                      " was compiled for; compile it with --context " +
                      std::to_string(options.contextLimit));
  limit = options.contextLimit ? options.contextLimit : compiled;
  truncate = options.truncate;
  for (unsigned i = 0; i < pool->size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(Lane lane, makeLane(i == 0 ? pool->size() : 1));
    lanes.push_back(std::move(lane));
    LLMC_ASSIGN_OR_RETURN(alone.emplace_back(), WorkerPool::create(1));
  }
  if (options.profile)
    measured = std::make_unique<ProgramProfile>(*findProgram(*model->cpuVariant(), kEncodeProgram));
  return {};
}

StatusOr<Encoder::Lane> Encoder::makeLane(unsigned workers) const {
  const fb::Program &program = *findProgram(*model->cpuVariant(), kEncodeProgram);
  const fb::KvPlan &plan = *model->artifact().header().kv();
  const uint64_t blocks = (uint64_t(width()) + LLMC_LOGIT_BLOCK - 1) / LLMC_LOGIT_BLOCK;
  Lane lane;
  LLMC_ASSIGN_OR_RETURN(lane.arena, PageBuffer::reserve(program.arena_size(), "arena"));
  LLMC_ASSIGN_OR_RETURN(lane.kv, PageBuffer::reserve(plan.size(), "keys and values"));
  LLMC_ASSIGN_OR_RETURN(
      lane.rows, PageBuffer::reserve(uint64_t(limit) * width() * sizeof(float), "rows of a text"));
  LLMC_ASSIGN_OR_RETURN(
      lane.maxima, PageBuffer::reserve(uint64_t(limit) * blocks * sizeof(float), "maxima of rows"));
  lane.program = Program(program, model->code().kernels(),
                         {lane.arena.data(), model->cpuWeights().data(), lane.kv.data()});
  LLMC_ASSIGN_OR_RETURN(lane.scratch, WorkerScratch::create(workers, program.scratch_size(),
                                                            lane.program.rangeCount()));
  return lane;
}

StatusOr<EncoderInput> Encoder::tokenize(std::string_view text) const {
  const Tokenizer *tokenizer = model->tokenizer();
  if (!tokenizer)
    return unsupported(model->artifact().path() +
                       " has no tokenizer; compile the model with --tokenizer DIR, or give token "
                       "ids");
  EncoderInput input;
  const auto prefix = tokenizer->prefix(), suffix = tokenizer->suffix();
  input.tokens.assign(prefix.begin(), prefix.end());
  LLMC_RETURN_IF_ERROR(tokenizer->encode(text, {}, input.tokens));
  const size_t added = prefix.size() + suffix.size(), length = input.tokens.size() + suffix.size();
  if (length == added)
    return invalidArgument("the text is empty: it has no tokens to embed");
  if (length > limit) {
    if (!truncate || limit <= added)
      return outOfRange("the text has " + std::to_string(length) + " tokens and " +
                        std::to_string(limit) +
                        " fit; shorten it or compile with a larger --context");
    input.tokens.resize(limit - suffix.size());
    input.truncated = true;
  }
  input.tokens.insert(input.tokens.end(), suffix.begin(), suffix.end());
  LLMC_RETURN_IF_ERROR(check(input.tokens));
  return input;
}

Status Encoder::check(std::span<const int32_t> tokens) const {
  if (tokens.empty())
    return invalidArgument("there are no tokens to embed");
  if (tokens.size() > limit)
    return outOfRange(std::to_string(tokens.size()) + " tokens are more than the " +
                      std::to_string(limit) + " that fit");
  for (size_t i = 0; i < tokens.size(); ++i)
    if (static_cast<uint32_t>(tokens[i]) >= model->vocabSize())
      return outOfRange("token " + std::to_string(i) + " has the id " + std::to_string(tokens[i]) +
                        "; the vocabulary has the ids 0 to " +
                        std::to_string(model->vocabSize() - 1));
  return {};
}

void Encoder::compute(const Lane &lane, WorkerPool &workers, std::span<const int32_t> tokens,
                      float *out, ProgramProfile *profile) const {
  const auto rows = static_cast<int32_t>(tokens.size());
  const fb::Pooling pooling = model->info().pooling();
  const bool oneRow = pooling == fb::Pooling::Cls || pooling == fb::Pooling::Last;
  auto *result = reinterpret_cast<float *>(lane.rows.data());
  const llmc_step_t step{rows,
                         /*position=*/0,
                         /*out_begin=*/pooling == fb::Pooling::Last ? rows - 1 : 0,
                         /*out_rows=*/oneRow ? 1 : rows,
                         tokens.data(),
                         result,
                         reinterpret_cast<float *>(lane.maxima.data())};
  lane.program.run(workers, lane.scratch, step, profile);
  if (profile)
    ++profile->steps;
  poolRows({result, size_t(step.out_rows) * width()}, out);
}

/// Rows to what the artifact gives of them.
void Encoder::poolRows(std::span<const float> rows, float *out) const {
  const size_t n = width(), count = rows.size() / n;
  const auto normalize = [&](float *row) {
    double square = 0;
    for (size_t i = 0; i < n; ++i)
      square += double(row[i]) * row[i];
    constexpr double least = 1e-12;
    const double length = std::max(std::sqrt(square), least);
    for (size_t i = 0; i < n; ++i)
      row[i] = float(row[i] / length);
  };
  size_t results = isPooled() ? 1 : count;
  if (model->info().pooling() == fb::Pooling::Mean) {
    std::fill_n(out, n, 0.0f);
    for (size_t r = 0; r < count; ++r)
      for (size_t i = 0; i < n; ++i)
        out[i] += rows[r * n + i];
    for (size_t i = 0; i < n; ++i)
      out[i] /= float(count);
  } else {
    std::copy_n(rows.data(), results * n, out);
  }
  if (model->info().normalize())
    for (size_t r = 0; r < results; ++r)
      normalize(out + r * n);
}

Status Encoder::embed(std::span<const EncoderInput> inputs, float *out) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Status status = check(inputs[i].tokens);
    if (!status.ok())
      return Status(status.code(), "text " + std::to_string(i) + ": " + status.message());
  }
  // Where each text goes, and the longest first: the last ones end at nearly the same time.
  std::vector<size_t> places(inputs.size()), order(inputs.size());
  std::iota(order.begin(), order.end(), size_t(0));
  for (size_t i = 1; i < inputs.size(); ++i)
    places[i] = places[i - 1] + (isPooled() ? 1 : inputs[i - 1].tokens.size());
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return inputs[a].tokens.size() > inputs[b].tokens.size();
  });
  const auto embedOn = [&](size_t lane, WorkerPool &workers, size_t index,
                           ProgramProfile *profile) {
    const size_t text = order[index];
    compute(lanes[lane], workers, inputs[text].tokens, out + places[text] * width(), profile);
  };
  // What would leave most workers without a text of their own is computed by all.
  size_t together = inputs.size() % pool->size();
  if (2 * together > pool->size())
    together = 0;
  if (measured)
    together = inputs.size();
  for (size_t i = 0; i < together; ++i)
    embedOn(0, *pool, i, measured.get());
  if (together == inputs.size())
    return {};
  std::atomic<size_t> next{together};
  pool->run([&](unsigned worker) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < inputs.size();)
      embedOn(worker, *alone[worker], i, nullptr);
  });
  return {};
}
