//===- Generator.h - prompt in, text out ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop that all generation goes through: compute a step, sample, decide
// whether to go on. It is written over "verify these tokens": the token sampled
// last, followed by what a DraftSource guesses comes next (Draft.h). A guess is accepted as
// long as it is what the sampler draws anyway, so that drafts change the speed
// and never the tokens. Without a source every step has one token.
//
// A sequence never exceeds the session's context: a prompt that fills it exactly
// ends with FinishReason::Length and no token, a longer one is an error before
// anything is computed. Nothing is ever cut off.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_GENERATOR_H
#define LLMC_RUNTIME_LLM_GENERATOR_H

#include "runtime/llm/Draft.h"
#include "runtime/llm/Sampler.h"
#include "runtime/llm/Session.h"
#include "runtime/text/TextStream.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt {

struct GenerateOptions {
  SamplerOptions sampler = {};
  DraftOptions draft = {};
  uint32_t maxTokens = std::numeric_limits<uint32_t>::max(); ///< until the context is full
  std::vector<std::string> stops = {}; ///< the text ends before the first of these
  bool ignoreEnd = false;              ///< end tokens are tokens like all others
  bool special = false;                ///< control tokens appear in the text
};

enum class FinishReason {
  Stop,      ///< an end token or a stop string
  Length,    ///< maxTokens, or the context is full
  Cancelled, ///< the receiver of the text said so
};

/// "stop", "length" or "cancelled".
const char *toString(FinishReason reason);

/// What a call of generate() did. The end token is not counted as a token of the completion.
struct GenerateResult {
  FinishReason finish = FinishReason::Length;
  uint32_t promptTokens = 0;
  uint32_t reusedTokens = 0; ///< of the prompt, still in the KV cache
  uint32_t completionTokens = 0;
  uint32_t steps = 0;        ///< decode and verify steps
  uint32_t verifySteps = 0;  ///< those with drafted tokens
  uint32_t stepTokens = 0;   ///< drawn in all steps
  uint32_t drafted = 0;      ///< tokens that were verified
  uint32_t accepted = 0;     ///< those that were drawn, too
  double prefillSeconds = 0; ///< until the first token is known
  double decodeSeconds = 0;  ///< all after that
};

class Generator {
public:
  /// Receives whole characters as soon as they are certain. Returns false to stop.
  using TextSink = FunctionRef<bool(std::string_view text)>;

  /// `session` and `draft` (may be null) must outlive the generator. Allocates all that generate()
  /// needs; InvalidArgument where the options make no sense.
  static StatusOr<Generator> create(Session &session, GenerateOptions options,
                                    DraftSource *draft = nullptr);

  /// Continues `prompt`. What the KV cache already holds of it is not computed again. Models
  /// without a tokenizer give tokens but no text. The error says what is wrong with the prompt.
  StatusOr<GenerateResult> generate(std::span<const int32_t> prompt, TextSink sink);

  /// The tokens of the completion, without the end token.
  std::span<const int32_t> completion() const { return produced; }

private:
  Generator(Session &session, GenerateOptions options, DraftSource *draft);
  StatusOr<uint32_t> prefill(std::span<const int32_t> prompt);
  Status decode(TextSink sink, GenerateResult &result);
  DraftSource::Proposal propose();
  StatusOr<std::optional<FinishReason>> accept(int32_t token, TextSink sink);
  int32_t draw(uint32_t row, uint32_t length);
  void startText();
  void finishText(TextSink sink);

  Session *session;
  GenerateOptions options;
  DraftSource *draft;
  DraftLength draftLength;
  const Tokenizer *tokenizer;
  Sampler sampler;
  std::optional<StreamDecoder> decoder;
  StopMatcher matcher;
  std::vector<int32_t> produced;
  std::vector<int32_t> batch; ///< the token drawn last and what is proposed to follow
  std::string decoded, shown;
  uint32_t budget = 0; ///< the most tokens that this completion may have
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_GENERATOR_H
