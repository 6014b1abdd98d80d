//===- Cubin.h - the frame of a cubin ---------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CUDA_CUBIN_H
#define LLMC_RUNTIME_DEVICE_CUDA_CUBIN_H

#include <cstdint>
#include <span>

namespace llmc::rt::cuda {

/// Whether `image` is an ELF file, all of whose parts lie within it. The driver is told no size: it
/// believes what the file says of itself.
bool isWholeElf(std::span<const uint8_t> image);

} // namespace llmc::rt::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_CUBIN_H
