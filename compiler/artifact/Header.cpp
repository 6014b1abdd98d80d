//===- Header.cpp - the flatbuffer header of an artifact ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Boundaries.h"
#include "compiler/artifact/TokenizerTable.h"
#include "compiler/artifact/Writer.h"
#include "runtime/schema/llmc_generated.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

static constexpr const char *kProducer = "llmc " LLMC_VERSION;

static fb::ModelKind modelKind(const ArtifactModel &model) {
  return model.isGraph     ? fb::ModelKind::Graph
         : model.isEncoder ? fb::ModelKind::Encoder
                           : fb::ModelKind::Language;
}

static fb::Pooling poolingOf(const ArtifactModel &model) {
  for (fb::Pooling pooling : fb::EnumValuesPooling())
    if (llvm::StringRef(fb::EnumNamePooling(pooling)).lower() == model.pooling)
      return pooling;
  llvm_unreachable("the driver knows the kinds");
}

namespace {
class HeaderBuilder {
public:
  HeaderBuilder(const ArtifactContents &contents, llvm::ArrayRef<PlacedWeight> weights)
      : contents(contents), module(contents.module) {
    for (const PlacedWeight &weight : weights)
      weightAt[{weight.section, llm::WeightOp(weight.op).getSymNameAttr()}] = &weight;
    layouts = weightLayouts(contents);
  }

  std::string build(llvm::ArrayRef<PlacedWeight> weights, llvm::ArrayRef<PlacedSection> sections) {
    // Zeros are stored too: the size must not depend on checksums.
    fbb.ForceDefaults(true);
    std::vector<Offset<fb::Section>> sectionList;
    for (const PlacedSection &s : sections)
      sectionList.push_back(fb::CreateSectionDirect(fbb, s.name.c_str(), fb::SectionKind(s.kind),
                                                    s.offset, s.size, s.checksum));
    auto sectionVector = fbb.CreateVector(sectionList);
    std::vector<Offset<fb::Weight>> weightList;
    for (const PlacedWeight &w : weights)
      weightList.push_back(weight(w));
    auto weightVector = fbb.CreateVector(weightList);
    auto modelOffset = model();
    auto tokenizerOffset = buildTokenizer(fbb, *contents.tokenizer);
    auto templateOffset = fbb.CreateString(contents.chatTemplate);
    auto kvOffset = kvPlan();
    std::vector<Offset<fb::Variant>> variants;
    // Weights come first, then the code of each variant, a cubin with its PTX.
    uint32_t section = layouts.size();
    for (const ArtifactVariant &v : contents.variants) {
      variants.push_back(variant(v, section));
      section += v.cuda ? 2 : 1;
    }
    auto variantVector = fbb.CreateVector(variants);
    auto producer = fbb.CreateString(kProducer);
    fb::ArtifactBuilder builder(fbb);
    builder.add_producer(producer);
    builder.add_model(modelOffset);
    builder.add_tokenizer(tokenizerOffset);
    builder.add_chat_template(templateOffset);
    builder.add_sections(sectionVector);
    builder.add_weights_section(0);
    builder.add_weights(weightVector);
    builder.add_kv(kvOffset);
    builder.add_variants(variantVector);
    fbb.Finish(builder.Finish(), fb::ArtifactIdentifier());
    return std::string(reinterpret_cast<const char *>(fbb.GetBufferPointer()), fbb.GetSize());
  }

private:
  Offset<fb::Weight> weight(const PlacedWeight &placed) {
    llm::WeightOp op = placed.op;
    llvm::SmallVector<int64_t> shape = op.getFinalShape();
    std::vector<uint64_t> dims(shape.begin(), shape.end());
    return fb::CreateWeightDirect(fbb, op.getSymName().str().c_str(),
                                  op.getFinalEncoding().str().c_str(), &dims, placed.offset,
                                  placed.size, placed.checksum, placed.section);
  }

  Offset<fb::Model> model() {
    const ArtifactModel &m = contents.model;
    uint64_t parameters = 0;
    for (const auto &[key, placed] : weightAt) {
      if (key.first != 0)
        continue; // the same weights in another layout
      uint64_t count = 1;
      for (int64_t dim : llm::WeightOp(placed->op).getFinalShape())
        count *= dim;
      parameters += count;
    }
    std::vector<Offset<fb::KeyValue>> properties;
    for (const auto &[key, value] : m.properties)
      properties.push_back(fb::CreateKeyValueDirect(fbb, key.c_str(), value.c_str()));
    return fb::CreateModelDirect(fbb, m.name.c_str(), m.architecture.c_str(), m.vocab, m.hidden,
                                 m.layers, m.context, m.trainContext, parameters,
                                 m.activations.c_str(), m.numerics.c_str(), m.source.c_str(),
                                 &properties, modelKind(m), m.isEncoder ? uint32_t(m.width) : 0,
                                 poolingOf(m), m.isEncoder && m.normalize);
  }

