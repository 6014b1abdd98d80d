//===- Embed.h - texts to embeddings ----------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_EMBED_H
#define LLMC_TOOLS_LLMCRUN_EMBED_H

#include "tools/llmc-run/Options.h"

namespace llmc::run {

/// Embeds -p, each line of -f, or --tokens: an array of numbers per text on standard output, or all
/// of them in an .npy file.
rt::Status embed(const Options &options);

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_EMBED_H
