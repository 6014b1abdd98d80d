//===- Generator.cpp - prompt in, text out --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Generator.h"

#include <algorithm>
#include <chrono>

using namespace llmc;
using namespace llmc::rt;

namespace {

/// What a token's text rarely exceeds; longer ones make the buffers grow once.
constexpr size_t kPieceBytes = 256;

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

} // namespace

const char *llmc::rt::toString(FinishReason reason) {
  switch (reason) {
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  }
  return "";
}

StatusOr<Generator> Generator::create(Session &session, GenerateOptions options,
                                      DraftSource *draft) {
  LLMC_RETURN_IF_ERROR(options.sampler.validate());
  return Generator(session, std::move(options), draft);
}

Generator::Generator(Session &session, GenerateOptions given, DraftSource *draft)
    : session(&session), options(std::move(given)), draft(draft), draftLength(options.draft),
      tokenizer(session.getModel().tokenizer()),
      sampler(options.sampler, session.getModel().vocabSize()) {
  batch.reserve(session.verifyRows());
  decoded.reserve(kPieceBytes);
  shown.reserve(kPieceBytes);
}

StatusOr<GenerateResult> Generator::generate(std::span<const int32_t> prompt, TextSink sink) {
  GenerateResult result;
  result.promptTokens = static_cast<uint32_t>(prompt.size());
  produced.clear();
  startText();

  const auto start = Clock::now();
  LLMC_ASSIGN_OR_RETURN(result.reusedTokens, prefill(prompt));
  if (draft)
    draft->start();
  budget = std::min(options.maxTokens, session->contextLimit() - session->position());
  produced.reserve(budget);
  if (budget != 0)
    batch.assign(1, draw(0, session->position()));
  const auto first = Clock::now();
  if (budget != 0) {
    LLMC_RETURN_IF_ERROR(decode(sink, result));
  }
  finishText(sink);
  result.prefillSeconds = seconds(start, first);
  result.decodeSeconds = seconds(first, Clock::now());
  result.completionTokens = static_cast<uint32_t>(produced.size());
  return result;
}

/// Gives the number of prompt tokens that were in the KV cache already.
StatusOr<uint32_t> Generator::prefill(std::span<const int32_t> prompt) {
  if (prompt.size() > session->contextLimit())
    return outOfRange("the prompt has " + std::to_string(prompt.size()) +
                      " tokens and the context " + std::to_string(session->contextLimit()) +
                      "; shorten the prompt or compile with a larger --context");
  // A warm cache must give the bits of a cold one. Where prefill and decode differ, this holds for
  // what prefill has computed only.
  std::span<const int32_t> cached = session->tokens();
  if (session->getModel().isFast())
    cached = cached.first(session->promptLength());
  size_t common = std::mismatch(prompt.begin(), prompt.end(), cached.begin(), cached.end()).first -
                  prompt.begin();
  // The last token is computed in any case: its logits are wanted.
  common = std::min(common, prompt.size() - !prompt.empty());
  if (!session->rollback(static_cast<uint32_t>(common)).ok()) {
    session->reset();
    common = 0;
  }
  LLMC_RETURN_IF_ERROR(session->prefill(prompt.subspan(common)));
  return static_cast<uint32_t>(common);
}

/// `batch` holds the first token: drawn, but neither accepted nor computed.
Status Generator::decode(TextSink sink, GenerateResult &result) {
  while (true) {
    LLMC_ASSIGN_OR_RETURN(std::optional<FinishReason> end, accept(batch[0], sink));
    if (end) {
      result.finish = *end;
      return {};
    }
    const auto start = Clock::now();
    const DraftSource::Proposal proposal = propose();
    const uint32_t drafted = draftLength.choose(proposal);
    const uint32_t before = session->position();
    LLMC_RETURN_IF_ERROR(session->verify(std::span(batch).first(1 + drafted)));
    const double stepSeconds = seconds(start, Clock::now());

    uint32_t row = 0;
    int32_t token = draw(row, before + 1);
    const auto asProposed = [&] { return row < proposal.size && token == batch[row + 1]; };
    while (row < drafted && asProposed()) {
      LLMC_ASSIGN_OR_RETURN(end, accept(token, sink));
      if (end)
        break;
      ++row;
      token = draw(row, before + row + 1);
    }
    const uint32_t matched = row + asProposed();
    ++result.steps;
    result.verifySteps += drafted != 0;
    result.stepTokens += row + 1;
    result.drafted += drafted;
    result.accepted += std::min(matched, drafted);
    draftLength.observe(proposal, 1 + drafted, stepSeconds, row + 1, matched);

    if (row < drafted)
      LLMC_RETURN_IF_ERROR(session->rollback(before + row + 1));
    if (end) {
      result.finish = *end;
      return {};
    }
    batch.assign(1, token);
  }
}

/// Appends to `batch`, which holds one token.
DraftSource::Proposal Generator::propose() {
  // A step draws one token more than it accepts.
  const size_t room = std::min<size_t>(
      {session->verifyRows() - 1, draftLength.most(), budget - produced.size() - 1});
  if (!draft || room == 0)
    return {};
  batch.resize(1 + room);
  return draft->propose(session->tokens(), batch[0], std::span(batch).subspan(1));
}

/// Takes a drawn token into the completion; tells if that ends it.
StatusOr<std::optional<FinishReason>> Generator::accept(int32_t token, TextSink sink) {
  using End = std::optional<FinishReason>;
  if (tokenizer && !options.ignoreEnd && tokenizer->isEnd(token))
    return End(FinishReason::Stop);
  produced.push_back(token);
  if (decoder) {
    decoded.clear();
    shown.clear();
    LLMC_RETURN_IF_ERROR(decoder->push(token, decoded));
    const bool stopped = matcher.push(decoded, shown);
    if (!shown.empty() && !sink(shown))
      return End(FinishReason::Cancelled);
    if (stopped)
      return End(FinishReason::Stop);
  }
  return produced.size() == budget ? End(FinishReason::Length) : End();
}

/// Samples from row `row` of the last step; the row's token is the last of the first `length`.
int32_t Generator::draw(uint32_t row, uint32_t length) {
  if (sampler.isGreedy())
    return session->mostLikely(row);
  return sampler.sample(session->tokenLogits(row), session->tokens().first(length));
}

void Generator::startText() {
  matcher = StopMatcher(options.stops);
  if (tokenizer)
    decoder.emplace(*tokenizer, StreamOptions{.special = options.special, .continues = true});
}

void Generator::finishText(TextSink sink) {
  if (!decoder)
    return;
  decoded.clear();
  shown.clear();
  decoder->flush(decoded);
  if (!matcher.push(decoded, shown))
    matcher.flush(shown);
  if (!shown.empty())
    sink(shown);
}
