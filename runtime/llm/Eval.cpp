//===- Eval.cpp - perplexity and divergence of a model on a text ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Eval.h"

#include "runtime/llm/LogitMath.h"

#include <algorithm>
#include <cmath>

using namespace llmc::rt;

namespace {

/// `share` 0..1 of the values are at most the result.
double percentile(std::vector<double> &values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * double(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - double(below)) * (values[above] - values[below]);
}

class Evaluation {
public:
  Evaluation(Session &session, Session *reference, uint32_t window)
      : session(session), reference(reference), window(window), first(window / 2),
        vocab(session.getModel().vocabSize()) {
    if (reference)
      referenceLogits.resize(size_t(window - first) * vocab);
  }

  Status score(std::span<const int32_t> tokens);
  EvalResult finish();

private:
  /// Calls `visit(i, logits)` for the logits that predict the token at position i of the window.
  template <typename Visit>
  Status forScored(Session &session, std::span<const int32_t> tokens, Visit visit);

  Session &session;
  Session *reference;
  const uint32_t window, first;
  const size_t vocab;
  std::vector<float> referenceLogits; ///< [window - first, vocab]
  double referenceNll = 0;            ///< of all windows
  std::vector<double> divergences;
  uint64_t agreements = 0;
  EvalResult result;
};

template <typename Visit>
Status Evaluation::forScored(Session &session, std::span<const int32_t> tokens, Visit visit) {
  session.reset();
  // What comes before the first scored position needs no logits.
  LLMC_RETURN_IF_ERROR(session.prefill(tokens.first(first - 1)));
  return session.prefill(tokens.subspan(first - 1, window - first),
                         [&](uint32_t position, std::span<const float> rows) {
                           for (size_t row = 0; row * vocab < rows.size(); ++row)
                             visit(position + 1 + static_cast<uint32_t>(row),
                                   rows.subspan(row * vocab, vocab));
                           return true;
                         });
}

Status Evaluation::score(std::span<const int32_t> tokens) {
  if (reference)
    LLMC_RETURN_IF_ERROR(
        forScored(*reference, tokens, [&](uint32_t i, std::span<const float> logits) {
          std::copy(logits.begin(), logits.end(), referenceLogits.begin() + (i - first) * vocab);
          referenceNll += logPartition(logits) - logits[tokens[i]];
        }));
  double nll = 0;
  LLMC_RETURN_IF_ERROR(forScored(session, tokens, [&](uint32_t i, std::span<const float> logits) {
    nll += logPartition(logits) - logits[tokens[i]];
    if (!reference)
      return;
    const auto other = std::span(referenceLogits).subspan((i - first) * vocab, vocab);
    divergences.push_back(divergence(other, logits));
    agreements += greedyToken(logits) == greedyToken(other);
  }));
  result.windowNll.push_back(nll / (window - first));
  return {};
}

EvalResult Evaluation::finish() {
  double nll = 0;
  for (double mean : result.windowNll)
    nll += mean;
  result.perplexity = std::exp(nll / double(result.windowNll.size()));
  result.tokens = result.windowNll.size() * uint64_t(window - first);
  if (!divergences.empty()) {
    double sum = 0;
    for (double kl : divergences)
      sum += kl;
    result.meanKl = sum / double(divergences.size());
    result.sameTop = double(agreements) / double(divergences.size());
    result.kl999 = percentile(divergences, 0.999);
    result.referencePerplexity = std::exp(referenceNll / double(result.tokens));
  }
  return std::move(result);
}

} // namespace

StatusOr<EvalResult> llmc::rt::evaluate(Session &session, Session *reference,
                                        std::span<const int32_t> tokens, const EvalOptions &options,
                                        EvalProgress progress) {
  const Model &model = session.getModel();
  if (options.window < 4)
    return invalidArgument("a window must have at least 4 tokens");
  if (reference && reference->getModel().vocabSize() != model.vocabSize())
    return invalidArgument("the two models have vocabularies of " +
                           std::to_string(model.vocabSize()) + " and " +
                           std::to_string(reference->getModel().vocabSize()) + " tokens");
  size_t windows = tokens.size() / options.window;
  if (options.windows)
    windows = std::min<size_t>(windows, options.windows);
  if (windows == 0)
    return invalidArgument("the text has " + std::to_string(tokens.size()) +
                           " tokens, fewer than the " + std::to_string(options.window) +
                           " of one window");
  const Tokenizer *tokenizer = model.tokenizer();
  Evaluation evaluation(session, reference, options.window);
  std::vector<int32_t> window;
  for (size_t i = 0; i < windows; ++i) {
    const auto part = tokens.subspan(i * options.window, options.window);
    window.assign(part.begin(), part.end());
    if (tokenizer && tokenizer->addsBos())
      window[0] = tokenizer->bos();
    LLMC_RETURN_IF_ERROR(evaluation.score(window));
    if (!progress(static_cast<uint32_t>(i + 1), static_cast<uint32_t>(windows)))
      break;
  }
  return evaluation.finish();
}
