/*===- CapiTest.c - the C interface, used from C89 ------------------------------===
 *
 * Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===
 *
 * Arguments: the chain model of CapiFixture.cpp; "cuda" where it must run on a CUDA
 * device, "encoder" where it is one. Exit status 0 if all is well.
 *
 *===----------------------------------------------------------------------===*/

#include "llmc/llmc.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int condition, const char *what, int line) {
  if (!condition) {
    fprintf(stderr, "CapiTest.c:%d: not so: %s\n  last error: %s\n", line, what, llmc_last_error());
    ++failures;
  }
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

struct text {
  char bytes[256];
  size_t length;
  int calls, limit;
};

static int append(const char *part, size_t length, void *user) {
  struct text *text = user;
  memcpy(text->bytes + text->length, part, length);
  text->length += length;
  text->bytes[text->length] = 0;
  return ++text->calls == text->limit;
}

static void test_errors(const char *path) {
  llmc_model *model = NULL;
  llmc_model_options options;
  CHECK(llmc_model_load("/no/such/file", NULL, &model) == LLMC_NOT_FOUND);
  CHECK(model == NULL);
  CHECK(strstr(llmc_last_error(), "/no/such/file") != NULL);
  llmc_model_options_init(&options);
  options.variant = "none";
  CHECK(llmc_model_load(path, &options, &model) == LLMC_INVALID_ARGUMENT);
  llmc_model_free(NULL);
  llmc_session_free(NULL);
  llmc_sampler_free(NULL);
}

static void test_devices(const char *path, int has_cuda) {
  llmc_model *model = NULL;
  llmc_model_options options;
  llmc_model_options_init(&options);
  options.device = "gpu";
  CHECK(llmc_model_load(path, &options, &model) == LLMC_INVALID_ARGUMENT);
  options.device = "cuda";
  if (has_cuda) {
    CHECK(llmc_model_load(path, &options, &model) == LLMC_OK);
    CHECK(strcmp(llmc_model_device(model), "cpu") != 0);
    llmc_model_free(model);
  } else {
    CHECK(llmc_model_load(path, &options, &model) == LLMC_UNSUPPORTED);
    CHECK(strstr(llmc_last_error(), "no code for CUDA devices") != NULL);
  }
  options.device = "cpu";
  options.gpu_layers = 1;
  CHECK(llmc_model_load(path, &options, &model) == LLMC_INVALID_ARGUMENT);
  options.gpu_layers = 0;
  CHECK(llmc_model_load(path, &options, &model) == LLMC_OK);
  CHECK(strcmp(llmc_model_device(model), "cpu") == 0);
  llmc_model_free(model);
  /* A program built with an older header. */
  options.device = "gpu";
  options.struct_size = offsetof(llmc_model_options, device);
  CHECK(llmc_model_load(path, &options, &model) == LLMC_OK);
  llmc_model_free(model);
}

static void test_text(const llmc_model *model) {
  static const int32_t expected[] = {7, 8};
  int32_t ids[8];
  char text[16];
  size_t count = 0;
  llmc_chat_message message;
  CHECK(llmc_tokenize(model, "t7 t8 ", 6, 0, ids, 8, &count) == LLMC_OK);
  CHECK(count == 2 && memcmp(ids, expected, sizeof expected) == 0);
  CHECK(llmc_tokenize(model, "t7 t8 ", 6, 0, ids, 1, &count) == LLMC_OUT_OF_RANGE);
  CHECK(count == 2);
  CHECK(llmc_detokenize(model, ids, 2, 0, text, sizeof text, &count) == LLMC_OK);
  CHECK(count == 6 && memcmp(text, "t7 t8 ", 6) == 0);
  CHECK(llmc_detokenize(model, ids, 2, 0, text, 5, &count) == LLMC_OUT_OF_RANGE);
  message.role = "user";
  message.content = "t9 ";
  CHECK(llmc_chat_tokenize(model, &message, 1, 1, ids, 8, &count) == LLMC_OK);
  CHECK(count == 3 && ids[0] == 1 && ids[1] == 9 && ids[2] == 2);
}

