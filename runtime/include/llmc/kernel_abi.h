/*===- kernel_abi.h - what generated CPU code and the runtime agree on ------===
 *
 * Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===
 *
 * A code object is an ELF shared object without dependencies. It exports one
 * symbol, LLMC_QUERY_SYMBOL, of type llmc_query_fn_t, which gives the table of
 * its kernels, or NULL where it does not know the asked ABI version.
 *
 * A kernel computes the tiles [tile_begin, tile_end) of one dispatch. Tiles
 * are independent: any split over workers gives the same bits. `buffers` are
 * the dispatch's bindings, resolved to addresses, in the artifact's order.
 * `scratch` belongs to the calling worker (Program.scratch_size bytes, 64-byte
 * aligned, contents undefined). A kernel allocates nothing and calls nothing, and
 * releases matrix tiles that it configures.
 *
 *===----------------------------------------------------------------------===*/

#ifndef LLMC_KERNEL_ABI_H
#define LLMC_KERNEL_ABI_H

#include <stdint.h>

#define LLMC_KERNEL_ABI_VERSION 2u
#define LLMC_QUERY_SYMBOL "llmc_query"

#ifdef __cplusplus
extern "C" {
#endif

/* Logits per element of llmc_step_t.logit_maxima. */
#define LLMC_LOGIT_BLOCK 16

/* What one step computes. Field order is known to code generation. */
typedef struct llmc_step_t {
  int32_t rows;          /* tokens in this step, 1..Program.max_rows */
  int32_t position;      /* position of row 0 in its sequence; row i is at position + i */
  int32_t out_begin;     /* first row whose logits are wanted */
  int32_t out_rows;      /* rows whose logits are wanted, from out_begin on; may be 0 */
  const int32_t *tokens; /* [rows], each in [0, vocab_size) */
  float *logits;         /* [out_rows, vocab_size] */
  float *logit_maxima;   /* [out_rows, ceil(vocab_size / LLMC_LOGIT_BLOCK)]: the greatest of a block
                            of logits; -infinity where all are not numbers */
} llmc_step_t;

typedef void (*llmc_kernel_fn_t)(void *const *buffers, const llmc_step_t *step, void *scratch,
                                 int64_t tile_begin, int64_t tile_end);

typedef struct llmc_library_t {
  uint32_t abi_version;
  uint32_t kernel_count;
  const llmc_kernel_fn_t *kernels; /* [kernel_count] */
} llmc_library_t;

typedef const llmc_library_t *(*llmc_query_fn_t)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* LLMC_KERNEL_ABI_H */