  Offset<fb::KvPlan> kvPlan() {
    std::vector<Offset<fb::KvLayer>> layers;
    uint64_t size = 0;
    if (module) {
      for (auto [i, kv] : llvm::enumerate(module.getOps<llm::KvOp>()))
        layers.push_back(fb::CreateKvLayerDirect(
            fbb, i, kv.getHeads(), kv.getHeadDim(), *kv.getCapacity(), kv.getWindow(),
            kv.getEncoding().str().c_str(), *kv.getKOffset(), *kv.getVOffset()));
      if (auto bytes = module->getAttrOfType<mlir::IntegerAttr>("llm.kv_bytes"))
        size = bytes.getInt();
    }
    return fb::CreateKvPlanDirect(fbb, size, &layers);
  }

  /// Where a binding points, and how many weight bytes it brings.
  fb::Binding binding(sched::ProgramOp program, sched::BindAttr bind, unsigned layout,
                      uint64_t &weightBytes) {
    switch (bind.getKind()) {
    case sched::BindKind::Buffer: {
      auto buffer = llvm::cast<sched::BufferOp>(
          mlir::SymbolTable::lookupSymbolIn(program, bind.getSymbol().getAttr()));
      return {fb::BindingKind::Arena, uint64_t(*buffer.getOffset())};
    }
    case sched::BindKind::Weight: {
      const PlacedWeight *placed = weightAt.lookup({layout, bind.getSymbol().getAttr()});
      weightBytes += placed->size;
      return {fb::BindingKind::Weight, placed->offset};
    }
    case sched::BindKind::Key:
    case sched::BindKind::Value: {
      auto kv = llvm::cast<llm::KvOp>(
          mlir::SymbolTable::lookupSymbolIn(module, bind.getSymbol().getAttr()));
      bool key = bind.getKind() == sched::BindKind::Key;
      return {fb::BindingKind::Kv, uint64_t(key ? *kv.getKOffset() : *kv.getVOffset())};
    }
    }
    llvm_unreachable("all kinds are handled");
  }

  std::vector<Offset<fb::Port>> ports(sched::ProgramOp program, sched::PortKind kind) {
    std::vector<Offset<fb::Port>> list;
    for (auto port : program.getOps<sched::PortOp>()) {
      if (port.getKind() != kind)
        continue;
      auto buffer = llvm::cast<sched::BufferOp>(
          mlir::SymbolTable::lookupSymbolIn(program, port.getBufferAttr().getAttr()));
      std::vector<uint64_t> shape(port.getShape().begin(), port.getShape().end());
      bool empty = llvm::is_contained(shape, 0);
      list.push_back(fb::CreatePortDirect(fbb, port.getName().str().c_str(),
                                          port.getElement().str().c_str(), &shape,
                                          *buffer.getOffset(), empty ? 0 : buffer.getBytes()));
    }
    return list;
  }

  std::vector<Offset<fb::Boundary>> boundaries(sched::ProgramOp program) {
    std::vector<Offset<fb::Boundary>> list;
    for (const LayerBoundary &boundary : layerBoundaries(program)) {
      std::vector<fb::ArenaRange> live;
      for (sched::BufferOp buffer : boundary.live)
        live.emplace_back(*buffer.getOffset(), buffer.getBytes());
      list.push_back(fb::CreateBoundaryDirect(fbb, boundary.layer, boundary.dispatch, &live));
    }
    return list;
  }

  static fb::Launch launchOf(const ArtifactVariant &v, llvm::StringRef kernel, int64_t maxRows) {
    ArtifactLaunch launch = v.cuda->launch(kernel, maxRows);
    return {uint32_t(launch.grid[0]), uint32_t(launch.grid[1]), uint32_t(launch.grid[2]),
            uint32_t(launch.block), uint32_t(launch.sharedBytes)};
  }

