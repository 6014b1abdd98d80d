//===- Decode.cpp - operands and names of decoded kernels -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

#include <algorithm>
#include <cstring>

namespace llmc::ptx {

constexpr uint32_t maxRegisterBytes = 64u << 20;
constexpr uint32_t maxLocal = 512u << 10;
constexpr size_t maxCode = 4u << 20;

static const std::unordered_map<std::string_view, Decoder> &decoders() {
  static const auto *table = [] {
    auto *t = new std::unordered_map<std::string_view, Decoder>;
    auto add = [&](Decoder decoder, std::initializer_list<const char *> names) {
      for (const char *name : names)
        (*t)[name] = decoder;
    };
    add(decodeInteger, {"add", "sub", "mul", "mad", "div", "rem", "min", "max", "abs", "neg", "sad",
                        "mul24", "mad24", "addc", "subc", "madc"});
    add(decodeBits,
        {"and",  "or",   "xor", "not",   "cnot", "shl",  "shr",  "shf",  "bfe", "bfi",
         "brev", "popc", "clz", "bfind", "lop3", "prmt", "dp4a", "dp2a", "fns", "bmsk"});
    add(decodeFloat,
        {"fma", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "copysign", "testp"});
    add(decodeCompare, {"setp", "set", "selp", "slct"});
    add(decodeMove, {"mov", "cvta", "isspacep", "mapa"});
    add(decodeConvert, {"cvt"});
    add(decodeMemory, {"ld", "ldu", "st", "prefetch", "prefetchu", "discard", "applypriority"});
    add(decodeAtomic, {"atom", "red"});
    add(decodeAsync, {"cp", "mbarrier", "griddepcontrol"});
    add(decodeWarp, {"shfl", "vote", "match", "redux", "activemask", "elect"});
    add(decodeControl, {"bra", "brx", "ret", "exit", "trap", "brkpt", "bar", "barrier", "membar",
                        "fence", "nanosleep", "pmevent", "setmaxnreg"});
    add(decodeMatrix, {"mma", "ldmatrix", "stmatrix", "movmatrix"});
    return t;
  }();
  return *table;
}

bool Builder::fail(const std::string &what) {
  if (error.empty()) {
    error = "line " + std::to_string(insn ? insn->line : 0) + ": ";
    if (insn)
      error += "'" + std::string(insn->opcode) + "' ";
    error += what;
  }
  return false;
}

bool Builder::want(size_t atLeast, size_t atMost) {
  size_t n = insn->operands.size();
  return (n >= atLeast && n <= atMost) || fail("has " + std::to_string(n) + " operands");
}

Inst Builder::make(Class cls, Handler run) const {
  Inst i;
  i.run = run;
  i.cls = cls;
  i.line = insn->line;
  if (insn->predicate >= 0) {
    i.pred = const_cast<Builder *>(this)->registerSlot(insn->predicate);
    i.predNegated = insn->predicateNegated;
  }
  return i;
}

void Builder::emit(const Inst &inst) {
  program.code.push_back(inst);
  program.opcodes.push_back(insn ? insn->opcode : std::string_view("end"));
}

uint32_t Builder::allocate(unsigned size) {
  if (size)
    program.registerBytes = (program.registerBytes + 63) & ~63u;
  uint32_t slot = program.registerBytes;
  if (program.registerBytes > maxRegisterBytes) {
    fail("needs more registers than the emulator gives");
    return 0;
  }
  program.registerBytes += size ? size * 32 : 4;
  return slot;
}

uint32_t Builder::registerSlot(int reg) {
  uint32_t &slot = frame->registers[reg];
  if (slot == Inst::none) {
    Type type = frame->function->registers[reg].type;
    slot = allocate(type == Type::Pred ? 0 : registerSize(type));
  }
  return slot;
}

uint32_t Builder::constant(uint64_t bits, unsigned size) {
  if (size < 8 && size)
    bits &= (uint64_t(1) << size * 8) - 1;
  auto [it, fresh] = constants.try_emplace({size, bits}, 0);
  if (fresh) {
    it->second = allocate(size);
    program.constants.push_back({it->second, uint8_t(size), bits});
  }
  return it->second;
}

uint32_t Builder::scratch(unsigned size) {
  unsigned index = size == 0 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  if (scratches[index] == Inst::none)
    scratches[index] = allocate(size);
  return scratches[index];
}

uint32_t Builder::special(SpecialSlot::Kind kind, unsigned size) {
  auto [it, fresh] = specials.try_emplace({unsigned(kind), size}, 0);
  if (fresh) {
    it->second = allocate(size);
    program.specials.push_back({it->second, uint8_t(size), kind});
  }
  return it->second;
}

int Builder::registerWidth(const Operand &operand) const {
  if (operand.kind != Operand::Reg)
    return -1;
  Type type = frame->function->registers[operand.reg].type;
  return type == Type::Pred ? 0 : int(registerSize(type));
}

static bool specialNamed(std::string_view name, SpecialSlot::Kind &kind) {
  static const std::unordered_map<std::string_view, SpecialSlot::Kind> names = {
      {"%tid.x", SpecialSlot::TidX},
      {"%tid.y", SpecialSlot::TidY},
      {"%tid.z", SpecialSlot::TidZ},
      {"%ntid.x", SpecialSlot::NtidX},
      {"%ntid.y", SpecialSlot::NtidY},
      {"%ntid.z", SpecialSlot::NtidZ},
      {"%ctaid.x", SpecialSlot::CtaX},
      {"%ctaid.y", SpecialSlot::CtaY},
      {"%ctaid.z", SpecialSlot::CtaZ},
      {"%nctaid.x", SpecialSlot::NctaX},
      {"%nctaid.y", SpecialSlot::NctaY},
      {"%nctaid.z", SpecialSlot::NctaZ},
      {"%laneid", SpecialSlot::LaneId},
      {"%warpid", SpecialSlot::WarpId},
      {"%nwarpid", SpecialSlot::NwarpId},
      {"%lanemask_lt", SpecialSlot::LtMask},
      {"%lanemask_le", SpecialSlot::LeMask},
      {"%lanemask_eq", SpecialSlot::EqMask},
      {"%lanemask_ge", SpecialSlot::GeMask},
      {"%lanemask_gt", SpecialSlot::GtMask},
      {"%smid", SpecialSlot::Zero},
      {"%nsmid", SpecialSlot::One},
      {"%gridid", SpecialSlot::GridId},
      {"%dynamic_smem_size", SpecialSlot::DynamicShared},
      {"%total_smem_size", SpecialSlot::TotalShared},
      {"%cluster_ctaid.x", SpecialSlot::Zero},
      {"%cluster_ctarank", SpecialSlot::Zero},
      {"%cluster_nctaid.x", SpecialSlot::One},
      {"%cluster_nctarank", SpecialSlot::One},
  };
  // What the driver sets; nothing here.
  if (name.substr(0, 7) == "%envreg") {
    kind = SpecialSlot::Zero;
    return true;
  }
  auto it = names.find(name);
  if (it == names.end())
    return false;
  kind = it->second;
  return true;
}

bool Builder::variableAddress(const Operand &o, uint64_t &address, Space &space) {
  if (o.variable >= 0) {
    if (!frame->placed[o.variable] && !place(*frame, o.variable))
      return false;
    address = frame->variables[o.variable] + o.offset;
    space = frame->spaces[o.variable];
    return true;
  }
  auto global = module.variableIndex.find(o.name);
  if (global == module.variableIndex.end())
    return fail("names '" + std::string(o.name.substr(0, 80)) + "', which is no variable");
  const Variable &v = module.variables[global->second];
  space = v.space;
  if (v.space == Space::Shared) {
    auto [it, fresh] = sharedOffsets.try_emplace(o.name, 0);
    if (fresh && !v.isExtern) {
      uint32_t at = (program.sharedBytes + v.align - 1) / v.align * v.align;
      it->second = at;
      program.sharedBytes = at + v.size;
      if (at + v.size > 1u << 20)
        return fail("needs more than a MiB of shared memory");
    }
    if (v.isExtern) {
      // Its place is behind all others: filled in at the end (fixUp).
      program.dynamicAlign = std::max(program.dynamicAlign, v.align);
      space = Space::Shared;
      address = ~uint64_t(0);
      return true;
    }
    address = sharedStart + it->second + o.offset;
    return true;
  }
  auto symbol = symbols.find(o.name);
  if (symbol == symbols.end())
    return fail("names '" + std::string(o.name.substr(0, 80)) + "', which is only declared");
  address = symbol->second + o.offset;
  return true;
}

bool Builder::place(Frame &f, size_t index) {
  const Variable &v = f.function->variables[index];
  f.spaces[index] = v.space;
  uint32_t align = std::max(v.align, 1u);
  auto put = [&](uint32_t &total, uint64_t limit) {
    uint64_t at = (uint64_t(total) + align - 1) / align * align;
    f.variables[index] = at;
    if (at + v.size > limit)
      return fail("a variable does not fit: '" + std::string(v.name) + "'");
    total = uint32_t(at + v.size);
    return true;
  };
  f.placed[index] = true;
  switch (v.space) {
  case Space::Local:
    return put(program.localBytes, maxLocal);
  case Space::Param:
    // A parameter of a call: like a local variable of the caller.
    f.spaces[index] = Space::Local;
    return put(program.localBytes, maxLocal);
  case Space::Shared:
    if (v.isExtern)
      return fail("an extern variable within a function");
    if (!put(program.sharedBytes, 1u << 20))
      return false;
    f.variables[index] += sharedStart;
    return true;
  default:
    return fail("a global variable within a function is not supported");
  }
}

bool Builder::source(const Operand &o, Type type, uint32_t &slot, bool mayBeWider) {
  if (type == Type::Pred)
    return predicate(o, slot);
  unsigned size = registerSize(type);
  if (o.kind == Operand::Float64 && (type == Type::F32 || size == 4)) {
    double value;
    memcpy(&value, &o.bits, 8);
    float narrow = float(value);
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    slot = constant(bits, 4);
    return true;
  }
  if (o.kind == Operand::Int && (type == Type::F32 || type == Type::F64))
    return fail("has an integer as a floating-point operand");
  return source(o, size, slot, mayBeWider);
}

bool Builder::source(const Operand &o, unsigned size, uint32_t &slot, bool mayBeWider) {
  switch (o.kind) {
  case Operand::Reg: {
    int width = registerWidth(o);
    if (width == int(size)) {
      slot = registerSlot(o.reg);
      return !o.negated || fail("negates what is no predicate");
    }
    if (!mayBeWider || width < int(size))
      return fail("has an operand of " + std::to_string(width) + " bytes where " +
                  std::to_string(size) + " are wanted");
    Inst copy = make(Class::Hidden, narrowing(width, size));
    copy.a = registerSlot(o.reg);
    copy.d = slot = allocate(size);
    emit(copy);
    return true;
  }
  case Operand::Int:
    if (size == 0)
      slot = constant(o.bits ? 1 : 0, 0);
    else
      slot = constant(o.bits, size);
    return true;
  case Operand::Float32:
    if (size != 4)
      return fail("has an f32 constant where " + std::to_string(size) + " bytes are wanted");
    slot = constant(o.bits, 4);
    return true;
  case Operand::Float64:
    if (size != 8)
      return fail("has an f64 constant where " + std::to_string(size) + " bytes are wanted");
    slot = constant(o.bits, 8);
    return true;
  case Operand::Special: {
    SpecialSlot::Kind kind;
    if (!specialNamed(o.name, kind))
      return fail("reads '" + std::string(o.name.substr(0, 40)) + "', which is no register");
    slot = special(kind, size);
    return true;
  }
  case Operand::Name: {
    uint64_t address;
    Space space;
    if (!variableAddress(o, address, space))
      return false;
    if (address == ~uint64_t(0)) {
      slot = allocate(size);
      // Patched when the size of the static variables is known.
      program.constants.push_back({slot, uint8_t(size), uint64_t(o.offset)});
      dynamicConstants.push_back(program.constants.size() - 1);
      return true;
    }
    slot = constant(address, size);
    return true;
  }
  default:
    return fail("has an operand of a kind it cannot take");
  }
}

bool Builder::destination(const Operand &o, unsigned size, uint32_t &slot) {
  if (o.kind == Operand::Sink) {
    slot = scratch(size);
    return true;
  }
  if (o.kind != Operand::Reg)
    return fail("writes to what is no register");
  if (registerWidth(o) != int(size))
    return fail("writes " + std::to_string(size) + " bytes to a register of " +
                std::to_string(registerWidth(o)));
  slot = registerSlot(o.reg);
  return true;
}

bool Builder::widerDestination(const Operand &o, Type type, uint32_t &slot) {
  unsigned size = registerSize(type);
  int width = registerWidth(o);
  if (o.kind != Operand::Reg || width <= int(size))
    return destination(o, size, slot);
  Inst copy = make(Class::Hidden, widening(size, width, isSigned(type)));
  copy.a = slot = allocate(size);
  copy.d = registerSlot(o.reg);
  pendingWiden.push_back(copy);
  return true;
}

void Builder::finishWider() {
  for (const Inst &copy : pendingWiden)
    emit(copy);
  pendingWiden.clear();
}

bool Builder::predicate(const Operand &o, uint32_t &slot) {
  if (o.kind == Operand::Int) {
    slot = constant(o.bits ? 1 : 0, 0);
    return true;
  }
  if (registerWidth(o) != 0)
    return fail("wants a predicate");
  slot = registerSlot(o.reg);
  if (o.negated) {
    Inst invert = make(Class::Hidden, invertPredicate);
    invert.a = slot;
    invert.d = slot = allocate(0);
    emit(invert);
  }
  return true;
}

bool Builder::address(const Operand &o, Inst &inst) {
  if (o.kind != Operand::Address)
    return fail("wants an address in brackets");
  if (o.reg >= 0) {
    Operand base;
    base.kind = Operand::Reg;
    base.reg = o.reg;
    int width = registerWidth(base);
    if (width != 4 && width != 8)
      return fail("has an address register of neither 32 nor 64 bits");
    inst.a = registerSlot(o.reg);
    inst.wideAddress = width == 8;
    inst.offset = o.offset;
    return true;
  }
  if (o.name.empty()) {
    inst.a = constant(o.offset, 8);
    inst.wideAddress = true;
    return true;
  }
  uint64_t address;
  Space space;
  if (!variableAddress(o, address, space))
    return false;
  bool isConst = space == Space::Const || space == Space::Global;
  if (inst.space == Space::Generic) {
    address += space == Space::Shared  ? sharedWindow
               : space == Space::Local ? localWindow
               : space == Space::Param ? paramWindow
                                       : 0;
  } else if (inst.space == Space::Param && space == Space::Local) {
    inst.space = Space::Local;
  } else if (inst.space != space &&
             !(isConst && (inst.space == Space::Const || inst.space == Space::Global))) {
    return fail("names a variable of another space");
  }
  if (address == ~uint64_t(0)) {
    Operand symbol = o;
    symbol.kind = Operand::Name;
    if (!source(symbol, 8, inst.a))
      return false;
  } else {
    inst.a = constant(address, 8);
  }
  inst.wideAddress = true;
  return true;
}

void Builder::branch(std::string_view label) {
  fixups.push_back({uint32_t(program.code.size() - 1), uint32_t(frames.size() - 1), label});
}

bool Builder::one(const Instruction &instruction) {
  insn = &instruction;
  if (program.code.size() > maxCode)
    return fail("makes the kernel larger than the emulator takes");
  if (instruction.base() == "call")
    return call();
  auto it = decoders().find(instruction.base());
  if (it == decoders().end())
    return fail("is not known");
  Modifiers modifiers(instruction.modifiers);
  if (!modifiers.bounded())
    return fail("has too many modifiers");
  if (!it->second(*this, modifiers))
    return fail("is not supported");
  finishWider();
  if (auto left = modifiers.left(); !left.empty())
    return fail("has a modifier that is not known: '." + std::string(left) + "'");
  return error.empty();
}

std::unique_ptr<Program> decode(std::shared_ptr<Module> module, const Function &kernel,
                                const Symbols &symbols, std::string &error) {
  auto program = std::make_unique<Program>();
  program->name = kernel.name;
  program->module = module;
  Builder builder(*program, *module, symbols);
  if (!builder.run(kernel)) {
    error = builder.error;
    return nullptr;
  }
  markJoins(*program);
  program->warpCount.resize(program->code.size());
  program->laneCount.resize(program->code.size());
  return program;
}

} // namespace llmc::ptx
