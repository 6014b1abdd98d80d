//===- InspectGguf.h - what is in a GGUF file -------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A listing for `llmc inspect`: everything in the file as it is, also of models
// that the importer does not know.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_INSPECTGGUF_H
#define LLMC_FRONTENDS_GGUF_INSPECTGGUF_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct GgufListing {
  struct Metadata {
    std::string key, type;
    std::string value; ///< printable, on one line; long texts and arrays are shortened
  };
  struct TensorInfo {
    std::string name, encoding;
    std::vector<uint64_t> shape; ///< rows first
    size_t file;                 ///< index of the part
    uint64_t offset, bytes;      ///< in that file
    std::optional<double> mean;  ///< of the dequantized elements, where asked for
  };
  uint32_t version;
  std::vector<std::string> files;
  std::vector<Metadata> metadata;
  std::vector<TensorInfo> tensors;
};

/// Lists a file, or the set that a part belongs to. `stats` reads all weights.
llvm::Expected<GgufListing> inspectGguf(llvm::StringRef path, bool stats);

} // namespace llmc

#endif // LLMC_FRONTENDS_GGUF_INSPECTGGUF_H
