//===- FuzzArtifact.cpp - hostile artifact headers ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is the header's flatbuffer. Around it a file is built whose prefix
// and checksums are right, so that mutations reach what lies behind them:
// validation, variant choice, and the binding and running of programs (with
// kernels that do nothing). An input that begins with 0xff is a file as it is.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Checksum.h"
#include "runtime/device/cpu/Program.h"
#include "runtime/llm/Model.h"
#include "runtime/schema/Prefix.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace llmc;
using namespace llmc::rt;

namespace {

constexpr uint8_t kWholeFile = 0xff;
constexpr size_t kPages = 5; // the prefix, weights, code, and those of CUDA devices

std::vector<uint8_t> fileAround(std::span<const uint8_t> header) {
  std::vector<uint8_t> bytes(kPages * kSectionAlignment);
  bytes.insert(bytes.end(), header.begin(), header.end());
  const auto mutableHeader = std::span(bytes).subspan(kPages * kSectionAlignment);
  flatbuffers::Verifier verifier(mutableHeader.data(), mutableHeader.size());
  if (fb::VerifyArtifactBuffer(verifier)) {
    const fb::Artifact *root = fb::GetArtifact(mutableHeader.data());
    if (root->sections())
      for (const fb::Section *section : *root->sections())
        if (section->offset() <= bytes.size() &&
            section->size() <= bytes.size() - section->offset())
          reinterpret_cast<flatbuffers::Table *>(const_cast<fb::Section *>(section))
              ->SetField<uint64_t>(
                  fb::Section::VT_CHECKSUM,
                  checksumInPieces(std::span(bytes).subspan(section->offset(), section->size()),
                                   kChecksumPiece),
                  0);
  }
  ArtifactPrefix prefix{};
  std::memcpy(prefix.magic, kArtifactMagic, sizeof prefix.magic);
  prefix.formatVersion = kFormatVersion;
  prefix.fileSize = bytes.size();
  prefix.headerOffset = kPages * kSectionAlignment;
  prefix.headerSize = header.size();
  prefix.headerChecksum = checksum(mutableHeader);
  std::memcpy(bytes.data(), &prefix, sizeof prefix);
  prefix.prefixChecksum =
      checksum(std::span(bytes).first(offsetof(ArtifactPrefix, prefixChecksum)));
  std::memcpy(bytes.data(), &prefix, sizeof prefix);
  return bytes;
}

std::string pathOf(std::span<const uint8_t> bytes) {
  static const int fd = memfd_create("fuzz-artifact", 0);
  if (ftruncate(fd, 0) != 0 || ftruncate(fd, static_cast<off_t>(bytes.size())) != 0 ||
      pwrite(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  return "/proc/self/fd/" + std::to_string(fd);
}

void nothing(void *const *, const llmc_step_t *, void *, int64_t begin, int64_t end) {
  if (begin >= end || begin < 0)
    std::abort();
}

void bindAndRun(const Artifact &artifact, const fb::Variant &variant) {
  static uint8_t area[64];
  static const std::unique_ptr<WorkerPool> pool = WorkerPool::create(1).take();
  const std::vector<llmc_kernel_fn_t> kernels(variant.kernels()->size(), nothing);
  for (const fb::Program *record : *variant.programs()) {
    // Nobody follows the pointers.
    const Program program(*record, kernels,
                          {area, artifact.section(variant.weights_section()).data(), area});
    auto scratch = WorkerScratch::create(1, record->scratch_size(), program.rangeCount());
    if (!scratch.ok())
      continue;
    const auto context = static_cast<int32_t>(artifact.header().model()->context_length());
    const auto rows = std::min(static_cast<int32_t>(program.maxRows()), context);
    for (int32_t position : {0, context - rows})
      program.run(*pool, scratch.value(), {rows, position, rows - 1, 1, nullptr, nullptr, nullptr});
  }
}

/// What becomes of a CUDA variant without a device.
void splitWeights(const Artifact &artifact, const fb::Variant &variant) {
  const PerPhase<const fb::Program *> programs = programsOf(variant);
  for (const fb::Program *record : *variant.programs()) {
    if (!record->boundaries())
      continue;
    for (const fb::Boundary *boundary : *record->boundaries()) {
      PerPhase<size_t> count = {};
      for (size_t i = 0; i < kPhases; ++i)
        if (programs[static_cast<Phase>(i)] == record)
          count[static_cast<Phase>(i)] = boundary->dispatch();
      (void)cuda::neededWeights(artifact.header(), variant.weights_section(), programs, count);
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  const bool whole = size != 0 && data[0] == kWholeFile;
  const std::vector<uint8_t> built = whole ? std::vector<uint8_t>() : fileAround(input);
  auto artifact = Artifact::open(pathOf(whole ? input.subspan(1) : built));
  if (!artifact.ok())
    return 0;
  const fb::Artifact &header = artifact.value().header();
  (void)chooseVariant(header, "", CpuFeatures::host());
  for (const fb::Variant *variant : *header.variants())
    variant->device() == fb::DeviceKind::Cpu ? bindAndRun(artifact.value(), *variant)
                                             : splitWeights(artifact.value(), *variant);
  return 0;
}
