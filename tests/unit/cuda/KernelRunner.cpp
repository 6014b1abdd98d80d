//===- KernelRunner.cpp - runs CUDA kernels in the emulator ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/unit/cuda/KernelRunner.h"
#include "llmc/cuda_abi.h"
#include "mlir/Parser/Parser.h"
#include "tests/ptx/emulator/Loader.h"
#include <cmath>
#include <filesystem>
#include <random>
#include <regex>

using namespace llmc;
using namespace llmc::cuda;
using mlir::ModuleOp;

/// What two blocks of a kernel may have together on the smallest multiprocessor of a target.
static constexpr int64_t kRegisters = 64 << 10;

void Contents::copy(const std::string &name, size_t offset, void *to, size_t size) const {
  auto found = bytes.find(name);
  ASSERT_NE(found, bytes.end()) << name;
  ASSERT_LE(offset + size, found->second.size()) << name;
  const std::vector<bool> &has = written.at(name);
  for (size_t i = 0; i < size; ++i)
    ASSERT_TRUE(has[offset + i]) << name << " has no value at byte " << offset + i;
  memcpy(to, found->second.data() + offset, size);
}

static mlir::DialectRegistry &registry() {
  static mlir::DialectRegistry *dialects = [] {
    auto *made = new mlir::DialectRegistry;
    made->insert<llm::LlmDialect, sched::SchedDialect>();
    registerCodegenDialects(*made);
    return made;
  }();
  return *dialects;
}

KernelRunner::KernelRunner(const std::string &text, const char *name)
    : context(registry(), mlir::MLIRContext::Threading::DISABLED), target(lookupTarget(name)) {
  context.loadAllAvailableDialects();
  module = mlir::parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "the module has errors";
    return;
  }
  CodeOptions options;
  options.assemble = false; // resources() does
  std::string folder;
  if (const char *dump = getenv("LLMC_TEST_DUMP")) {
    static int count = 0;
    folder = std::string(dump) + "/" + std::to_string(count++);
    std::filesystem::create_directories(folder);
    options.dumpDir = folder;
  }
  llvm::Expected<CodeObject> built = buildCodeObject(*module, *target, options);
  if (!built) {
    ADD_FAILURE() << llvm::toString(built.takeError());
    return;
  }
  object = std::move(*built);
}

static ptx::LaunchConfig launchConfig(const LaunchSpec &spec, int64_t rows) {
  ptx::LaunchConfig config;
  for (int d = 0; d < 3; ++d) {
    int64_t perBlock = spec.rowsPerBlock[d];
    config.grid[d] =
        uint32_t(spec.grid[d] * (perBlock ? llvm::divideCeil(rows, perBlock) : int64_t(1)));
  }
  config.block[0] = uint32_t(spec.block);
  config.dynamicShared =
      uint32_t(spec.sharedBytes + spec.sharedBytesPerRow * std::min(rows, spec.sharedRows));
  return config;
}

static std::string nameOf(sched::BindAttr bind) {
  std::string name = bind.getSymbol().getValue().str();
  if (bind.getKind() == sched::BindKind::Key)
    return name + ".key";
  return bind.getKind() == sched::BindKind::Value ? name + ".value" : name;
}

