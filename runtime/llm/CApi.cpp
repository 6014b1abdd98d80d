//===- CApi.cpp - the C interface of the runtime --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "llmc/llmc.h"

#include "runtime/base/Topology.h"
#include "runtime/llm/Chat.h"
#include "runtime/llm/Encoder.h"
#include "runtime/llm/Generator.h"
#include "runtime/llm/GraphSession.h"
#include "runtime/llm/NgramDraft.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace llmc::rt;

struct llmc_model {
  std::shared_ptr<const Model> model;
  std::string device;
};

struct llmc_session {
  std::unique_ptr<Session> session;
};

struct llmc_sampler {
  Sampler sampler;
};

struct llmc_embedder {
  std::unique_ptr<Encoder> encoder;
};

struct llmc_graph {
  std::unique_ptr<GraphSession> session;
};

static_assert(LLMC_INTERNAL == static_cast<int>(StatusCode::Internal));
static_assert(LLMC_FINISH_CANCELLED == static_cast<int>(FinishReason::Cancelled));

namespace {

thread_local std::string lastError;

llmc_status report(Status status) {
  if (!status.ok())
    lastError = status.message();
  return static_cast<llmc_status>(status.code());
}

/// The caller's options over the defaults: a program built with an older header has fewer fields.
template <typename Options> Options merged(const Options *given, void (*initialize)(Options *)) {
  Options options;
  initialize(&options);
  if (given)
    std::memcpy(static_cast<void *>(&options), given, std::min(given->struct_size, sizeof options));
  return options;
}

/// Hands a list of elements to the caller's buffer.
template <typename Element>
Status deliver(std::span<const Element> from, Element *to, size_t capacity, size_t *count) {
  if (count)
    *count = from.size();
  if (from.size() > capacity)
    return outOfRange("the buffer has room for " + std::to_string(capacity) + " elements and " +
                      std::to_string(from.size()) + " are needed");
  std::copy(from.begin(), from.end(), to);
  return {};
}

StatusOr<std::shared_ptr<const Model>> loadModel(const char *path,
                                                 const llmc_model_options &options) {
  ModelOptions load{.variant = options.variant ? options.variant : ""};
  LLMC_RETURN_IF_ERROR(parseDevice(options.device ? options.device : "auto", load));
  if (options.gpu_layers != UINT32_MAX)
    load.gpuLayers = options.gpu_layers;
  return Model::load(path, load);
}

StatusOr<const Tokenizer *> tokenizerOf(const llmc_model *model) {
  if (const Tokenizer *tokenizer = model->model->tokenizer())
    return tokenizer;
  return unsupported(model->model->artifact().path() + " has no tokenizer");
}

StatusOr<std::vector<int32_t>> tokenize(const llmc_model *model, std::string_view text, int flags) {
  LLMC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(model));
  std::vector<int32_t> ids;
  LLMC_RETURN_IF_ERROR(tokenizer->encode(text,
                                         {.parseSpecial = (flags & LLMC_PARSE_SPECIAL) != 0,
                                          .addSpecial = (flags & LLMC_ADD_SPECIAL) != 0},
                                         ids));
  return ids;
}

StatusOr<std::string> detokenize(const llmc_model *model, std::span<const int32_t> ids, int flags) {
  LLMC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(model));
  std::string text;
  LLMC_RETURN_IF_ERROR(tokenizer->decode(ids, (flags & LLMC_PARSE_SPECIAL) != 0, text));
  return text;
}

StatusOr<std::vector<int32_t>> chatTokens(const llmc_model *model,
                                          std::span<const llmc_chat_message> messages,
                                          bool addGenerationPrompt) {
  LLMC_ASSIGN_OR_RETURN(ChatRenderer renderer, ChatRenderer::create(model->model));
  std::vector<ChatMessage> list;
  for (const llmc_chat_message &message : messages)
    list.push_back({message.role, message.content});
  std::vector<int32_t> ids;
  LLMC_RETURN_IF_ERROR(renderer.encode(list, addGenerationPrompt, ids));
  return ids;
}

SamplerOptions samplerOptions(const llmc_sampler_options &options) {
  return {.temperature = options.temperature,
          .topK = options.top_k,
          .topP = options.top_p,
          .minP = options.min_p,
          .repeatPenalty = options.repeat_penalty,
          .repeatLast = options.repeat_last,
          .seed = options.seed};
}

StatusOr<std::unique_ptr<Session>> makeSession(const llmc_model *model,
                                               const llmc_session_options &options) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool,
                        WorkerPool::create(options.threads ? options.threads : usableCores()));
  return Session::create(model->model, std::move(pool),
                         {options.context_limit, options.prefill_chunk});
}

