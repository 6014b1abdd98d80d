/*===- llmc.h - the C interface of the runtime ---------------------------------===
 *
 * Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===
 *
 * A model is a compiled artifact (*.llmc); a session is one sequence of tokens
 * that is being computed with it. In short:
 *
 *   llmc_model *model;
 *   llmc_session *session;
 *   if (llmc_model_load("model.llmc", NULL, &model) != LLMC_OK ||
 *       llmc_session_create(model, NULL, &session) != LLMC_OK) {
 *     fprintf(stderr, "%s\n", llmc_last_error());
 *     return 1;
 *   }
 *   llmc_tokenize(model, text, strlen(text), LLMC_ADD_SPECIAL, ids, 512, &count);
 *   llmc_generate(session, ids, count, NULL, print_text, NULL, NULL);
 *   llmc_session_free(session);
 *   llmc_model_free(model);
 *
 * Encoders make vectors of texts instead, with llmc_embed (Embeddings, below).
 *
 * A function that can fail returns an llmc_status; llmc_last_error() then says
 * why, in one line. No function throws, prints or ends the process. Models may
 * be used by several threads at once, a session by one at a time.
 *
 * Option structs start with their own size, so that a program keeps working
 * with a later library; the *_init functions set it and the defaults. NULL in
 * place of options means the defaults.
 *
 *===----------------------------------------------------------------------===*/

#ifndef LLMC_LLMC_H
#define LLMC_LLMC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LLMC_API __attribute__((visibility("default")))
#else
#define LLMC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum llmc_status {
  LLMC_OK = 0,
  LLMC_INVALID_ARGUMENT,   /* what was asked for makes no sense */
  LLMC_NOT_FOUND,          /* a file cannot be opened or written */
  LLMC_CORRUPT,            /* damaged or hostile input */
  LLMC_UNSUPPORTED,        /* well-formed, but not for this library or this CPU */
  LLMC_OUT_OF_RANGE,       /* a limit is exceeded: context, vocabulary, a buffer */
  LLMC_RESOURCE_EXHAUSTED, /* memory, threads */
  LLMC_INTERNAL            /* a mistake in the library */
} llmc_status;

typedef struct llmc_model llmc_model;
typedef struct llmc_session llmc_session;
typedef struct llmc_sampler llmc_sampler;
typedef struct llmc_graph llmc_graph;
typedef struct llmc_embedder llmc_embedder;

/* "0.1.0" */
LLMC_API const char *llmc_version(void);

/* Why the last call of this thread that failed did so. Valid until its next
 * failure. */
LLMC_API const char *llmc_last_error(void);

/*--- Models ---------------------------------------------------------------*/

typedef struct llmc_model_options {
  size_t struct_size;
  const char *variant; /* NULL: the best that the device can execute */
  /* "auto", "cpu", "cuda" or "cuda:N". NULL (default) is "auto": a CUDA device
   * where the artifact has code for one and there is one, else the CPU. */
  const char *device;
  /* How many of the first layers a CUDA device computes, the CPU the others.
   * UINT32_MAX (default): all, and what follows them. */
  uint32_t gpu_layers;
} llmc_model_options;

LLMC_API void llmc_model_options_init(llmc_model_options *options);

/* Maps and verifies the file and loads its code for the device. */
LLMC_API llmc_status llmc_model_load(const char *path, const llmc_model_options *options,
                                     llmc_model **model);

/* Sessions on the model stay valid. NULL is allowed, here and in all *_free. */
LLMC_API void llmc_model_free(llmc_model *model);

/* "cpu", or the name of the CUDA device that computes. Valid as long as the model. */
LLMC_API const char *llmc_model_device(const llmc_model *model);

LLMC_API int32_t llmc_model_vocab_size(const llmc_model *model);
LLMC_API int32_t llmc_model_context_length(const llmc_model *model);

/* 1 if generation stops at this token. */
LLMC_API int llmc_model_is_end(const llmc_model *model, int32_t token);

/*--- Text -----------------------------------------------------------------*/

/* Flags. */
#define LLMC_ADD_SPECIAL 1   /* tokenize: BOS in front, where the model wants it */
#define LLMC_PARSE_SPECIAL 2 /* control text stands for control tokens, both ways */

/* The token ids of `text` (`length` bytes, need not be UTF-8). `count` gets
 * their number, also where it exceeds `capacity`: then nothing is written and
 * the status is LLMC_OUT_OF_RANGE. */
LLMC_API llmc_status llmc_tokenize(const llmc_model *model, const char *text, size_t length,
                                   int flags, int32_t *ids, size_t capacity, size_t *count);

/* The text of tokens. `length` gets its number of bytes, without a terminating
 * zero, also where it exceeds `capacity`: then nothing is written and the
 * status is LLMC_OUT_OF_RANGE. */
LLMC_API llmc_status llmc_detokenize(const llmc_model *model, const int32_t *ids, size_t count,
                                     int flags, char *text, size_t capacity, size_t *length);

typedef struct llmc_chat_message {
  const char *role; /* "system", "user" or "assistant" */
  const char *content;
} llmc_chat_message;

