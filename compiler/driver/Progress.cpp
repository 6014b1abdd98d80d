//===- Progress.cpp - progress of long work on a terminal -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Progress.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>

using namespace llmc;

static constexpr unsigned kBarWidth = 30;
static constexpr auto kInterval = std::chrono::milliseconds(100);

Progress::Progress(bool enabled) : enabled(enabled && isatty(STDERR_FILENO)) {}

void Progress::begin(llvm::StringRef name) {
  std::lock_guard lock(mutex);
  task = name.str();
  start = last = std::chrono::steady_clock::now();
  draw(0, 0);
}

void Progress::update(uint64_t done, uint64_t total) {
  if (!enabled)
    return;
  std::lock_guard lock(mutex);
  auto now = std::chrono::steady_clock::now();
  if (now - last < kInterval)
    return;
  last = now;
  draw(done, total);
}

void Progress::draw(uint64_t done, uint64_t total) {
  if (!enabled)
    return;
  drawn = true;
  llvm::errs() << "\r\033[K" << task;
  if (total) {
    uint64_t percent = std::min<uint64_t>(100, done * 100 / total);
    unsigned filled = percent * kBarWidth / 100;
    llvm::errs() << " [" << std::string(filled, '#') << std::string(kBarWidth - filled, '.') << "] "
                 << percent << "%";
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  llvm::errs() << llvm::format("  %.1f s", elapsed.count());
  llvm::errs().flush();
}

void Progress::finish() {
  std::lock_guard lock(mutex);
  if (drawn)
    llvm::errs() << "\r\033[K";
  drawn = false;
}