  Offset<fb::Program> program(const ArtifactVariant &v, sched::ProgramOp op, unsigned layout,
                              const llvm::StringMap<uint32_t> &kernelIndex) {
    std::vector<Offset<fb::Dispatch>> dispatches;
    uint64_t scratch = 0;
    bool barrier = false;
    for (mlir::Operation &inner : op.getBody().front()) {
      if (llvm::isa<sched::BarrierOp>(inner))
        barrier = true;
      auto dispatch = llvm::dyn_cast<sched::DispatchOp>(inner);
      if (!dispatch)
        continue;
      std::vector<fb::Binding> bindings;
      uint64_t weightBytes = 0;
      for (mlir::Attribute attr : dispatch.getBindings())
        bindings.push_back(binding(op, llvm::cast<sched::BindAttr>(attr), layout, weightBytes));
      // An embedding reads one row of its table per token.
      if (llvm::isa<sched::EmbedKernelOp>(
              mlir::SymbolTable::lookupSymbolIn(module, dispatch.getKernelAttr().getAttr())))
        weightBytes /= contents.model.vocab;
      sched::TilesAttr t = dispatch.getTiles();
      fb::Tiles tiles(t.getBase(), t.getRowBlock(), t.getKvChunk(), t.getWindow(), t.getOutRows());
      fb::Launch launch;
      if (v.cuda)
        launch = launchOf(v, dispatch.getKernel(), op.getMaxRows());
      dispatches.push_back(fb::CreateDispatchDirect(fbb, kernelIndex.lookup(dispatch.getKernel()),
                                                    &bindings, &tiles, barrier, dispatch.getLayer(),
                                                    dispatch.getOpName().str().c_str(), weightBytes,
                                                    v.cuda ? &launch : nullptr));
      scratch = std::max<uint64_t>(scratch, v.scratchBytes.lookup(dispatch.getKernel()));
      barrier = false;
    }
    auto inputs = ports(op, sched::PortKind::Input), outputs = ports(op, sched::PortKind::Output);
    auto boundaryList = boundaries(op);
    return fb::CreateProgramDirect(fbb, op.getSymName().str().c_str(), op.getMaxRows(),
                                   op.getArenaSize().value_or(0), llvm::alignTo(scratch, 64),
                                   &dispatches, &inputs, &outputs, &boundaryList);
  }

  Offset<fb::Variant> variant(const ArtifactVariant &v, uint32_t section) {
    std::vector<Offset<flatbuffers::String>> features, kernels;
    llvm::StringMap<uint32_t> kernelIndex;
    for (const std::string &feature : v.features)
      features.push_back(fbb.CreateString(feature));
    for (const std::string &kernel : v.kernels) {
      kernelIndex[kernel] = kernels.size();
      kernels.push_back(fbb.CreateString(kernel));
    }
    std::vector<Offset<fb::Program>> programs;
    auto layout = unsigned(llvm::find(layouts, v.layout) - layouts.begin());
    int64_t mostRows = 1;
    for (auto op : module.getOps<sched::ProgramOp>()) {
      programs.push_back(program(v, op, layout, kernelIndex));
      mostRows = std::max<int64_t>(mostRows, op.getMaxRows());
    }
    if (!v.cuda)
      return fb::CreateVariantDirect(fbb, v.target.c_str(), v.triple.c_str(), &features, section,
                                     &kernels, &programs, v.fast, fb::DeviceKind::Cpu, layout);
    fb::Launch pick = launchOf(v, v.cuda->pickKernel, mostRows);
    return fb::CreateVariantDirect(fbb, v.target.c_str(), v.triple.c_str(), &features, section,
                                   &kernels, &programs, v.fast, fb::DeviceKind::Cuda, layout,
                                   section + 1, v.cuda->computeCapability, v.cuda->counterBytes,
                                   kernelIndex.lookup(v.cuda->pickKernel), &pick);
  }

  const ArtifactContents &contents;
  mlir::ModuleOp module;
  FlatBufferBuilder fbb{1 << 20};
  /// By layout and name.
  llvm::DenseMap<std::pair<unsigned, mlir::StringAttr>, const PlacedWeight *> weightAt;
  std::vector<std::string> layouts;
};
} // namespace

std::vector<std::string> llmc::weightLayouts(const ArtifactContents &contents) {
  std::vector<std::string> layouts;
  for (const ArtifactVariant &variant : contents.variants)
    if (!llvm::is_contained(layouts, variant.layout))
      layouts.push_back(variant.layout);
  if (layouts.empty())
    layouts.push_back("panel16");
  return layouts;
}

std::string llmc::buildHeader(const ArtifactContents &contents,
                              llvm::ArrayRef<PlacedWeight> weights,
                              llvm::ArrayRef<PlacedSection> sections) {
  return HeaderBuilder(contents, weights).build(weights, sections);
}
