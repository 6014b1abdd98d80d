//===- Model.cpp - an artifact with its code loaded -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Model.h"

#include <vector>

using namespace llmc;
using namespace llmc::rt;

namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitecture = "x86_64";
constexpr const char *kLeastTarget = "x86-64-v3";
#elif defined(__aarch64__)
constexpr std::string_view kArchitecture = "aarch64";
constexpr const char *kLeastTarget = "aarch64";
#endif

/// What keeps `variant` from running on a CPU with `features`; empty if nothing does.
std::string obstacle(const fb::Variant &variant, const CpuFeatures &features) {
  if (variant.triple() && !variant.triple()->string_view().starts_with(kArchitecture))
    return "is code for " + variant.triple()->str();
  std::string missing;
  if (variant.features())
    for (const flatbuffers::String *feature : *variant.features())
      if (!features.has(feature->string_view()))
        missing += (missing.empty() ? "" : ", ") + feature->str();
  return missing.empty() ? missing : "needs " + missing;
}

/// Whether the operating system lets this process use what `variant` needs.
bool isPermitted(const fb::Variant &variant) {
  std::vector<std::string_view> names;
  if (variant.features())
    for (const flatbuffers::String *feature : *variant.features())
      names.push_back(feature->string_view());
  const CpuFeatures needs = CpuFeatures::of(names);
  return needs.permitted() == needs;
}

} // namespace

StatusOr<const fb::Variant *> llmc::rt::chooseVariant(const fb::Artifact &header,
                                                      const std::string &name,
                                                      const CpuFeatures &features) {
  std::string obstacles, targets;
  for (const fb::Variant *variant : *header.variants()) {
    if (variant->device() != fb::DeviceKind::Cpu)
      continue;
    const std::string target = variant->target()->str();
    targets += (targets.empty() ? "" : ", ") + target;
    if (!name.empty() && name != target)
      continue;
    std::string why = obstacle(*variant, features);
    if (why.empty())
      return variant;
    obstacles += (obstacles.empty() ? "" : "; ") + target + " " + why;
  }
  if (targets.empty())
    return unsupported("it has code for CUDA devices only; compile it with --target native, too");
  if (obstacles.empty())
    return invalidArgument("there is no variant '" + name + "', only " + targets);
  return unsupported("no variant runs on this CPU: " + obstacles +
                     "; compile for it with --target native, or elsewhere with --target " +
                     kLeastTarget);
}

StatusOr<std::shared_ptr<const Model>> Model::load(const std::string &path,
                                                   const ModelOptions &options) {
  LLMC_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path, options.access));
  std::shared_ptr<Model> model(new Model(std::move(artifact)));
  if (model->file.header().variants()->size() > 0 && !options.textOnly)
    LLMC_RETURN_IF_ERROR(model->loadCode(options));
  const fb::Tokenizer *table = model->file.header().tokenizer();
  if (table && table->kind() != fb::TokenizerKind::None) {
    auto tokenizer = Tokenizer::create(table);
    if (!tokenizer.ok())
      return Status(tokenizer.status().code(),
                    "the tokenizer of " + path + ": " + tokenizer.status().message());
    model->text = tokenizer.take();
  }
  return std::shared_ptr<const Model>(std::move(model));
}

Status Model::loadCode(const ModelOptions &options) {
  const auto located = [&](Status status) {
    return status.ok() ? std::move(status)
                       : Status(status.code(), file.path() + ": " + status.message());
  };
  bool hasCpu = false, hasCuda = false, named = false;
  for (const fb::Variant *variant : *file.header().variants()) {
    const bool wanted =
        options.variant.empty() || options.variant == variant->target()->string_view();
    named |= wanted;
    (variant->device() == fb::DeviceKind::Cuda ? hasCuda : hasCpu) |= wanted;
  }
  if (options.device == DeviceKind::Cpu && options.gpuLayers.value_or(0) > 0)
    return invalidArgument("layers cannot be computed on a GPU and on the device 'cpu'");
  const bool asked = options.device == DeviceKind::Cuda || options.gpuLayers.value_or(0) > 0;
  const bool tries =
      named && options.device != DeviceKind::Cpu && options.gpuLayers != 0u && (asked || hasCuda);
  if (!tries)
    return located(loadCpu(options));
  Status status = loadCuda(options);
  if (status.ok() || asked || !hasCpu)
    return located(std::move(status));
  reason = status.message();
  return located(loadCpu(options));
}

Status Model::loadCpu(const ModelOptions &options) {
  auto variant = chooseVariant(file.header(), options.variant, options.features);
  // Permission is asked for what will be used only; where it is refused, the next best must do.
  if (variant.ok() && !isPermitted(*variant.value()))
    variant = chooseVariant(file.header(), options.variant, options.features.permitted());
  LLMC_ASSIGN_OR_RETURN(cpu, std::move(variant));
  LLMC_ASSIGN_OR_RETURN(object,
                        CodeObject::load(file.section(cpu->code_section()), cpu->kernels()->size(),
                                         "the code for " + cpu->target()->str()));
  return {};
}
