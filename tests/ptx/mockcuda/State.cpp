//===- State.cpp - the mock driver's work ---------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/State.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace llmc::mock {

static Settings parse(const char *text) {
  Settings s;
  std::stringstream in(text ? text : "");
  for (std::string item; std::getline(in, item, ',');) {
    size_t equal = item.find('=');
    std::string key = item.substr(0, equal);
    std::string value = equal == std::string::npos ? "" : item.substr(equal + 1);
    char *end = nullptr;
    uint64_t number = strtoull(value.c_str(), &end, 10);
    if (*end == 'G')
      number <<= 30;
    else if (*end == 'M')
      number <<= 20;
    if (key == "sm")
      s.sm = unsigned(number);
    else if (key == "devices")
      s.devices = unsigned(number);
    else if (key == "memory")
      s.memory = number;
    else if (key == "seed")
      s.options.seed = number;
    else if (key == "check")
      s.options.checkInit = s.options.checkRaces = value == "full";
    else if (key == "count")
      s.options.count = number;
    else if (key == "copies")
      s.options.lateCopies = value == "late";
    else if (key == "work")
      s.lateWork = value == "late";
    else if (key == "resident")
      s.options.residentCtas = std::max(1u, unsigned(number));
    else if (key == "report")
      s.report = value;
    else if (key == "cubins")
      s.cubins = value;
    else
      s.error = "LLMC_MOCK_CUDA: unknown setting '" + item + "'";
  }
  // Shared memory that one block may have.
  s.options.maxShared = (s.sm >= 90 ? 227 : s.sm == 80 || s.sm == 87 ? 163 : 99) << 10;
  return s;
}

Driver &Driver::get() {
  // Never destroyed: a program may call the driver from its own destructors.
  static Driver *driver = [] {
    auto *d = new Driver;
    d->settings = parse(getenv("LLMC_MOCK_CUDA"));
    atexit([] { Driver::get().writeReport(); });
    return d;
  }();
  return *driver;
}

thread_local int Entry::depth = 0;

Entry::Entry(Driver &driver, const char *name) {
  ++depth;
  ++driver.calls[name];
}

void Driver::start() {
  initialised = true;
  if (!settings.error.empty())
    complain(CUDA_ERROR_INVALID_VALUE, settings.error);
  memory = std::make_unique<ptx::DeviceMemory>(settings.memory);
  machine = std::make_unique<ptx::Machine>(*memory, settings.options);
}

CUresult Driver::complain(CUresult code, const std::string &what) {
  std::fprintf(stderr, "mock CUDA: %s\n", what.c_str());
  if (errors.size() < 1000)
    errors.push_back(what);
  return code;
}

void Driver::enqueue(std::function<void()> work) {
  if (settings.lateWork)
    queue.push_back(std::move(work));
  else if (!sticky)
    work();
}

void Driver::flush() {
  while (!queue.empty()) {
    auto work = std::move(queue.front());
    queue.pop_front();
    if (!sticky)
      work();
  }
}