static void test_steps(const llmc_model *model, llmc_session *session) {
  static const int32_t prompt[] = {3, 4, 5};
  static const int32_t bad[] = {3, 32};
  llmc_sampler *sampler = NULL;
  llmc_sampler_options options;
  int32_t token = -1;
  CHECK(llmc_sampler_create(model, NULL, &sampler) == LLMC_OK);
  CHECK(llmc_sample(sampler, session, &token) == LLMC_INVALID_ARGUMENT);
  CHECK(llmc_prefill(session, bad, 2) == LLMC_OUT_OF_RANGE);
  CHECK(llmc_prefill(session, prompt, 3) == LLMC_OK);
  CHECK(llmc_position(session) == 3);
  CHECK(llmc_sample(sampler, session, &token) == LLMC_OK && token == 6);
  CHECK(llmc_logits(session)[6] == 10.0f);
  CHECK(llmc_decode(session, token) == LLMC_OK);
  CHECK(llmc_sample(sampler, session, &token) == LLMC_OK && token == 7);
  CHECK(llmc_rollback(session, 5) == LLMC_OUT_OF_RANGE);
  CHECK(llmc_rollback(session, -1) == LLMC_OUT_OF_RANGE);
  CHECK(llmc_rollback(session, 2) == LLMC_OK && llmc_position(session) == 2);
  llmc_reset(session);
  CHECK(llmc_position(session) == 0);
  llmc_sampler_free(sampler);
  llmc_sampler_options_init(&options);
  options.top_p = 2;
  CHECK(llmc_sampler_create(model, &options, &sampler) == LLMC_INVALID_ARGUMENT);
}

static void test_generate(llmc_session *session) {
  static const int32_t prompt[] = {3, 15};
  static const char *const stops[] = {"t18"};
  llmc_generate_options options;
  llmc_generate_result result;
  struct text text = {{0}, 0, 0, 0};
  CHECK(llmc_generate(session, prompt, 2, NULL, append, &text, &result) == LLMC_OK);
  CHECK(strcmp(text.bytes, "t16 t17 t18 t19 ") == 0);
  CHECK(result.finish == LLMC_FINISH_STOP);
  CHECK(result.prompt_tokens == 2 && result.completion_tokens == 4);

  llmc_generate_options_init(&options);
  options.stops = stops;
  options.stop_count = 1;
  text.length = 0;
  CHECK(llmc_generate(session, prompt, 2, &options, append, &text, &result) == LLMC_OK);
  CHECK(strcmp(text.bytes, "t16 t17 ") == 0);
  options.max_tokens = 1;
  CHECK(llmc_generate(session, prompt, 2, &options, NULL, NULL, &result) == LLMC_OK);
  CHECK(result.finish == LLMC_FINISH_LENGTH);
  text.calls = 0;
  text.limit = 2;
  CHECK(llmc_generate(session, prompt, 2, NULL, append, &text, &result) == LLMC_OK);
  CHECK(result.finish == LLMC_FINISH_CANCELLED && result.completion_tokens == 2);
}

/* The chain's own order, with every fifth guess wrong. */
static size_t guess(const int32_t *ids, size_t count, int32_t *draft, size_t capacity, void *user) {
  size_t i;
  ++*(int *)user;
  for (i = 0; i < capacity; ++i)
    draft[i] = (ids[count - 1] + (int32_t)i + 1) % 5 == 0 ? 0 : ids[count - 1] + (int32_t)i + 1;
  return capacity;
}

static void test_drafts(llmc_session *session) {
  static const int32_t prompt[] = {3, 4};
  static const int32_t drafted[] = {5, 6, 0};
  llmc_generate_options options;
  llmc_generate_result result, plain;
  struct text text = {{0}, 0, 0, 0}, plain_text = {{0}, 0, 0, 0};
  int calls = 0;
  CHECK(llmc_generate(session, prompt, 2, NULL, append, &plain_text, &plain) == LLMC_OK);
  CHECK(plain.drafted == 0 && plain.steps >= plain.completion_tokens);
  llmc_generate_options_init(&options);
  options.draft = LLMC_DRAFT_CALLBACK;
  CHECK(llmc_generate(session, prompt, 2, &options, NULL, NULL, &result) == LLMC_INVALID_ARGUMENT);
  options.draft_fn = guess;
  options.draft_user = &calls;
  options.draft_always = 1;
  llmc_reset(session);
  CHECK(llmc_generate(session, prompt, 2, &options, append, &text, &result) == LLMC_OK);
  CHECK(text.length == plain_text.length && memcmp(text.bytes, plain_text.bytes, text.length) == 0);
  CHECK(result.completion_tokens == plain.completion_tokens && result.finish == plain.finish);
  CHECK(calls > 0 && result.accepted > 0 && result.accepted < result.drafted);
  CHECK(result.steps < plain.steps);
  options.draft = LLMC_DRAFT_NGRAM;
  CHECK(llmc_generate(session, prompt, 2, &options, NULL, NULL, &result) == LLMC_OK);
  CHECK(result.completion_tokens == plain.completion_tokens);
  options.draft_max = 0;
  CHECK(llmc_generate(session, prompt, 2, &options, NULL, NULL, &result) == LLMC_INVALID_ARGUMENT);

  llmc_reset(session);
  CHECK(llmc_verify_rows(session) == 4);
  CHECK(llmc_prefill(session, prompt, 2) == LLMC_OK);
  CHECK(llmc_verify(session, drafted, 3) == LLMC_OK && llmc_position(session) == 5);
  CHECK(llmc_verify_logits(session, 0)[6] == 10.0f);
  CHECK(llmc_verify_logits(session, 1)[7] == 10.0f);
  CHECK(llmc_rollback(session, 4) == LLMC_OK);
}

