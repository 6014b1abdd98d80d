//===- ExternalData.cpp - files beside a model file -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ExternalData.h"
#include "frontends/common/ImportError.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::Expected;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// True where `file` is in `folder` or below; both without links.
static bool isInside(StringRef file, StringRef folder) {
  return file.consume_front(folder) && (folder.ends_with("/") || file.starts_with("/"));
}

Expected<std::string> ExternalFiles::resolve(StringRef location) {
  StringRef model = files.front().path;
  auto refuse = [&](const llvm::Twine &why) {
    return corrupt(model, "external data " + quoted(location) + " " + why);
  };
  if (location.empty())
    return refuse("has no location");
  if (location.contains('\0'))
    return refuse("has a zero byte in its path");
  if (path::is_absolute(location, path::Style::posix))
    return refuse("is an absolute path; only files beside the model are read");
  for (StringRef part : llvm::make_range(path::begin(location), path::end(location)))
    if (part == "..")
      return refuse("leaves the model's folder");
  StringRef folder = path::parent_path(model);
  llvm::SmallString<256> full(folder);
  path::append(full, location);
  llvm::SmallString<256> real, realFolder, realModel;
  if (std::error_code ec = fs::real_path(full, real))
    return unreadable(model, "external data " + quoted(location) + ": " + ec.message());
  if (fs::real_path(folder.empty() ? StringRef(".") : folder, realFolder) ||
      fs::real_path(model, realModel))
    return unreadable(model, "its folder cannot be resolved");
  bool modelIsLink = fs::is_symlink_file(model);
  if (!isInside(real, realFolder) &&
      !(modelIsLink && path::parent_path(real) == path::parent_path(realModel)))
    return refuse("is a link that leaves the model's folder");
  fs::file_status status;
  if (fs::status(real, status) || status.type() != fs::file_type::regular_file)
    return refuse("is no regular file");
  return std::string(full);
}

Expected<unsigned> ExternalFiles::open(StringRef location) {
  auto it = opened.find(location);
  if (it != opened.end())
    return it->second;
  Expected<std::string> full = resolve(location);
  if (!full)
    return full.takeError();
  auto bytes =
      llvm::MemoryBuffer::getFile(*full, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return unreadable(*full, bytes.getError().message());
  opened[location] = unsigned(files.size());
  files.push_back({*full, std::move(*bytes)});
  return unsigned(files.size() - 1);
}
