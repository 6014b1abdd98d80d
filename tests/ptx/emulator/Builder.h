//===- Builder.h - from a Module to a Program -------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_BUILDER_H
#define LLMC_TESTS_PTX_EMULATOR_BUILDER_H

#include "tests/ptx/emulator/Program.h"

namespace llmc::ptx {

/// An opcode's modifiers, each taken by what understands it; what is left over is an error.
class Modifiers {
public:
  explicit Modifiers(const std::vector<std::string_view> &list) : list(list) {}
  bool take(std::string_view name) {
    for (size_t i = 0; i < list.size(); ++i)
      if (!(used >> i & 1) && list[i] == name) {
        used |= uint64_t(1) << i;
        return true;
      }
    return false;
  }
  /// Takes the modifiers that begin with `prefix`.
  bool takePrefix(std::string_view prefix) {
    bool any = false;
    for (size_t i = 0; i < list.size(); ++i)
      if (!(used >> i & 1) && list[i].substr(0, prefix.size()) == prefix) {
        used |= uint64_t(1) << i;
        any = true;
      }
    return any;
  }
  /// The first modifier left that is a type; None if there is none.
  Type type() {
    for (size_t i = 0; i < list.size(); ++i)
      if (!(used >> i & 1))
        if (Type t = typeNamed(list[i]); t != Type::None) {
          used |= uint64_t(1) << i;
          return t;
        }
    return Type::None;
  }
  /// One of the names: its index, or -1.
  template <size_t N> int oneOf(const char *const (&names)[N]) {
    for (size_t i = 0; i < N; ++i)
      if (take(names[i]))
        return int(i);
    return -1;
  }
  bool bounded() const { return list.size() <= 64; }
  std::string_view left() const {
    for (size_t i = 0; i < list.size(); ++i)
      if (!(used >> i & 1))
        return list[i];
    return {};
  }

private:
  const std::vector<std::string_view> &list;
  uint64_t used = 0;
};

/// Bytes of a register that holds a value of the type: bytes are kept in 16 bits.
inline unsigned registerSize(Type type) { return std::max(sizeOf(type), 2u); }

/// Where a function's registers and variables are, in one of its inlined instances.
struct Frame {
  const Function *function = nullptr;
  std::vector<uint32_t> registers; // slots, Inst::none: not used yet
  /// Per variable: offset into the kernel's parameters, local or shared memory, or device address.
  std::vector<uint64_t> variables;
  std::vector<bool> placed;
  std::vector<Space> spaces;    // a parameter of an inlined function is in local memory
  std::vector<uint32_t> labels; // pc of each instruction of the body
  unsigned depth = 0;
};

/// Emits decoded instructions.
class Builder {
public:
  Builder(Program &program, const Module &module, const Symbols &symbols)
      : program(program), module(module), symbols(symbols) {}

  bool run(const Function &kernel);
  std::string error;

  // For the families of instructions. All return false after an error.

  bool fail(const std::string &what);
  /// An instruction with the predicate and line of the current one.
  Inst make(Class cls, Handler run = nullptr) const;
  void emit(const Inst &inst);

  /// The slot of a source of `size` bytes (0: predicate). A wider register is read in its low part
  /// where `mayBeWider`.
  bool source(const Operand &operand, unsigned size, uint32_t &slot, bool mayBeWider = false);
  bool source(const Operand &operand, Type type, uint32_t &slot, bool mayBeWider = false);
  /// The slot of a destination.
  bool destination(const Operand &operand, unsigned size, uint32_t &slot);
  /// The same, where a wider register takes the value extended: the slot is then a temporary, and
  /// finishWider emits what extends it.
  bool widerDestination(const Operand &operand, Type type, uint32_t &slot);
  void finishWider();

  /// A predicate source, possibly negated (then through a temporary).
  bool predicate(const Operand &operand, uint32_t &slot);
  bool address(const Operand &operand, Inst &inst);
  bool want(size_t atLeast, size_t atMost);
  bool wantType(Type type) { return type != Type::None || fail("has no type"); }

  uint32_t allocate(unsigned size); // a new slot
  uint32_t constant(uint64_t bits, unsigned size);
  uint32_t scratch(unsigned size); // results that nobody wants
  uint32_t special(SpecialSlot::Kind kind, unsigned size);
  int registerWidth(const Operand &operand) const; // bytes; -1: not a register
  /// Address of a variable, or false if the name is none. `space` is its own.
  bool variableAddress(const Operand &operand, uint64_t &address, Space &space);
  void branch(std::string_view label); // target of the last instruction

  const Instruction *insn = nullptr;
  Program &program;

private:
  struct Fixup {
    uint32_t pc;
    uint32_t frame;
    std::string_view label;
  };
  friend bool decodeControl(Builder &, Modifiers &);
  bool inlineFunction(const Function &function, std::vector<uint64_t> offsets, unsigned depth);
  bool body(uint32_t frame);
  bool one(const Instruction &instruction);
  bool call();
  bool fixUp();
  bool place(Frame &frame, size_t variable);
  uint32_t registerSlot(int reg);

  const Module &module;
  const Symbols &symbols;
  std::vector<std::unique_ptr<Frame>> frames;
  Frame *frame = nullptr;
  std::vector<Fixup> fixups;
  struct TableFixup {
    uint32_t table, frame;
    std::vector<std::string_view> labels;
    uint32_t line;
  };
  std::vector<TableFixup> tableFixups;
  std::map<std::pair<unsigned, uint64_t>, uint32_t> constants;
  std::map<std::pair<unsigned, unsigned>, uint32_t> specials;
  std::unordered_map<std::string_view, uint32_t> sharedOffsets; // of the module's variables
  uint32_t scratches[4] = {Inst::none, Inst::none, Inst::none, Inst::none};
  std::vector<Inst> pendingWiden;
  std::vector<size_t> dynamicConstants; // addresses within the extern shared array
};

/// A family of instructions: decodes `builder.insn`, or fails.
using Decoder = bool (*)(Builder &, Modifiers &);
bool decodeInteger(Builder &, Modifiers &);
bool decodeBits(Builder &, Modifiers &);
bool decodeFloat(Builder &, Modifiers &);
bool decodeHalf(Builder &, Modifiers &); // called by decodeInteger and decodeFloat
bool decodeCompare(Builder &, Modifiers &);
bool decodeMove(Builder &, Modifiers &);
bool decodeConvert(Builder &, Modifiers &);
bool decodeMemory(Builder &, Modifiers &);
bool decodeAtomic(Builder &, Modifiers &);
bool decodeAsync(Builder &, Modifiers &);
bool decodeWarp(Builder &, Modifiers &);
bool decodeControl(Builder &, Modifiers &);
bool decodeMatrix(Builder &, Modifiers &);

/// Marks where lanes that a branch has parted meet again: the branch's immediate post-dominator.
void markJoins(Program &program);

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_BUILDER_H
