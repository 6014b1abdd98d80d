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
constexpr size_t kCudaNextOffset = 128;

template <typename T> std::span<const uint8_t> bytesOf(const T &object) {
  return {reinterpret_cast<const uint8_t *>(&object), sizeof object};
}

std::vector<uint8_t> readFile(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<uint8_t> weightsOf(const ChainModel &model, uint32_t capacity, size_t nextOffset) {
  const int32_t sizes[] = {static_cast<int32_t>(model.next.size()), static_cast<int32_t>(capacity),
                           static_cast<int32_t>(model.window)};
  std::vector<uint8_t> bytes(nextOffset + model.next.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), sizes, sizeof sizes);
  std::memcpy(bytes.data() + nextOffset, model.next.data(), bytes.size() - nextOffset);
  return bytes;
}

void padTo(std::vector<uint8_t> &bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

using Builder = flatbuffers::FlatBufferBuilder;

uint32_t blocksOf(const ChainModel &model) {
  return static_cast<uint32_t>((model.next.size() + 15) / 16);
}

flatbuffers::Offset<fb::Program> makeProgram(Builder &fbb, const ChainModel &model, bool cuda,
                                             const std::string &name, uint32_t rows) {
  auto dispatch = [&](uint32_t kernel, const std::vector<fb::Binding> &bindings,
                      const fb::Tiles &tiles, bool barrier, int32_t layer,
                      const fb::Launch &launch) {
    return fb::CreateDispatch(fbb, kernel, fbb.CreateVectorOfStructs(bindings), &tiles, barrier,
                              model.layered ? layer : -1, fbb.CreateString("test"), 64,
                              cuda ? &launch : nullptr);
  };
  const uint32_t blocks = blocksOf(model);
  const fb::Binding weights(fb::BindingKind::Weight, model.weightBinding),
      kv(fb::BindingKind::Kv, 0), hash(fb::BindingKind::Arena, model.hashOffset);
  const fb::Tiles perRow(1, 1, 0, 0, false),
      perBlock(model.tilesBase ? model.tilesBase : blocks, 1, 0, 0, true);
  const ChainLaunch &l = model.storeLaunch;
  const fb::Launch store(l.gridX ? l.gridX : (rows + 7) / 8, l.gridY, 1, l.block, l.shared);
  const fb::Launch lookBack((rows + 7) / 8, 1, 1, 8, 0), logits(blocks, rows, 1, 1, 0);
  const std::vector<flatbuffers::Offset<fb::Dispatch>> dispatches = {
      dispatch(0, {weights, kv}, perRow, false, 0, store),
      dispatch(1, {weights, kv, hash}, perRow, true, 0, lookBack),
      dispatch(model.kernel, {weights, hash}, perBlock, true, 1, logits)};
  std::vector<flatbuffers::Offset<fb::Boundary>> boundaries;
  if (model.layered) {
    const std::vector<fb::ArenaRange> live = {
        fb::ArenaRange(model.hashOffset + model.liveOffset, rows * sizeof(uint32_t))};
    boundaries.push_back(
        fb::CreateBoundary(fbb, 1, model.boundary, fbb.CreateVectorOfStructs(live)));
  }
  return fb::CreateProgram(fbb, fbb.CreateString(name), rows, model.arenaSize, model.scratchSize,
                           fbb.CreateVector(dispatches), 0, 0, fbb.CreateVector(boundaries));
}

flatbuffers::Offset<fb::Variant> makeVariant(Builder &fbb, const ChainModel &model,
                                             const ChainVariant &variant) {
  const bool cuda = variant.computeCapability != 0;
  std::vector<flatbuffers::Offset<fb::Program>> programs = {
      makeProgram(fbb, model, cuda, model.decodeName, 1),
      makeProgram(fbb, model, cuda, "prefill", model.prefillRows)};
  if (model.encoder)
    programs = {makeProgram(fbb, model, cuda, model.encodeName,
                            model.encodeRows ? model.encodeRows : model.context)};
  else if (model.verifyRows)
    programs.push_back(makeProgram(fbb, model, cuda, "verify", model.verifyRows));
  auto target = fbb.CreateString(variant.target);
  auto features = fbb.CreateVectorOfStrings(variant.features);
  auto programVector = fbb.CreateVector(programs);
  if (!cuda) {
    std::vector<std::string> kernels(model.kernelCount, "kernel");
    return fb::CreateVariant(fbb, target, 0, features, model.codeSection,
                             fbb.CreateVectorOfStrings(kernels), programVector, model.fast);
  }
  auto kernels = fbb.CreateVectorOfStrings({"store", "look_back", "logits", "pick"});
  const fb::Launch pick(4, 1, 1, 1, 0);
  return fb::CreateVariant(fbb, target, 0, features, model.ptxSection - 1, kernels, programVector,
                           model.fast, static_cast<fb::DeviceKind>(model.deviceKind),
                           model.cudaWeightsSection, model.ptxSection, variant.computeCapability,
                           model.counterBytes, model.pickKernel, &pick);
}

/// ChainKernels.ptx for a vocabulary and a device.
std::string ptxOf(const ChainModel &model, uint32_t capability) {
  const std::vector<uint8_t> file = readFile(LLMC_CHAIN_PTX);
  std::string text(file.begin(), file.end());
  const auto replaceAll = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replaceAll("VOCAB", std::to_string(model.next.size()));
  replaceAll("sm_90", "sm_" + std::to_string(capability));
  if (capability < 90)
    replaceAll("griddepcontrol", "// griddepcontrol");
  return text;
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
  addSection("weights", fb::SectionKind::Weights, weightsOffset,
             weightsOf(*this, slots, kNextOffset));
  std::vector<uint8_t> code = readFile(LLMC_CHAIN_KERNELS);
  code.resize(codeBytes ? codeBytes : code.size());
  addSection("code", fb::SectionKind::Code, codeOffset ? codeOffset : bytes.size(), code);

  std::vector<flatbuffers::Offset<fb::Weight>> weightList;
  const auto cuda = std::find_if(variants.begin(), variants.end(), [](const ChainVariant &variant) {
    return variant.computeCapability != 0;
  });
  if (cuda != variants.end()) {
    const std::vector<uint8_t> own = weightsOf(*this, slots, kCudaNextOffset);
    weightList.push_back(fb::CreateWeightDirect(fbb, "table", "int32", nullptr, 0, own.size(), 0,
                                                listedWeightsSection));
    const std::string text = ptx.empty() ? ptxOf(*this, cuda->computeCapability) : ptx;
    const auto bytesOfText = [](const std::string &text) {
      return std::span(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    };
    addSection("weights cuda", fb::SectionKind::Weights, bytes.size(), own);
    addSection("cubin", fb::SectionKind::Cubin, bytes.size(), bytesOfText(cubin));
    addSection("ptx", fb::SectionKind::Ptx, bytes.size(), bytesOfText(text));
  }
  auto weightVector = fbb.CreateVector(weightList);

  auto name = fbb.CreateString("chain");
  fb::ModelBuilder info(fbb);
  info.add_name(name);
  info.add_vocab_size(static_cast<uint32_t>(next.size()));
  info.add_context_length(context);
  info.add_layers(layered ? 2 : 0);
  if (encoder) {
    info.add_kind(fb::ModelKind::Encoder);
    info.add_output_width(outputWidth ? outputWidth : static_cast<uint32_t>(next.size()));
    info.add_pooling(fb::Pooling(pooling));
  }
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
  artifact.add_weights(weightVector);
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