static CUresult codeOf(ptx::ErrorKind kind) {
  switch (kind) {
  case ptx::ErrorKind::None:
    return CUDA_SUCCESS;
  case ptx::ErrorKind::OutOfBounds:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case ptx::ErrorKind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case ptx::ErrorKind::Deadlock:
  case ptx::ErrorKind::Endless:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case ptx::ErrorKind::Unsupported:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case ptx::ErrorKind::BadLaunch:
    return CUDA_ERROR_INVALID_VALUE;
  case ptx::ErrorKind::Trap:
    return CUDA_ERROR_ASSERT;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

CUresult Driver::checkLaunch(CUfunction f, ptx::LaunchConfig &c, const CUlaunchAttribute *attrs,
                             unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC)
      c.programmatic = attrs[i].value.number != 0;
    if (attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      c.cooperative = attrs[i].value.number != 0;
    const auto &cluster = attrs[i].value.clusterDim;
    if (attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
        uint64_t(cluster.x) * cluster.y * cluster.z > 1)
      return complain(CUDA_ERROR_NOT_SUPPORTED, "clusters are not supported");
  }
  const std::string &name = f->program->name;
  uint64_t blocks = uint64_t(c.grid[0]) * c.grid[1] * c.grid[2];
  if (c.cooperative && blocks > 132 * 32)
    return complain(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                    name + ": " + std::to_string(blocks) + " blocks at the same time");
  uint64_t threads = uint64_t(c.block[0]) * c.block[1] * c.block[2];
  if (!threads || !c.grid[0] || !c.grid[1] || !c.grid[2] || c.grid[1] > 65535 || c.grid[2] > 65535)
    return complain(CUDA_ERROR_INVALID_VALUE, name + ": an empty or too large grid or block");
  if (threads > 1024 || (f->program->maxThreads && threads > f->program->maxThreads))
    return complain(CUDA_ERROR_INVALID_VALUE,
                    name + ": a block of " + std::to_string(threads) + " threads");
  if (c.dynamicShared > f->maxDynamicShared)
    return complain(CUDA_ERROR_INVALID_VALUE, name + ": " + std::to_string(c.dynamicShared) +
                                                  " bytes of dynamic shared memory, allowed are " +
                                                  std::to_string(f->maxDynamicShared) +
                                                  " (cuFuncSetAttribute)");
  if (f->program->sharedBytes + uint64_t(c.dynamicShared) > settings.options.maxShared)
    return complain(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, name + ": too much shared memory");
  return CUDA_SUCCESS;
}

void Driver::run(CUfunction f, const ptx::LaunchConfig &c) {
  ptx::Counters before = machine->counters;
  ptx::Error error = machine->launch(*f->program, c);
  // What this launch added.
  auto *now = reinterpret_cast<const uint64_t *>(&machine->counters);
  auto *then = reinterpret_cast<const uint64_t *>(&before);
  auto *sum = reinterpret_cast<uint64_t *>(&perKernel[f->program->name]);
  for (size_t i = 0; i < sizeof(before) / 8; ++i)
    sum[i] += now[i] - then[i];
  if (error)
    sticky = complain(codeOf(error.kind), error.message);
}

CUresult Driver::copy(uint64_t to, bool toDevice, uint64_t from, bool fromDevice, uint64_t size) {
  if (!size)
    return CUDA_SUCCESS;
  ptx::Allocation *source = memory->find(from), *target = memory->find(to);
  if (fromDevice && (!source || from + size > source->end()))
    return complain(CUDA_ERROR_INVALID_VALUE,
                    "a copy of " + std::to_string(size) + " bytes from outside an allocation");
  if (toDevice && (!target || to + size > target->end()))
    return complain(CUDA_ERROR_INVALID_VALUE,
                    "a copy of " + std::to_string(size) + " bytes to outside an allocation");
  memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), size);
  if (settings.options.checkInit && target) {
    if (source && fromDevice)
      target->init.copyRange(to - target->base, source->init, from - source->base, size);
    else
      target->init.setRange(to - target->base, size);
  }
  if (settings.options.checkInit && source && fromDevice && !toDevice)
    for (uint64_t i = 0; i < size; ++i)
      if (!source->init.get(from - source->base + i, 1))
        return complain(CUDA_ERROR_LAUNCH_FAILED,
                        "a copy to the host of bytes that were never written (at " +
                            std::to_string(i) + " of " + std::to_string(size) + ")");
  machine->breakChain();
  return CUDA_SUCCESS;
}

CUresult Driver::fill(uint64_t to, uint32_t value, unsigned elementSize, uint64_t count) {
  ptx::Allocation *target = memory->find(to);
  uint64_t size = elementSize * count;
  if (size && (!target || to + size > target->end()))
    return complain(CUDA_ERROR_INVALID_VALUE, "a memset outside an allocation");
  if (to % elementSize)
    return complain(CUDA_ERROR_INVALID_VALUE, "a memset at an address that is not aligned");
  auto *bytes = reinterpret_cast<uint8_t *>(to);
  for (uint64_t i = 0; i < count; ++i)
    memcpy(bytes + i * elementSize, &value, elementSize);
  if (size)
    target->init.setRange(to - target->base, size);
  machine->breakChain();
  return CUDA_SUCCESS;
}

