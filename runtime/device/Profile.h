//===- Profile.h - where the time of a program's steps goes -----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_PROFILE_H
#define LLMC_RUNTIME_DEVICE_PROFILE_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace llmc::fb {
struct Program;
} // namespace llmc::fb

namespace llmc::rt {

/// Sums over all steps of one program. The names are the artifact's and live as long as it does.
struct ProgramProfile {
  struct Dispatch {
    std::string_view op;
    int32_t layer;            ///< -1: outside the layers
    uint64_t weightBytes;     ///< that one call reads
    uint64_t calls = 0;       ///< steps in which it had something to do
    uint64_t nanoseconds = 0; ///< of all steps
  };

  explicit ProgramProfile(const fb::Program &program);

  std::string_view phase; ///< "prefill", "decode" or "verify"
  uint64_t steps = 0;
  std::vector<Dispatch> dispatches; ///< in the program's order
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_PROFILE_H
