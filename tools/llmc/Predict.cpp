//===- Predict.cpp - llmc report: what a token is expected to take on a GPU ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes come from the artifact's dispatches, registers from its cubin, counts of
// instructions from a report of the emulator (tests/ptx); the rest is a model
// (compiler/analysis/GpuModel.h).
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Cubin.h"
#include "compiler/analysis/GpuModel.h"
#include "runtime/llm/Artifact.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Report.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>
#include <memory>

using namespace llmc;
using namespace llmc::tool;
using rt::Artifact;

namespace {
struct Arguments {
  std::string path, target, gpu, counters;
  uint32_t position = 0;
  double launchUs = -1;
  bool json = false;
};

/// Equal launches of one kernel in the program.
struct Launches {
  std::string kernel, op;
  KernelWork work;
  uint64_t count = 0, weightBytes = 0, kvBytes = 0;
};
} // namespace

/// What the host does between two steps, in microseconds: it launches the graph, waits and reads
/// the token.
static constexpr double kStepUs = 10;

static llvm::Expected<const fb::Variant *> findVariant(const Artifact &artifact,
                                                       llvm::StringRef target) {
  std::vector<std::string> there;
  for (const fb::Variant *variant : *artifact.header().variants()) {
    if (variant->device() != fb::DeviceKind::Cuda)
      continue;
    there.push_back(variant->target()->str());
    if (target.empty() || target == there.back())
      return variant;
  }
  if (there.empty())
    return makeError(artifact.path() + ": has no code for a GPU; compile with --target sm90");
  return makeError(artifact.path() + ": has no code for '" + target +
                   "'; there is: " + llvm::join(there, ", "));
}

static llvm::Expected<const Gpu *> findGpu(llvm::StringRef name, const fb::Variant &variant) {
  if (name.empty()) {
    for (const Gpu &gpu : llvm::reverse(gpus()))
      if (gpu.capability >= variant.compute_capability())
        return &gpu;
    return makeError("no GPU is known that runs code for '" + variant.target()->str() + "'");
  }
  const Gpu *gpu = lookupGpu(name);
  std::vector<std::string> names;
  for (const Gpu &known : gpus())
    names.push_back(known.name.str());
  if (!gpu)
    return makeError("--gpu " + name + ": known are " + llvm::join(names, ", "));
  if (gpu->capability < variant.compute_capability())
    return makeError("--gpu " + name + ": does not run code for '" + variant.target()->str() + "'");
  return gpu;
}

/// Instructions of a launch, over all lanes, by kernel.
static llvm::Expected<llvm::StringMap<double>> readCounters(const std::string &path) {
  llvm::StringMap<double> perLaunch;
  if (path.empty())
    return perLaunch;
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Json report = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || !report.contains("kernels") || !report["kernels"].is_object())
    return makeError(path + ": is no report of the emulator (see tests/ptx/README.md)");
  for (const auto &[kernel, counts] : report["kernels"].items()) {
    auto number = [&, &counts = counts](const char *key) {
      return counts.is_object() && counts.contains(key) && counts[key].is_number()
                 ? counts[key].get<double>()
                 : 0.0;
    };
    if (number("launches") > 0)
      perLaunch[kernel] = number("lane_instructions") / number("launches");
  }
  return perLaunch;
}

/// Positions that a token at `position` sees in a layer.
static uint64_t visible(uint32_t position, uint32_t window) {
  const uint64_t all = uint64_t(position) + 1;
  return window ? std::min<uint64_t>(all, window) : all;
}

static uint64_t kvBytes(const fb::KvPlan &plan, int layer, uint32_t position) {
  for (const fb::KvLayer *kv : *plan.layers())
    if (int(kv->layer()) == layer) {
      const uint64_t width = kv->encoding()->string_view() == "f16" ? 2 : 4;
      return visible(position, kv->window()) * kv->heads() * kv->head_dim() * width * 2;
    }
  return 0;
}

