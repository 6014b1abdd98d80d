//===- Executor.h - computes the steps of one sequence ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a session asks of a device. An executor owns the memory that steps need
// there: the arena of intermediate values, the KV area, the logits. All of it is
// reserved when the executor is made. One virtual call per step; what happens
// within is the device's own.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_DEVICE_EXECUTOR_H
#define LLMC_RUNTIME_DEVICE_EXECUTOR_H

#include "llmc/kernel_abi.h"
#include "runtime/base/Status.h"
#include "runtime/device/Profile.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace llmc::rt {

class StepObserver;

/// Which of its programs computes a step.
enum class Phase : uint8_t { Prefill, Decode, Verify };
inline constexpr size_t kPhases = 3;

/// One of something for each phase.
template <typename T> struct PerPhase : std::array<T, kPhases> {
  T &operator[](Phase phase) { return this->data()[static_cast<size_t>(phase)]; }
  const T &operator[](Phase phase) const { return this->data()[static_cast<size_t>(phase)]; }
};

/// What one step computes.
struct StepInput {
  std::span<const int32_t> tokens;
  uint32_t position;          ///< of the first token
  uint32_t outBegin, outRows; ///< the rows whose logits are wanted
};

/// The number of llmc_step_t::logit_maxima of a row.
constexpr size_t maximaPerRow(size_t vocabSize) {
  return (vocabSize + LLMC_LOGIT_BLOCK - 1) / LLMC_LOGIT_BLOCK;
}

struct ExecutorOptions {
  uint32_t vocabSize = 0;
  uint32_t logitsRows = 0;                  ///< the most rows of a step whose logits are wanted
  PerPhase<ProgramProfile *> profiles = {}; ///< where steps are measured; null: they are not
  StepObserver *promptObserver = nullptr;   ///< of prefill steps, on the CPU; may be null
};

class Executor {
public:
  virtual ~Executor() = default;

  /// Computes a step. After an error the executor is of no more use.
  virtual Status run(Phase phase, const StepInput &input) = 0;

  /// The logits [count, vocab_size] of wanted rows of the last step, from `first` on, valid until
  /// the next step.
  virtual const float *logits(uint32_t first, uint32_t count) = 0;
  /// The greatest of each block of them, of a row whose logits have been asked for.
  virtual const float *maxima(uint32_t row) = 0;
  /// The index of each wanted row's greatest logit (llmc_cuda_step_t::picks), where the device
  /// finds it out; else empty.
  virtual std::span<const int32_t> picks() const { return {}; }

  /// Bytes of weights that a step reads.
  virtual uint64_t weightBytes(Phase phase) const = 0;
  /// Bytes per second that the device's memory gives at best, as its data sheet says; 0: not known.
  virtual double memoryBandwidth() const { return 0; }
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_DEVICE_EXECUTOR_H
