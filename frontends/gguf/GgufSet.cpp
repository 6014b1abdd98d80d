//===- GgufSet.cpp - the file or files of one GGUF model ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufSet.h"
#include "frontends/common/ImportError.h"
#include "frontends/gguf/MetadataReader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"

using namespace llmc;
using namespace llmc::gguf;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// What a file says about the set it belongs to.
struct SplitInfo {
  uint64_t number = 0, count = 1, tensors = 0;
};

Expected<SplitInfo> readSplit(const GgufFile &file) {
  MetadataReader reader(file, "");
  SplitInfo split;
  split.number = reader.count("split.no", 0);
  split.count = std::max<uint64_t>(reader.count("split.count", 1), 1);
  split.tensors = reader.count("split.tensors.count", 0);
  if (Error error = reader.takeError())
    return std::move(error);
  constexpr uint64_t kMostParts = 99999; // five digits in the name
  if (split.number >= split.count || split.count > kMostParts)
    return corrupt(file.path(), "split.no is " + Twine(split.number) + ", split.count " +
                                    Twine(split.count) + ": there is no such part");
  return split;
}

std::string partSuffix(uint64_t number, uint64_t count) {
  std::string suffix;
  llvm::raw_string_ostream(suffix)
      << llvm::format("-%05u-of-%05u.gguf", unsigned(number + 1), unsigned(count));
  return suffix;
}

std::string partName(uint64_t number, uint64_t count) {
  return "part " + std::to_string(number + 1) + " of " + std::to_string(count);
}
} // namespace

Error GgufSet::index() {
  for (auto [i, file] : llvm::enumerate(files))
    for (const Tensor &tensor : file.tensors()) {
      auto [it, isNew] = places.try_emplace(tensor.name, Place{i, &tensor});
      if (!isNew)
        return corrupt(file.path(), "tensor " + quoted(tensor.name) + " is also in " +
                                        files[it->second.file].path());
    }
  return Error::success();
}

GgufSet GgufSet::of(GgufFile file) {
  GgufSet set;
  set.files.push_back(std::move(file));
  llvm::cantFail(set.index()); // one file has no name twice
  return set;
}

Expected<GgufSet> GgufSet::open(StringRef path) {
  Expected<GgufFile> given = GgufFile::open(path);
  if (!given)
    return given.takeError();
  Expected<SplitInfo> split = readSplit(*given);
  if (!split)
    return split.takeError();
  if (split->count == 1)
    return of(std::move(*given));

  StringRef prefix = path;
  if (!prefix.consume_back(partSuffix(split->number, split->count)))
    return unreadable(path, "is " + partName(split->number, split->count) +
                                " of a split model; its name must end in '" +
                                partSuffix(split->number, split->count) +
                                "' for the other parts to be found");
  GgufSet set;
  uint64_t tensors = 0;
  for (uint64_t i = 0; i < split->count; ++i) {
    std::string name = (prefix + partSuffix(i, split->count)).str();
    if (i != split->number && !llvm::sys::fs::exists(name))
      return unreadable(name, partName(i, split->count) + " of the model is missing");
    Expected<GgufFile> part = i == split->number ? std::move(given) : GgufFile::open(name);
    if (!part)
      return part.takeError();
    Expected<SplitInfo> here = readSplit(*part);
    if (!here)
      return here.takeError();
    if (here->number != i || here->count != split->count)
      return corrupt(name, "is " + partName(here->number, here->count) + " by its metadata; " +
                               partName(i, split->count) + " is expected");
    tensors += part->tensors().size();
    set.files.push_back(std::move(*part));
  }
  if (split->tensors && tensors != split->tensors)
    return corrupt(path, "the parts hold " + Twine(tensors) + " tensors, split.tensors.count is " +
                             Twine(split->tensors));
  if (Error error = set.index())
    return std::move(error);
  return std::move(set);
}

const GgufSet::Place *GgufSet::find(StringRef name) const {
  auto it = places.find(name);
  return it == places.end() ? nullptr : &it->second;
}

std::vector<SourceFile> GgufSet::takeFiles() {
  std::vector<SourceFile> sources;
  for (GgufFile &file : files) {
    std::string path = file.path().str();
    sources.push_back({std::move(path), file.takeBytes()});
  }
  return sources;
}
