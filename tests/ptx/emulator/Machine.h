//===- Machine.h - launches, CTAs and warps ---------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_MACHINE_H
#define LLMC_TESTS_PTX_EMULATOR_MACHINE_H

#include "tests/ptx/emulator/Memory.h"
#include "tests/ptx/emulator/Program.h"

#include <cstdarg>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace llmc::ptx {

struct Cta;
class Machine;

/// How a launch is run and what is checked. Bounds and alignment always are.
struct Options {
  bool checkInit = true;
  bool checkRaces = true;
  bool count = true; // sectors, bank conflicts, unique bytes
  uint64_t seed = 1;
  /// cp.async lands when it is waited for, else when it is issued.
  bool lateCopies = true;
  /// CTAs at work at the same time.
  unsigned residentCtas = 4;
  /// Instructions of one launch (per warp, summed), after which it counts as endless.
  uint64_t maxInstructions = uint64_t(1) << 34;
  uint32_t maxShared = 227 << 10;
};

enum class ErrorKind : uint8_t {
  None,
  Unsupported,
  BadLaunch,
  OutOfBounds,
  Misaligned,
  Uninitialised,
  Race,
  NotWaited,
  Divergent,
  Deadlock,
  Endless,
  Trap,
  Barrier,
  Dependency,
};
const char *nameOf(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::None;
  std::string message; // one line: kernel, line, CTA, thread, what
  explicit operator bool() const { return kind != ErrorKind::None; }
};

/// Sums over launches since the last reset.
struct Counters {
  uint64_t launches = 0;
  uint64_t warpInstructions[unsigned(Class::Count)] = {};
  uint64_t laneInstructions[unsigned(Class::Count)] = {};
  uint64_t globalLoadRequests = 0, globalLoadSectors = 0, globalLoadBytes = 0;
  /// Fewest sectors that the bytes asked for could have taken.
  uint64_t globalLoadIdealSectors = 0;
  uint64_t globalStoreRequests = 0, globalStoreSectors = 0, globalStoreBytes = 0;
  uint64_t sharedAccesses = 0, sharedBytes = 0, bankConflicts = 0;
  uint64_t localBytes = 0, atomics = 0, asyncBytes = 0, ctaBarriers = 0;
  void add(const Counters &other);
  uint64_t totalLanes() const;
};

/// Lanes of a warp that are at the same place.
struct Group {
  enum State : uint8_t {
    Ready,
    Parked,  // at a join, for the rest of its warp
    Waiting, // at a collective, for the other lanes it names
    Blocked, // at a barrier of the CTA
  };
  uint32_t pc = 0, mask = 0;
  State state = Ready;
  bool released = false; // goes on from a join without waiting
};

/// A copy that was issued and has not landed.
struct AsyncCopy {
  const uint8_t *from = nullptr;
  uint32_t to = 0;              // in Cta::shared
  uint8_t size = 0, filled = 0; // bytes copied; the rest of size is zeros
  bool landed = false;
};

struct CopyGroup {
  std::vector<AsyncCopy> copies;
};

/// cp.async.mbarrier.arrive: an arrival that happens when the thread's copies have landed.
struct PendingArrival {
  uint32_t barrier = 0;
  unsigned thread = 0;
  std::vector<AsyncCopy> copies;
};

struct Warp {
  // Values that the handlers use.
  uint8_t *regs = nullptr;
  Cta *cta = nullptr;
  Machine *machine = nullptr;
  const Program *program = nullptr;
  uint32_t index = 0; // in the CTA
  uint32_t live = 0;  // lanes that have not exited
  std::vector<Group> groups;

  // The group that runs: where it is, where it goes next, and why it stops.
  uint32_t pc = 0, next = 0, mask = 0;
  uint32_t executing = 0; // of mask, lanes whose predicate holds
  enum Stop : uint8_t { Run, Yield, Split, Wait, Block, Exit, Failed } stop = Run;
  uint32_t leaving = 0;                                        // Exit: lanes that end
  std::vector<std::pair<uint32_t, uint32_t>> split;            // Split: (pc, lanes)
  uint32_t barrier = 0, barrierExpected = 0, barrierVotes = 0; // Block
  bool barrierBlocks = false;
  uint64_t failedWaits = 0; // since the CTA last made progress
  uint64_t parkedSince = 0;

  std::vector<uint8_t> local; // 32 lanes, one after the other
  ByteSet localInit;
  std::vector<uint8_t> registerMemory;

