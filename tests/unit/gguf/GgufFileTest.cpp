//===- GgufFileTest.cpp - what the reader takes and what it refuses -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufFile.h"
#include "TestModels.h"
#include "frontends/gguf/InspectGguf.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <sys/resource.h>

using namespace llmc;
using namespace llmc::test;

static std::unique_ptr<llvm::MemoryBuffer> read(const std::string &name) {
  auto bytes = llvm::MemoryBuffer::getFile(fixture(name));
  EXPECT_TRUE(bool(bytes)) << name;
  return std::move(*bytes);
}

static long peakKilobytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(GgufFile, RefusesSpoiledFilesByNameAndKind) {
  long before = peakKilobytes();
  auto expected = llvm::json::parse(read("spoiled.json")->getBuffer());
  ASSERT_TRUE(bool(expected));
  mlir::MLIRContext context;
  for (const auto &[name, texts] : *expected->getAsObject()) {
    std::string path = fixture("spoiled-" + name.str() + ".gguf");
    auto model = importGguf(path, context, {});
    ASSERT_FALSE(bool(model)) << path;
    Refusal refusal = refusalOf(model.takeError());
    llvm::StringRef message = refusal.message;
    EXPECT_TRUE(message.starts_with(path + ": ")) << message.str();
    EXPECT_FALSE(message.contains('\n')) << message.str();
    for (const llvm::json::Value &text : *texts.getAsArray())
      EXPECT_TRUE(message.contains_insensitive(*text.getAsString()))
          << message.str() << " should have " << text.getAsString()->str();
    bool isUnsupported = message.contains("unsupported") || message.contains("byte order");
    EXPECT_EQ(refusal.kind == ImportError::Kind::Unsupported, isUnsupported) << message.str();
  }
  EXPECT_LT(peakKilobytes() - before, 64 * 1024);
}

TEST(GgufFile, RefusesEveryTruncation) {
  auto whole = read("rand.gguf");
  size_t size = whole->getBufferSize();
  mlir::MLIRContext context;
  std::vector<size_t> cuts = {size - 1};
  for (size_t i = 1; i < 20; ++i)
    cuts.push_back(size * i / 20);
  for (size_t cut : cuts) {
    auto part = llvm::MemoryBuffer::getMemBuffer(whole->getBuffer().take_front(cut), "cut.gguf",
                                                 /*RequiresNullTerminator=*/false);
    auto model = importGguf(std::move(part), context, {});
    ASSERT_FALSE(bool(model)) << cut;
    Refusal refusal = refusalOf(model.takeError());
    EXPECT_EQ(refusal.kind, ImportError::Kind::Corrupt);
    EXPECT_NE(refusal.message.find(std::to_string(cut)), std::string::npos) << refusal.message;
    EXPECT_NE(refusal.message.find("truncated"), std::string::npos) << refusal.message;
  }
  EXPECT_TRUE(bool(importGguf(std::move(whole), context, {})));
}

TEST(GgufFile, SurvivesEveryByteOfTheHeaderSpoiled) {
  auto whole = read("rand.gguf");
  mlir::MLIRContext context;
  constexpr size_t kHeader = 2600;
  for (size_t i = 0; i < kHeader; ++i)
    for (uint8_t value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string bytes = whole->getBuffer().str();
      bytes[i] = char(value);
      auto model = importGguf(llvm::MemoryBuffer::getMemBuffer(bytes, "spoiled.gguf"), context, {});
      llvm::consumeError(model.takeError());
    }
}

TEST(GgufFile, FindsTensorsAtEveryAlignmentAndHeaderLength) {
  std::error_code error;
  size_t files = 0;
  for (llvm::sys::fs::directory_iterator file(fixture("three"), error), end; file != end;
       file.increment(error)) {
    auto listing = inspectGguf(file->path(), /*stats=*/true);
    ASSERT_TRUE(bool(listing)) << llvm::toString(listing.takeError());
    ASSERT_EQ(listing->tensors.size(), 3u);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(listing->tensors[i].mean, double(i + 1)) << file->path();
    ++files;
  }
  EXPECT_EQ(files, 192u);
}