/// Guesses of the caller.
class CallbackDraft final : public DraftSource {
public:
  CallbackDraft(llmc_draft_fn function, void *user, uint32_t contextLimit)
      : function(function), user(user) {
    sequence.reserve(contextLimit);
  }
  Proposal propose(std::span<const int32_t> history, int32_t last,
                   std::span<int32_t> draft) override {
    sequence.assign(history.begin(), history.end());
    sequence.push_back(last);
    return {std::min(function(sequence.data(), sequence.size(), draft.data(), draft.size(), user),
                     draft.size())};
  }

private:
  llmc_draft_fn function;
  void *user;
  std::vector<int32_t> sequence;
};

StatusOr<std::unique_ptr<DraftSource>> makeDraft(const Session &session,
                                                 const llmc_generate_options &options) {
  if (options.draft != LLMC_DRAFT_NONE && options.draft_max == 0)
    return invalidArgument("draft_max is 0; drafts are left out with LLMC_DRAFT_NONE");
  switch (options.draft) {
  case LLMC_DRAFT_NONE:
    return std::unique_ptr<DraftSource>();
  case LLMC_DRAFT_NGRAM:
    return std::unique_ptr<DraftSource>(new NgramDraft(session.contextLimit()));
  case LLMC_DRAFT_CALLBACK:
    if (!options.draft_fn)
      return invalidArgument("LLMC_DRAFT_CALLBACK needs a draft_fn");
    return std::unique_ptr<DraftSource>(
        new CallbackDraft(options.draft_fn, options.draft_user, session.contextLimit()));
  }
  return invalidArgument("there is no kind of draft " +
                         std::to_string(static_cast<int>(options.draft)));
}

StatusOr<GenerateResult> generate(Session &session, std::span<const int32_t> prompt,
                                  const llmc_generate_options &options, llmc_text_fn onText,
                                  void *user) {
  GenerateOptions generateOptions{
      .sampler = samplerOptions(options.sampler),
      .draft = {.most = options.draft_max, .adaptive = options.draft_always == 0},
      .maxTokens = options.max_tokens};
  for (size_t i = 0; i < options.stop_count; ++i)
    generateOptions.stops.emplace_back(options.stops[i]);
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<DraftSource> draft, makeDraft(session, options));
  LLMC_ASSIGN_OR_RETURN(Generator generator,
                        Generator::create(session, std::move(generateOptions), draft.get()));
  return generator.generate(prompt, [&](std::string_view text) {
    return !onText || onText(text.data(), text.size(), user) == 0;
  });
}

} // namespace

const char *llmc_version(void) { return LLMC_VERSION; }

const char *llmc_last_error(void) { return lastError.c_str(); }

void llmc_model_options_init(llmc_model_options *options) {
  *options = {sizeof *options, nullptr, nullptr, UINT32_MAX};
}

llmc_status llmc_model_load(const char *path, const llmc_model_options *given, llmc_model **model) {
  const llmc_model_options options = merged(given, llmc_model_options_init);
  auto loaded = loadModel(path, options);
  *model = nullptr;
  if (loaded.ok()) {
    std::string device = loaded.value()->canCompute() ? loaded.value()->device() : "cpu";
    *model = new llmc_model{loaded.take(), std::move(device)};
  }
  return report(loaded.takeStatus());
}

void llmc_model_free(llmc_model *model) { delete model; }

const char *llmc_model_device(const llmc_model *model) { return model->device.c_str(); }

int32_t llmc_model_vocab_size(const llmc_model *model) {
  return static_cast<int32_t>(model->model->vocabSize());
}

int32_t llmc_model_context_length(const llmc_model *model) {
  return static_cast<int32_t>(model->model->info().context_length());
}

int llmc_model_is_end(const llmc_model *model, int32_t token) {
  const Tokenizer *tokenizer = model->model->tokenizer();
  return tokenizer && tokenizer->isEnd(token);
}

llmc_status llmc_tokenize(const llmc_model *model, const char *text, size_t length, int flags,
                          int32_t *ids, size_t capacity, size_t *count) {
  auto tokens = tokenize(model, {text, length}, flags);
  if (!tokens.ok())
    return report(tokens.takeStatus());
  return report(deliver<int32_t>(tokens.value(), ids, capacity, count));
}

llmc_status llmc_detokenize(const llmc_model *model, const int32_t *ids, size_t count, int flags,
                            char *text, size_t capacity, size_t *length) {
  auto joined = detokenize(model, {ids, count}, flags);
  if (!joined.ok())
    return report(joined.takeStatus());
  return report(deliver<char>(joined.value(), text, capacity, length));
}