Contents KernelRunner::runOnce(sched::ProgramOp program, const Step &step, const Contents &contents,
                               bool pick, const ptx::Options &options) {
  ptx::DeviceMemory memory(uint64_t(1) << 30);
  ptx::Machine machine(memory, options);
  std::string error;
  std::unique_ptr<ptx::LoadedModule> loaded = ptx::LoadedModule::load(memory, object.ptx, error);
  if (!loaded) {
    ADD_FAILURE() << error;
    return {};
  }
  Contents all = contents;
  for (auto buffer : program.getOps<sched::BufferOp>())
    if (!all.bytes.count(buffer.getSymName().str()))
      all.reserve(buffer.getSymName().str(), buffer.getBytes());
  all.set("counters", std::vector<uint8_t>(std::max<int64_t>(object.counterBytes, 4)));
  all.reserve("picks", sizeof(int32_t) * std::max(step.outRows, 1));
  all.set("tokens", step.tokens.empty() ? std::vector<int32_t>(step.rows) : step.tokens);

  std::map<std::string, uint64_t> addresses;
  for (const auto &[name, bytes] : all.bytes) {
    uint64_t address = memory.allocate(bytes.size());
    memcpy(reinterpret_cast<void *>(address), bytes.data(), bytes.size());
    ptx::Allocation *allocation = memory.find(address);
    for (size_t i = 0; i < bytes.size(); ++i)
      if (all.written[name][i])
        allocation->init.set(i, 1);
    addresses[name] = address;
  }
  llmc_cuda_step_t header = {};
  header.step.rows = step.rows;
  header.step.position = step.position;
  header.step.out_begin = step.outBegin;
  header.step.out_rows = step.outRows;
  header.step.tokens = reinterpret_cast<const int32_t *>(addresses["tokens"]);
  header.step.logits = reinterpret_cast<float *>(addresses["logits"]);
  header.step.logit_maxima = reinterpret_cast<float *>(addresses["logit_maxima"]);
  header.counters = reinterpret_cast<uint32_t *>(addresses["counters"]);
  header.picks = reinterpret_cast<int32_t *>(addresses["picks"]);
  uint64_t stepAddress = memory.allocate(sizeof(header));
  memcpy(reinterpret_cast<void *>(stepAddress), &header, sizeof(header));
  memory.find(stepAddress)->init.setRange(0, sizeof(header));

  auto launch = [&](const std::string &kernel, std::vector<uint64_t> parameters) {
    ptx::Program *code = loaded->kernel(kernel);
    if (!code) {
      ADD_FAILURE() << "there is no kernel " << kernel;
      return false;
    }
    ptx::LaunchConfig config =
        launchConfig(object.launches.lookup(kernel), int64_t(program.getMaxRows()));
    config.programmatic = target->capability >= 90;
    parameters.push_back(stepAddress);
    config.params.resize(8 * parameters.size());
    memcpy(config.params.data(), parameters.data(), config.params.size());
    if (ptx::Error failed = machine.launch(*code, config)) {
      ADD_FAILURE() << failed.message << " (seed " << options.seed << ")";
      return false;
    }
    return true;
  };
  for (auto dispatch : program.getOps<sched::DispatchOp>()) {
    std::vector<uint64_t> parameters;
    for (mlir::Attribute attr : dispatch.getBindings()) {
      std::string name = nameOf(llvm::cast<sched::BindAttr>(attr));
      if (!addresses.count(name)) {
        ADD_FAILURE() << name << " has no contents";
        return {};
      }
      parameters.push_back(addresses[name]);
    }
    if (!launch(dispatch.getKernel().str(), std::move(parameters)))
      return {};
  }
  if (pick && !launch(kPickKernel.str(), {}))
    return {};

  for (auto &[name, bytes] : all.bytes) {
    uint64_t address = addresses[name];
    memcpy(bytes.data(), reinterpret_cast<void *>(address), bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i)
      all.written[name][i] = memory.find(address)->init.all(i, 1);
  }
  for (uint8_t byte : all.bytes["counters"])
    EXPECT_EQ(byte, 0) << "a counter is not left zero";
  lastCounters = machine.counters;
  return all;
}

Contents KernelRunner::run(const std::string &name, const Step &step, const Contents &contents,
                           bool pick) {
  sched::ProgramOp program;
  for (auto candidate : module->getOps<sched::ProgramOp>())
    if (candidate.getSymName() == name)
      program = candidate;
  if (!program) {
    ADD_FAILURE() << "there is no program " << name;
    return {};
  }
  Contents first;
  for (uint64_t seed : {1, 2, 3})
    for (bool late : {false, true}) {
      ptx::Options options;
      options.seed = seed;
      options.lateCopies = late;
      Contents result = runOnce(program, step, contents, pick, options);
      if (testing::Test::HasFailure())
        return result;
      if (first.bytes.empty()) {
        first = std::move(result);
        continue;
      }
      EXPECT_TRUE(first.bytes == result.bytes) << "other bits with seed " << seed;
    }
  return first;
}

