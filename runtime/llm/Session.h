//===- Session.h - one sequence being computed ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session owns everything that changes while a sequence is computed: the
// tokens so far and, through an Executor on the model's device, the arena of
// intermediate values, the KV area and the logits. All of it is reserved when
// the session is made; decode() neither allocates nor locks.
//
// Which program computes a token depends on its role only: prompt tokens go
// through "prefill" (a chunk of one token too), a generated token through
// "decode", drafted tokens through "verify". Within each, the logits are
// bit-identical for every chunk size, every M and every number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_SESSION_H
#define LLMC_RUNTIME_LLM_SESSION_H

#include "runtime/base/FunctionRef.h"
#include "runtime/base/WorkerPool.h"
#include "runtime/device/Executor.h"
#include "runtime/llm/LogitMath.h"
#include "runtime/llm/Model.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace llmc::rt {

struct SessionOptions {
  /// Positions that the sequence may take; 0: as many as the artifact was compiled for.
  uint32_t contextLimit = 0;
  /// Prompt tokens per step; 0: as many as the prefill program takes.
  uint32_t prefillChunk = 0;
  /// Measure every dispatch; see Session::profiles().
  bool profile = false;
  /// Sees every dispatch of steps of prompt tokens; slow. Lives as long as the session.
  StepObserver *promptObserver = nullptr;
};

class Session {
public:
  /// Receives the logits of prompt positions: `logits` is [rows, vocab_size], row 0 is at
  /// `position`. Returns false to stop.
  using LogitsSink = FunctionRef<bool(uint32_t position, std::span<const float> logits)>;

  /// `pool` may serve several sessions, one at a time.
  static StatusOr<std::unique_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                   std::shared_ptr<WorkerPool> pool,
                                                   const SessionOptions &options = {});

  /// Computes prompt tokens; logits(0) are then those of the last. Errors before anything is
  /// computed: InvalidArgument (empty), OutOfRange (a token id, the context limit).
  Status prefill(std::span<const int32_t> tokens);
  /// The same, with the logits of every token for `sink`.
  Status prefill(std::span<const int32_t> tokens, LogitsSink sink);

  /// Computes one generated token; logits(0) are then its own.
  Status decode(int32_t token);

  /// Computes a generated token and the draft that follows it; logits(i) are then those of
  /// `tokens[i]`. At most verifyRows() tokens; a single one is decode().
  Status verify(std::span<const int32_t> tokens);
  /// 1 where the artifact has no verify program.
  uint32_t verifyRows() const { return mostDrafted; }

  /// Forgets all positions from `position` on. OutOfRange where a sliding window has already
  /// overwritten what `position` would look back at; reset() always works.
  Status rollback(uint32_t position);
  void reset();

  /// [vocab_size], valid until the next step. Other devices' are copied at the first call.
  std::span<const float> logits(uint32_t row = 0) const {
    return {executor->logits(row, 1), model->vocabSize()};
  }

  /// logits() of the rows that are tokens: not of those that pad the vocabulary.
  LogitRow tokenLogits(uint32_t row = 0) const;

  /// greedyToken() of tokenLogits(), without the logits where the device knows.
  int32_t mostLikely(uint32_t row = 0) const;

  uint32_t position() const { return static_cast<uint32_t>(history.size()); }
  /// How many of the first tokens have been computed as prompt.
  uint32_t promptLength() const { return prompt; }
  uint32_t contextLimit() const { return limit; }
  std::span<const int32_t> tokens() const { return history; }
  const Model &getModel() const { return *model; }
  WorkerPool &workers() const { return *pool; }
  /// Bytes of weights that decode() reads.
  uint64_t decodeWeightBytes() const { return executor->weightBytes(Phase::Decode); }
  /// See Executor.
  double memoryBandwidth() const { return executor->memoryBandwidth(); }
  /// One per phase, over all steps of this session; empty unless SessionOptions asked for it.
  std::vector<const ProgramProfile *> profiles() const;

private:
  Session(std::shared_ptr<const Model> model, std::shared_ptr<WorkerPool> pool)
      : model(std::move(model)), pool(std::move(pool)) {}
  Status reserve(const SessionOptions &options);
  Status makeExecutor(const ExecutorOptions &options);
  Status check(std::span<const int32_t> tokens) const;
  size_t tokenCount() const;
  Status step(Phase phase, std::span<const int32_t> tokens, uint32_t outBegin, uint32_t outRows);
  Status prefillStep(std::span<const int32_t> tokens, uint32_t outBegin, uint32_t outRows);

  std::shared_ptr<const Model> model;
  std::shared_ptr<WorkerPool> pool;
  PerPhase<std::unique_ptr<ProgramProfile>> measured; ///< may be null
  std::unique_ptr<Executor> executor;
  std::vector<int32_t> history;
  uint32_t prompt = 0;
  uint32_t limit = 0;
  uint32_t chunk = 0;       ///< prompt tokens per step
  uint32_t mostDrafted = 1; ///< tokens that a verify step takes
  uint32_t logitsRows = 0;  ///< rows of a step whose logits the executor has room for
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_SESSION_H
