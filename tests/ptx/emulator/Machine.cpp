//===- Machine.cpp - launches ---------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Machine.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace llmc::ptx {

const char *nameOf(ErrorKind kind) {
  static const char *names[] = {
      "none",           "unsupported",        "bad launch", "out of bounds",
      "misaligned",     "uninitialised read", "race",       "copy not waited for",
      "divergence",     "deadlock",           "endless",    "trap",
      "barrier misuse", "dependency",
  };
  return names[unsigned(kind)];
}

const char *nameOf(Class cls) {
  static const char *names[] = {
      "integer",      "float",      "half",  "convert",     "logic",        "compare",
      "move",         "special",    "mma",   "load.global", "store.global", "load.shared",
      "store.shared", "load.param", "local", "atomic",      "async copy",   "barrier",
      "branch",       "warp",       "other", "hidden",
  };
  return names[unsigned(cls)];
}

void Counters::add(const Counters &o) {
  auto *to = reinterpret_cast<uint64_t *>(this);
  auto *from = reinterpret_cast<const uint64_t *>(&o);
  static_assert(sizeof(Counters) % 8 == 0);
  for (size_t i = 0; i < sizeof(Counters) / 8; ++i)
    to[i] += from[i];
}

uint64_t Counters::totalLanes() const {
  uint64_t n = 0;
  for (uint64_t count : laneInstructions)
    n += count;
  return n;
}

void Warp::fail(ErrorKind kind, unsigned lane, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  machine->fail(kind, this, int(lane), text);
  stop = Failed;
}

void Machine::fail(ErrorKind kind, const Warp *warp, int lane, const std::string &what) {
  if (error)
    return;
  error.kind = kind;
  std::string where = program ? program->name : "";
  if (warp) {
    uint32_t pc = std::min<size_t>(warp->pc, program->code.size() - 1);
    where += ", line " + std::to_string(program->code[pc].line) + " (" +
             std::string(program->opcodes[pc]) + "), block " + std::to_string(warp->cta->id[0]) +
             "," + std::to_string(warp->cta->id[1]) + "," + std::to_string(warp->cta->id[2]);
    if (lane >= 0)
      where += ", thread " + std::to_string(warp->tid(lane));
  }
  error.message = std::string(nameOf(kind)) + ": " + where + ": " + what;
}

bool Machine::checkLaunch(const LaunchConfig &c) {
  auto bad = [&](const std::string &what) {
    fail(ErrorKind::BadLaunch, nullptr, -1, what);
    return false;
  };
  uint64_t threads = uint64_t(c.block[0]) * c.block[1] * c.block[2];
  if (!threads || threads > 1024 || c.block[0] > 1024 || c.block[1] > 1024 || c.block[2] > 64)
    return bad("a block of " + std::to_string(threads) + " threads");
  if (!c.grid[0] || !c.grid[1] || !c.grid[2] || c.grid[0] > 0x7fffffff || c.grid[1] > 65535 ||
      c.grid[2] > 65535)
    return bad("a grid without blocks or with too many");
  if (uint64_t(c.grid[0]) * c.grid[1] * c.grid[2] * threads > 0xffffffff)
    return bad("more than 2^32 threads");
  if (program->maxThreads && threads > program->maxThreads)
    return bad(std::to_string(threads) + " threads, the kernel says at most " +
               std::to_string(program->maxThreads));
  for (int i = 0; i < 3; ++i)
    if (program->requiredThreads[i] && program->requiredThreads[i] != c.block[i])
      return bad("the block is not what .reqntid says");
  if (uint64_t(program->sharedBytes) + c.dynamicShared > options.maxShared)
    return bad(std::to_string(program->sharedBytes + c.dynamicShared) +
               " bytes of shared memory, there are " + std::to_string(options.maxShared));
  if (c.params.size() < program->paramBytes)
    return bad("parameters of " + std::to_string(c.params.size()) + " bytes, the kernel takes " +
               std::to_string(program->paramBytes));
  return true;
}

