//===- KernelRunner.h - runs CUDA kernels in the emulator -------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test writes a module with kernels and programs of the sched dialect, gives
// the contents of what the dispatches bind, and compares what is there after a
// step with plain C++. Every step is run with all checks of the emulator, for
// several schedules and both orders of asynchronous copies; the bits have to be
// the same each time.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_CUDA_KERNELRUNNER_H
#define LLMC_TESTS_UNIT_CUDA_KERNELRUNNER_H

#include "compiler/codegen/cuda/CodeObject.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/ptx/emulator/Machine.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace llmc::cuda {

/// What a step is: see llmc_cuda_step_t.
struct Step {
  int32_t rows = 1, position = 0, outBegin = 0, outRows = 0;
  std::vector<int32_t> tokens = {};
};

/// Bytes by name: a symbol of a buffer or weight; "KV.key" and "KV.value" for the two sides of the
/// cache @KV; "logits", "logit_maxima" and "picks" for those of the step.
class Contents {
public:
  template <typename T> void set(const std::string &name, const std::vector<T> &values) {
    std::vector<uint8_t> &to = bytes[name];
    to.resize(values.size() * sizeof(T));
    memcpy(to.data(), values.data(), to.size());
    written[name].assign(to.size(), true);
  }
  /// `size` bytes without values.
  void reserve(const std::string &name, size_t size) {
    bytes[name].assign(size, 0xee);
    written[name].assign(size, false);
  }
  /// `count` values from index `first` on; the test fails where one was never written.
  template <typename T>
  std::vector<T> get(const std::string &name, size_t count, size_t first = 0) const {
    std::vector<T> values(count);
    copy(name, first * sizeof(T), values.data(), count * sizeof(T));
    return values;
  }

  std::map<std::string, std::vector<uint8_t>> bytes;
  /// Which of the bytes have a value.
  std::map<std::string, std::vector<bool>> written;

private:
  void copy(const std::string &name, size_t offset, void *to, size_t size) const;
};

class KernelRunner {
public:
  /// Compiles the kernels of `text`; the test fails where that fails. All forms of the n-th module
  /// of a test program are written to $LLMC_TEST_DUMP/n, if that is set.
  explicit KernelRunner(const std::string &text, const char *target = "sm90");

  /// Runs `program`; it has at least all contents that `contents` names, and those of all its
  /// buffers. With `pick` the pick kernel comes last. The test fails with the first error.
  Contents run(const std::string &program, const Step &step, const Contents &contents,
               bool pick = false);

  /// Registers, spills and stack of each kernel, from ptxas; empty where there is no ptxas.
  struct Resources {
    int registers = 0, spillBytes = 0, stackBytes = 0;
    int64_t sharedBytes = 0, threads = 0;
  };
  std::map<std::string, Resources> resources();

  const std::string &ptx() const { return object.ptx; }
  const CodeObject &codeObject() const { return object; }
  /// Of the last run.
  const ptx::Counters &counters() const { return lastCounters; }

private:
  Contents runOnce(sched::ProgramOp program, const Step &step, const Contents &contents, bool pick,
                   const ptx::Options &options);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  const Target *target;
  CodeObject object;
  ptx::Counters lastCounters;
};

/// Where element d of a head's key in `slot` lies (Kernels.h), in elements.
size_t keyIndex(bool f32, int headDim, int slot, int d);

/// `count` floats of a normal distribution.
std::vector<float> randomFloats(size_t count, uint64_t seed, float spread = 1);

/// Fails where a value is further from the expected one than `relative` of the largest.
void expectClose(const std::vector<float> &actual, const std::vector<float> &expected,
                 float relative, const char *what);
/// Fails where bits differ.
void expectSameBits(const std::vector<float> &actual, const std::vector<float> &expected,
                    const char *what);
/// On all targets: no kernel spills, has a stack or computes approximately, and two blocks of each
/// fit a multiprocessor.
void expectStaticLimits(const std::string &text);

} // namespace llmc::cuda

#endif // LLMC_TESTS_UNIT_CUDA_KERNELRUNNER_H
