//===- Writer.cpp - writes a compiled artifact ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Writer.h"
#include "compiler/weights/Recipe.h"
#include "runtime/schema/Prefix.h"
#include "runtime/schema/llmc_generated.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Parallel.h"
#include <atomic>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace llmc;

/// Weights start at whole cache lines, so that panels do.
static constexpr uint64_t kWeightAlignment = 64;

static llvm::Error makeError(llvm::StringRef path, const llvm::Twine &what, int error) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "cannot write '" + path +
                                                                     "': " + what + ": " +
                                                                     std::strerror(error));
}

namespace {
/// A file beside its final name; removed unless committed.
class PendingFile {
public:
  ~PendingFile() {
    if (bytes)
      munmap(bytes, size);
    if (fd >= 0)
      close(fd);
    if (!temporary.empty())
      unlink(temporary.c_str());
  }

  llvm::Error create(llvm::StringRef finalPath) {
    path = finalPath.str();
    temporary = path + ".tmp." + std::to_string(getpid());
    fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
      std::string name = std::exchange(temporary, "");
      return makeError(path, "open '" + name + "'", errno);
    }
    return llvm::Error::success();
  }

  /// Reserves `count` bytes on the disk (a full disk is an error now, not a signal later) and maps
  /// them.
  llvm::Error map(uint64_t count) {
    if (int error = posix_fallocate(fd, 0, count))
      return makeError(path, "reserve " + llvm::Twine(count) + " bytes", error);
    void *at = mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
      return makeError(path, "map", errno);
    bytes = static_cast<uint8_t *>(at);
    size = count;
    return llvm::Error::success();
  }

  /// Cuts the file to `count` bytes and gives it its name.
  llvm::Error commit(uint64_t count) {
    munmap(std::exchange(bytes, nullptr), size);
    if (ftruncate(fd, count))
      return makeError(path, "truncate", errno);
    if (rename(temporary.c_str(), path.c_str()))
      return makeError(path, "rename", errno);
    temporary.clear();
    return llvm::Error::success();
  }

  uint8_t *data() { return bytes; }

private:
  std::string path, temporary;
  int fd = -1;
  uint8_t *bytes = nullptr;
  uint64_t size = 0;
};
} // namespace

/// Drops whole pages of a file mapping from this process; their contents stay in the file.
static void release(const uint8_t *begin, uint64_t bytes) {
  uintptr_t first = llvm::alignTo(uintptr_t(begin), kSectionAlignment);
  uintptr_t last = llvm::alignDown(uintptr_t(begin) + bytes, kSectionAlignment);
  if (first < last)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
}

/// True where the weight's bytes can be read again after their pages were dropped.
static bool isMapped(llvm::ArrayRef<SourceFile> files, llm::WeightOp weight) {
  return files[weight.getFile()].bytes->getBufferKind() == llvm::MemoryBuffer::MemoryBuffer_MMap;
}

/// Evaluates all recipes into their sections of the file at `base`, in parallel. A weight that is
/// done leaves memory at once, so that compiling needs room for a few weights and not for the
/// model.
static void evaluateWeights(llvm::ArrayRef<Recipe> recipes, llvm::ArrayRef<SourceFile> files,
                            llvm::MutableArrayRef<PlacedWeight> placed,
                            llvm::ArrayRef<PlacedSection> sections, uint8_t *base, uint64_t total,
                            const ProgressFn &progress) {
  struct Piece {
    unsigned weight;
    uint64_t index;
  };
  std::vector<Piece> pieces;
  std::vector<std::atomic<uint64_t>> left(recipes.size());
  std::vector<QuantizeError> errors;
  for (unsigned i = 0; i < recipes.size(); ++i) {
    left[i] = recipes[i].pieces();
    for (uint64_t p = 0; p < recipes[i].pieces(); ++p)
      pieces.push_back({i, p});
  }
  errors.resize(pieces.size());
  std::atomic<uint64_t> done = 0;
  llvm::parallelFor(0, pieces.size(), [&](size_t i) {
    unsigned w = pieces[i].weight;
    const Recipe &recipe = recipes[w];
    uint8_t *out = base + sections[placed[w].section].offset;
    errors[i] = recipe.evaluate(pieces[i].index, out + placed[w].offset);
    if (progress)
      progress(done += recipe.bytes() / recipe.pieces(), total);
    if (--left[w] == 0) {
      placed[w].checksum = XXH3_64bits(out + placed[w].offset, placed[w].size);
      release(out + placed[w].offset, placed[w].size);
      if (isMapped(files, placed[w].op))
        release(recipe.sourceBytes().data(), recipe.sourceBytes().size());
    }
  });
  // In order: the same sums every time.
  for (size_t i = 0; i < pieces.size(); ++i)
    placed[pieces[i].weight].error += errors[i];
}