llmc_status llmc_chat_tokenize(const llmc_model *model, const llmc_chat_message *messages,
                               size_t message_count, int add_generation_prompt, int32_t *ids,
                               size_t capacity, size_t *count) {
  auto tokens = chatTokens(model, {messages, message_count}, add_generation_prompt != 0);
  if (!tokens.ok())
    return report(tokens.takeStatus());
  return report(deliver<int32_t>(tokens.value(), ids, capacity, count));
}

void llmc_session_options_init(llmc_session_options *options) {
  *options = {sizeof *options, 0, 0, 0};
}

llmc_status llmc_session_create(const llmc_model *model, const llmc_session_options *options,
                                llmc_session **session) {
  auto created = makeSession(model, merged(options, llmc_session_options_init));
  *session = created.ok() ? new llmc_session{created.take()} : nullptr;
  return report(created.takeStatus());
}

void llmc_session_free(llmc_session *session) { delete session; }

llmc_status llmc_prefill(llmc_session *session, const int32_t *ids, size_t count) {
  return report(session->session->prefill({ids, count}));
}

llmc_status llmc_decode(llmc_session *session, int32_t token) {
  return report(session->session->decode(token));
}

const float *llmc_logits(const llmc_session *session) { return session->session->logits().data(); }

llmc_status llmc_verify(llmc_session *session, const int32_t *ids, size_t count) {
  return report(session->session->verify({ids, count}));
}

int32_t llmc_verify_rows(const llmc_session *session) {
  return static_cast<int32_t>(session->session->verifyRows());
}

const float *llmc_verify_logits(const llmc_session *session, int32_t row) {
  return session->session->logits(static_cast<uint32_t>(row)).data();
}

int32_t llmc_position(const llmc_session *session) {
  return static_cast<int32_t>(session->session->position());
}

llmc_status llmc_rollback(llmc_session *session, int32_t position) {
  if (position < 0)
    return report(outOfRange("cannot roll back to position " + std::to_string(position)));
  return report(session->session->rollback(static_cast<uint32_t>(position)));
}

void llmc_reset(llmc_session *session) { session->session->reset(); }

void llmc_sampler_options_init(llmc_sampler_options *options) {
  const SamplerOptions defaults;
  *options = {sizeof *options, defaults.temperature,   defaults.topK,       defaults.topP,
              defaults.minP,   defaults.repeatPenalty, defaults.repeatLast, defaults.seed};
}

llmc_status llmc_sampler_create(const llmc_model *model, const llmc_sampler_options *given,
                                llmc_sampler **sampler) {
  const SamplerOptions options = samplerOptions(merged(given, llmc_sampler_options_init));
  Status status = options.validate();
  *sampler = status.ok() ? new llmc_sampler{Sampler(options, model->model->vocabSize())} : nullptr;
  return report(std::move(status));
}

void llmc_sampler_free(llmc_sampler *sampler) { delete sampler; }

llmc_status llmc_sample(llmc_sampler *sampler, const llmc_session *session, int32_t *token) {
  if (session->session->position() == 0)
    return report(invalidArgument("there are no logits before the first token is computed"));
  const Session &from = *session->session;
  *token = sampler->sampler.isGreedy() ? from.mostLikely()
                                       : sampler->sampler.sample(from.tokenLogits(), from.tokens());
  return LLMC_OK;
}

void llmc_generate_options_init(llmc_generate_options *options) {
  options->struct_size = sizeof *options;
  llmc_sampler_options_init(&options->sampler);
  options->max_tokens = GenerateOptions().maxTokens;
  options->stops = nullptr;
  options->stop_count = 0;
  options->draft = LLMC_DRAFT_NONE;
  options->draft_max = DraftOptions().most;
  options->draft_always = 0;
  options->draft_fn = nullptr;
  options->draft_user = nullptr;
}

llmc_status llmc_generate(llmc_session *session, const int32_t *ids, size_t count,
                          const llmc_generate_options *given, llmc_text_fn on_text, void *user,
                          llmc_generate_result *result) {
  const llmc_generate_options options = merged(given, llmc_generate_options_init);
  auto generated = generate(*session->session, {ids, count}, options, on_text, user);
  if (generated.ok() && result) {
    const GenerateResult &value = generated.value();
    *result = {static_cast<llmc_finish>(value.finish),
               value.promptTokens,
               value.completionTokens,
               value.prefillSeconds,
               value.decodeSeconds,
               value.steps,
               value.drafted,
               value.accepted};
  }
  return report(generated.takeStatus());
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

static StatusOr<std::unique_ptr<Encoder>> makeEncoder(const llmc_model *model,
                                                      const llmc_embedder_options &options) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool,
                        WorkerPool::create(options.threads ? options.threads : usableCores()));
  return Encoder::create(
      model->model, std::move(pool),
      {.contextLimit = options.context_limit, .truncate = options.no_truncate == 0});
}