/* The prompt that the model's chat template makes of a conversation, as for
 * llmc_tokenize. Control text in a message stays text. */
LLMC_API llmc_status llmc_chat_tokenize(const llmc_model *model, const llmc_chat_message *messages,
                                        size_t message_count, int add_generation_prompt,
                                        int32_t *ids, size_t capacity, size_t *count);

/*--- Sessions -------------------------------------------------------------*/

typedef struct llmc_session_options {
  size_t struct_size;
  uint32_t threads;       /* 0: the cores that this process may use */
  uint32_t context_limit; /* 0: the artifact's */
  uint32_t prefill_chunk; /* prompt tokens per step; 0: as many as the code takes */
} llmc_session_options;

LLMC_API void llmc_session_options_init(llmc_session_options *options);

LLMC_API llmc_status llmc_session_create(const llmc_model *model,
                                         const llmc_session_options *options,
                                         llmc_session **session);
LLMC_API void llmc_session_free(llmc_session *session);

/* Computes prompt tokens. Nothing is computed where a token is outside the
 * vocabulary or the context has no room for all of them. */
LLMC_API llmc_status llmc_prefill(llmc_session *session, const int32_t *ids, size_t count);

/* Computes one generated token. */
LLMC_API llmc_status llmc_decode(llmc_session *session, int32_t token);

/* The logits after the last token, [vocab_size]. Valid until the next step. On a
 * CUDA device, asking copies them: without llmc_logits and with a greedy sampler
 * they stay there. */
LLMC_API const float *llmc_logits(const llmc_session *session);

/* Computes a generated token and guesses of those that follow it in one step,
 * which costs little more than computing one. The logits after each are bit for
 * bit those of llmc_decode. Wrong guesses are taken back with llmc_rollback.
 * LLMC_OUT_OF_RANGE where there are more than llmc_verify_rows(). */
LLMC_API llmc_status llmc_verify(llmc_session *session, const int32_t *ids, size_t count);
LLMC_API int32_t llmc_verify_rows(const llmc_session *session); /* at least 1 */

/* The logits after ids[row] of the last llmc_verify. llmc_logits() is row 0. */
LLMC_API const float *llmc_verify_logits(const llmc_session *session, int32_t row);

/* The number of tokens computed so far. */
LLMC_API int32_t llmc_position(const llmc_session *session);

/* Forgets the tokens from `position` on. */
LLMC_API llmc_status llmc_rollback(llmc_session *session, int32_t position);
LLMC_API void llmc_reset(llmc_session *session);

/*--- Sampling and generation ----------------------------------------------*/

typedef struct llmc_sampler_options {
  size_t struct_size;
  float temperature;    /* 0 (default): greedy */
  uint32_t top_k;       /* 0 (default): all */
  float top_p;          /* 1 (default): all */
  float min_p;          /* 0 (default): all */
  float repeat_penalty; /* 1 (default): none */
  uint32_t repeat_last; /* tokens that the penalty looks at, 64 by default */
  uint64_t seed;
} llmc_sampler_options;

LLMC_API void llmc_sampler_options_init(llmc_sampler_options *options);

LLMC_API llmc_status llmc_sampler_create(const llmc_model *model,
                                         const llmc_sampler_options *options,
                                         llmc_sampler **sampler);
LLMC_API void llmc_sampler_free(llmc_sampler *sampler);

/* The next token of the session's sequence. At least one token must have been
 * computed. */
LLMC_API llmc_status llmc_sample(llmc_sampler *sampler, const llmc_session *session,
                                 int32_t *token);

typedef enum llmc_finish {
  LLMC_FINISH_STOP = 0, /* an end token or a stop string */
  LLMC_FINISH_LENGTH,   /* max_tokens, or the context is full */
  LLMC_FINISH_CANCELLED /* the callback said so */
} llmc_finish;

/* Guesses what follows: the sequence is ids[0] .. ids[count - 1]. Writes up to
 * `capacity` tokens to `draft` and returns how many. Guesses change the speed of
 * generation and never its tokens. */
typedef size_t (*llmc_draft_fn)(const int32_t *ids, size_t count, int32_t *draft, size_t capacity,
                                void *user);

typedef enum llmc_draft {
  LLMC_DRAFT_NONE = 0,
  LLMC_DRAFT_NGRAM,   /* repetitions in the text so far */
  LLMC_DRAFT_CALLBACK /* draft_fn */
} llmc_draft;

typedef struct llmc_generate_options {
  size_t struct_size;
  llmc_sampler_options sampler;
  uint32_t max_tokens;      /* UINT32_MAX (default): until the context is full */
  const char *const *stops; /* the text ends before the first of these */
  size_t stop_count;
  llmc_draft draft;
  uint32_t draft_max; /* drafted tokens in a step, 8 by default */
  int draft_always;   /* 0 (default): only as many as make it faster, down to none */
  llmc_draft_fn draft_fn;
  void *draft_user;
} llmc_generate_options;

LLMC_API void llmc_generate_options_init(llmc_generate_options *options);

