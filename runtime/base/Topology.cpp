//===- Topology.cpp - how many cores this process may use -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Topology.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sched.h>

using namespace llmc::rt;

namespace {

/// The first 64 KiB of a small text file, empty where it cannot be read.
std::string readSmallFile(const std::string &path) {
  std::string text;
  if (FILE *file = std::fopen(path.c_str(), "re")) {
    text.resize(1 << 16);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
  }
  return text;
}

/// Cuts the text up to `separator` (or the end) off the front of `rest`.
std::string_view cutField(std::string_view &rest, char separator) {
  size_t end = rest.find(separator);
  std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return field;
}

std::optional<long> parseNumber(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  long value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<double> coresOf(std::optional<long> quota, std::optional<long> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0)
    return std::nullopt;
  return double(*quota) / double(*period);
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

std::optional<double> readQuotaV2(const std::string &folder) {
  return parseCpuMax(readSmallFile(folder + "/cpu.max"));
}

std::optional<double> readQuotaV1(const std::string &folder) {
  return coresOf(parseNumber(readSmallFile(folder + "/cpu.cfs_quota_us")),
                 parseNumber(readSmallFile(folder + "/cpu.cfs_period_us")));
}

/// The smallest quota in `mount`/`group` and the folders above it. Inside a container the group's
/// path may be the host's while the mount shows only the container's part; then the mount itself
/// still counts.
std::optional<double> smallestQuota(const std::string &mount, std::string_view group,
                                    std::optional<double> (*read)(const std::string &)) {
  std::optional<double> quota = read(mount);
  while (group.size() > 1) {
    quota = smaller(quota, read(mount + std::string(group)));
    group = group.substr(0, group.rfind('/'));
  }
  return quota;
}

bool listHas(std::string_view list, std::string_view name) {
  while (!list.empty())
    if (cutField(list, ',') == name)
      return true;
  return false;
}

} // namespace

std::optional<double> llmc::rt::parseCpuMax(std::string_view text) {
  std::string_view quota = cutField(text, ' ');
  return coresOf(parseNumber(quota), parseNumber(text));
}

std::vector<unsigned> llmc::rt::parseCpuList(std::string_view text) {
  constexpr long maxCpu = 1 << 16;
  std::vector<unsigned> cpus;
  while (!text.empty()) {
    std::string_view range = cutField(text, ',');
    std::string_view rest = range;
    std::optional<long> first = parseNumber(cutField(rest, '-'));
    std::optional<long> last = rest.empty() ? first : parseNumber(rest);
    if (!first || !last || *first < 0 || *last > maxCpu)
      continue;
    for (long cpu = *first; cpu <= *last; ++cpu)
      cpus.push_back(static_cast<unsigned>(cpu));
  }
  return cpus;
}

std::optional<double> llmc::rt::cgroupCpuQuota(const std::string &root) {
  // Lines of /proc/self/cgroup: "hierarchy:controllers:path"; version 2 has no controllers.
  std::string groups = readSmallFile(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  std::optional<double> quota;
  std::string_view rest = groups;
  while (!rest.empty()) {
    std::string_view path = cutField(rest, '\n');
    cutField(path, ':');
    std::string_view controllers = cutField(path, ':');
    if (controllers.empty())
      quota = smaller(quota, smallestQuota(mount, path, readQuotaV2));
    else if (listHas(controllers, "cpu"))
      quota = smaller(quota, smallestQuota(mount + "/cpu", path, readQuotaV1));
  }
  return quota;
}

std::vector<unsigned> llmc::rt::affinityCpus() {
  std::vector<unsigned> cpus;
  // The kernel refuses a mask that is too small for the machine.
  for (size_t count = 1024; count <= (1u << 20); count *= 2) {
    cpu_set_t *set = CPU_ALLOC(count);
    size_t bytes = CPU_ALLOC_SIZE(count);
    bool known = set && sched_getaffinity(0, bytes, set) == 0;
    for (size_t cpu = 0; known && cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set))
        cpus.push_back(static_cast<unsigned>(cpu));
    CPU_FREE(set);
    if (known)
      break;
  }
  return cpus;
}

unsigned llmc::rt::physicalCores(const std::vector<unsigned> &cpus, const std::string &root) {
  unsigned cores = 0;
  for (unsigned cpu : cpus) {
    std::vector<unsigned> siblings =
        parseCpuList(readSmallFile(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                   "/topology/thread_siblings_list"));
    // A core is counted at its first hyper-thread that is in the mask.
    bool counted = std::any_of(siblings.begin(), siblings.end(), [&](unsigned sibling) {
      return sibling < cpu && std::find(cpus.begin(), cpus.end(), sibling) != cpus.end();
    });
    cores += !counted;
  }
  return cores;
}

unsigned llmc::rt::usableCores() {
  unsigned cores = physicalCores(affinityCpus());
  if (std::optional<double> quota = cgroupCpuQuota(); quota && *quota < cores)
    cores = static_cast<unsigned>(*quota);
  return std::max(cores, 1u);
}
