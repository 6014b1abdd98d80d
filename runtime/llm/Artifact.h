//===- Artifact.h - a compiled model on disk, verified ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// runtime/schema/Prefix.h and llmc.fbs describe the file. open() is the border
// between hostile bytes and the rest of the runtime: after it every index,
// offset and size in the header is in range and every section has the checksum
// that the header promises, so nobody behind it checks again.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_ARTIFACT_H
#define LLMC_RUNTIME_LLM_ARTIFACT_H

#include "runtime/base/MappedFile.h"
#include "runtime/base/Status.h"
#include "runtime/schema/llmc_generated.h"

#include <span>
#include <string>

namespace llmc::rt {

/// The names of the programs that a session looks for.
inline constexpr const char *kDecodeProgram = "decode";   ///< one generated token
inline constexpr const char *kVerifyProgram = "verify";   ///< a few drafted tokens; optional
inline constexpr const char *kPrefillProgram = "prefill"; ///< a chunk of the prompt
inline constexpr const char *kMainProgram = "main";       ///< all of a graph
inline constexpr const char *kEncodeProgram = "encode";   ///< a text, by an encoder

class Artifact {
public:
  /// Maps and verifies `path`. Errors: NotFound (cannot be opened), Unsupported (a newer or an
  /// older format), Corrupt (not an artifact, truncated, a checksum or a value is wrong).
  static StatusOr<Artifact> open(const std::string &path, FileAccess access = FileAccess::Map);

  const fb::Artifact &header() const { return *root; }
  std::span<const uint8_t> section(uint32_t index) const;
  std::span<const uint8_t> weights() const { return section(root->weights_section()); }
  const std::string &path() const { return file; }
  size_t fileSize() const { return mapping.bytes().size(); }
  bool isMapped() const { return mapping.isMapped(); }

private:
  Status readHeader();
  Status verifySections() const;

  std::string file;
  MappedFile mapping;
  const fb::Artifact *root = nullptr;
};

/// Checks every value of a well-formed header that the runtime relies on. `fileSize` bounds the
/// sections. Messages name the field, not the file.
Status validateHeader(const fb::Artifact &header, uint64_t fileSize);

/// Bytes of one element of a port's type ("float", "int64", ...); 0 where the type is not known.
size_t elementBytes(std::string_view element);

/// The program `name` of `variant`, null if there is none.
const fb::Program *findProgram(const fb::Variant &variant, std::string_view name);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_ARTIFACT_H
