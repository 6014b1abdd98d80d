//===- GgufSet.h - the file or files of one GGUF model ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model is one file or a set of parts (see GgufFile.h). Any part leads to the
// whole set; the first part holds the metadata. Tensor names are unique over
// the set.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_GGUFSET_H
#define LLMC_FRONTENDS_GGUF_GGUFSET_H

#include "compiler/support/ModelSource.h"
#include "frontends/gguf/GgufFile.h"

namespace llmc::gguf {

class GgufSet {
public:
  /// Where a tensor is.
  struct Place {
    size_t file;
    const Tensor *tensor;
  };

  static llvm::Expected<GgufSet> open(llvm::StringRef path);
  /// A model that is one file.
  static GgufSet of(GgufFile file);

  /// The file that holds the metadata.
  const GgufFile &primary() const { return files.front(); }
  llvm::ArrayRef<GgufFile> parts() const { return files; }
  size_t tensorCount() const { return places.size(); }
  /// The tensor of that name, or null.
  const Place *find(llvm::StringRef name) const;
  /// Its bytes.
  const uint8_t *data(const Place &place) const { return files[place.file].data(*place.tensor); }
  /// Hands the mappings over; the set must not be used afterwards.
  std::vector<SourceFile> takeFiles();

private:
  llvm::Error index();

  std::vector<GgufFile> files;
  llvm::DenseMap<llvm::StringRef, Place> places;
};

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_GGUFSET_H
