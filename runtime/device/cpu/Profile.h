//===- Profile.h - where the time of a program's steps goes -----*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dispatch's time lasts from its start on worker 0 to the start of the next
// one there. It thus includes waiting for slower workers before that next one,
// and the times of all dispatches add up to the wall time of the steps; waking
// the workers counts for the first dispatch, their last meeting for the last.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_CPU_PROFILE_H
#define LLMC_RUNTIME_DEVICE_CPU_PROFILE_H

#include <chrono>
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

/// Charges the time of one step to its dispatches, on worker 0.
class DispatchTimer {
public:
  explicit DispatchTimer(ProgramProfile &profile) : profile(profile) {}
  /// The dispatch before this one ends here.
  void start(size_t dispatch) {
    lap();
    current = dispatch;
  }
  void finish() { lap(); }

private:
  using Clock = std::chrono::steady_clock;
  void lap() {
    const auto now = Clock::now();
    profile.dispatches[current].nanoseconds += std::chrono::nanoseconds(now - last).count();
    last = now;
  }

  ProgramProfile &profile;
  size_t current = 0;
  Clock::time_point last = Clock::now();
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_CPU_PROFILE_H
