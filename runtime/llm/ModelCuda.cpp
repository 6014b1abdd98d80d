//===- ModelCuda.cpp - a model's code and weights on a CUDA device --------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Model.h"

#include <charconv>
#include <vector>

using namespace llmc;
using namespace llmc::rt;

namespace {

const fb::Boundary *findBoundary(const fb::Program &program, uint32_t layer) {
  if (program.boundaries())
    for (const fb::Boundary *boundary : *program.boundaries())
      if (boundary->layer() == layer)
        return boundary;
  return nullptr;
}

/// Whether a step can begin with one program and go on with the other.
bool isSameProgram(const fb::Program &a, const fb::Program &b) {
  if (a.max_rows() != b.max_rows() || a.arena_size() != b.arena_size() ||
      a.dispatches()->size() != b.dispatches()->size())
    return false;
  for (uint32_t i = 0; i < a.dispatches()->size(); ++i)
    if (a.dispatches()->Get(i)->layer() != b.dispatches()->Get(i)->layer())
      return false;
  return true;
}

/// Where the part of the KV area ends that begins at `offset`; the whole area's end where the plan
/// does not know it.
uint64_t kvEnd(const fb::KvPlan &plan, uint64_t offset) {
  for (const fb::KvLayer *layer : *plan.layers())
    if (layer->k_offset() == offset || layer->v_offset() == offset) {
      const uint64_t width = layer->encoding()->string_view() == "f16" ? 2 : 4;
      return offset + width * layer->heads() * layer->head_dim() * layer->capacity();
    }
  return plan.size();
}

} // namespace

Status llmc::rt::parseDevice(std::string_view text, ModelOptions &options) {
  constexpr std::string_view numbered = "cuda:";
  options.ordinal = -1;
  if (text == "auto") {
    options.device = DeviceKind::Auto;
  } else if (text == "cpu") {
    options.device = DeviceKind::Cpu;
  } else if (text == "cuda") {
    options.device = DeviceKind::Cuda;
  } else {
    const std::string_view number = text.substr(std::min(text.size(), numbered.size()));
    unsigned short ordinal = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), ordinal);
    if (!text.starts_with(numbered) || error != std::errc() || end != number.data() + number.size())
      return invalidArgument("there is no device '" + std::string(text) +
                             "': give auto, cpu, cuda or cuda:N");
    options.device = DeviceKind::Cuda;
    options.ordinal = ordinal;
  }
  return {};
}

PerPhase<const fb::Program *> llmc::rt::programsOf(const fb::Variant &variant) {
  PerPhase<const fb::Program *> programs;
  programs[Phase::Prefill] = findProgram(variant, kPrefillProgram);
  programs[Phase::Decode] = findProgram(variant, kDecodeProgram);
  programs[Phase::Verify] = findProgram(variant, kVerifyProgram);
  return programs;
}

Status Model::loadCuda(const ModelOptions &options) {
  std::vector<cuda::VariantCode> variants;
  for (const fb::Variant *variant : *file.header().variants())
    if (variant->device() == fb::DeviceKind::Cuda &&
        (options.variant.empty() || options.variant == variant->target()->string_view()))
      variants.push_back(
          {variant, file.section(variant->code_section()), file.section(variant->ptx_section())});
  if (variants.empty())
    return unsupported("it has no code for CUDA devices; compile it with --target sm90 or another");
  LLMC_ASSIGN_OR_RETURN(cuda::Placement placement, cuda::place(variants, options.ordinal));
  auto model = std::make_shared<CudaModel>();
  model->code = std::move(placement.code);
  model->variant = placement.variant;

  const uint32_t layers = options.gpuLayers.value_or(info().layers());
  if (layers < info().layers()) {
    ModelOptions forCpu = options;
    forCpu.variant.clear();
    LLMC_RETURN_IF_ERROR(loadCpu(forCpu));
    if (Status status = setBoundaries(*placement.variant, layers); !status.ok()) {
      cpu = nullptr;
      return status;
    }
    gpuLayers = layers;
  }
  if (Status status = loadWeights(*model); !status.ok()) {
    if (status.code() != StatusCode::ResourceExhausted)
      return status;
    return Status(status.code(),
                  status.message() + "; fewer layers there (--gpu-layers) need less");
  }
  gpu = std::move(model);
  return {};
}

/// Finds where each program goes on on the CPU.
Status Model::setBoundaries(const fb::Variant &variant, uint32_t layers) {
  const PerPhase<const fb::Program *> front = programsOf(variant), back = programsOf(*cpu);
  for (size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (!front[phase] && !back[phase])
      continue;
    if (!front[phase] || !back[phase] || !isSameProgram(*front[phase], *back[phase]))
      return unsupported("the programs for " + variant.target()->str() + " and " +
                         cpu->target()->str() + " differ: a step cannot use both");
    ends[phase] = findBoundary(*front[phase], layers);
    if (!ends[phase])
      return unsupported("it does not say what layer " + std::to_string(layers) +
                         " needs of those before it; compile the model again");
  }
  return {};
}

Status Model::loadWeights(CudaModel &model) {
  const uint32_t index = model.variant->weights_section();
  const std::span<const uint8_t> section = file.section(index);
  std::vector<cuda::WeightRange> ranges = {{0, section.size()}};
  if (cpu) {
    const PerPhase<const fb::Program *> programs = programsOf(*model.variant);
    PerPhase<size_t> count = {};
    for (size_t i = 0; i < kPhases; ++i)
      if (const fb::Boundary *end = ends[static_cast<Phase>(i)])
        count[static_cast<Phase>(i)] = end->dispatch();
    LLMC_ASSIGN_OR_RETURN(ranges, cuda::neededWeights(file.header(), index, programs, count));
  }
  LLMC_ASSIGN_OR_RETURN(model.weights, cuda::Weights::upload(model.code.device(), section, ranges));
  return {};
}

uint64_t Model::cudaKvBytes() const {
  const fb::KvPlan &plan = *file.header().kv();
  if (!cpu)
    return plan.size();
  uint64_t end = 0;
  const PerPhase<const fb::Program *> programs = programsOf(*gpu->variant);
  for (size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    for (uint32_t j = 0; ends[phase] && j < ends[phase]->dispatch(); ++j)
      if (const auto *bindings = programs[phase]->dispatches()->Get(j)->bindings())
        for (const fb::Binding *binding : *bindings)
          if (binding->kind() == fb::BindingKind::Kv)
            end = std::max(end, kvEnd(plan, binding->offset()));
  }
  return end;
}

std::string Model::target() const {
  if (!gpu)
    return cpu->target()->str();
  std::string name = gpu->variant->target()->str();
  if (cpu)
    name += " (" + std::to_string(gpuLayers) + " of " + std::to_string(info().layers()) +
            " layers), " + cpu->target()->str();
  return name;
}

std::string Model::device() const { return gpu ? gpu->code.device()->name() : "cpu"; }
