//===- Graph.h - runs a graph of tensors ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_GRAPH_H
#define LLMC_TOOLS_LLMCRUN_GRAPH_H

#include "tools/llmc-run/Options.h"

namespace llmc::run {

/// Reads the inputs' files, runs, and writes every output to a file of its own.
rt::Status runGraph(const Options &options);

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_GRAPH_H