static void appendCounters(std::string &out, const ptx::Counters &c) {
  auto field = [&](const char *name, uint64_t value) {
    out +=
        std::string(out.back() == '{' ? "" : ", ") + "\"" + name + "\": " + std::to_string(value);
  };
  out += "{";
  field("launches", c.launches);
  field("global_load_requests", c.globalLoadRequests);
  field("global_load_sectors", c.globalLoadSectors);
  field("global_load_ideal_sectors", c.globalLoadIdealSectors);
  field("global_load_bytes", c.globalLoadBytes);
  field("global_store_requests", c.globalStoreRequests);
  field("global_store_sectors", c.globalStoreSectors);
  field("global_store_bytes", c.globalStoreBytes);
  field("shared_accesses", c.sharedAccesses);
  field("shared_bytes", c.sharedBytes);
  field("bank_conflicts", c.bankConflicts);
  field("local_bytes", c.localBytes);
  field("atomics", c.atomics);
  field("async_bytes", c.asyncBytes);
  field("cta_barriers", c.ctaBarriers);
  field("lane_instructions", c.totalLanes());
  out += ", \"lanes\": {";
  for (unsigned k = 0; k < unsigned(ptx::Class::Count); ++k)
    if (c.laneInstructions[k])
      field(ptx::nameOf(ptx::Class(k)), c.laneInstructions[k]);
  out += "}, \"warps\": {";
  for (unsigned k = 0; k < unsigned(ptx::Class::Count); ++k)
    if (c.warpInstructions[k])
      field(ptx::nameOf(ptx::Class(k)), c.warpInstructions[k]);
  out += "}}";
}

std::string Driver::reportText() {
  std::string out = "{\"errors\": [";
  for (size_t i = 0; i < errors.size(); ++i) {
    out += i ? ", \"" : "\"";
    for (char c : errors[i])
      if (c == '"' || c == '\\')
        out += std::string("\\") + c;
      else
        out += uint8_t(c) < 32 ? ' ' : c;
    out += "\"";
  }
  out += "], \"touched_bytes\": " + std::to_string(memory ? memory->touchedBytes() : 0);
  out += ", \"memory_used\": " + std::to_string(memory ? memory->used() : 0) + ", \"total\": ";
  appendCounters(out, machine ? machine->counters : ptx::Counters());
  out += ", \"calls\": {";
  bool first = true;
  for (const auto &[name, count] : calls) {
    out += std::string(first ? "" : ", ") + "\"" + name + "\": " + std::to_string(count);
    first = false;
  }
  out += "}, \"kernels\": {";
  first = true;
  for (const auto &[name, counters] : perKernel) {
    out += std::string(first ? "" : ", ") + "\"" + name + "\": ";
    appendCounters(out, counters);
    first = false;
  }
  return out + "}}\n";
}

void Driver::writeReport() {
  if (!settings.report.empty())
    std::ofstream(settings.report) << reportText();
}

} // namespace llmc::mock

using llmc::mock::Driver;

/// The report as JSON, valid until the next call.
LLMC_CUDA const char *llmcMockCudaReport() {
  static std::string text;
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  text = driver.reportText();
  return text.c_str();
}

/// More than 0 while this thread is in the driver.
LLMC_CUDA int llmcMockCudaDepth() { return llmc::mock::Entry::depth; }

/// Begins to count anew.
LLMC_CUDA void llmcMockCudaReset() {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  driver.perKernel.clear();
  driver.calls.clear();
  driver.errors.clear();
  if (driver.machine) {
    driver.machine->counters = {};
    driver.memory->resetTouched();
  }
}
