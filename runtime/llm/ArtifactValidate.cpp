//===- ArtifactValidate.cpp - the border for header values ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/ArtifactValidate.h"

#include "runtime/llm/Artifact.h"
#include "runtime/schema/Prefix.h"

#include <limits>

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::rt::validate;

namespace {

// Far beyond any model, and small enough that sums and products of two of them fit 64 bits.
constexpr uint32_t kMaxVocab = 1u << 24;
constexpr uint32_t kMaxContext = 1u << 28;
constexpr uint32_t kMaxRows = 1u << 16;
constexpr uint64_t kMaxArea = uint64_t(1) << 40;
constexpr uint64_t kMaxScratch = uint64_t(1) << 30;
constexpr uint64_t kMaxTiles = uint64_t(1) << 40;
constexpr size_t kMaxSections = 4096;
constexpr size_t kMaxTileKinds = std::numeric_limits<uint16_t>::max();

Status checkSections(const fb::Artifact &header, uint64_t fileSize) {
  const auto *sections = header.sections();
  LLMC_RETURN_IF_ERROR(
      require(sections && between(1, sections->size(), kMaxSections), "sections", "is empty"));
  uint64_t total = 0; // also of what hashing them costs
  for (size_t i = 0; i < sections->size(); ++i) {
    const fb::Section *section = sections->Get(i);
    LLMC_RETURN_IF_ERROR(require(section->name(), at("sections", i), "has no name"));
    LLMC_RETURN_IF_ERROR(require(section->offset() % kSectionAlignment == 0 &&
                                     section->offset() >= sizeof(ArtifactPrefix),
                                 at("sections", i), "is not aligned"));
    LLMC_RETURN_IF_ERROR(require(contains(fileSize, section->offset(), section->size()),
                                 at("sections", i), "reaches past the end of the file"));
    total += section->size();
    LLMC_RETURN_IF_ERROR(
        require(total <= fileSize, at("sections", i), "overlaps with one before it"));
  }
  return {};
}

Status checkModel(const fb::Model *model) {
  LLMC_RETURN_IF_ERROR(require(model, "model", "is missing"));
  if (model->kind() == fb::ModelKind::Graph) // no tokens and no positions
    return require(model->vocab_size() == 0 && model->context_length() == 0, "model",
                   "is a graph with a vocabulary or a context");
  LLMC_RETURN_IF_ERROR(
      require(between(1, model->vocab_size(), kMaxVocab), "model.vocab_size", "is out of range"));
  if (model->kind() == fb::ModelKind::Encoder)
    LLMC_RETURN_IF_ERROR(require(between(1, model->output_width(), kMaxVocab) &&
                                     between(uint64_t(fb::Pooling::MIN), uint64_t(model->pooling()),
                                             uint64_t(fb::Pooling::MAX)),
                                 "model", "is an encoder of no known width or pooling"));
  return require(between(1, model->context_length(), kMaxContext), "model.context_length",
                 "is out of range");
}

Status checkTokenizer(const fb::Tokenizer *tokenizer) {
  // The rest is the tokenizer's own to check.
  if (!tokenizer)
    return {};
  const fb::TextPipeline *pipeline = tokenizer->pipeline();
  LLMC_RETURN_IF_ERROR(require(!pipeline || isAligned(pipeline->log_probs(), alignof(double)),
                               "tokenizer.pipeline.log_probs", "is misaligned"));
  return require(isAligned(tokenizer->merges(), alignof(uint64_t)), "tokenizer.merges",
                 "is misaligned");
}

Status checkWeights(const fb::Artifact &header) {
  if (!header.weights())
    return {};
  for (size_t i = 0; i < header.weights()->size(); ++i) {
    const fb::Weight *weight = header.weights()->Get(static_cast<uint32_t>(i));
    LLMC_RETURN_IF_ERROR(
        checkSectionIndex(header, weight->section(), fb::SectionKind::Weights, at("weights", i)));
    LLMC_RETURN_IF_ERROR(require(contains(header.sections()->Get(weight->section())->size(),
                                          weight->offset(), weight->size()),
                                 at("weights", i), "reaches past the end of its section"));
  }
  return {};
}

/// `maxRows`: the longest step, whose rows are all stored before the first of them attends.
Status checkKv(const fb::Artifact &header, uint32_t maxRows) {
  const fb::KvPlan *kv = header.kv();
  LLMC_RETURN_IF_ERROR(require(kv && kv->layers(), "kv", "is missing"));
  LLMC_RETURN_IF_ERROR(require(kv->size() <= kMaxArea, "kv.size", "is out of range"));
  const uint64_t context = header.model()->context_length();
  for (size_t i = 0; i < kv->layers()->size(); ++i) {
    const fb::KvLayer *layer = kv->layers()->Get(i);
    const bool isF16 = layer->encoding() && layer->encoding()->string_view() == "f16";
    const bool isF32 = layer->encoding() && layer->encoding()->string_view() == "f32";
    LLMC_RETURN_IF_ERROR(require(isF16 || isF32, at("kv.layers", i), "has an unknown encoding"));
    LLMC_RETURN_IF_ERROR(require(between(1, layer->heads(), 1u << 16) &&
                                     between(1, layer->head_dim(), 1u << 16) &&
                                     between(1, layer->capacity(), kMaxContext),
                                 at("kv.layers", i), "has a size that is out of range"));
    uint64_t area;
    bool overflow = __builtin_mul_overflow(uint64_t(layer->heads()) * layer->head_dim(),
                                           uint64_t(layer->capacity()) * (isF16 ? 2 : 4), &area);
    LLMC_RETURN_IF_ERROR(require(!overflow && contains(kv->size(), layer->k_offset(), area) &&
                                     contains(kv->size(), layer->v_offset(), area),
                                 at("kv.layers", i), "reaches past the KV area"));
    const uint64_t needed =
        layer->window() ? std::min(context, uint64_t(layer->window()) + maxRows - 1) : context;
    LLMC_RETURN_IF_ERROR(require(layer->capacity() >= needed, at("kv.layers", i),
                                 "has less capacity than its window and a step need"));
  }
  return {};
}

struct AreaSizes {
  uint64_t arena, weights, kv;
};

uint64_t sizeOf(fb::BindingKind kind, const AreaSizes &sizes) {
  switch (kind) {
  case fb::BindingKind::Arena:
    return sizes.arena;
  case fb::BindingKind::Weight:
    return sizes.weights;
  case fb::BindingKind::Kv:
    return sizes.kv;
  }
  return 0;
}

Status checkTiles(const fb::Tiles *tiles, const fb::Artifact &header, uint32_t maxRows,
                  const std::string &where) {
  LLMC_RETURN_IF_ERROR(require(tiles, where, "has no tiles"));
  uint64_t most = tiles->base();
  bool overflow = false;
  if (tiles->row_block())
    overflow |= __builtin_mul_overflow(
        most, (uint64_t(maxRows) + tiles->row_block() - 1) / tiles->row_block(), &most);
  if (tiles->kv_chunk())
    overflow |= __builtin_mul_overflow(
        most, uint64_t(header.model()->context_length()) / tiles->kv_chunk() + 2, &most);
  return require(!overflow && most <= kMaxTiles, where, "has too many tiles");
}

Status checkDispatch(const fb::Dispatch &dispatch, const fb::Variant &variant,
                     const fb::Artifact &header, uint32_t maxRows, const AreaSizes &sizes,
                     const std::string &where) {
  LLMC_RETURN_IF_ERROR(
      require(dispatch.kernel() < variant.kernels()->size(), where, "names a missing kernel"));
  LLMC_RETURN_IF_ERROR(checkTiles(dispatch.tiles(), header, maxRows, where));
  if (!dispatch.bindings())
    return {};
  LLMC_RETURN_IF_ERROR(require(isAligned(dispatch.bindings(), alignof(fb::Binding)), where,
                               "has misaligned bindings"));
  for (const fb::Binding *binding : *dispatch.bindings())
    LLMC_RETURN_IF_ERROR(require(binding->offset() < sizeOf(binding->kind(), sizes), where,
                                 "binds a place outside its area"));
  return {};
}

Status checkPorts(const flatbuffers::Vector<flatbuffers::Offset<fb::Port>> *ports, uint64_t arena,
                  const std::string &where) {
  if (!ports)
    return {};
  for (size_t i = 0; i < ports->size(); ++i) {
    const fb::Port *port = ports->Get(i);
    const size_t width = elementBytes(port->element()->string_view());
    LLMC_RETURN_IF_ERROR(require(width, where + " " + at("ports", i), "has an unknown element"));
    uint64_t bytes = width;
    bool overflow = false;
    if (port->shape())
      for (uint64_t extent : *port->shape())
        overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
    LLMC_RETURN_IF_ERROR(require(!overflow && bytes == port->size(), where + " " + at("ports", i),
                                 "has a size that is not that of its shape"));
    LLMC_RETURN_IF_ERROR(require(contains(arena, port->offset(), bytes),
                                 where + " " + at("ports", i), "reaches past the arena"));
  }
  return {};
}

Status checkProgram(const fb::Program &program, const fb::Variant &variant,
                    const fb::Artifact &header, AreaSizes sizes, const std::string &where) {
  LLMC_RETURN_IF_ERROR(
      require(between(1, program.max_rows(), kMaxRows), where, "has an impossible max_rows"));
  LLMC_RETURN_IF_ERROR(
      require(program.arena_size() <= kMaxArea && program.scratch_size() <= kMaxScratch, where,
              "wants too much memory"));
  LLMC_RETURN_IF_ERROR(
      require(program.dispatches() && program.dispatches()->size() <= kMaxTileKinds, where,
              "has no dispatches, or too many"));
  sizes.arena = program.arena_size();
  LLMC_RETURN_IF_ERROR(checkPorts(program.inputs(), sizes.arena, where + " inputs"));
  LLMC_RETURN_IF_ERROR(checkPorts(program.outputs(), sizes.arena, where + " outputs"));
  LLMC_RETURN_IF_ERROR(checkBoundaries(program, where));
  for (size_t i = 0; i < program.dispatches()->size(); ++i)
    LLMC_RETURN_IF_ERROR(checkDispatch(*program.dispatches()->Get(i), variant, header,
                                       program.max_rows(), sizes,
                                       where + " " + at("dispatches", i)));
  return {};
}

Status checkPrograms(const fb::Variant &variant, const fb::Artifact &header,
                     const std::string &where) {
  const AreaSizes sizes{0, header.sections()->Get(variant.weights_section())->size(),
                        header.kv() ? header.kv()->size() : 0};
  LLMC_RETURN_IF_ERROR(require(variant.programs(), where, "has no programs"));
  for (const fb::Program *program : *variant.programs())
    LLMC_RETURN_IF_ERROR(checkProgram(*program, variant, header, sizes,
                                      where + " program '" + program->name()->str() + "'"));
  if (header.model()->kind() == fb::ModelKind::Graph) {
    const fb::Program *main = findProgram(variant, kMainProgram);
    return require(main && main->max_rows() == 1, where, "has no main program of one row");
  }
  if (header.model()->kind() == fb::ModelKind::Encoder) {
    const fb::Program *encode = findProgram(variant, kEncodeProgram);
    return require(encode && encode->max_rows() >= header.model()->context_length(), where,
                   "has no encode program for the longest text");
  }
  const fb::Program *decode = findProgram(variant, kDecodeProgram);
  LLMC_RETURN_IF_ERROR(
      require(decode && decode->max_rows() == 1, where, "has no decode program of one row"));
  return require(findProgram(variant, kPrefillProgram), where, "has no prefill program");
}

Status checkVariant(const fb::Variant &variant, const fb::Artifact &header,
                    const std::string &where) {
  LLMC_RETURN_IF_ERROR(require(variant.target(), where, "has no target"));
  LLMC_RETURN_IF_ERROR(
      checkSectionIndex(header, variant.weights_section(), fb::SectionKind::Weights, where));
  LLMC_RETURN_IF_ERROR(require(variant.kernels(), where, "has no kernels"));
  LLMC_RETURN_IF_ERROR(checkPrograms(variant, header, where));
  switch (variant.device()) {
  case fb::DeviceKind::Cpu:
    return checkSectionIndex(header, variant.code_section(), fb::SectionKind::Code, where);
  case fb::DeviceKind::Cuda:
    return checkCudaVariant(variant, header, where);
  }
  return corrupt(where + " is for a device of no known kind");
}

uint32_t longestStep(const fb::Artifact &header) {
  uint32_t rows = 1;
  for (const fb::Variant *variant : *header.variants())
    for (const fb::Program *program : *variant->programs())
      rows = std::max(rows, program->max_rows());
  return rows;
}

} // namespace

