//===- ArtifactTest.cpp - good, damaged, foreign and hostile artifacts ----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Artifact.h"
#include "runtime/llm/Model.h"
#include "runtime/llm/Session.h"
#include "runtime/schema/Prefix.h"
#include "tests/unit/support/ChainModel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

using namespace llmc::rt;
using namespace llmc::test;

namespace {

std::string openError(std::span<const uint8_t> bytes) {
  return Artifact::open(writeTemporary(bytes)).status().message();
}

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

TEST(Artifact, OpensMappedAndRead) {
  const ChainModel chain = ChainModel::counting(20);
  const std::string path = chain.write();
  for (FileAccess access : {FileAccess::Map, FileAccess::Read}) {
    auto artifact = Artifact::open(path, access);
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    EXPECT_EQ(artifact.value().isMapped(), access == FileAccess::Map);
    EXPECT_EQ(artifact.value().header().model()->vocab_size(), 20u);
    EXPECT_EQ(artifact.value().weights().size(), 64u + 20 * 4);
  }
}

TEST(Artifact, FourMessages) {
  const std::vector<uint8_t> good = ChainModel::counting(20).build();
  auto newer = good, older = good, flipped = good, cut = good;
  newer[8] += 1;
  older[8] -= 1;
  flipped[llmc::kSectionAlignment + 70] ^= 1;
  cut.resize(cut.size() - 1);
  EXPECT_TRUE(has(openError(newer), "newer than this runtime")) << openError(newer);
  EXPECT_TRUE(has(openError(older), "older than this runtime")) << openError(older);
  EXPECT_TRUE(has(openError(flipped), "checksum of section 'weights'")) << openError(flipped);
  EXPECT_TRUE(has(openError(cut), "is truncated: it needs ")) << openError(cut);
  EXPECT_TRUE(has(openError(cut), std::to_string(good.size()).c_str()));
}

TEST(Artifact, EveryCutIsRefused) {
  const std::vector<uint8_t> good = ChainModel::counting(20).build();
  for (size_t size = 0; size < good.size(); size += size < 200 ? 1 : 509)
    EXPECT_TRUE(has(openError(std::span(good).first(size)), "truncated")) << size;
}

TEST(Artifact, EveryFlippedByteOfThePrefixIsRefused) {
  const std::vector<uint8_t> good = ChainModel::counting(20).build();
  for (size_t i = 0; i < sizeof(llmc::ArtifactPrefix); ++i) {
    auto bad = good;
    bad[i] ^= 0x40;
    EXPECT_NE(openError(bad), "") << i;
  }
}

TEST(Artifact, ForeignFilesAreNamed) {
  const std::vector<uint8_t> gguf = {'G', 'G', 'U', 'F', 3, 0, 0, 0};
  EXPECT_TRUE(has(openError(gguf), "llmc compile"));
  const std::vector<uint8_t> text(300, 'x');
  EXPECT_TRUE(has(openError(text), "not an llmc artifact"));
  EXPECT_EQ(Artifact::open("/no/such/file").status().code(), StatusCode::NotFound);
  EXPECT_EQ(Artifact::open("/tmp").status().code(), StatusCode::InvalidArgument);
}

TEST(Artifact, HostileValuesAreRefused) {
  using Spoil = std::function<void(ChainModel &)>;
  const std::pair<const char *, Spoil> cases[] = {
      {"missing kernel", [](ChainModel &m) { m.kernel = 3; }},
      {"another kind", [](ChainModel &m) { m.codeSection = 0; }},
      {"section that is missing", [](ChainModel &m) { m.codeSection = 7; }},
      {"outside its area", [](ChainModel &m) { m.hashOffset = 4096; }},
      {"too much memory", [](ChainModel &m) { m.arenaSize = uint64_t(1) << 60; }},
      {"too much memory", [](ChainModel &m) { m.scratchSize = uint64_t(1) << 60; }},
      {"not aligned", [](ChainModel &m) { m.weightsOffset = 4097; }},
      {"past the end", [](ChainModel &m) { m.weightsOffset = uint64_t(1) << 63; }},
      {"past the KV area", [](ChainModel &m) { m.kvSize = 100; }},
      {"out of range", [](ChainModel &m) { m.kvSize = uint64_t(1) << 60; }},
      {"too many tiles",
       [](ChainModel &m) {
         m.tilesBase = UINT32_MAX;
         m.prefillRows = 1 << 16;
       }},
      {"max_rows", [](ChainModel &m) { m.prefillRows = 0; }},
      {"max_rows", [](ChainModel &m) { m.prefillRows = UINT32_MAX; }},
      {"no decode program", [](ChainModel &m) { m.decodeName = "encode"; }},
      {"vocab_size", [](ChainModel &m) { m.next.clear(); }},
      {"context_length", [](ChainModel &m) { m.context = 0; }},
      {"less capacity", [](ChainModel &m) { m.capacity = 63; }},
      {"less capacity",
       [](ChainModel &m) {
         m.window = 8;
         m.capacity = 8 + 16 - 2;
       }},
  };
  for (const auto &[message, spoil] : cases) {
    ChainModel chain = ChainModel::counting(20);
    spoil(chain);
    EXPECT_TRUE(has(openError(chain.build()), message))
        << message << ": " << openError(chain.build());
  }
}

TEST(Artifact, HostileEncodersAreRefused) {
  using Spoil = std::function<void(ChainModel &)>;
  const std::pair<const char *, Spoil> cases[] = {
      {"no encode program", [](ChainModel &m) { m.encodeName = "decode"; }},
      {"no encode program", [](ChainModel &m) { m.encodeRows = 63; }},
      {"width or pooling", [](ChainModel &m) { m.outputWidth = UINT32_MAX; }},
      {"width or pooling", [](ChainModel &m) { m.pooling = 4; }},
      {"vocab_size", [](ChainModel &m) { m.next.clear(); }},
  };
  for (const auto &[message, spoil] : cases) {
    ChainModel chain = ChainModel::counting(20);
    chain.encoder = true;
    EXPECT_EQ(openError(chain.build()), "");
    spoil(chain);
    EXPECT_TRUE(has(openError(chain.build()), message))
        << message << ": " << openError(chain.build());
  }
}

TEST(Model, CodeMustHoldTheKernels) {
  ChainModel chain = ChainModel::counting(20);
  chain.kernelCount = 4;
  EXPECT_TRUE(has(Model::load(chain.write()).status().message(), "holds 3 kernels"));
}

TEST(Model, TwoModelsKeepTheirOwnCode) {
  auto one = Model::load(ChainModel::counting(20).write());
  auto two = Model::load(ChainModel::counting(30).write());
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one.value()->code().kernels()[0], two.value()->code().kernels()[0]);
}