std::map<std::string, KernelRunner::Resources> KernelRunner::resources() {
  std::map<std::string, Resources> kernels;
  std::string ptxas = findPtxas(), log;
  if (ptxas.empty())
    return kernels;
  if (llvm::Expected<std::string> cubin = assemble(ptxas, object.ptx, *target, log); !cubin) {
    ADD_FAILURE() << llvm::toString(cubin.takeError());
    return kernels;
  }
  static const std::regex entry("Compiling entry function '([^']+)'");
  static const std::regex stack("(\\d+) bytes stack frame, (\\d+) bytes spill stores, "
                                "(\\d+) bytes spill loads");
  static const std::regex used("Used (\\d+) registers");
  std::istringstream lines(log);
  Resources *current = nullptr;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, entry)) {
      const LaunchSpec &launch = object.launches[match[1].str()];
      current = &kernels[match[1]];
      current->threads = launch.block;
      current->sharedBytes = launch.sharedBytes + launch.sharedBytesPerRow * launch.sharedRows;
    } else if (current && std::regex_search(line, match, stack)) {
      current->stackBytes = std::stoi(match[1]);
      current->spillBytes = std::stoi(match[2]) + std::stoi(match[3]);
    } else if (current && std::regex_search(line, match, used)) {
      current->registers = std::stoi(match[1]);
    }
  }
  return kernels;
}

void cuda::expectStaticLimits(const std::string &text) {
  if (findPtxas().empty())
    GTEST_SKIP() << "ptxas is not there";
  for (const Target &target : targets()) {
    KernelRunner runner(text, target.name.data());
    // Bits are the same on every GPU, and registers are not in memory.
    for (const char *unwanted : {".approx", ".ftz", "div.full", ".local"})
      EXPECT_EQ(runner.ptx().find(unwanted), std::string::npos) << unwanted;
    auto kernels = runner.resources();
    EXPECT_FALSE(kernels.empty());
    for (const auto &[name, used] : kernels) {
      std::string what = name + " on " + target.name.str();
      EXPECT_GT(used.registers, 0) << what;
      EXPECT_LE(used.registers, 255) << what;
      EXPECT_EQ(used.spillBytes, 0) << what;
      EXPECT_EQ(used.stackBytes, 0) << what;
      // Registers are given out in eights; a kilobyte of shared memory is the system's.
      EXPECT_LE(2 * used.threads * llvm::alignTo(used.registers, 8), kRegisters) << what;
      EXPECT_LE(2 * (used.sharedBytes + 1024), target.sharedBytes + 1024) << what;
      if (getenv("LLMC_TEST_VERBOSE"))
        printf("%s: %d registers, %lld bytes shared\n", what.c_str(), used.registers,
               (long long)used.sharedBytes);
    }
  }
}

size_t cuda::keyIndex(bool f32, int headDim, int slot, int d) {
  int width = f32 || headDim % 8 ? 4 : 8;
  return size_t(slot / 32) * 32 * headDim + d / width * 32 * width + slot % 32 * width + d % width;
}

std::vector<float> cuda::randomFloats(size_t count, uint64_t seed, float spread) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> values(0, spread);
  std::vector<float> floats(count);
  for (float &value : floats)
    value = values(random);
  return floats;
}

void cuda::expectClose(const std::vector<float> &actual, const std::vector<float> &expected,
                       float relative, const char *what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  float largest = 0;
  for (float value : expected)
    largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::fabs(actual[i] - expected[i]), relative * largest)
        << what << ", element " << i << ": " << actual[i] << " for " << expected[i];
}

void cuda::expectSameBits(const std::vector<float> &actual, const std::vector<float> &expected,
                          const char *what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_EQ(memcmp(&actual[i], &expected[i], sizeof(float)), 0)
        << what << ", element " << i << ": " << actual[i] << " and " << expected[i];
}
