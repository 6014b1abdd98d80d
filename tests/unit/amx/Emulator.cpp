//===- Emulator.cpp - runs tile instructions where there are none ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include "TileUnit.h"
#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>
#include <ucontext.h>
#include <unistd.h>

using namespace llmc;
using namespace llmc::test::amx;

namespace {

thread_local TileUnit unit;
Mode mode = Mode::None;

enum Kind { LoadConfig, Release, Zero, Load, Store, ByteDot, Bf16Dot, StoreConfig, kinds };
std::atomic<uint64_t> executed[kinds];

/// The general registers in the order of their numbers in instructions.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};

/// A decoded tile instruction.
struct Instruction {
  unsigned length = 0; ///< 0: none
  Kind kind;
  unsigned tile = 0, a = 0, b = 0; ///< registers: destination, sources
  bool aSigned = false, bSigned = false;
  uint8_t *address = nullptr;
  int64_t stride = 0;
};

/// Reads a memory operand: base, index (the stride of tile loads), displacement.
struct Operand {
  const greg_t *registers;
  const uint8_t *next; ///< behind the ModRM byte
  unsigned mod, rm;
  bool x, b; ///< bits of the VEX prefix that extend the register numbers

  int64_t reg(unsigned number) const { return registers[kRegisters[number]]; }

  /// False for forms that these instructions cannot have.
  bool read(bool needsIndex, Instruction &in) {
    int64_t address = 0;
    if (rm == 4) {
      const uint8_t sib = *next++;
      const unsigned index = (sib >> 3 & 7) | (x ? 8 : 0), base = (sib & 7) | (b ? 8 : 0);
      if (mod == 0 && (sib & 7) == 5)
        address = displacement(4);
      else
        address = reg(base);
      if (index != 4) // else there is none
        in.stride = reg(index) << (sib >> 6);
      if (!needsIndex) {
        address += in.stride;
        in.stride = 0;
      }
    } else if (needsIndex) {
      return false;
    } else if (mod == 0 && rm == 5) {
      // Relative to the end of the instruction, which ends with the displacement.
      const int64_t offset = displacement(4);
      address = reinterpret_cast<int64_t>(next) + offset;
    } else {
      address = reg(rm | (b ? 8 : 0));
    }
    if (mod == 1)
      address += displacement(1);
    if (mod == 2)
      address += displacement(4);
    in.address = reinterpret_cast<uint8_t *>(address);
    return true;
  }

private:
  int64_t displacement(int bytes) {
    int64_t value;
    if (bytes == 1) {
      value = static_cast<int8_t>(*next);
    } else {
      int32_t wide;
      std::memcpy(&wide, next, sizeof wide);
      value = wide;
    }
    next += bytes;
    return value;
  }
};

enum Prefix { NoPrefix, P66, PF3, PF2 };

/// VEX.128.pp.0F38.W0: c4 [R X B 00010] [W vvvv L pp] opcode ModRM ...
Instruction decode(const uint8_t *at, const greg_t *registers) {
  Instruction in;
  if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || (at[2] & 0x84) != 0)
    return in;
  const auto prefix = Prefix(at[2] & 3);
  const unsigned vvvv = ~(at[2] >> 3) & 15, modrm = at[4], mod = modrm >> 6, reg = modrm >> 3 & 7;
  const bool r = !(at[1] & 0x80), memory = mod != 3;
  Operand operand = {registers, at + 5, mod, modrm & 7, !(at[1] & 0x40), !(at[1] & 0x20)};
  const auto finish = [&](Kind kind) {
    in.kind = kind;
    in.length = unsigned(operand.next - at);
    return in;
  };
  switch (at[3]) {
  case 0x49:
    if (vvvv || r)
      return in;
    if (memory && reg == 0 && (prefix == NoPrefix || prefix == P66) && operand.read(false, in))
      return finish(prefix == NoPrefix ? LoadConfig : StoreConfig);
    in.tile = reg;
    if (modrm == 0xc0 && prefix == NoPrefix)
      return finish(Release);
    if (!memory && operand.rm == 0 && prefix == PF2)
      return finish(Zero);
    return in;
  case 0x4b: // tileloadd, tileloaddt1, tilestored
    if (vvvv || r || !memory || prefix == NoPrefix || !operand.read(true, in))
      return in;
    in.tile = reg;
    return finish(prefix == PF3 ? Store : Load);
  case 0x5c: // tdpbf16ps; with F2 it is tdpfp16ps, which this unit does not have
  case 0x5e: // tdpb[su][su]d: the first letter is of the second operand, ModRM.rm
    if (memory || r || operand.b || vvvv > 7 || (at[3] == 0x5c && prefix != PF3))
      return in;
    in.tile = reg;
    in.a = operand.rm;
    in.b = vvvv;
    in.aSigned = prefix == PF2 || prefix == PF3;
    in.bSigned = prefix == PF2 || prefix == P66;
    return finish(at[3] == 0x5c ? Bf16Dot : ByteDot);
  default:
    return in;
  }
}