static void test_embeddings(const char *path) {
  llmc_model *model = NULL;
  llmc_session *session = NULL;
  llmc_embedder *embedder = NULL;
  llmc_embedder_options options;
  static const int32_t ids[] = {7, 8}, bad[] = {32};
  static const char *const bytes[] = {"t7 t8 ", "t3 ", "t1 t2 t3 t4 t5 ", ""};
  llmc_text texts[4];
  float out[3 * 32], row[32];
  size_t i, truncated = 9;
  CHECK(llmc_model_load(path, NULL, &model) == LLMC_OK);
  if (!model)
    return;
  CHECK(llmc_model_is_encoder(model) && !llmc_model_is_graph(model));
  CHECK(llmc_model_embedding_size(model) == 32);
  CHECK(llmc_session_create(model, NULL, &session) == LLMC_UNSUPPORTED && !session);
  llmc_embedder_options_init(&options);
  options.threads = 2;
  options.context_limit = 65;
  CHECK(llmc_embedder_create(model, &options, &embedder) == LLMC_OUT_OF_RANGE && !embedder);
  options.context_limit = 4;
  CHECK(llmc_embedder_create(model, &options, &embedder) == LLMC_OK);
  llmc_model_free(model);
  if (!embedder)
    return;
  for (i = 0; i < 4; ++i) {
    texts[i].bytes = bytes[i];
    texts[i].length = strlen(bytes[i]);
  }
  /* The last row of a text: its token's successor is 10. */
  CHECK(llmc_embed(embedder, texts, 3, out, &truncated) == LLMC_OK && truncated == 1);
  CHECK(out[9] == 10.0f && out[32 + 4] == 10.0f && out[64 + 5] == 10.0f);
  CHECK(llmc_embed_tokens(embedder, ids, 2, row) == LLMC_OK);
  CHECK(memcmp(row, out, sizeof row) == 0);
  CHECK(llmc_embed(embedder, texts, 0, out, NULL) == LLMC_OK);
  CHECK(llmc_embed(embedder, texts + 1, 3, out, NULL) == LLMC_INVALID_ARGUMENT);
  CHECK(strstr(llmc_last_error(), "text 2") != NULL);
  CHECK(llmc_embed_tokens(embedder, bad, 1, row) == LLMC_OUT_OF_RANGE);
  CHECK(llmc_embed_tokens(embedder, ids, 0, row) == LLMC_INVALID_ARGUMENT);
  llmc_embedder_free(embedder);
}

int main(int argc, char **argv) {
  llmc_model *model = NULL;
  llmc_session *session = NULL;
  llmc_session_options options;
  llmc_embedder *embedder = NULL;
  const int has_cuda = argc == 3 && strcmp(argv[2], "cuda") == 0;
  if (argc == 3 && strcmp(argv[2], "encoder") == 0) {
    test_embeddings(argv[1]);
    return failures != 0;
  }
  if (argc != 2 && !has_cuda)
    return 1;
  CHECK(strlen(llmc_version()) > 0);
  test_errors(argv[1]);
  test_devices(argv[1], has_cuda);
  CHECK(llmc_model_load(argv[1], NULL, &model) == LLMC_OK);
  if (!model)
    return 1;
  CHECK((strcmp(llmc_model_device(model), "cpu") != 0) == has_cuda);
  CHECK(llmc_model_vocab_size(model) == 32);
  CHECK(llmc_model_context_length(model) == 64);
  CHECK(llmc_model_is_end(model, 20) && !llmc_model_is_end(model, 19));
  CHECK(!llmc_model_is_encoder(model) && llmc_model_embedding_size(model) == 0);
  CHECK(llmc_embedder_create(model, NULL, &embedder) == LLMC_UNSUPPORTED && !embedder);
  llmc_embedder_free(NULL);
  test_text(model);

  llmc_session_options_init(&options);
  options.threads = 2;
  options.context_limit = 65;
  CHECK(llmc_session_create(model, &options, &session) == LLMC_OUT_OF_RANGE);
  options.context_limit = 40;
  CHECK(llmc_session_create(model, &options, &session) == LLMC_OK);
  if (!session)
    return 1;
  test_steps(model, session);
  llmc_model_free(model);
  test_generate(session);
  test_drafts(session);
  llmc_session_free(session);
  return failures != 0;
}