static uint64_t specialValue(SpecialSlot::Kind kind, const Warp &w, unsigned lane) {
  const LaunchConfig &c = *w.machine->config;
  uint32_t tid = w.tid(lane);
  switch (kind) {
  case SpecialSlot::TidX:
    return tid % c.block[0];
  case SpecialSlot::TidY:
    return tid / c.block[0] % c.block[1];
  case SpecialSlot::TidZ:
    return tid / c.block[0] / c.block[1];
  case SpecialSlot::NtidX:
    return c.block[0];
  case SpecialSlot::NtidY:
    return c.block[1];
  case SpecialSlot::NtidZ:
    return c.block[2];
  case SpecialSlot::CtaX:
    return w.cta->id[0];
  case SpecialSlot::CtaY:
    return w.cta->id[1];
  case SpecialSlot::CtaZ:
    return w.cta->id[2];
  case SpecialSlot::NctaX:
    return c.grid[0];
  case SpecialSlot::NctaY:
    return c.grid[1];
  case SpecialSlot::NctaZ:
    return c.grid[2];
  case SpecialSlot::LaneId:
    return lane;
  case SpecialSlot::WarpId:
    return w.index;
  case SpecialSlot::NwarpId:
    return (w.cta->threads + 31) / 32;
  case SpecialSlot::LtMask:
    return (1u << lane) - 1;
  case SpecialSlot::LeMask:
    return (2u << lane) - 1;
  case SpecialSlot::EqMask:
    return 1u << lane;
  case SpecialSlot::GeMask:
    return ~((1u << lane) - 1);
  case SpecialSlot::GtMask:
    return ~((2u << lane) - 1);
  case SpecialSlot::DynamicShared:
    return c.dynamicShared;
  case SpecialSlot::TotalShared:
    return c.dynamicShared + w.program->sharedBytes;
  case SpecialSlot::GridId:
    return w.machine->counters.launches;
  case SpecialSlot::One:
    return 1;
  case SpecialSlot::Zero:
    break;
  }
  return 0;
}

static void fillSlot(uint8_t *slot, unsigned width, unsigned lane, uint64_t value) {
  if (width == 0) {
    uint32_t *mask = reinterpret_cast<uint32_t *>(slot);
    *mask = value ? *mask | 1u << lane : *mask & ~(1u << lane);
  } else {
    memcpy(slot + lane * width, &value, width);
  }
}

void Machine::startWarp(Cta &cta, uint32_t index) {
  if (cta.warps.size() <= index)
    cta.warps.push_back(std::make_unique<Warp>());
  Warp &w = *cta.warps[index];
  w.cta = &cta;
  w.machine = this;
  w.program = program;
  w.index = index;
  uint32_t lanes = std::min(32u, cta.threads - index * 32);
  w.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
  w.groups.assign(1, Group{0, w.live, Group::Ready, false});
  if (w.registerMemory.empty()) {
    w.registerMemory.resize(image.size() + 64);
    auto base = reinterpret_cast<uint64_t>(w.registerMemory.data());
    w.regs = w.registerMemory.data() + (-base & 63);
    memcpy(w.regs, image.data(), image.size());
  }
  for (const SpecialSlot &s : program->specials)
    for (unsigned lane = 0; lane < 32; ++lane)
      fillSlot(w.regs + s.slot, s.width, lane, specialValue(s.kind, w, lane));
  if (program->localBytes) {
    w.local.resize(size_t(program->localBytes) * 32);
    w.localInit.resize(w.local.size());
  }
  w.clock = w.syncClock = launchClock;
  for (unsigned lane = 0; lane < 32; ++lane) {
    w.own[lane] = w.fenced[lane] = w.acquired[lane] = nullptr;
    w.committed[lane].clear();
    w.open[lane].copies.clear();
  }
  w.failedWaits = w.parkedSince = 0;
  w.dependencyWaited = false;
  w.stop = Warp::Run;
}

void Machine::start(Cta &cta, uint32_t linear) {
  cta.linear = linear;
  cta.id[0] = linear % config->grid[0];
  cta.id[1] = linear / config->grid[0] % config->grid[1];
  cta.id[2] = linear / config->grid[0] / config->grid[1];
  cta.threads = cta.liveThreads = config->block[0] * config->block[1] * config->block[2];
  uint32_t shared = program->sharedBytes + config->dynamicShared;
  cta.shared.assign(shared, 0xfe);
  if (options.checkInit)
    cta.sharedInit.resize(shared);
  if (options.checkRaces)
    cta.sharedRace.resize(shared);
  for (CtaBarrier &barrier : cta.barriers)
    barrier = {};
  cta.mbarriers.clear();
  cta.arrivals.clear();
  cta.barrierClock = launchClock;
  cta.foreign = nullptr;
  for (uint32_t i = 0; i < (cta.threads + 31) / 32; ++i)
    startWarp(cta, i);
}