  // Happens-before.
  uint32_t clock = 0, syncClock = 0;
  SharedKnowledge own[32];
  SharedKnowledge fenced[32], acquired[32];
  // cp.async
  std::vector<CopyGroup> committed[32];
  CopyGroup open[32];
  bool dependencyWaited = false;

  unsigned tid(unsigned lane) const { return index * 32 + lane; }
  /// Reports the first error; the launch ends.
  void fail(ErrorKind kind, unsigned lane, const char *format, ...)
      __attribute__((format(printf, 4, 5)));
};

struct MBarrier {
  uint32_t count = 0, pending = 0;
  uint64_t phase = 0;
  int64_t bytes = 0; // that expect_tx announced and that have not arrived
  SharedKnowledge gathered, completed;
};

struct CtaBarrier {
  uint32_t arrived = 0; // threads
  uint32_t expected = 0;
  uint32_t votes = 0; // threads whose predicate of bar.red is true
  struct Member {
    Warp *warp;
    uint32_t lanes;
    const Inst *inst;
    bool blocked;
  };
  std::vector<Member> members;
};

struct Cta {
  uint32_t linear = 0;
  uint32_t id[3] = {0, 0, 0};
  uint32_t threads = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint8_t> shared; // without the first sharedStart bytes
  ByteSet sharedInit;
  RaceShadow sharedRace;
  CtaBarrier barriers[16];
  std::unordered_map<uint32_t, MBarrier> mbarriers;
  std::vector<PendingArrival> arrivals;
  uint32_t barrierClock = 0;
  SharedKnowledge foreign; // what all threads know of other CTAs
  uint32_t liveThreads = 0;
  uint32_t nextWarp = 0; // where the search for one that can run begins
};

struct LaunchConfig {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<uint8_t> params;
  /// May start before its predecessor in the stream has ended.
  bool programmatic = false;
  /// All blocks are at work at the same time: they may wait for each other.
  bool cooperative = false;
};

/// Runs kernels, one after the other.
class Machine {
public:
  Machine(DeviceMemory &memory, Options options) : memory(memory), options(options) {}

  /// Runs a kernel to its end, or to the first error.
  Error launch(Program &program, const LaunchConfig &config);

  DeviceMemory &memory;
  Options options;
  Counters counters;

  // What handlers use.
  Error error;
  const LaunchConfig *config = nullptr;
  Program *program = nullptr;
  uint32_t launchClock = 1; // accesses before it are of earlier launches
  uint32_t maxClock = 1;
  std::mt19937_64 random;
  std::unordered_map<uint64_t, SharedKnowledge> atomicKnowledge; // by generic address
  Allocation *lastAllocation = nullptr;                          // of the last access
  bool checksDependency = false;
  uint32_t chainClock = 0; // first launch that the running one may overlap

  void fail(ErrorKind kind, const Warp *warp, int lane, const std::string &what);
  /// Arrivals and exits changed what lanes wait for.
  void wake(Warp &warp);
  void ctaArrive(Warp &warp, const Inst &inst, uint32_t lanes);
  /// Completes the barrier if all it waits for are there.
  void ctaCheck(Cta &cta, uint32_t barrier);
  void progress(Cta &cta);
  /// Lets everything pending of the CTA land. True if something did.
  bool landAll(Cta &cta);

  /// What comes next in the stream is not the kernel's direct successor.
  void breakChain() { chainClock = maxClock + 1; }

private:
  void start(Cta &cta, uint32_t linear);
  void startWarp(Cta &cta, uint32_t index);
  void finish(Cta &cta);
  bool step(Cta &cta); // one warp for a while; false if none can run
  void runGroup(Warp &warp, size_t group, uint64_t budget);
  void afterStop(Warp &warp, size_t group);
  int pick(Warp &warp);
  void merge(Warp &warp, size_t group);
  void stuck(Cta &cta);
  bool checkLaunch(const LaunchConfig &config);
  std::vector<uint8_t> image; // registers with their constants
  uint64_t executed = 0;
};

// Happens-before (Sync.cpp). Nothing is done where races are not checked.

/// Does the lane's thread know of an access by `thread` (cta * threads + tid) at `clock`?
bool knows(const Warp &warp, unsigned lane, uint32_t thread, uint32_t clock);
/// Everything the lane has done and knows, for others to acquire.
SharedKnowledge publish(Warp &warp, unsigned lane);
void acquire(Warp &warp, unsigned lane, const SharedKnowledge &knowledge);
void joinInto(SharedKnowledge &into, const SharedKnowledge &from);
void syncWarp(Warp &warp, uint32_t lanes);
void syncCta(Cta &cta);
void syncMembers(const std::vector<CtaBarrier::Member> &members);

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_MACHINE_H
