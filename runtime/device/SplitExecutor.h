//===- SplitExecutor.h - first layers on one device, the rest on another *- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_SPLITEXECUTOR_H
#define LLMC_RUNTIME_DEVICE_SPLITEXECUTOR_H

#include "runtime/device/Executor.h"

#include <memory>

namespace llmc::rt {

/// Runs a step on the device of the first layers, which leaves what is live where the device of the
/// others goes on.
class SplitExecutor final : public Executor {
public:
  SplitExecutor(std::unique_ptr<Executor> front, std::unique_ptr<Executor> back)
      : back(std::move(back)), front(std::move(front)) {}

  Status run(Phase phase, const StepInput &input) override {
    LLMC_RETURN_IF_ERROR(front->run(phase, input));
    return back->run(phase, input);
  }
  const float *logits(uint32_t first, uint32_t count) override {
    return back->logits(first, count);
  }
  const float *maxima(uint32_t row) override { return back->maxima(row); }
  std::span<const int32_t> picks() const override { return back->picks(); }
  uint64_t weightBytes(Phase phase) const override {
    return front->weightBytes(phase) + back->weightBytes(phase);
  }

private:
  // The front one writes to the memory of the back one: it goes first.
  std::unique_ptr<Executor> back, front;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_SPLITEXECUTOR_H