Fault execute(const Instruction &in) {
  switch (in.kind) {
  case LoadConfig:
    return unit.loadConfig(in.address);
  case StoreConfig:
    return unit.storeConfig(in.address);
  case Release:
    unit.release();
    return Fault::None;
  case Zero:
    return unit.zero(in.tile);
  case Load:
    return unit.load(in.tile, in.address, in.stride);
  case Store:
    return unit.store(in.tile, in.address, in.stride);
  case ByteDot:
    return unit.dotBytes(in.tile, in.a, in.b, in.aSigned, in.bSigned);
  case Bf16Dot:
    return unit.dotBf16(in.tile, in.a, in.b);
  case kinds:
    break;
  }
  return Fault::InvalidOpcode;
}

void say(const char *text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

void onIllegalInstruction(int, siginfo_t *, void *context) {
  greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  for (bool any = false;; any = true) {
    const auto *at = reinterpret_cast<const uint8_t *>(registers[REG_RIP]);
    const Instruction in = decode(at, registers);
    // Another signal costs more than looking whether the next one is for us as well.
    if (!in.length && any)
      return;
    const Fault fault = in.length ? execute(in) : Fault::InvalidOpcode;
    if (fault != Fault::None) {
      say(!in.length                          ? "emulator: an illegal instruction\n"
          : fault == Fault::GeneralProtection ? "emulator: #GP by a tile configuration\n"
                                              : "emulator: #UD by a tile instruction\n");
      std::signal(SIGILL, SIG_DFL); // and run it again
      return;
    }
    executed[in.kind].fetch_add(1, std::memory_order_relaxed);
    registers[REG_RIP] += in.length;
  }
}

} // namespace

Mode test::amx::install() {
  const rt::CpuFeatures host = rt::CpuFeatures::host();
  const bool vectors = host.has("avx512f") && host.has("avx512bw") && host.has("avx512vnni");
  if (!vectors)
    return mode = Mode::None;
  if (host.has("amx-bf16") && host.permitted().has("amx-bf16"))
    return mode = Mode::Native;
  struct sigaction action = {};
  action.sa_sigaction = onIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
  return mode = Mode::Emulated;
}

rt::CpuFeatures test::amx::features(Mode mode) {
  constexpr std::string_view tiles[] = {"amx-tile", "amx-int8", "amx-bf16"};
  const rt::CpuFeatures host = rt::CpuFeatures::host();
  return mode == Mode::Emulated ? host | rt::CpuFeatures::of(tiles) : host;
}

Counts test::amx::counts() {
  return {executed[LoadConfig], executed[Release], executed[Zero],   executed[Load],
          executed[Store],      executed[ByteDot], executed[Bf16Dot]};
}

void test::amx::resetCounts() {
  for (auto &count : executed)
    count = 0;
}

// Tile data is component 18 of the extended state. XGETBV(1) says which components are not in their
// initial state.
bool test::amx::tilesInUse() {
  if (mode != Mode::Native)
    return unit.configured();
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return low >> 17 & 3;
}