Status llmc::rt::validate::checkSectionIndex(const fb::Artifact &header, uint32_t index,
                                             fb::SectionKind kind, const std::string &where) {
  return require(index < header.sections()->size() && header.sections()->Get(index)->kind() == kind,
                 where, "names a section that is missing or of another kind");
}

Status llmc::rt::validateHeader(const fb::Artifact &header, uint64_t fileSize) {
  LLMC_RETURN_IF_ERROR(checkSections(header, fileSize));
  LLMC_RETURN_IF_ERROR(checkSectionIndex(header, header.weights_section(), fb::SectionKind::Weights,
                                         "weights_section"));
  LLMC_RETURN_IF_ERROR(checkModel(header.model()));
  LLMC_RETURN_IF_ERROR(checkTokenizer(header.tokenizer()));
  LLMC_RETURN_IF_ERROR(checkWeights(header));
  LLMC_RETURN_IF_ERROR(require(header.variants(), "variants", "is missing"));
  if (header.variants()->size() == 0) // a vocabulary: nothing is ever computed
    return {};
  for (size_t i = 0; i < header.variants()->size(); ++i)
    LLMC_RETURN_IF_ERROR(checkVariant(*header.variants()->Get(i), header, at("variants", i)));
  return checkKv(header, longestStep(header));
}
