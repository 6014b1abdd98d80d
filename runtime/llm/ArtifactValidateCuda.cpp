//===- ArtifactValidateCuda.cpp - the border for CUDA variants ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/ArtifactValidate.h"

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::rt::validate;

namespace {

// What CUDA allows at most; a device may allow less.
constexpr uint32_t kMaxGridX = 0x7fffffff;
constexpr uint32_t kMaxGridYZ = 65535;
constexpr uint32_t kMaxBlock = 1024;
constexpr uint32_t kMaxShared = 256u << 10;
constexpr uint32_t kMaxBindings = 500; // 4 KiB of parameters
constexpr uint32_t kMaxCounters = 64u << 20;

Status checkLaunch(const fb::Launch *launch, const std::string &where) {
  LLMC_RETURN_IF_ERROR(require(launch, where, "has no launch"));
  LLMC_RETURN_IF_ERROR(require(between(1, launch->grid_x(), kMaxGridX) &&
                                   between(1, launch->grid_y(), kMaxGridYZ) &&
                                   between(1, launch->grid_z(), kMaxGridYZ),
                               where, "has an impossible grid"));
  LLMC_RETURN_IF_ERROR(
      require(between(1, launch->block(), kMaxBlock), where, "has an impossible block"));
  return require(launch->shared_bytes() <= kMaxShared, where, "wants too much shared memory");
}

Status checkProgram(const fb::Program &program, const std::string &where) {
  for (uint32_t i = 0; i < program.dispatches()->size(); ++i) {
    const fb::Dispatch &dispatch = *program.dispatches()->Get(i);
    const std::string place = where + " " + at("dispatches", i);
    LLMC_RETURN_IF_ERROR(checkLaunch(dispatch.launch(), place));
    LLMC_RETURN_IF_ERROR(
        require(!dispatch.bindings() || dispatch.bindings()->size() <= kMaxBindings, place,
                "has too many bindings"));
  }
  return {};
}

} // namespace

Status llmc::rt::validate::checkCudaVariant(const fb::Variant &variant, const fb::Artifact &header,
                                            const std::string &where) {
  LLMC_RETURN_IF_ERROR(require(header.model()->kind() == fb::ModelKind::Language, where,
                               "is for a CUDA device, where language models run only"));
  LLMC_RETURN_IF_ERROR(
      checkSectionIndex(header, variant.code_section(), fb::SectionKind::Cubin, where));
  LLMC_RETURN_IF_ERROR(
      checkSectionIndex(header, variant.ptx_section(), fb::SectionKind::Ptx, where));
  LLMC_RETURN_IF_ERROR(require(header.sections()->Get(variant.code_section())->size() != 0 ||
                                   header.sections()->Get(variant.ptx_section())->size() != 0,
                               where, "has neither a cubin nor PTX"));
  LLMC_RETURN_IF_ERROR(require(between(50, variant.compute_capability(), 999), where,
                               "has an impossible compute capability"));
  LLMC_RETURN_IF_ERROR(
      require(variant.counter_bytes() <= kMaxCounters && variant.counter_bytes() % 4 == 0, where,
              "has impossible counters"));
  LLMC_RETURN_IF_ERROR(require(variant.pick_kernel() < variant.kernels()->size(), where,
                               "names a missing pick kernel"));
  LLMC_RETURN_IF_ERROR(checkLaunch(variant.pick_launch(), where + " pick"));
  for (const fb::Program *program : *variant.programs())
    LLMC_RETURN_IF_ERROR(
        checkProgram(*program, where + " program '" + program->name()->str() + "'"));
  return {};
}

Status llmc::rt::validate::checkBoundaries(const fb::Program &program, const std::string &where) {
  if (!program.boundaries())
    return {};
  for (uint32_t i = 0; i < program.boundaries()->size(); ++i) {
    const fb::Boundary &boundary = *program.boundaries()->Get(i);
    const std::string place = where + " " + at("boundaries", i);
    LLMC_RETURN_IF_ERROR(
        require(boundary.dispatch() != 0 && boundary.dispatch() < program.dispatches()->size(),
                place, "is not between dispatches"));
    LLMC_RETURN_IF_ERROR(require(isAligned(boundary.live(), alignof(fb::ArenaRange)), place,
                                 "has misaligned ranges"));
    if (boundary.live())
      for (const fb::ArenaRange *range : *boundary.live())
        LLMC_RETURN_IF_ERROR(require(contains(program.arena_size(), range->offset(), range->size()),
                                     place, "reaches past the arena"));
  }
  return {};
}
