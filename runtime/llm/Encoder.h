//===- Encoder.h - texts to embeddings --------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artifact of the kind Encoder computes a text in one step: every token sees all
// others, nothing is kept for a next one. The rows of the step are pooled as the
// artifact says.
//
// One text is computed by all workers together, many texts each by one worker, which
// then waits for no other. Tiles are the same both ways: the bits of an embedding
// depend neither on the number of threads nor on the texts beside it.
//
// All memory is reserved when an encoder is made. A lane is what one text needs while
// it is computed; there is one per worker.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_ENCODER_H
#define LLMC_RUNTIME_LLM_ENCODER_H

#include "runtime/base/Memory.h"
#include "runtime/base/WorkerPool.h"
#include "runtime/device/cpu/Program.h"
#include "runtime/llm/Model.h"

#include <memory>
#include <span>
#include <vector>

namespace llmc::rt {

/// A text as the encoder computes it.
struct EncoderInput {
  std::vector<int32_t> tokens; ///< with those in front and behind that the model wants
  bool truncated = false;      ///< the text was longer
};

struct EncoderOptions {
  /// Tokens of a text, at most; 0: as many as the artifact was compiled for.
  uint32_t contextLimit = 0;
  /// A longer text loses its end. Without: it is an error.
  bool truncate = true;
  /// All workers compute each text, and every dispatch is measured; see Encoder::profile().
  bool profile = false;
};

class Encoder {
public:
  /// `pool` may serve others, one at a time. Unsupported where `model` is no encoder.
  static StatusOr<std::unique_ptr<Encoder>> create(std::shared_ptr<const Model> model,
                                                   std::shared_ptr<WorkerPool> pool,
                                                   const EncoderOptions &options = {});

  /// Floats of an embedding, or of each of its rows.
  uint32_t width() const { return model->info().output_width(); }
  /// False where a text keeps all of its rows.
  bool isPooled() const { return model->info().pooling() != fb::Pooling::None; }
  uint32_t contextLimit() const { return limit; }
  const Model &getModel() const { return *model; }
  WorkerPool &workers() const { return *pool; }

  /// The tokens of a text. InvalidArgument for a text without any, OutOfRange for one that is too
  /// long where that is not allowed.
  StatusOr<EncoderInput> tokenize(std::string_view text) const;
  /// Whether tokens can be computed: not none, not too many, each in the vocabulary.
  Status check(std::span<const int32_t> tokens) const;

  /// Embeds texts whose tokens are valid: `out` is [inputs, width()]; where nothing is pooled, the
  /// rows of all texts one after the other.
  Status embed(std::span<const EncoderInput> inputs, float *out);

  /// Null unless EncoderOptions asked for it.
  const ProgramProfile *profile() const { return measured.get(); }

private:
  struct Lane {
    PageBuffer arena, kv, rows, maxima;
    WorkerScratch scratch;
    Program program;
  };

  Encoder(std::shared_ptr<const Model> model, std::shared_ptr<WorkerPool> pool)
      : model(std::move(model)), pool(std::move(pool)) {}
  Status reserve(const EncoderOptions &options);
  StatusOr<Lane> makeLane(unsigned workers) const;
  void compute(const Lane &lane, WorkerPool &workers, std::span<const int32_t> tokens, float *out,
               ProgramProfile *profile) const;
  void poolRows(std::span<const float> rows, float *out) const;

  std::shared_ptr<const Model> model;
  std::shared_ptr<WorkerPool> pool;
  std::vector<Lane> lanes; ///< one per worker; the first has scratch for all of them
  /// Of one worker each, for the lanes: the caller is it.
  std::vector<std::unique_ptr<WorkerPool>> alone;
  std::unique_ptr<ProgramProfile> measured;
  uint32_t limit = 0;
  bool truncate = true;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_ENCODER_H