/// The launches of a decode step, in their order; equal ones are together.
static std::vector<Launches> launchesOf(const Artifact &artifact, const fb::Variant &variant,
                                        const fb::Program &program, uint32_t position) {
  std::vector<Launches> all;
  const auto launch = [&](uint32_t kernel, const std::string &op, const fb::Launch &how,
                          uint64_t weights, uint64_t kv, double busy) {
    const std::string name = variant.kernels()->GetAsString(kernel)->str();
    for (Launches &known : all)
      if (known.kernel == name && known.op == op && known.weightBytes == weights &&
          known.kvBytes == kv) {
        ++known.count;
        return;
      }
    Launches &entry = all.emplace_back();
    entry.count = 1;
    entry.kernel = name;
    entry.op = op;
    entry.weightBytes = weights;
    entry.kvBytes = kv;
    entry.work.bytes = double(weights + kv);
    const double blocks = double(how.grid_x()) * how.grid_y() * how.grid_z();
    entry.work.blocks = int64_t(std::clamp(std::ceil(blocks * busy), 1.0, 1e12));
    entry.work.threads = std::max<int64_t>(32, how.block());
    entry.work.sharedBytes = how.shared_bytes();
  };
  for (const fb::Dispatch *dispatch : *program.dispatches()) {
    const fb::Tiles &tiles = *dispatch->tiles();
    uint64_t kv = 0;
    double busy = 1;
    if (tiles.kv_chunk()) {
      kv = kvBytes(*artifact.header().kv(), dispatch->layer(), position);
      // The grid has blocks for all chunks that the cache has room for; those with keys have work.
      const double chunks =
          double(llvm::divideCeil(visible(position, tiles.window()), tiles.kv_chunk()));
      busy = std::min(1.0, chunks / std::max<double>(1, dispatch->launch()->grid_y()));
    }
    launch(dispatch->kernel(), dispatch->op() ? dispatch->op()->str() : "", *dispatch->launch(),
           dispatch->weight_bytes(), kv, busy);
  }
  // Its grid is for the most rows of all programs.
  const fb::Launch &pick = *variant.pick_launch();
  launch(variant.pick_kernel(), "pick", pick, 0, 0,
         1 / std::max(1.0, double(pick.grid_x()) * pick.grid_y() * pick.grid_z()));
  return all;
}

static Json gpuFacts(const Gpu &gpu) {
  return {{"name", gpu.title},
          {"compute_capability", gpu.capability},
          {"multiprocessors", gpu.multiprocessors},
          {"clock_ghz", gpu.clockGHz},
          {"memory_gb_s", gpu.memoryGBs},
          {"launch_us", gpu.launchUs},
          {"step_us", kStepUs}};
}

static double rounded(double value, double digits) { return std::round(value * digits) / digits; }

