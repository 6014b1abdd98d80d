/*===- cuda_abi.h - what generated CUDA code and the runtime agree on ---------===
 *
 * Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===
 *
 * A CUDA variant is a module of PTX (and the cubin made of it) with one entry per
 * kernel. An entry's parameters are 64-bit device addresses: the dispatch's
 * bindings, in the artifact's order, then that of an llmc_cuda_step_t. Grid, block
 * and dynamic shared memory of a launch stand in the artifact (Launch in
 * llmc.fbs).
 *
 * The kernels of a program run one after the other. For compute capability 9.0
 * and later each may be launched with programmatic serialization: every kernel
 * executes griddepcontrol.launch_dependents, and griddepcontrol.wait before it
 * touches anything but weights.
 *
 * The pick kernel has the step as its only parameter.
 *
 *===----------------------------------------------------------------------===*/

#ifndef LLMC_CUDA_ABI_H
#define LLMC_CUDA_ABI_H

#include "llmc/kernel_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In device memory; all pointers are device addresses. Field order is known to code generation. */
typedef struct llmc_cuda_step_t {
  llmc_step_t step;
  uint32_t *counters; /* [Variant.counter_bytes / 4], zero before and after every kernel */
  int32_t *picks; /* [out_rows]: index of a row's greatest logit, the first of equals; written by
                     the pick kernel. NaN is less than everything; -1 where all are NaN */
} llmc_cuda_step_t;

#ifdef __cplusplus
}
#endif

#endif /* LLMC_CUDA_ABI_H */
