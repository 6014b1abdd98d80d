//===- AttendKernel.cpp - attention over fixed KV chunks ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;
using namespace llmc::sched;

int64_t cuda::partialBytes(int64_t headDim) { return kPartialOutput + 4 * headDim; }

int64_t cuda::kvBytes(StringRef encoding, int64_t headDim) {
  return headDim * (encoding == "f32" ? 4 : 2);
}

int64_t cuda::counterBytes(AttendKernelOp op, int64_t) {
  // The blocks of a KV head count themselves.
  return op.getSplit() ? 4 * int64_t(op.getKvHeads()) : 0;
}

LaunchSpec cuda::emitKernel(Emitter &, AttendKernelOp) {
  llvm::report_fatal_error("attention is not written yet");
}
