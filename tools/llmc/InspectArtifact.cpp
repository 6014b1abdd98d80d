//===- InspectArtifact.cpp - what is in a compiled model ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Cpu.h"
#include "runtime/llm/Artifact.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Inspect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llmc;
using namespace llmc::tool;
using namespace llmc::rt;

static std::string text(const flatbuffers::String *string) { return string ? string->str() : ""; }

/// What a list holds; a header need not have it.
template <typename T> static std::vector<T> itemsOf(const flatbuffers::Vector<T> *vector) {
  return vector ? std::vector<T>(vector->begin(), vector->end()) : std::vector<T>();
}
template <typename T>
static std::vector<const T *> itemsOf(const flatbuffers::Vector<flatbuffers::Offset<T>> *vector) {
  return vector ? std::vector<const T *>(vector->begin(), vector->end()) : std::vector<const T *>();
}

static double bitsPerElement(uint64_t bytes, uint64_t elements) {
  return elements ? 8.0 * double(bytes) / double(elements) : 0;
}

static uint64_t elements(const fb::Weight &weight) {
  uint64_t count = 1;
  for (uint64_t extent : itemsOf(weight.shape()))
    count *= extent;
  return count;
}

static const char *kindOf(const fb::Model &model) {
  switch (model.kind()) {
  case fb::ModelKind::Language:
    return "language model";
  case fb::ModelKind::Graph:
    return "graph";
  case fb::ModelKind::Encoder:
    return "sentence encoder";
  }
  return "unknown";
}

static Json modelFacts(const fb::Model &model) {
  Json facts = {{"kind", kindOf(model)},
                {"name", text(model.name())},
                {"architecture", text(model.architecture())},
                {"source", text(model.source())},
                {"parameters", model.parameters()},
                {"vocabulary", model.vocab_size()},
                {"hidden_size", model.hidden_size()},
                {"layers", model.layers()},
                {"context_length", model.context_length()},
                {"train_context_length", model.train_context_length()},
                {"activations", text(model.activations())},
                {"numerics", text(model.numerics())}};
  if (model.kind() == fb::ModelKind::Encoder) {
    facts["output_width"] = model.output_width();
    facts["pooling"] = llvm::StringRef(fb::EnumNamePooling(model.pooling())).lower();
    facts["normalize"] = model.normalize() ? "yes" : "no";
  }
  for (const fb::KeyValue *property : itemsOf(model.properties())) {
    std::string key = text(property->key());
    std::replace(key.begin(), key.end(), ' ', '_');
    if (!facts.contains(key))
      facts[key] = text(property->value());
  }
  return facts;
}

static Json tokenizerFacts(const fb::Artifact &artifact) {
  if (!artifact.tokenizer())
    return Json::object();
  const fb::Tokenizer &tokenizer = *artifact.tokenizer();
  return {{"kind", llvm::StringRef(fb::EnumNameTokenizerKind(tokenizer.kind())).lower()},
          {"pre", text(tokenizer.pre())},
          {"tokens", itemsOf(tokenizer.types()).size()},
          {"bos", tokenizer.bos()},
          {"adds_bos", tokenizer.add_bos()},
          {"end_tokens", itemsOf(tokenizer.end_tokens())},
          {"chat_template_bytes", artifact.chat_template() ? artifact.chat_template()->size() : 0}};
}

/// The features of a variant that this machine lacks.
static std::vector<std::string> missingFeatures(const fb::Variant &variant) {
  const CpuFeatures host = CpuFeatures::host();
  std::vector<std::string> missing;
  for (const flatbuffers::String *feature : itemsOf(variant.features()))
    if (!host.has(feature->string_view()))
      missing.push_back(feature->str());
  return missing;
}

static std::string runsHere(const fb::Variant &variant) {
  if (variant.device() == fb::DeviceKind::Cuda)
    return "where a GPU has compute capability " +
           std::to_string(variant.compute_capability() / 10) + "." +
           std::to_string(variant.compute_capability() % 10);
  const std::vector<std::string> missing = missingFeatures(variant);
  return missing.empty() ? "yes" : "no: lacks " + llvm::join(missing, " ");
}

