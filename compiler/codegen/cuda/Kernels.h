//===- Kernels.h - one CUDA kernel per sched kernel op ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every function writes the body of one kernel between beginKernel and endKernel
// of the emitter and says how it is launched. Bindings and arithmetic are those of
// the ops (compiler/ir/SchedOps.td); who computes what is decided here:
//
//   linear, qkv   a block per 32 rows of weights (or per head), cut along K into
//                 slices, one per warp (Products.h)
//   attend        a block per KV head and chunk; the last one merges the chunks
//   the others    a block per row
//
// Buffers hold what they hold on CPUs, in the same places, but for
//   activation records   int8: per row K codes (padded to 32), then per group of 32
//                        four floats: d of each half, and d * (sum of codes) of
//                        each. f32: K floats, padded to 16
//   attention partials   once a split attend kernel has run, slot 0 of every row and
//                        head has the merged and divided output in its place of o
//   the KV cache         values of a head are [capacity][head_dim], keys are
//                        [capacity / 32][head_dim / w][32][w], w elements being the
//                        16 bytes (8 where head_dim % 8 != 0) that a thread reads
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_KERNELS_H
#define LLMC_COMPILER_CODEGEN_CUDA_KERNELS_H

#include "compiler/codegen/cuda/Emitter.h"

namespace llmc::cuda {

// How many bindings a kernel has is known to its dispatches.
LaunchSpec emitKernel(Emitter &e, sched::EmbedKernelOp op);
LaunchSpec emitKernel(Emitter &e, sched::RopeTableKernelOp op);
LaunchSpec emitKernel(Emitter &e, sched::PrepareKernelOp op);
LaunchSpec emitKernel(Emitter &e, sched::LinearKernelOp op);
LaunchSpec emitKernel(Emitter &e, sched::QkvKernelOp op);
LaunchSpec emitKernel(Emitter &e, sched::AttendKernelOp op);
LaunchSpec emitKernel(Emitter &e, sched::RowKernelOp op);
/// The pick kernel over rows of `vocab` logits (cuda_abi.h).
LaunchSpec emitPickKernel(Emitter &e, int64_t vocab);

/// Bytes of counters that a kernel needs.
int64_t counterBytes(sched::AttendKernelOp op, int64_t maxRows);

/// The longest head that attention is emitted for.
inline constexpr int64_t kMostHeadDim = 512;

/// Bytes of an attention partial: m, l, padding to 64, o[headDim]; and where o is.
int64_t partialBytes(int64_t headDim);
inline constexpr int64_t kPartialOutput = 64;

/// Bytes of one key or value of a head in the cache.
int64_t kvBytes(llvm::StringRef encoding, int64_t headDim);
/// Elements of a key or value that a thread reads at once.
int64_t kvWidth(llvm::StringRef encoding, int64_t headDim);
/// Where element d of the key or value in `slot` lies, in bytes from the head's first; i64.
Val keyOffset(Emitter &e, llvm::StringRef encoding, int64_t headDim, Val slot, Val d);
Val valueOffset(Emitter &e, llvm::StringRef encoding, int64_t headDim, Val slot, Val d);

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_KERNELS_H
