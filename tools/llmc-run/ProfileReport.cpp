//===- ProfileReport.cpp - a session's profile, for people and programs ---===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/ProfileReport.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace llmc;
using namespace llmc::rt;
using Json = nlohmann::ordered_json;

namespace {

struct OpTotal {
  std::string_view op;
  uint64_t calls = 0, nanoseconds = 0, bytes = 0;
};

/// The sums over all layers, the longest first.
std::vector<OpTotal> totalsByOp(const ProgramProfile &profile) {
  std::vector<OpTotal> totals;
  for (const ProgramProfile::Dispatch &dispatch : profile.dispatches) {
    auto found = std::find_if(totals.begin(), totals.end(),
                              [&](const OpTotal &total) { return total.op == dispatch.op; });
    if (found == totals.end())
      found = totals.insert(found, {dispatch.op});
    found->calls += dispatch.calls;
    found->nanoseconds += dispatch.nanoseconds;
    found->bytes += dispatch.calls * dispatch.weightBytes;
  }
  std::sort(totals.begin(), totals.end(),
            [](const OpTotal &a, const OpTotal &b) { return a.nanoseconds > b.nanoseconds; });
  return totals;
}

uint64_t wallTime(const ProgramProfile &profile) {
  uint64_t sum = 0;
  for (const ProgramProfile::Dispatch &dispatch : profile.dispatches)
    sum += dispatch.nanoseconds;
  return sum;
}

void printTable(const ProgramProfile &profile) {
  constexpr double millis = 1e-6;
  const double wall = std::max<double>(1, wallTime(profile));
  std::fprintf(stderr, "%s: %llu steps, %.2f ms\n", std::string(profile.phase).c_str(),
               static_cast<unsigned long long>(profile.steps), wall * millis);
  std::fprintf(stderr, "  %-20s %8s %10s %7s %8s\n", "op", "calls", "ms", "share", "GB/s");
  for (const OpTotal &total : totalsByOp(profile))
    std::fprintf(stderr, "  %-20.*s %8llu %10.2f %6.1f%% %8.2f\n",
                 static_cast<int>(total.op.size()), total.op.data(),
                 static_cast<unsigned long long>(total.calls), total.nanoseconds * millis,
                 100 * total.nanoseconds / wall,
                 double(total.bytes) / std::max<double>(1, total.nanoseconds));
}

Json describe(const Model &model, unsigned threads,
              std::span<const ProgramProfile *const> profiles) {
  Json json = {{"model", model.artifact().path()}, {"variant", model.target()},
               {"device", model.device()},         {"threads", threads},
               {"phases", Json::array()},          {"dispatches", Json::array()}};
  for (const ProgramProfile *profile : profiles) {
    if (profile->steps == 0)
      continue;
    json["phases"].push_back(
        {{"phase", profile->phase}, {"steps", profile->steps}, {"ns", wallTime(*profile)}});
    for (const ProgramProfile::Dispatch &dispatch : profile->dispatches)
      json["dispatches"].push_back({{"phase", profile->phase},
                                    {"layer", dispatch.layer},
                                    {"op", dispatch.op},
                                    {"calls", dispatch.calls},
                                    {"ns", dispatch.nanoseconds},
                                    {"bytes", dispatch.calls * dispatch.weightBytes}});
  }
  return json;
}

} // namespace

Status llmc::run::reportProfile(const Model &model, unsigned threads,
                                std::span<const ProgramProfile *const> profiles,
                                const std::string &path) {
  for (const ProgramProfile *profile : profiles)
    if (profile->steps != 0)
      printTable(*profile);
  const std::string text =
      describe(model, threads, profiles).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::FILE *file = std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file)
    written &= std::fclose(file) == 0;
  return written ? Status() : notFound("cannot write " + path + ": " + std::strerror(errno));
}
