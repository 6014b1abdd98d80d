//===- State.h - the mock driver's state ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_MOCKCUDA_STATE_H
#define LLMC_TESTS_PTX_MOCKCUDA_STATE_H

#include "tests/ptx/emulator/Loader.h"
#include "tests/ptx/emulator/Machine.h"
#include "tests/ptx/mockcuda/Abi.h"

#include <deque>
#include <functional>
#include <mutex>
#include <set>

struct CUfunc_st {
  CUmodule module;
  llmc::ptx::Program *program;
  uint32_t maxDynamicShared = 48 << 10;
};
struct CUmod_st {
  std::unique_ptr<llmc::ptx::LoadedModule> loaded;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};
struct CUctx_st {};
struct CUstream_st {};
struct CUevent_st {
  bool recorded = false, done = false;
  double time = 0; // ms
};
struct CUgraphNode_st {
  enum Kind { Kernel, Copy, Set, Empty } kind = Empty;
  CUfunction function = nullptr;
  llmc::ptx::LaunchConfig config;
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS set = {};
  std::vector<size_t> after;             // indices in the graph
  std::vector<size_t> programmaticAfter; // those with a programmatic edge
  size_t index = 0;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  std::vector<CUgraphNode_st> nodes;
  std::vector<size_t> order;
  std::map<CUgraphNode, size_t> index;
};

namespace llmc::mock {

/// What LLMC_MOCK_CUDA says: "sm=80,memory=4G,seed=2,check=full,work=late,copies=late,report=FILE".
struct Settings {
  unsigned sm = 90;
  unsigned devices = 1;
  uint64_t memory = uint64_t(16) << 30;
  std::string report;    // file of counters and errors, written at the end; JSON
  std::string cubins;    // folder with the PTX of cubins, by hash
  bool lateWork = false; // what is enqueued runs when it is waited for
  ptx::Options options;
  std::string error; // of the text
};

/// The driver: one device, executed in the order of the calls.
class Driver {
public:
  static Driver &get();

  Settings settings;
  bool initialised = false;
  CUresult sticky = CUDA_SUCCESS; // of a kernel that failed; every later call returns it
  std::unique_ptr<ptx::DeviceMemory> memory;
  std::unique_ptr<ptx::Machine> machine;
  CUctx_st context;
  CUstream_st defaultStream;
  std::set<CUmodule> modules;
  std::set<CUstream> streams;
  std::set<CUevent> events;
  std::set<CUgraph> graphs;
  std::set<CUgraphExec> execs;
  std::map<uint64_t, uint64_t> hostMemory; // that cuMemHostAlloc gave, with sizes
  std::map<std::string, ptx::Counters> perKernel;
  std::map<std::string, uint64_t> calls; // of entry points, by name
  std::vector<std::string> errors;
  std::deque<std::function<void()>> queue;
  std::recursive_mutex mutex;

  void start();
  /// Runs now, or when something waits for it.
  void enqueue(std::function<void()> work);
  void flush();
  CUresult checkLaunch(CUfunction function, ptx::LaunchConfig &config,
                       const CUlaunchAttribute *attrs, unsigned count);
  void run(CUfunction function, const ptx::LaunchConfig &config);
  /// Copies, and says of each byte on the device whether it has a value.
  CUresult copy(uint64_t to, bool toDevice, uint64_t from, bool fromDevice, uint64_t size);
  CUresult fill(uint64_t to, uint32_t value, unsigned elementSize, uint64_t count);
  /// Says what is wrong with an argument; the code is returned.
  CUresult complain(CUresult code, const std::string &what);
  std::string reportText();
  void writeReport();
};

/// A call of an entry point. While one lives, what this thread does is the driver's work.
class Entry {
public:
  Entry(Driver &driver, const char *name);
  ~Entry() { --depth; }
  static thread_local int depth;
};

/// Every entry point begins so: counted; not initialised, or failed before.
#define LLMC_ENTER LLMC_ENTER_AS(__func__)
#define LLMC_ENTER_AS(name)                                                                        \
  auto &driver = llmc::mock::Driver::get();                                                        \
  std::lock_guard lock(driver.mutex);                                                              \
  llmc::mock::Entry entry(driver, name);                                                           \
  if (!driver.initialised)                                                                         \
    return CUDA_ERROR_NOT_INITIALIZED;                                                             \
  if (driver.sticky)                                                                               \
  return driver.sticky

} // namespace llmc::mock

#endif // LLMC_TESTS_PTX_MOCKCUDA_STATE_H
