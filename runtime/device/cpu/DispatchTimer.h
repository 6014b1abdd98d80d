//===- DispatchTimer.h - the time of each dispatch of a step ----*- C++ -*-===//
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

#ifndef LLMC_RUNTIME_DEVICE_CPU_DISPATCHTIMER_H
#define LLMC_RUNTIME_DEVICE_CPU_DISPATCHTIMER_H

#include "runtime/device/Profile.h"

#include <chrono>

namespace llmc::rt {

/// Charges the time of one step to its dispatches, on worker 0. The first is number `first` of the
/// program.
class DispatchTimer {
public:
  DispatchTimer(ProgramProfile &profile, size_t first) : profile(profile), current(first) {}
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
    if (current < profile.dispatches.size())
      profile.dispatches[current].nanoseconds += std::chrono::nanoseconds(now - last).count();
    last = now;
  }

  ProgramProfile &profile;
  size_t current;
  Clock::time_point last = Clock::now();
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_CPU_DISPATCHTIMER_H
