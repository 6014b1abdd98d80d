//===- Weights.cpp - weights in a device's memory -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Weights.h"

#include "runtime/schema/llmc_generated.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::rt;
using namespace llmc::rt::cuda;

namespace {

/// Of every range's address; a section's own offsets are multiples of less.
constexpr uint64_t kAlignment = 256;
constexpr uint64_t kPiece = uint64_t(64) << 20;

constexpr uint64_t alignUp(uint64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename Item> bool startsBefore(uint64_t offset, const Item &item) {
  return offset < item.offset;
}

} // namespace

StatusOr<Weights> Weights::upload(const std::shared_ptr<const Device> &device,
                                  std::span<const uint8_t> section,
                                  std::span<const WeightRange> ranges) {
  uint64_t total = 0;
  Weights weights;
  for (const WeightRange &range : ranges) {
    weights.placed.push_back({range, total});
    total = alignUp(total + range.size);
  }
  LLMC_ASSIGN_OR_RETURN(weights.memory, allocate(device, total, "weights"));
  const Current current(*device);
  for (Placed &part : weights.placed) {
    part.address += weights.memory.get();
    for (uint64_t done = 0; done < part.range.size; done += kPiece)
      LLMC_CUDA_RETURN_IF_ERROR(device->driver(),
                                cuMemcpyHtoD(part.address + done,
                                             section.data() + part.range.offset + done,
                                             std::min(kPiece, part.range.size - done)),
                                "copying weights to " + device->name());
  }
  // A copy returns when its source may change; sessions' streams do not wait for it by themselves.
  LLMC_CUDA_RETURN_IF_ERROR(device->driver(), cuStreamSynchronize(nullptr),
                            "copying weights to " + device->name());
  return weights;
}

CUdeviceptr Weights::address(uint64_t offset) const {
  auto after = std::upper_bound(
      placed.begin(), placed.end(), offset,
      [](uint64_t offset, const Placed &part) { return offset < part.range.offset; });
  if (after == placed.begin())
    return 0;
  const Placed &part = *std::prev(after);
  const uint64_t within = offset - part.range.offset;
  return within < part.range.size ? part.address + within : 0;
}

StatusOr<std::vector<WeightRange>>
llmc::rt::cuda::neededWeights(const fb::Artifact &artifact, uint32_t section,
                              const PerPhase<const fb::Program *> &programs,
                              const PerPhase<size_t> &end) {
  std::vector<WeightRange> all;
  if (artifact.weights())
    for (const fb::Weight *weight : *artifact.weights())
      if (weight->section() == section)
        all.push_back({weight->offset(), weight->size()});
  std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.offset < b.offset; });
  std::vector<bool> needed(all.size());
  for (size_t phase = 0; phase < kPhases; ++phase)
    for (size_t i = 0; programs[Phase(phase)] && i < end[Phase(phase)]; ++i) {
      const fb::Dispatch &dispatch =
          *programs[Phase(phase)]->dispatches()->Get(static_cast<uint32_t>(i));
      if (!dispatch.bindings())
        continue;
      for (const fb::Binding *binding : *dispatch.bindings()) {
        if (binding->kind() != fb::BindingKind::Weight)
          continue;
        auto after =
            std::upper_bound(all.begin(), all.end(), binding->offset(), startsBefore<WeightRange>);
        if (after == all.begin() ||
            binding->offset() - std::prev(after)->offset >= std::prev(after)->size)
          return corrupt("a dispatch reads weights that are not listed");
        needed[std::prev(after) - all.begin()] = true;
      }
    }
  // Weights that touch become one range.
  std::vector<WeightRange> ranges;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!needed[i])
      continue;
    if (!ranges.empty() && all[i].offset <= ranges.back().offset + ranges.back().size)
      ranges.back().size =
          std::max(ranges.back().size, all[i].offset + all[i].size - ranges.back().offset);
    else
      ranges.push_back(all[i]);
  }
  return ranges;
}
