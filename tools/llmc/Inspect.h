//===- Inspect.h - what is in a file ----------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMC_INSPECT_H
#define LLMC_TOOLS_LLMC_INSPECT_H

#include "tools/llmc/Report.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llmc::tool {

struct InspectOptions {
  std::string path;
  bool rope = false;  ///< rotary embeddings only
  bool stats = false; ///< read all weights
};

llvm::Expected<Json> inspectGgufFile(const InspectOptions &options);
llvm::Expected<Json> inspectOnnxFile(const InspectOptions &options);
llvm::Expected<Json> inspectArtifact(const InspectOptions &options);

} // namespace llmc::tool

#endif // LLMC_TOOLS_LLMC_INSPECT_H