static Status embedTexts(Encoder &encoder, std::span<const llmc_text> texts, float *out,
                         size_t *truncated) {
  if (!encoder.isPooled())
    return unsupported(encoder.getModel().artifact().path() +
                       " gives a row for each token of a text, not one for the text");
  std::vector<EncoderInput> inputs;
  inputs.reserve(texts.size());
  size_t cut = 0;
  for (const llmc_text &text : texts) {
    auto input = encoder.tokenize({text.bytes, text.length});
    if (!input.ok())
      return Status(input.status().code(),
                    "text " + std::to_string(inputs.size()) + ": " + input.status().message());
    cut += input.value().truncated;
    inputs.push_back(input.take());
  }
  if (truncated)
    *truncated = cut;
  return encoder.embed(inputs, out);
}

int llmc_model_is_encoder(const llmc_model *model) { return model->model->isEncoder(); }

int32_t llmc_model_embedding_size(const llmc_model *model) {
  return model->model->isEncoder() ? static_cast<int32_t>(model->model->info().output_width()) : 0;
}

void llmc_embedder_options_init(llmc_embedder_options *options) {
  *options = {sizeof *options, 0, 0, 0};
}

llmc_status llmc_embedder_create(const llmc_model *model, const llmc_embedder_options *options,
                                 llmc_embedder **embedder) {
  auto created = makeEncoder(model, merged(options, llmc_embedder_options_init));
  *embedder = created.ok() ? new llmc_embedder{created.take()} : nullptr;
  return report(created.takeStatus());
}

void llmc_embedder_free(llmc_embedder *embedder) { delete embedder; }

llmc_status llmc_embed(llmc_embedder *embedder, const llmc_text *texts, size_t count, float *out,
                       size_t *truncated) {
  return report(embedTexts(*embedder->encoder, {texts, count}, out, truncated));
}

llmc_status llmc_embed_tokens(llmc_embedder *embedder, const int32_t *ids, size_t count,
                              float *out) {
  Encoder &encoder = *embedder->encoder;
  Status status = encoder.check({ids, count});
  if (!status.ok())
    return report(std::move(status));
  const EncoderInput input{{ids, ids + count}};
  return report(encoder.embed({&input, 1}, out));
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static llmc_status describePort(std::span<const GraphPort> ports, size_t index,
                                llmc_tensor_info *info) {
  if (index >= ports.size())
    return report(outOfRange("there is no tensor " + std::to_string(index) + ", only " +
                             std::to_string(ports.size())));
  const GraphPort &port = ports[index];
  *info = {port.name.c_str(), port.element.c_str(), port.shape.data(),
           port.shape.size(), port.bytes.size(),    port.bytes.data()};
  return LLMC_OK;
}

int llmc_model_is_graph(const llmc_model *model) { return model->model->isGraph(); }

llmc_status llmc_graph_create(const llmc_model *model, uint32_t threads, llmc_graph **graph) {
  auto pool = WorkerPool::create(threads ? threads : usableCores());
  if (!pool.ok())
    return report(pool.takeStatus());
  auto session = GraphSession::create(model->model, pool.take());
  if (!session.ok())
    return report(session.takeStatus());
  *graph = new llmc_graph{session.take()};
  return LLMC_OK;
}

void llmc_graph_free(llmc_graph *graph) { delete graph; }

size_t llmc_graph_input_count(const llmc_graph *graph) { return graph->session->inputs().size(); }
size_t llmc_graph_output_count(const llmc_graph *graph) { return graph->session->outputs().size(); }

llmc_status llmc_graph_input(const llmc_graph *graph, size_t index, llmc_tensor_info *info) {
  return describePort(graph->session->inputs(), index, info);
}
llmc_status llmc_graph_output(const llmc_graph *graph, size_t index, llmc_tensor_info *info) {
  return describePort(graph->session->outputs(), index, info);
}

llmc_status llmc_graph_set_input(llmc_graph *graph, const char *name, const void *data,
                                 size_t bytes) {
  auto port = graph->session->findInput(name);
  if (!port.ok())
    return report(port.takeStatus());
  return report(
      graph->session->setInput(*port.value(), {static_cast<const uint8_t *>(data), bytes}));
}

llmc_status llmc_graph_run(llmc_graph *graph) {
  graph->session->run();
  return LLMC_OK;
}