/// The code of a CUDA variant is its cubin.
static Json variantRow(const Artifact &artifact, const fb::Variant &variant) {
  const bool cuda = variant.device() == fb::DeviceKind::Cuda;
  const auto bytesOf = [&](uint32_t section) { return artifact.section(section).size(); };
  Json features = Json::array();
  for (const flatbuffers::String *feature : itemsOf(variant.features()))
    features.push_back(feature->str());
  return {{"target", text(variant.target())},
          {"device", cuda ? "cuda" : "cpu"},
          {"runs_here", runsHere(variant)},
          {"numerics", variant.fast() ? "fast" : "strict"},
          {"kernels", variant.kernels()->size()},
          {"code_bytes", bytesOf(variant.code_section())},
          {"ptx_bytes", cuda ? bytesOf(variant.ptx_section()) : 0},
          {"counter_bytes", variant.counter_bytes()},
          {"weights", text(artifact.header().sections()->Get(variant.weights_section())->name())},
          {"features", std::move(features)}};
}

/// The kernels of CUDA programs and how they are launched, each way once.
static Json launchRows(const fb::Artifact &artifact) {
  Json rows = Json::array();
  for (const fb::Variant *variant : *artifact.variants()) {
    if (variant->device() != fb::DeviceKind::Cuda)
      continue;
    const auto row = [&](const std::string &program, uint32_t kernel, const fb::Launch &launch) {
      return Json{{"variant", text(variant->target())},
                  {"program", program},
                  {"kernel", text(variant->kernels()->GetAsString(kernel))},
                  {"grid", {launch.grid_x(), launch.grid_y(), launch.grid_z()}},
                  {"block", launch.block()},
                  {"shared_bytes", launch.shared_bytes()},
                  {"count", 0}};
    };
    for (const fb::Program *program : *variant->programs()) {
      llvm::MapVector<uint32_t, Json> byKernel;
      for (const fb::Dispatch *dispatch : *program->dispatches()) {
        Json &entry = byKernel[dispatch->kernel()];
        if (entry.is_null())
          entry = row(text(program->name()), dispatch->kernel(), *dispatch->launch());
        entry["count"] = entry["count"].get<uint64_t>() + 1;
      }
      for (auto &[kernel, entry] : byKernel)
        rows.push_back(std::move(entry));
    }
    // Behind every program.
    rows.push_back(row("", variant->pick_kernel(), *variant->pick_launch()));
    rows.back()["count"] = 1;
  }
  return rows;
}

/// What a step takes along for each of its rows where it changes devices; the greatest of all
/// layers.
static uint64_t liveBytesPerRow(const fb::Program &program) {
  uint64_t most = 0;
  if (program.boundaries())
    for (const fb::Boundary *boundary : *program.boundaries()) {
      uint64_t bytes = 0;
      if (boundary->live())
        for (const fb::ArenaRange *range : *boundary->live())
          bytes += range->size() / program.max_rows();
      most = std::max(most, bytes);
    }
  return most;
}

/// Barriers and dispatches per layer are means: the first and the last layer may differ.
static Json programRow(const fb::Variant &variant, const fb::Program &program, uint32_t layers) {
  uint64_t barriers = 0, layerBarriers = 0, layerDispatches = 0, weightBytes = 0;
  for (const fb::Dispatch *dispatch : *program.dispatches()) {
    barriers += dispatch->barrier();
    weightBytes += dispatch->weight_bytes();
    if (dispatch->layer() < 0)
      continue;
    ++layerDispatches;
    layerBarriers += dispatch->barrier();
  }
  const auto perLayer = [&](uint64_t count) { return layers ? double(count) / layers : 0.0; };
  return {{"variant", text(variant.target())},
          {"program", text(program.name())},
          {"max_rows", program.max_rows()},
          {"dispatches", program.dispatches()->size()},
          {"barriers", barriers},
          {"dispatches_per_layer", perLayer(layerDispatches)},
          {"barriers_per_layer", perLayer(layerBarriers)},
          {"arena_bytes", program.arena_size()},
          {"scratch_bytes", program.scratch_size()},
          {"weight_bytes", weightBytes},
          {"boundaries", program.boundaries() ? program.boundaries()->size() : 0},
          {"boundary_bytes_per_row", liveBytesPerRow(program)}};
}

static Json kvRows(const fb::KvPlan *plan) {
  Json rows = Json::array();
  for (const fb::KvLayer *layer : itemsOf(plan ? plan->layers() : nullptr))
    rows.push_back({{"layer", layer->layer()},
                    {"heads", layer->heads()},
                    {"head_dim", layer->head_dim()},
                    {"capacity", layer->capacity()},
                    {"window", layer->window()},
                    {"encoding", text(layer->encoding())}});
  return rows;
}