void Machine::finish(Cta &cta) {
  for (auto &w : cta.warps)
    maxClock = std::max(maxClock, w->clock);
  bool waited = false;
  for (auto &w : cta.warps)
    waited |= w->dependencyWaited;
  if (config->programmatic && !waited)
    fail(ErrorKind::Dependency, nullptr, -1,
         "a block ends without griddepcontrol.wait: later kernels may overlap earlier ones");
  if (!options.checkRaces)
    return;
  for (auto &w : cta.warps)
    for (unsigned lane = 0; lane < 32; ++lane) {
      bool pending = !w->open[lane].copies.empty();
      for (const CopyGroup &group : w->committed[lane])
        pending |= !group.copies.empty();
      if (pending) {
        w->pc = uint32_t(program->code.size() - 1);
        fail(ErrorKind::NotWaited, w.get(), int(lane),
             "the thread ends with copies it has not waited for");
        return;
      }
    }
}

Error Machine::launch(Program &p, const LaunchConfig &c) {
  error = {};
  program = &p;
  config = &c;
  executed = 0;
  if (!checkLaunch(c))
    return error;
  checksDependency = c.programmatic;
  launchClock = maxClock + 1;
  maxClock = launchClock;
  // A launch in the usual order has seen all before it.
  if (!c.programmatic)
    chainClock = launchClock;
  random.seed(options.seed * 0x9e3779b97f4a7c15 + counters.launches);
  atomicKnowledge.clear();
  lastAllocation = nullptr;
  image.assign(p.registerBytes, 0xfe);
  for (const ConstantSlot &slot : p.constants)
    for (unsigned lane = 0; lane < 32; ++lane)
      fillSlot(image.data() + slot.slot, slot.width, lane, slot.bits);
  for (const Inst &inst : p.code) {
    inst.cacheLow = 1;
    inst.cacheHigh = 0;
  }
  std::vector<uint64_t> warpsBefore = p.warpCount, lanesBefore = p.laneCount;

  uint32_t total = c.grid[0] * c.grid[1] * c.grid[2];
  bool shuffled = options.checkRaces && total <= 1u << 20;
  std::vector<uint32_t> order;
  if (shuffled) {
    order.resize(total);
    for (uint32_t i = 0; i < total; ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
  }
  std::vector<std::unique_ptr<Cta>> resident;
  uint32_t next = 0;
  while (!error) {
    if (next < total && resident.size() < (c.cooperative ? total : options.residentCtas)) {
      resident.push_back(std::make_unique<Cta>());
      start(*resident.back(), shuffled ? order[next] : next);
      ++next;
      continue;
    }
    if (resident.empty())
      break;
    size_t index = resident.size() == 1 ? 0 : random() % resident.size();
    Cta &cta = *resident[index];
    bool moved = step(cta);
    if (error)
      break;
    if (!cta.liveThreads) {
      finish(cta);
      if (next < total) {
        start(cta, shuffled ? order[next] : next);
        ++next;
      } else {
        resident.erase(resident.begin() + index);
      }
    } else if (!moved && !landAll(cta)) {
      stuck(cta);
    }
    if (executed > options.maxInstructions)
      fail(ErrorKind::Endless, nullptr, -1,
           "still running after " + std::to_string(executed) + " instructions");
  }
  counters.launches += 1;
  for (size_t i = 0; i < p.code.size(); ++i) {
    unsigned cls = unsigned(p.code[i].cls);
    if (p.code[i].cls == Class::Hidden)
      continue;
    counters.warpInstructions[cls] += p.warpCount[i] - warpsBefore[i];
    counters.laneInstructions[cls] += p.laneCount[i] - lanesBefore[i];
  }
  for (auto &cta : resident)
    for (auto &w : cta->warps)
      maxClock = std::max(maxClock, w->clock);
  return error;
}

} // namespace llmc::ptx
