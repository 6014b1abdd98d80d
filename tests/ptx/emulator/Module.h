//===- Module.h - a parsed PTX text -----------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_MODULE_H
#define LLMC_TESTS_PTX_EMULATOR_MODULE_H

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llmc::ptx {

enum class Type : uint8_t {
  None,
  Pred,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  B8,
  B16,
  B32,
  B64,
  B128,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
};

/// Size of a value in bytes; 0 for None and Pred.
unsigned sizeOf(Type type);
bool isFloat(Type type);
bool isSigned(Type type);
/// "u32" and the like, without the dot; None if there is no such type.
Type typeNamed(std::string_view name);

enum class Space : uint8_t { Generic, Global, Shared, Local, Const, Param };

/// A register of a function; what is declared as a range `%r<N>` becomes one on its first use.
struct Register {
  std::string_view name;
  Type type = Type::None;
};

struct Operand {
  enum Kind : uint8_t {
    Reg,     // reg, with `negated` for !p
    Int,     // bits, as a 64-bit two's complement number
    Float32, // bits (0f...)
    Float64, // bits (0d... or a decimal)
    Vector,  // elements, {a, b}
    Pair,    // elements, p|q
    List,    // elements, (a, b)
    Address, // [base + offset], base in `reg`, a variable in `variable`, or neither
    Name,    // a variable (with offset), a function or a label
    Special, // %tid.x and others, in `name`
    Sink,    // _
  };
  Kind kind = Sink;
  bool negated = false;
  int reg = -1;
  int variable = -1;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string_view name;
  std::vector<Operand> elements;
};

struct Instruction {
  std::string_view opcode;                 // "ld.global.u32"
  std::vector<std::string_view> modifiers; // opcode split at its dots, without the first part
  int predicate = -1;
  bool predicateNegated = false;
  std::vector<Operand> operands;
  uint32_t line = 0;
  std::string_view base() const { return opcode.substr(0, opcode.find('.')); }
};

/// Part of an initialiser that is the address of another variable.
struct Relocation {
  uint64_t at = 0; // byte
  std::string_view symbol;
  int64_t addend = 0;
  bool generic = false;
};

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  Type type = Type::None;
  uint64_t size = 0; // bytes; 0 for an extern array
  uint32_t align = 1;
  bool isExtern = false;
  std::vector<uint8_t> init; // empty: zeros (global, const)
  std::vector<Relocation> relocations;
  uint32_t line = 0;
};

struct BranchTable {
  std::vector<std::string_view> labels;
};

struct Function {
  std::string_view name;
  bool isEntry = false;
  bool isDeclaration = false;
  uint32_t line = 0;
  std::vector<int> params;  // indices into variables, in order
  std::vector<int> results; // the same, of a .func
  /// Variables declared in the function, with its params; those of the module come by name.
  std::vector<Variable> variables;
  std::vector<Register> registers;
  std::vector<Instruction> body;
  std::unordered_map<std::string_view, uint32_t> labels; // index into body
  std::unordered_map<std::string_view, BranchTable> branchTables;
  uint32_t maxThreads = 0; // product of .maxntid or .reqntid; 0: not given
  uint32_t requiredThreads[3] = {0, 0, 0};
};

/// A parsed text. Names are views of `text`.
struct Module {
  std::string text;
  std::string target; // sm_80
  unsigned major = 0, minor = 0;
  std::vector<Variable> variables; // those outside functions
  std::unordered_map<std::string_view, int> variableIndex;
  std::vector<Function> functions;
  std::unordered_map<std::string_view, int> functionIndex;
};

/// Reads PTX text. On failure returns null and sets `error` to one line, "line N: what is wrong".
/// Text is hostile: everything is bounded, nothing is trusted.
std::unique_ptr<Module> parse(std::string text, std::string &error);

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_MODULE_H
