//===- EmbedKernel.cpp - rows of a table ----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block per row of the step; a thread takes whole groups of 32.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/WeightReader.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

LaunchSpec cuda::emitKernel(Emitter &e, sched::EmbedKernelOp op) {
  Matrix table(op.getEncoding(), op.getVocab(), op.getFeatures());
  int64_t features = op.getFeatures(), groups = llvm::divideCeil(features, kGroup);
  float scale = op.getScale().convertToFloat();
  Val weight = e.nextBinding(), out = e.nextBinding();
  e.dependencies();
  Val row = e.block(0);
  LaunchSpec launch;
  launch.rowsPerBlock[0] = 1;
  launch.block = std::min<int64_t>(kBlockThreads, llvm::alignTo(groups, kWarp));
  e.when(row < e.rows(), [&] {
    Val token = op.getPositions() ? e.position() + row
                                  : e.load(e.i32Type(), e.at(e.tokens(), row * 4), true);
    Val tile = e.at(weight, e.toI64(token / int64_t(kWarpRows)) * int64_t(table.layout.tileBytes));
    WeightReader reader(e, table, tile, token % int64_t(kWarpRows));
    e.loop(e.thread(), e.i32(groups), launch.block, [&](Val group) {
      reader.seek(group / kChunkGroups);
      // A group's place in its chunk decides its loads: eight cases.
      for (int64_t g = 0; g < kChunkGroups; ++g) {
        e.when(group % kChunkGroups == g, [&] {
          Vals values = reader.values(g);
          for (int64_t i = 0; i < kGroup; i += 4) {
            Vals four;
            for (int64_t j = 0; j < 4; ++j)
              four.push_back(scale == 1.0f ? values[i + j] : values[i + j] * e.f32(scale));
            Val k = group * kGroup + i;
            auto write = [&] {
              e.storeVector(four, e.at(e.at(out, e.toI64(row) * (4 * features)), k * 4));
            };
            if (features % kGroup)
              e.when(k < features, write);
            else
              write();
          }
        });
      }
    });
  });
  return launch;
}
