//===- Cpu.h - what this processor can execute ------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_CPU_H
#define LLMC_RUNTIME_BASE_CPU_H

#include <bitset>
#include <span>
#include <string>
#include <string_view>

namespace llmc::rt {

/// A set of CPU features under their LLVM names ("avx2", "avx512vnni", "dotprod", ...). A feature
/// is in host() only if the operating system saves its registers too.
class CpuFeatures {
public:
  CpuFeatures() = default;
  /// The set that holds just `names`; unknown names are dropped.
  static CpuFeatures of(std::span<const std::string_view> names);
  /// What this machine has.
  static CpuFeatures host();
  /// The set without what the operating system does not let this process use. Linux gives the
  /// registers of AMX on request only: a set that has them asks, for all threads of the process.
  CpuFeatures permitted() const;

  /// False for names that this build does not know.
  bool has(std::string_view name) const;
  CpuFeatures operator|(const CpuFeatures &other) const;
  bool operator==(const CpuFeatures &other) const = default;
  /// The names, separated by spaces.
  std::string toString() const;

private:
  std::bitset<64> bits;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_CPU_H
