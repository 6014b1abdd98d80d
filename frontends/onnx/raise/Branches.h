//===- Branches.h - decoders merged with an If ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters merge a decoder for the prompt and one that continues a cache into one
// graph: If(use_cache_branch). The one with the cache computes both, as its past may
// be empty; it takes the place of the If, and the other one is dropped.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_RAISE_BRANCHES_H
#define LLMC_FRONTENDS_ONNX_RAISE_BRANCHES_H

#include "frontends/onnx/Graph.h"

namespace llmc::onnx {

/// Where an input of the graph chooses between a branch that reads its pasts and one that reads
/// fewer of them, only the first is left. Changes nothing else.
void takeCacheBranches(Model &model);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_RAISE_BRANCHES_H