/// Weights are there once for each layout: those of the first.
static std::vector<const fb::Weight *> listedWeights(const fb::Artifact &artifact) {
  std::vector<const fb::Weight *> list;
  for (const fb::Weight *weight : itemsOf(artifact.weights()))
    if (weight->section() == artifact.weights_section())
      list.push_back(weight);
  return list;
}

/// How many weights have an encoding, and what they weigh.
static Json encodingRows(const fb::Artifact &artifact) {
  struct Sum {
    uint64_t weights = 0, bytes = 0, elements = 0;
  };
  llvm::MapVector<llvm::StringRef, Sum> sums;
  uint64_t total = 0;
  for (const fb::Weight *weight : listedWeights(artifact)) {
    Sum &sum = sums[weight->encoding() ? weight->encoding()->c_str() : ""];
    ++sum.weights;
    sum.bytes += weight->size();
    sum.elements += elements(*weight);
    total += weight->size();
  }
  Json rows = Json::array();
  for (const auto &[encoding, sum] : sums)
    rows.push_back({{"encoding", encoding.str()},
                    {"weights", sum.weights},
                    {"bytes", sum.bytes},
                    {"bits_per_weight", bitsPerElement(sum.bytes, sum.elements)},
                    {"percent", 100.0 * double(sum.bytes) / double(total)}});
  return rows;
}

static Json weightRows(const fb::Artifact &artifact) {
  Json rows = Json::array();
  for (const fb::Weight *weight : listedWeights(artifact))
    rows.push_back({{"name", text(weight->name())},
                    {"encoding", text(weight->encoding())},
                    {"shape", itemsOf(weight->shape())},
                    {"bytes", weight->size()},
                    {"bits_per_weight", bitsPerElement(weight->size(), elements(*weight))}});
  return rows;
}

static Json sectionRows(const fb::Artifact &artifact) {
  Json rows = Json::array();
  for (const fb::Section *section : *artifact.sections())
    rows.push_back({{"name", text(section->name())},
                    {"kind", llvm::StringRef(fb::EnumNameSectionKind(section->kind())).lower()},
                    {"offset", section->offset()},
                    {"bytes", section->size()},
                    {"checksum", llvm::utohexstr(section->checksum(), /*LowerCase=*/true, 16)}});
  return rows;
}

/// The named tensors of a graph; the same in all its variants.
static Json portRows(const fb::Artifact &artifact) {
  Json rows = Json::array();
  if (artifact.model()->kind() != fb::ModelKind::Graph || artifact.variants()->size() == 0)
    return rows;
  const fb::Program &program = *findProgram(*artifact.variants()->Get(0), kMainProgram);
  const auto add = [&](const char *kind, const auto *ports) {
    if (ports)
      for (const fb::Port *port : *ports)
        rows.push_back({{"port", kind},
                        {"name", text(port->name())},
                        {"element", text(port->element())},
                        {"shape", itemsOf(port->shape())}});
  };
  add("input", program.inputs());
  add("output", program.outputs());
  return rows;
}

llvm::Expected<Json> llmc::tool::inspectArtifact(const InspectOptions &options) {
  if (options.rope || options.stats)
    return makeError(options.path + ": --rope and --stats read the source model; give its .gguf");
  auto opened = Artifact::open(options.path);
  if (!opened.ok())
    return makeError(opened.status());
  const Artifact &artifact = opened.value();
  const fb::Artifact &header = artifact.header();
  const fb::Model &model = *header.model();
  Json variants = Json::array(), programs = Json::array();
  for (const fb::Variant *variant : *header.variants()) {
    variants.push_back(variantRow(artifact, *variant));
    for (const fb::Program *program : *variant->programs())
      programs.push_back(programRow(*variant, *program, model.layers()));
  }
  return Json{{"format", "llmc"},
              {"file", artifact.path()},
              {"bytes", artifact.fileSize()},
              {"producer", text(header.producer())},
              {"kv_bytes", header.kv() ? header.kv()->size() : 0},
              {"model", modelFacts(model)},
              {"tokenizer", tokenizerFacts(header)},
              {"variants", std::move(variants)},
              {"programs", std::move(programs)},
              {"launches", launchRows(header)},
              {"ports", portRows(header)},
              {"encodings", encodingRows(header)},
              {"kv", kvRows(header.kv())},
              {"weights", weightRows(header)},
              {"sections", sectionRows(header)}};
}