/* Whole UTF-8 characters as soon as they are certain, not terminated by zero.
 * Return 0 to go on. */
typedef int (*llmc_text_fn)(const char *text, size_t length, void *user);

typedef struct llmc_generate_result {
  llmc_finish finish;
  uint32_t prompt_tokens;
  uint32_t completion_tokens;
  double prefill_seconds;
  double decode_seconds;
  uint32_t steps;    /* after the prompt */
  uint32_t drafted;  /* tokens verified in them */
  uint32_t accepted; /* those that were right */
} llmc_generate_result;

/* Continues the prompt. What the session has already computed of it is used
 * again, the rest of its tokens is forgotten. `on_text` and `result` may be
 * NULL. A prompt that fills the context ends at once with LLMC_FINISH_LENGTH,
 * a longer one is LLMC_OUT_OF_RANGE. */
LLMC_API llmc_status llmc_generate(llmc_session *session, const int32_t *ids, size_t count,
                                   const llmc_generate_options *options, llmc_text_fn on_text,
                                   void *user, llmc_generate_result *result);

/*--- Embeddings -----------------------------------------------------------
 *
 * A sentence encoder makes a vector of a text. Where the artifact pools nothing,
 * it makes one of each of the text's tokens. */

/* 1 if the model is a sentence encoder. */
LLMC_API int llmc_model_is_encoder(const llmc_model *model);

/* Floats of an embedding; 0 where the model is no encoder. */
LLMC_API int32_t llmc_model_embedding_size(const llmc_model *model);

typedef struct llmc_embedder_options {
  size_t struct_size;
  uint32_t threads;       /* 0: the cores that this process may use */
  uint32_t context_limit; /* tokens of a text; 0: the artifact's */
  int no_truncate;        /* 0 (default): a text that is too long loses its end */
} llmc_embedder_options;

LLMC_API void llmc_embedder_options_init(llmc_embedder_options *options);

LLMC_API llmc_status llmc_embedder_create(const llmc_model *model,
                                          const llmc_embedder_options *options,
                                          llmc_embedder **embedder);
LLMC_API void llmc_embedder_free(llmc_embedder *embedder);

/* A text as bytes; it need not be UTF-8. */
typedef struct llmc_text {
  const char *bytes;
  size_t length;
} llmc_text;

/* Embeds texts: `out` gets [count, embedding_size] floats, one row for each. One
 * text is computed by all threads, of several each by one. An embedding has the
 * same bits whatever texts are beside it. `truncated` (may be NULL) gets the
 * number of texts that lost their end. LLMC_INVALID_ARGUMENT where a text has no
 * tokens, LLMC_OUT_OF_RANGE where one is too long and may not be cut,
 * LLMC_UNSUPPORTED where the artifact does not pool: use llmc_embed_tokens. */
LLMC_API llmc_status llmc_embed(llmc_embedder *embedder, const llmc_text *texts, size_t count,
                                float *out, size_t *truncated);

/* Embeds one sequence of tokens as they are: those in front and behind that the
 * model wants are among them (LLMC_ADD_SPECIAL). `out` gets embedding_size floats
 * or, where the artifact does not pool, so many for each token. */
LLMC_API llmc_status llmc_embed_tokens(llmc_embedder *embedder, const int32_t *ids, size_t count,
                                       float *out);

/*--- Graphs -----------------------------------------------------------------
 *
 * An artifact of neither kind has named tensors in and out. Write the inputs, run,
 * read the outputs. */

typedef struct llmc_tensor_info {
  const char *name;
  const char *element;   /* "float", "float16", "int64", "bool", ...: ONNX's name */
  const uint64_t *shape; /* [rank] */
  size_t rank;
  size_t bytes;
  void *data; /* dense, row-major, in the graph's own memory */
} llmc_tensor_info;

/* 1 if the model is a graph, 0 if it is a language model or an encoder. */
LLMC_API int llmc_model_is_graph(const llmc_model *model);

/* `threads` 0: the cores that this process may use. */
LLMC_API llmc_status llmc_graph_create(const llmc_model *model, uint32_t threads,
                                       llmc_graph **graph);
LLMC_API void llmc_graph_free(llmc_graph *graph);

LLMC_API size_t llmc_graph_input_count(const llmc_graph *graph);
LLMC_API size_t llmc_graph_output_count(const llmc_graph *graph);

/* What input or output number `index` is; valid as long as the graph. */
LLMC_API llmc_status llmc_graph_input(const llmc_graph *graph, size_t index,
                                      llmc_tensor_info *info);
LLMC_API llmc_status llmc_graph_output(const llmc_graph *graph, size_t index,
                                       llmc_tensor_info *info);

/* Copies an input. `bytes` must be the input's; a bool is 0 or 1. Inputs keep their values from
 * run to run. */
LLMC_API llmc_status llmc_graph_set_input(llmc_graph *graph, const char *name, const void *data,
                                          size_t bytes);

LLMC_API llmc_status llmc_graph_run(llmc_graph *graph);

#ifdef __cplusplus
}
#endif

#endif /* LLMC_LLMC_H */