/// A section's checksum (Prefix.h); what has been read is released.
static uint64_t checksumAndRelease(const uint8_t *begin, uint64_t bytes) {
  std::vector<uint64_t> pieces(llvm::divideCeil(bytes, kChecksumPiece));
  llvm::parallelFor(0, pieces.size(), [&](size_t i) {
    uint64_t at = i * kChecksumPiece;
    uint64_t count = std::min(kChecksumPiece, bytes - at);
    pieces[i] = XXH3_64bits(begin + at, count);
    release(begin + at, count);
  });
  return XXH3_64bits(pieces.data(), pieces.size() * sizeof(uint64_t));
}

llvm::Error llmc::writeArtifact(llvm::StringRef path, const ArtifactContents &contents,
                                const ProgressFn &progress,
                                llvm::StringMap<QuantizeError> *errors) {
  std::vector<Recipe> recipes;
  std::vector<PlacedWeight> weights;
  std::vector<std::string> layouts = weightLayouts(contents);
  std::vector<uint64_t> weightBytes(layouts.size());
  uint64_t totalBytes = 0;
  if (mlir::ModuleOp module = contents.module) {
    for (auto [section, layout] : llvm::enumerate(layouts)) {
      uint64_t &end = weightBytes[section];
      for (auto op : module.getOps<llm::WeightOp>()) {
        llvm::Expected<Recipe> recipe = Recipe::create(op, contents.files, layout);
        if (!recipe)
          return recipe.takeError();
        weights.push_back({op, unsigned(section), end, recipe->bytes()});
        end = llvm::alignTo(end + recipe->bytes(), kWeightAlignment);
        recipes.push_back(std::move(*recipe));
      }
      totalBytes += end;
    }
  }

  std::vector<PlacedSection> sections;
  uint64_t end = kSectionAlignment;
  auto addSection = [&](const std::string &name, fb::SectionKind kind, uint64_t size) {
    sections.push_back({name, int(kind), end, size, 0});
    end = llvm::alignTo(end + size, kSectionAlignment);
  };
  for (auto [layout, bytes] : llvm::zip(layouts, weightBytes))
    addSection(layouts.size() > 1 ? "weights " + layout : "weights", fb::SectionKind::Weights,
               bytes);
  // What a section holds besides weights.
  std::vector<llvm::StringRef> texts;
  for (const ArtifactVariant &variant : contents.variants) {
    addSection((variant.cuda ? "cubin " : "code ") + variant.target,
               variant.cuda ? fb::SectionKind::Cubin : fb::SectionKind::Code, variant.code.size());
    texts.push_back(variant.code);
    if (!variant.cuda)
      continue;
    addSection("ptx " + variant.target, fb::SectionKind::Ptx, variant.cuda->ptx.size());
    texts.push_back(variant.cuda->ptx);
  }

  // Checksums do not change the header's size, so its room is known before the weights are made.
  uint64_t headerOffset = end;
  uint64_t reserved = headerOffset + buildHeader(contents, weights, sections).size();
  PendingFile file;
  if (llvm::Error error = file.create(path))
    return error;
  if (llvm::Error error = file.map(reserved))
    return error;
  uint8_t *base = file.data();

  evaluateWeights(recipes, contents.files, weights, sections, base, totalBytes, progress);
  for (unsigned i = 0; errors && i < recipes.size(); ++i)
    if (recipes[i].isLossy())
      (*errors)[weights[i].op.getSymName()] = weights[i].error;
  for (auto [i, text] : llvm::enumerate(texts))
    std::memcpy(base + sections[layouts.size() + i].offset, text.data(), text.size());
  for (PlacedSection &section : sections)
    section.checksum = checksumAndRelease(base + section.offset, section.size);

  std::string header = buildHeader(contents, weights, sections);
  assert(headerOffset + header.size() <= reserved && "the header grew");
  std::memcpy(base + headerOffset, header.data(), header.size());

  ArtifactPrefix prefix = {};
  std::memcpy(prefix.magic, kArtifactMagic, sizeof(prefix.magic));
  prefix.formatVersion = kFormatVersion;
  prefix.fileSize = headerOffset + header.size();
  prefix.headerOffset = headerOffset;
  prefix.headerSize = header.size();
  prefix.headerChecksum = XXH3_64bits(header.data(), header.size());
  prefix.prefixChecksum = XXH3_64bits(&prefix, offsetof(ArtifactPrefix, prefixChecksum));
  std::memcpy(base, &prefix, sizeof(prefix));
  return file.commit(prefix.fileSize);
}
