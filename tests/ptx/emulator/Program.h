//===- Program.h - decoded kernels ------------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_PROGRAM_H
#define LLMC_TESTS_PTX_EMULATOR_PROGRAM_H

#include "tests/ptx/emulator/Module.h"

#include <array>

namespace llmc::ptx {

struct Warp;
struct Inst;

/// Executes an instruction for the lanes of `mask`, which is not empty.
using Handler = void (*)(Warp &warp, const Inst &inst, uint32_t mask);

/// What instructions are counted as.
enum class Class : uint8_t {
  Integer,
  Float,
  Half,
  Convert,
  Logic,
  Compare,
  Move,
  Special,
  Mma,
  LoadGlobal,
  StoreGlobal,
  LoadShared,
  StoreShared,
  LoadParam,
  Local,
  Atomic,
  AsyncCopy,
  Barrier,
  Branch,
  Warp,
  Other,
  Hidden, // conversions that are part of another instruction; not counted
  Count
};
const char *nameOf(Class cls);

/// One decoded instruction. Operands are byte offsets into the warp's registers, where a register,
/// an immediate and a special register are alike: 32 lanes of 2, 4 or 8 bytes, or a mask of 4 bytes
/// for a predicate. So a handler knows no kinds of operands.
struct Inst {
  static constexpr uint32_t none = ~0u;
  Handler run = nullptr;
  uint32_t pred = none;
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;
  /// First slot of a vector operand in Program::pool.
  uint32_t vec = 0, vec2 = 0;
  int64_t offset = 0; // of an address, in bytes
  uint32_t target = 0;
  uint32_t imm = 0;
  uint32_t line = 0;
  uint16_t sub = 0;  // what a family of handlers distinguishes further
  uint8_t count = 1; // elements of a vector access
  Class cls = Class::Other;
  Space space = Space::Generic;
  bool predNegated = false;
  bool wideAddress = false; // 64-bit address register
  bool join = false;        // where divergent lanes meet again
  bool strong = false;      // a memory operation that may race with its like
  /// Allocation of the last access, as a range of addresses: most accesses stay in one.
  mutable uint64_t cacheLow = 1, cacheHigh = 0;
};

/// Where a special register's value comes from, filled in when a warp starts.
struct SpecialSlot {
  enum Kind : uint8_t {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaX,
    CtaY,
    CtaZ,
    NctaX,
    NctaY,
    NctaZ,
    LaneId,
    WarpId,
    NwarpId,
    LtMask,
    LeMask,
    EqMask,
    GeMask,
    GtMask,
    DynamicShared,
    TotalShared,
    Zero,
    One,
    GridId,
  };
  uint32_t slot;
  uint8_t width;
  Kind kind;
};

struct ConstantSlot {
  uint32_t slot;
  uint8_t width; // bytes; 0: predicate
  uint64_t bits;
};

struct KernelParam {
  uint32_t offset = 0, size = 0;
};

/// A kernel ready to run: device functions are inlined, names are resolved.
struct Program {
  std::string name;
  std::vector<Inst> code;
  std::vector<uint32_t> pool;
  std::vector<std::string_view> opcodes; // of code, for messages
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  std::vector<KernelParam> params;
  std::vector<std::vector<uint32_t>> tables; // of brx.idx
  uint32_t paramBytes = 0;
  uint32_t registerBytes = 0;
  uint32_t localBytes = 0;
  uint32_t sharedBytes = 0;  // static
  uint32_t dynamicAlign = 1; // of the extern array
  uint32_t maxThreads = 0;
  uint32_t requiredThreads[3] = {0, 0, 0};
  std::shared_ptr<Module> module;

  // Executions per instruction, over all launches.
  std::vector<uint64_t> warpCount, laneCount;
};

/// First byte of the shared variables; the hardware keeps what is before for itself.
constexpr uint32_t sharedStart = 1024;

/// Addresses of the module's global and const variables on the device.
using Symbols = std::unordered_map<std::string_view, uint64_t>;

/// Decodes a kernel. Null and one line in `error`, "line N: ...", for what is not supported.
std::unique_ptr<Program> decode(std::shared_ptr<Module> module, const Function &kernel,
                                const Symbols &symbols, std::string &error);

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_PROGRAM_H
