//===- Code.h - which device runs a variant, and its kernels ----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_CODE_H
#define LLMC_RUNTIME_DEVICE_CUDA_CODE_H

#include "runtime/device/cuda/Device.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc::fb {
struct Launch;
struct Variant;
} // namespace llmc::fb

namespace llmc::rt::cuda {

/// One CUDA variant of an artifact, validated.
struct VariantCode {
  const fb::Variant *variant = nullptr;
  std::span<const uint8_t> cubin, ptx; ///< either may be empty
};

/// Its kernels, loaded on a device.
class Code {
public:
  Code() = default;
  /// Loads the cubin where the device takes it, else compiles the PTX.
  static StatusOr<Code> load(std::shared_ptr<const Device> device, const VariantCode &code);

  const std::shared_ptr<const Device> &device() const { return owner; }
  CUfunction kernel(uint32_t index) const { return functions[index]; }
  /// Whether a kernel may be launched while the one before it still runs.
  bool overlaps() const { return overlap; }

private:
  Status permitShared(const fb::Variant &variant);

  std::shared_ptr<const Device> owner;
  Module module;
  std::vector<CUfunction> functions; ///< by index into Variant.kernels
  bool overlap = false;
};

/// A device and the code that was loaded on it.
struct Placement {
  Code code;
  const fb::Variant *variant = nullptr;
};

/// Loads the best of `variants` on device `ordinal`, or on the first that can run one (-1). The
/// error says what each needs and what there is.
StatusOr<Placement> place(std::span<const VariantCode> variants, int ordinal);

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_CODE_H
