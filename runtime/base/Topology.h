//===- Topology.h - how many cores this process may use ---------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two limits count: the affinity mask (taskset, cpusets) and the CPU quota of
// the control groups, v2 (cpu.max) or v1 (cpu.cfs_quota_us). The files are read
// below a root folder so that tests can lay out their own.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_TOPOLOGY_H
#define LLMC_RUNTIME_BASE_TOPOLOGY_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt {

/// Cores that a cgroup v2 `cpu.max` ("200000 100000", "max 100000") grants; nothing where it sets
/// no limit or is malformed.
std::optional<double> parseCpuMax(std::string_view text);

/// The CPUs of a kernel list such as "0-3,8,10-11".
std::vector<unsigned> parseCpuList(std::string_view text);

/// The smallest quota on the way from this process' control group to the top, in cores.
std::optional<double> cgroupCpuQuota(const std::string &root = "");

/// The CPUs of this process' affinity mask.
std::vector<unsigned> affinityCpus();

/// Distinct physical cores among `cpus`: hyper-threads of one core count once.
unsigned physicalCores(const std::vector<unsigned> &cpus, const std::string &root = "");

/// The number of workers to use by default: physical cores in the mask, at most the whole cores of
/// the quota, at least 1.
unsigned usableCores();

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_TOPOLOGY_H