static llvm::Expected<Json> predict(const Arguments &arguments) {
  auto opened = Artifact::open(arguments.path);
  if (!opened.ok())
    return makeError(opened.status());
  const Artifact &artifact = opened.value();
  auto variant = findVariant(artifact, arguments.target);
  if (!variant)
    return variant.takeError();
  auto known = findGpu(arguments.gpu, **variant);
  if (!known)
    return known.takeError();
  Gpu gpu = **known;
  if (arguments.launchUs >= 0)
    gpu.launchUs = arguments.launchUs;
  const fb::Program *program = rt::findProgram(**variant, rt::kDecodeProgram);
  if (!program)
    return makeError(arguments.path + ": generates no tokens, so there is no step to predict");
  const uint32_t context = artifact.header().model()->context_length();
  if (arguments.position >= context)
    return makeError("--position " + llvm::Twine(arguments.position) + ": the context of " +
                     arguments.path + " has " + llvm::Twine(context) + " positions");
  auto counted = readCounters(arguments.counters);
  if (!counted)
    return counted.takeError();
  llvm::StringMap<CubinKernel> used;
  const std::span<const uint8_t> cubin = artifact.section((*variant)->code_section());
  if (!cubin.empty()) {
    auto read = readCubin({reinterpret_cast<const char *>(cubin.data()), cubin.size()});
    if (!read)
      return makeError(arguments.path + ": " + llvm::toString(read.takeError()));
    used = std::move(*read);
  }

  Json rows = Json::array();
  double execution = 0, launches = 0, instructions = 0;
  uint64_t weights = 0, kv = 0, count = 0;
  bool complete = true;
  for (Launches &entry : launchesOf(artifact, **variant, *program, arguments.position)) {
    const CubinKernel resources = used.lookup(entry.kernel);
    entry.work.registers = resources.registers;
    entry.work.laneInstructions = counted->lookup(entry.kernel);
    complete &= counted->count(entry.kernel) == 1;
    const KernelTime time = predictKernel(gpu, entry.work);
    const double n = double(entry.count);
    execution += n * time.execution();
    launches += n * time.launch;
    instructions += n * entry.work.laneInstructions;
    weights += entry.count * entry.weightBytes;
    kv += entry.count * entry.kvBytes;
    count += entry.count;
    rows.push_back({{"op", entry.op},
                    {"kernel", entry.kernel},
                    {"count", entry.count},
                    {"bytes", entry.weightBytes + entry.kvBytes},
                    {"instructions", uint64_t(entry.work.laneInstructions)},
                    {"blocks", entry.work.blocks},
                    {"threads", entry.work.threads},
                    {"registers", resources.registers},
                    {"blocks_per_sm", time.residentBlocks},
                    {"memory_us", rounded(time.memory, 100)},
                    {"issue_us", rounded(time.issue, 100)},
                    {"latency_us", time.latency},
                    {"bound", time.bound()},
                    {"launch_us", time.launch},
                    {"all_us", rounded(n * time.total(), 10)}});
  }
  const double step = execution + launches + kStepUs;
  const double limit = double(weights + kv) / (gpu.memoryGBs * 1e3);
  return Json{{"file", artifact.path()},
              {"target", (*variant)->target()->str()},
              {"program", program->name()->str()},
              {"position", arguments.position},
              {"gpu", gpuFacts(gpu)},
              {"token",
               {{"launches", count},
                {"weight_bytes", weights},
                {"kv_bytes", kv},
                {"instructions", uint64_t(instructions)},
                {"all_counted", complete},
                {"execution_us", rounded(execution, 10)},
                {"launch_us", rounded(launches, 10)},
                {"step_us", kStepUs},
                {"all_us", rounded(step, 10)},
                {"memory_alone_us", rounded(limit, 10)},
                {"percent_of_bandwidth", rounded(100 * limit / step, 10)},
                {"tokens_per_second", rounded(1e6 / step, 10)}}},
              {"kernels", std::move(rows)}};
}

void llmc::tool::addReport(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command =
      app.add_subcommand("report", "Predict, by a model, what a generated token takes on a GPU");
  command->add_option("FILE", arguments->path, "An artifact with code for a GPU")->required();
  command->add_option("--target", arguments->target, "Which of its targets (default: the first)");
  command->add_option("--gpu", arguments->gpu,
                      "a100, 4090, h100 or h200 (default: the last that "
                      "runs the code)");
  command->add_option("--position", arguments->position, "Positions before the token (0)");
  command->add_option("--counters", arguments->counters,
                      "Counts of instructions: a report of the PTX emulator of this artifact's "
                      "kernels, at that position");
  command->add_option("--launch-us", arguments->launchUs, "Microseconds between two kernels")
      ->check(CLI::Range(0.0, 1000.0));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &action] {
    action = [arguments]() -> llvm::Error {
      llvm::Expected<Json> report = predict(*arguments);
      if (!report)
        return report.takeError();
      printReport(*report, arguments->json);
      return llvm::Error::success();
    };
  });
}
