//===- ChainModel.cpp - a hand-made artifact with a known continuation ----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/unit/support/ChainModel.h"

#include "runtime/base/Checksum.h"
#include "runtime/schema/Prefix.h"
#include "runtime/schema/llmc_generated.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr size_t kNextOffset = 64;

template <typename T> std::span<const uint8_t> bytesOf(const T &object) {
  return {reinterpret_cast<const uint8_t *>(&object), sizeof object};
}

std::vector<uint8_t> readFile(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<uint8_t> weightsOf(const ChainModel &model, uint32_t capacity) {
  const int32_t sizes[] = {static_cast<int32_t>(model.next.size()), static_cast<int32_t>(capacity),
                           static_cast<int32_t>(model.window)};
  std::vector<uint8_t> bytes(kNextOffset + model.next.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), sizes, sizeof sizes);
  std::memcpy(bytes.data() + kNextOffset, model.next.data(), bytes.size() - kNextOffset);
  return bytes;
}

void padTo(std::vector<uint8_t> &bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

using Builder = flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fb::Program> makeProgram(Builder &fbb, const ChainModel &model,
                                             const std::string &name, uint32_t rows) {
  auto dispatch = [&](uint32_t kernel, const std::vector<fb::Binding> &bindings,
                      const fb::Tiles &tiles, bool barrier) {
    return fb::CreateDispatch(fbb, kernel, fbb.CreateVectorOfStructs(bindings), &tiles, barrier, -1,
                              fbb.CreateString("test"), 64);
  };
  const auto blocks = static_cast<uint32_t>((model.next.size() + 15) / 16);
  const fb::Binding weights(fb::BindingKind::Weight, 0), kv(fb::BindingKind::Kv, 0),
      hash(fb::BindingKind::Arena, model.hashOffset);
  const fb::Tiles perRow(1, 1, 0, 0, false),
      perBlock(model.tilesBase ? model.tilesBase : blocks, 1, 0, 0, true);
  const std::vector<flatbuffers::Offset<fb::Dispatch>> dispatches = {
      dispatch(0, {weights, kv}, perRow, false), dispatch(1, {weights, kv, hash}, perRow, true),
      dispatch(model.kernel, {weights, hash}, perBlock, true)};
  return fb::CreateProgram(fbb, fbb.CreateString(name), rows, model.arenaSize, model.scratchSize,
                           fbb.CreateVector(dispatches));
}

flatbuffers::Offset<fb::Variant> makeVariant(Builder &fbb, const ChainModel &model,
                                             const ChainVariant &variant) {
  std::vector<flatbuffers::Offset<fb::Program>> programs = {
      makeProgram(fbb, model, model.decodeName, 1),
      makeProgram(fbb, model, "prefill", model.prefillRows)};
  if (model.verifyRows)
    programs.push_back(makeProgram(fbb, model, "verify", model.verifyRows));
  std::vector<std::string> kernels(model.kernelCount, "kernel");
  return fb::CreateVariant(fbb, fbb.CreateString(variant.target), 0,
                           fbb.CreateVectorOfStrings(variant.features), model.codeSection,
                           fbb.CreateVectorOfStrings(kernels), fbb.CreateVector(programs),
                           model.fast);
}

flatbuffers::Offset<fb::Tokenizer> makeTokenizer(Builder &fbb, const ChainModel &model) {
  if (!model.withTokenizer)
    return 0;
  std::string text;
  std::vector<uint32_t> offsets{0};
  std::vector<uint8_t> types;
  const size_t size = model.tokenizerSize ? model.tokenizerSize : model.next.size();
  for (size_t id = 0; id < size; ++id) {
    text += id < model.pieces.size() ? model.pieces[id] : "t" + std::to_string(id) + " ";
    offsets.push_back(static_cast<uint32_t>(text.size()));
    const bool control = std::count(model.endTokens.begin(), model.endTokens.end(), id) ||
                         model.bos == static_cast<int32_t>(id);
    types.push_back(
        static_cast<uint8_t>(control ? fb::TokenType::Control : fb::TokenType::UserDefined));
  }
  const std::vector<float> scores(size);
  auto textVector = fbb.CreateVector(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  auto offsetVector = fbb.CreateVector(offsets);
  auto typeVector = fbb.CreateVector(types);
  auto scoreVector = fbb.CreateVector(scores);
  auto endVector = fbb.CreateVector(model.endTokens);
  fb::TokenizerBuilder tokenizer(fbb);
  tokenizer.add_kind(fb::TokenizerKind::Spm);
  tokenizer.add_text(textVector);
  tokenizer.add_offsets(offsetVector);
  tokenizer.add_types(typeVector);
  tokenizer.add_scores(scoreVector);
  tokenizer.add_end_tokens(endVector);
  tokenizer.add_bos(model.bos);
  tokenizer.add_add_bos(model.addBos);
  tokenizer.add_escape_whitespaces(false);
  return tokenizer.Finish();
}

} // namespace

ChainModel ChainModel::counting(int32_t vocab) {
  ChainModel model;
  for (int32_t token = 0; token < vocab; ++token)
    model.next.push_back((token + 1) % vocab);
  return model;
}

std::vector<uint8_t> ChainModel::build() const {
  const uint32_t slots = capacity ? capacity : context;
  std::vector<uint8_t> bytes(kSectionAlignment);
  Builder fbb;
  std::vector<flatbuffers::Offset<fb::Section>> sections;
  auto addSection = [&](const char *name, fb::SectionKind kind, uint64_t offset,
                        std::span<const uint8_t> data) {
    bytes.insert(bytes.end(), data.begin(), data.end());
    sections.push_back(fb::CreateSection(fbb, fbb.CreateString(name), kind, offset, data.size(),
                                         rt::checksumInPieces(data, kChecksumPiece)));
    padTo(bytes, kSectionAlignment);
  };
  addSection("weights", fb::SectionKind::Weights, weightsOffset, weightsOf(*this, slots));
  std::vector<uint8_t> code = readFile(LLMC_CHAIN_KERNELS);
  code.resize(codeBytes ? codeBytes : code.size());
  addSection("code", fb::SectionKind::Code, codeOffset ? codeOffset : bytes.size(), code);

  auto name = fbb.CreateString("chain");
  fb::ModelBuilder info(fbb);
  info.add_name(name);
  info.add_vocab_size(static_cast<uint32_t>(next.size()));
  info.add_context_length(context);
  auto infoTable = info.Finish();
  const uint64_t area = uint64_t(slots) * sizeof(int32_t);
  std::vector<flatbuffers::Offset<fb::KvLayer>> layers = {
      fb::CreateKvLayer(fbb, 0, 1, 1, slots, window, fbb.CreateString("f32"), 0, area)};
  auto kv = fb::CreateKvPlan(fbb, kvSize ? kvSize : 2 * area, fbb.CreateVector(layers));
  std::vector<flatbuffers::Offset<fb::Variant>> variantTables;
  for (const ChainVariant &variant : variants)
    variantTables.push_back(makeVariant(fbb, *this, variant));
  auto variantVector = fbb.CreateVector(variantTables);
  auto sectionVector = fbb.CreateVector(sections);
  auto tokenizer = makeTokenizer(fbb, *this);
  auto producer = fbb.CreateString("test");
  auto chat = fbb.CreateString(chatTemplate);
  fb::ArtifactBuilder artifact(fbb);
  artifact.add_producer(producer);
  artifact.add_model(infoTable);
  if (withTokenizer)
    artifact.add_tokenizer(tokenizer);
  artifact.add_chat_template(chat);
  artifact.add_sections(sectionVector);
  artifact.add_weights_section(0);
  artifact.add_kv(kv);
  artifact.add_variants(variantVector);
  fb::FinishArtifactBuffer(fbb, artifact.Finish());

  ArtifactPrefix prefix{};
  std::memcpy(prefix.magic, kArtifactMagic, sizeof prefix.magic);
  prefix.formatVersion = kFormatVersion;
  prefix.headerOffset = bytes.size();
  prefix.headerSize = fbb.GetSize();
  bytes.insert(bytes.end(), fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
  prefix.fileSize = bytes.size();
  std::memcpy(bytes.data(), &prefix, sizeof prefix);
  fixChecksums(bytes);
  return bytes;
}

std::string ChainModel::write() const { return writeTemporary(build()); }

std::string llmc::test::writeTemporary(std::span<const uint8_t> bytes) {
  // All of them go when the test program ends.
  static struct Files {
    std::vector<std::string> paths;
    ~Files() {
      for (const std::string &path : paths)
        unlink(path.c_str());
    }
  } files;
  const char *folder = std::getenv("TMPDIR");
  std::string path = std::string(folder ? folder : "/tmp") + "/llmc-test-" +
                     std::to_string(getpid()) + "-" + std::to_string(files.paths.size()) + ".llmc";
  files.paths.push_back(path);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

void llmc::test::fixChecksums(std::vector<uint8_t> &bytes) {
  ArtifactPrefix prefix;
  if (bytes.size() < sizeof prefix)
    return;
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  const std::span<const uint8_t> all(bytes);
  if (prefix.headerOffset <= bytes.size() &&
      prefix.headerSize <= bytes.size() - prefix.headerOffset)
    prefix.headerChecksum = rt::checksum(all.subspan(prefix.headerOffset, prefix.headerSize));
  prefix.prefixChecksum =
      rt::checksum(bytesOf(prefix).first(offsetof(ArtifactPrefix, prefixChecksum)));
  std::memcpy(bytes.data(), &prefix, sizeof prefix);
}