TEST(GgufFile, ListsMetadataAndTensors) {
  auto listing = inspectGguf(fixture("rand-q4_k.gguf"), /*stats=*/false);
  ASSERT_TRUE(bool(listing)) << llvm::toString(listing.takeError());
  EXPECT_EQ(listing->metadata[0].key, "general.architecture");
  EXPECT_EQ(listing->metadata[0].type, "string");
  EXPECT_EQ(listing->metadata[0].value, "'llama'");
  auto epsilon = llvm::find_if(listing->metadata, [](const GgufListing::Metadata &entry) {
    return entry.key == "llama.attention.layer_norm_rms_epsilon";
  });
  ASSERT_NE(epsilon, listing->metadata.end());
  EXPECT_EQ(epsilon->value, "1e-05");
  EXPECT_EQ(listing->tensors[0].name, "token_embd.weight");
  EXPECT_EQ(listing->tensors[0].encoding, "q4_k");
  EXPECT_EQ(listing->tensors[0].shape, (std::vector<uint64_t>{256, 256}));
  EXPECT_EQ(listing->tensors[0].bytes, 256u * 144u);
  EXPECT_FALSE(listing->tensors[0].mean.has_value());
}

TEST(GgufFile, WhatIsNoFileIsUnreadable) {
  mlir::MLIRContext context;
  for (const std::string &path :
       {fixture("no-such.gguf"), fixture("three"), std::string("/dev/zero")}) {
    auto model = importGguf(path, context, {});
    ASSERT_FALSE(bool(model));
    EXPECT_EQ(refusalOf(model.takeError()).kind, ImportError::Kind::Unreadable);
  }
}

//===----------------------------------------------------------------------===//
// Split models
//===----------------------------------------------------------------------===//

namespace {
/// A folder of its own with links to the three parts under other names.
class SplitFolder {
public:
  SplitFolder() {
    llvm::SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("llmc-split", path));
    folder = path.str().str();
  }
  ~SplitFolder() { llvm::sys::fs::remove_directories(folder); }
  std::string link(int part, const std::string &name) {
    std::string target = folder + "/" + name;
    std::string source = fixture("split-0000" + std::to_string(part) + "-of-00003.gguf");
    EXPECT_FALSE(llvm::sys::fs::copy_file(source, target));
    return target;
  }

private:
  std::string folder;
};
} // namespace

TEST(GgufSet, AnyPartLeadsToTheSet) {
  std::vector<int32_t> tokens = someTokens(256);
  std::vector<float> expected = TestModel(fixture("rand.gguf")).logits(tokens);
  for (const char *part : {"split-00001-of-00003.gguf", "split-00002-of-00003.gguf"}) {
    TestModel model(fixture(part));
    EXPECT_EQ(model.model.files.size(), 3u);
    EXPECT_EQ(model.logits(tokens), expected);
  }
}

TEST(GgufSet, NamesTheMissingPart) {
  SplitFolder folder;
  std::string first = folder.link(1, "m-00001-of-00003.gguf");
  folder.link(2, "m-00002-of-00003.gguf");
  mlir::MLIRContext context;
  auto model = importGguf(first, context, {});
  ASSERT_FALSE(bool(model));
  Refusal refusal = refusalOf(model.takeError());
  EXPECT_EQ(refusal.kind, ImportError::Kind::Unreadable);
  EXPECT_NE(refusal.message.find("m-00003-of-00003.gguf"), std::string::npos) << refusal.message;
  EXPECT_NE(refusal.message.find("missing"), std::string::npos) << refusal.message;
}

TEST(GgufSet, RefusesOtherNamesAndWrongParts) {
  mlir::MLIRContext context;
  SplitFolder renamed;
  auto model = importGguf(renamed.link(2, "renamed.gguf"), context, {});
  ASSERT_FALSE(bool(model));
  std::string message = refusalOf(model.takeError()).message;
  EXPECT_NE(message.find("-00002-of-00003.gguf"), std::string::npos) << message;

  SplitFolder repeated;
  std::string first = repeated.link(1, "m-00001-of-00003.gguf");
  repeated.link(2, "m-00002-of-00003.gguf");
  repeated.link(2, "m-00003-of-00003.gguf");
  model = importGguf(first, context, {});
  ASSERT_FALSE(bool(model));
  message = refusalOf(model.takeError()).message;
  EXPECT_NE(message.find("part 3 of 3 is expected"), std::string::npos) << message;
}
