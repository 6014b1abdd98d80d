//===- ExternalData.h - files beside a model file ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of large models are in files that the model names by relative path. A
// model from elsewhere must not read files of the machine it is compiled on, so a
// path may not be absolute, may not climb with "..", and what it leads to, links
// followed, must be in the model's folder. One layout that leaves it is common and
// allowed: download caches keep all files in one folder of blobs and make a model's
// folder of links into it. There, the model file itself is a link, and its data may be
// in the folder that it leads to.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_EXTERNALDATA_H
#define LLMC_FRONTENDS_ONNX_EXTERNALDATA_H

#include "compiler/support/ModelSource.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace llmc::onnx {

class ExternalFiles {
public:
  /// `files` gets every opened file; its first entry is the model itself. A model without a path
  /// of its own (bytes in memory) has no external data.
  explicit ExternalFiles(std::vector<SourceFile> &files) : files(files) {}

  /// Number, in `files`, of the file at `location`; mapped when first asked for.
  llvm::Expected<unsigned> open(llvm::StringRef location);

private:
  llvm::Expected<std::string> resolve(llvm::StringRef location);

  std::vector<SourceFile> &files;
  llvm::StringMap<unsigned> opened; ///< by location
};

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_EXTERNALDATA_H
