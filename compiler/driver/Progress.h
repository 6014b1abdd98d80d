//===- Progress.h - progress of long work on a terminal ---------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_PROGRESS_H
#define LLMC_COMPILER_DRIVER_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <mutex>

namespace llmc {

/// One line on stderr, rewritten in place: "packing weights [#####.....] 51%  12.3 s". Prints
/// nothing where stderr is no terminal. update() may be called from any thread.
class Progress {
public:
  explicit Progress(bool enabled);
  ~Progress() { finish(); }

  void begin(llvm::StringRef task);
  void update(uint64_t done, uint64_t total);
  /// Removes the line.
  void finish();

private:
  void draw(uint64_t done, uint64_t total);

  const bool enabled;
  std::mutex mutex;
  std::string task;
  bool drawn = false;
  std::chrono::steady_clock::time_point start, last;
};

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_PROGRESS_H
