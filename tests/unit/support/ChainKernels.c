/*===- ChainKernels.c - the code object of the chain model ---------------------===
 *
 * Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===
 *
 * A "model" whose greedy continuation is known by heart: the next token depends
 * on the last one only, through a table. All other logits are noise from a hash
 * over the tokens that the position sees, so a wrong KV cache, position, chunk
 * or worker split changes bits.
 *
 * Weights: int32 {vocab, capacity, window}, at byte 64: int32 next[vocab].
 * KV: int32 token[capacity]. Arena: uint32 hash[max rows].
 *
 *===----------------------------------------------------------------------===*/

#include "llmc/kernel_abi.h"

static const int32_t *header(const void *weights) { return weights; }

/* Buffers: weights, kv. One tile per row. */
static void store(void *const *buffers, const llmc_step_t *step, void *scratch, int64_t begin,
                  int64_t end) {
  int32_t *kv = buffers[1];
  for (int64_t row = begin; row < end; ++row)
    kv[(step->position + row) % header(buffers[0])[1]] = step->tokens[row];
}

/* Buffers: weights, kv, hash. One tile per row. */
static void look_back(void *const *buffers, const llmc_step_t *step, void *scratch, int64_t begin,
                      int64_t end) {
  const int32_t capacity = header(buffers[0])[1], window = header(buffers[0])[2];
  const int32_t *kv = buffers[1];
  uint32_t *sum = scratch;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t last = step->position + row;
    *sum = 1;
    for (int64_t p = window && last >= window ? last - window + 1 : 0; p <= last; ++p)
      *sum = (*sum ^ (uint32_t)(kv[p % capacity] + 31 * p)) * 2654435761u;
    ((uint32_t *)buffers[2])[row] = *sum;
  }
}

/* Buffers: weights, hash. Tiles: 16 logits of one row each, rows outermost. */
static void logits(void *const *buffers, const llmc_step_t *step, void *scratch, int64_t begin,
                   int64_t end) {
  const int32_t vocab = header(buffers[0])[0];
  const int32_t *next = header(buffers[0]) + 16;
  const uint32_t *hash = buffers[1];
  const int64_t blocks = (vocab + 15) / 16;
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t out = tile / blocks, row = step->out_begin + out;
    float *greatest = step->logit_maxima + tile;
    *greatest = -11.0f;
    for (int64_t v = tile % blocks * 16; v < vocab && v < (tile % blocks + 1) * 16; ++v) {
      const uint32_t noise = (hash[row] ^ (uint32_t)v) * 2246822519u;
      step->logits[out * vocab + v] =
          v == next[step->tokens[row]] ? 10.0f : -1.0f - (float)(noise >> 8) / 16777216.0f;
      if (step->logits[out * vocab + v] > *greatest)
        *greatest = step->logits[out * vocab + v];
    }
  }
}

static const llmc_kernel_fn_t kernels[] = {store, look_back, logits};
static const llmc_library_t library = {LLMC_KERNEL_ABI_VERSION, 3, kernels};

__attribute__((visibility("default"))) const llmc_library_t *llmc_query(uint32_t version) {
  return version == LLMC_KERNEL_ABI_VERSION ? &library : 0;
}
