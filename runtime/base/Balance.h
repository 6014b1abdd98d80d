//===- Balance.h - how work is divided among workers ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Workers take contiguous ranges of tiles, at first equal ones. Cores are not
// always equal: some are small, some are throttled or shared with another
// program. From the times that equal parts of the work take, each worker's share
// follows its speed. Shares stay as they are while speeds differ by less than
// what noise and the rounding to whole tiles make of them, so that equal cores
// keep equal shares.
//
// Shares change between steps only, and no result depends on them: tiles are
// independent of each other.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_BALANCE_H
#define LLMC_RUNTIME_BASE_BALANCE_H

#include <cstdint>
#include <vector>

namespace llmc::rt {

class Balance {
public:
  struct Range {
    int64_t begin, end;
  };

  explicit Balance(unsigned workers);

  /// The part of `count` tiles (at most 2^40) that `worker` computes.
  Range range(unsigned worker, int64_t count) const {
    return {count * bounds[worker] >> kBits, count * bounds[worker + 1] >> kBits};
  }
  bool isEven() const { return even; }
  /// Fewer tiles than this say little about speed.
  int64_t leastTiles() const { return int64_t(8) * (int64_t(bounds.size()) - 1); }

  /// Whether the step that begins is to be measured: one of a few, all `longStep`s.
  bool isDue(bool longStep) { return longStep || steps++ % kStepsPerMeasurement == 0; }
  /// During a measured step, on each worker: it has computed for `seconds` on work that was divided
  /// by range(), and that had at least leastTiles().
  void report(unsigned worker, double seconds) { busy[worker] = seconds; }
  /// After a measured step: takes what all workers have reported into account.
  void update();

private:
  static constexpr int kBits = 20;
  static constexpr uint32_t kStepsPerMeasurement = 8;
  double share(unsigned worker) const {
    return double(bounds[worker + 1] - bounds[worker]) / (1 << kBits);
  }
  void divideEvenly();

  std::vector<int64_t> bounds; ///< of workers' shares, in 2^-20 of all tiles
  std::vector<double> speeds;  ///< averages, the sum is 1
  std::vector<double> busy;    ///< seconds in the last measured step
  uint32_t steps = 0;
  bool even = true;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_BALANCE_H
