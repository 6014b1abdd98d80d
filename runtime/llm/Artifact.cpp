//===- Artifact.cpp - a compiled model on disk, verified ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Artifact.h"

#include "runtime/base/Checksum.h"
#include "runtime/base/Topology.h"
#include "runtime/base/WorkerPool.h"
#include "runtime/schema/Prefix.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace llmc;
using namespace llmc::rt;

namespace {

constexpr size_t kHeaderAlignment = 8; // of the widest field of a flatbuffer

bool contains(uint64_t size, uint64_t offset, uint64_t length) {
  return offset <= size && length <= size - offset;
}

Status truncated(const std::string &file, uint64_t needed, uint64_t actual) {
  return corrupt(file + " is truncated: it needs " + std::to_string(needed) + " bytes and has " +
                 std::to_string(actual) + "; copy or compile it again");
}

Status damaged(const std::string &file, const std::string &part) {
  return corrupt("checksum of " + part + " of " + file +
                 " does not match: the file is damaged; copy or compile it again");
}

Status checkMagic(std::span<const uint8_t> bytes, const std::string &file) {
  size_t known = std::min(bytes.size(), sizeof kArtifactMagic);
  if (bytes.empty() || std::memcmp(bytes.data(), kArtifactMagic, known) == 0)
    return {};
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0)
    return corrupt(file + " is a GGUF file, not an artifact; compile it first: llmc compile " +
                   file);
  return corrupt(file + " is not an llmc artifact: it does not begin with the magic bytes");
}

Status checkVersion(uint32_t version, const std::string &file) {
  const std::string has = file + " has artifact format " + std::to_string(version);
  if (version > kFormatVersion)
    return unsupported(has + ", which is newer than this runtime (" +
                       std::to_string(kFormatVersion) + "); update llmc-run");
  if (version < kOldestFormatVersion)
    return unsupported(has + ", which is older than this runtime reads (" +
                       std::to_string(kOldestFormatVersion) + "); compile the model again");
  return {};
}

} // namespace

StatusOr<Artifact> Artifact::open(const std::string &path, FileAccess access) {
  Artifact artifact;
  artifact.file = path;
  LLMC_ASSIGN_OR_RETURN(artifact.mapping, MappedFile::open(path, access));
  LLMC_RETURN_IF_ERROR(artifact.readHeader());
  if (Status status = validateHeader(*artifact.root, artifact.fileSize()); !status.ok())
    return Status(status.code(), "the header of " + path + " is wrong: " + status.message());
  LLMC_RETURN_IF_ERROR(artifact.verifySections());
  return artifact;
}

Status Artifact::readHeader() {
  const std::span<const uint8_t> bytes = mapping.bytes();
  // The magic and the version come before everything else, also before the checksums: they are
  // what a file from another time still has in common with ours.
  LLMC_RETURN_IF_ERROR(checkMagic(bytes, file));
  ArtifactPrefix prefix;
  if (bytes.size() < sizeof prefix)
    return truncated(file, sizeof prefix, bytes.size());
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  LLMC_RETURN_IF_ERROR(checkVersion(prefix.formatVersion, file));
  if (prefix.prefixChecksum != checksum(bytes.first(offsetof(ArtifactPrefix, prefixChecksum))))
    return damaged(file, "the prefix");
  if (prefix.fileSize > bytes.size())
    return truncated(file, prefix.fileSize, bytes.size());
  if (prefix.fileSize < bytes.size())
    return corrupt(file + " has " + std::to_string(bytes.size() - prefix.fileSize) +
                   " bytes behind its end; copy or compile it again");
  if (!contains(bytes.size(), prefix.headerOffset, prefix.headerSize) ||
      prefix.headerOffset % kHeaderAlignment != 0)
    return corrupt("the prefix of " + file + " puts the header at an impossible place");

  const std::span<const uint8_t> header = bytes.subspan(prefix.headerOffset, prefix.headerSize);
  if (prefix.headerChecksum != checksum(header))
    return damaged(file, "the header");
  constexpr unsigned maxDepth = 16;
  constexpr unsigned maxTables = 1u << 26;
  flatbuffers::Verifier verifier(header.data(), header.size(), maxDepth, maxTables);
  if (!fb::VerifyArtifactBuffer(verifier))
    return corrupt("the header of " + file + " is not a well-formed flatbuffer");
  root = fb::GetArtifact(header.data());
  return {};
}

Status Artifact::verifySections() const {
  // A core alone reads the page cache at a part of the memory's speed.
  constexpr size_t worthThreads = 8u << 20, mostThreads = 8;
  std::unique_ptr<WorkerPool> pool;
  if (fileSize() >= worthThreads)
    if (auto made = WorkerPool::create(
            static_cast<unsigned>(std::clamp<size_t>(affinityCpus().size(), 1, mostThreads)));
        made.ok())
      pool = made.take(); // without, it takes longer
  for (const fb::Section *section : *root->sections())
    if (checksumInPieces(mapping.bytes().subspan(section->offset(), section->size()),
                         kChecksumPiece, pool.get()) != section->checksum())
      return damaged(file, "section '" + section->name()->str() + "'");
  return {};
}

std::span<const uint8_t> Artifact::section(uint32_t index) const {
  const fb::Section *section = root->sections()->Get(index);
  return mapping.bytes().subspan(section->offset(), section->size());
}

size_t llmc::rt::elementBytes(std::string_view element) {
  struct Width {
    std::string_view name;
    size_t bytes;
  };
  static constexpr Width widths[] = {
      {"float", 4},          {"double", 8},       {"float16", 2},    {"bfloat16", 2},
      {"int8", 1},           {"int16", 2},        {"int32", 4},      {"int64", 8},
      {"uint8", 1},          {"uint16", 2},       {"uint32", 4},     {"uint64", 8},
      {"bool", 1},           {"int4", 1},         {"uint4", 1},      {"int2", 1},
      {"uint2", 1},          {"float8e4m3fn", 1}, {"float8e5m2", 1}, {"float8e4m3fnuz", 1},
      {"float8e5m2fnuz", 1}, {"float8e8m0", 1},   {"float4e2m1", 1}};
  for (const Width &width : widths)
    if (width.name == element)
      return width.bytes;
  return 0;
}

const fb::Program *llmc::rt::findProgram(const fb::Variant &variant, std::string_view name) {
  for (const fb::Program *program : *variant.programs())
    if (program->name()->string_view() == name)
      return program;
  return nullptr;
}