TEST(Model, PicksTheFirstVariantThatRuns) {
  ChainModel chain = ChainModel::counting(20);
  chain.variants = {{"best", {"avx2", "avx512vnni"}}, {"middle", {"avx2"}}, {"least", {}}};
  const std::string path = chain.write();
  auto target = [&](std::vector<std::string_view> features, const char *name = "") {
    auto model = Model::load(path, {.variant = name, .features = CpuFeatures::of(features)});
    return model.ok() ? model.value()->variant().target()->str() : model.status().message();
  };
  EXPECT_EQ(target({"avx2", "avx512vnni"}), "best");
  EXPECT_EQ(target({"avx2"}), "middle");
  EXPECT_EQ(target({}), "least");
  EXPECT_EQ(target({"avx2"}, "least"), "least");
  EXPECT_TRUE(has(target({"avx2"}, "best"), "avx512vnni"));
  EXPECT_TRUE(has(target({}, "worst"), "best, middle, least"));
}

TEST(Model, VocabularyOnly) {
  ChainModel chain = ChainModel::counting(20);
  chain.variants.clear();
  auto model = Model::load(chain.write());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_FALSE(model.value()->canCompute());
  auto pool = WorkerPool::create(1);
  ASSERT_TRUE(pool.ok());
  auto session = Session::create(model.value(), pool.take());
  EXPECT_EQ(session.status().code(), StatusCode::Unsupported);
  EXPECT_TRUE(has(session.status().message(), "vocabulary only"));
}

TEST(Model, NamesTheMissingFeature) {
  ChainModel chain = ChainModel::counting(20);
  chain.variants = {{"v4", {"avx512f", "no-such-feature"}}};
  auto model = Model::load(chain.write());
  EXPECT_EQ(model.status().code(), StatusCode::Unsupported);
  EXPECT_TRUE(has(model.status().message(), "no-such-feature"));
}

} // namespace
