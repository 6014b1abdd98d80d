//===- Inline.cpp - bodies, calls and joins of decoded kernels ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

#include <algorithm>
#include <cstring>

namespace llmc::ptx {

constexpr unsigned maxCallDepth = 24;

bool Builder::run(const Function &kernel) {
  uint32_t bytes = 0;
  std::vector<uint64_t> offsets;
  for (int index : kernel.params) {
    const Variable &v = kernel.variables[index];
    bytes = (bytes + v.align - 1) / v.align * v.align;
    program.params.push_back({bytes, uint32_t(v.size)});
    offsets.push_back(bytes);
    bytes += v.size;
    if (bytes > 32764) {
      insn = nullptr;
      return fail("kernel '" + std::string(kernel.name) +
                  "' has more than 32764 bytes of parameters");
    }
  }
  program.paramBytes = bytes;
  program.maxThreads = kernel.maxThreads;
  std::copy_n(kernel.requiredThreads, 3, program.requiredThreads);
  program.registerBytes = 64;
  if (!inlineFunction(kernel, offsets, 0))
    return false;
  return fixUp();
}

bool Builder::inlineFunction(const Function &function, std::vector<uint64_t> offsets,
                             unsigned depth) {
  if (depth > maxCallDepth)
    return fail("is a recursion, or a call more than 24 deep");
  frames.push_back(std::make_unique<Frame>());
  Frame *outer = frame;
  uint32_t index = frames.size() - 1;
  frame = frames.back().get();
  frame->function = &function;
  frame->depth = depth;
  frame->registers.assign(function.registers.size(), Inst::none);
  frame->variables.resize(function.variables.size());
  frame->placed.resize(function.variables.size());
  frame->spaces.resize(function.variables.size());
  size_t k = 0;
  for (const auto *list : {&function.results, &function.params})
    for (int variable : *list) {
      frame->variables[variable] = offsets[k++];
      frame->placed[variable] = true;
      frame->spaces[variable] = depth ? Space::Local : Space::Param;
    }
  bool ok = body(index);
  frame = outer;
  return ok;
}

bool Builder::body(uint32_t index) {
  const Function &function = *frame->function;
  const Instruction *caller = insn;
  Frame *own = frame;
  own->labels.resize(function.body.size() + 1);
  for (size_t i = 0; i < function.body.size(); ++i) {
    own->labels[i] = program.code.size();
    size_t fixed = fixups.size(), tables = tableFixups.size();
    if (!one(function.body[i]))
      return false;
    // Calls have added frames; what this body's instructions name is in its own.
    for (size_t k = fixed; function.body[i].base() != "call" && k < fixups.size(); ++k)
      fixups[k].frame = index;
    for (size_t k = tables; function.body[i].base() != "call" && k < tableFixups.size(); ++k)
      tableFixups[k].frame = index;
  }
  own->labels[function.body.size()] = program.code.size();
  insn = caller;
  if (own->depth == 0) {
    // What falls off the end of a kernel ends.
    Inst end;
    end.run = exitLanes;
    end.cls = Class::Branch;
    end.line = function.body.empty() ? function.line : function.body.back().line;
    insn = nullptr;
    emit(end);
  }
  return true;
}

/// printf: prints nothing, and gives 0.
static void printNothing(Warp &w, const Inst &i, uint32_t mask) {
  for (unsigned l = 0; l < 32; ++l) {
    uint64_t at = uint64_t(l) * w.program->localBytes + i.imm;
    if (!(mask >> l & 1))
      continue;
    memset(w.local.data() + at, 0, 4);
    w.localInit.set(at, 4);
  }
}

bool Builder::call() {
  Modifiers modifiers(insn->modifiers);
  modifiers.take("uni");
  if (!modifiers.left().empty())
    return fail("has a modifier that is not known");
  const auto &operands = insn->operands;
  size_t at = 0;
  const std::vector<Operand> *results = nullptr, *arguments = nullptr;
  if (at < operands.size() && operands[at].kind == Operand::List)
    results = &operands[at++].elements;
  if (at >= operands.size() || operands[at].kind != Operand::Name)
    return fail("is indirect: only calls of named functions are supported");
  std::string_view name = operands[at++].name;
  if (at < operands.size() && operands[at].kind == Operand::List)
    arguments = &operands[at++].elements;
  if (name == "__assertfail") {
    emit(make(Class::Other, trapLanes));
    return true;
  }
  if (name == "vprintf") {
    Inst print = make(Class::Other, printNothing);
    uint64_t address = 0;
    Space space = Space::Local;
    if (results && results->size() == 1 && (*results)[0].variable >= 0) {
      if (!variableAddress((*results)[0], address, space))
        return false;
      if (space != Space::Local || frame->function->variables[(*results)[0].variable].size < 4)
        return fail("passes an argument of another size");
      print.imm = uint32_t(address);
      emit(print);
      return true;
    }
    return fail("passes another number of arguments than the function takes");
  }
  auto it = module.functionIndex.find(name);
  if (it == module.functionIndex.end() || module.functions[it->second].isDeclaration ||
      module.functions[it->second].isEntry)
    return fail("calls '" + std::string(name.substr(0, 80)) + "', which has no body here");
  const Function &callee = module.functions[it->second];
  std::vector<uint64_t> offsets;
  auto match = [&](const std::vector<int> &formal, const std::vector<Operand> *actual) {
    if (formal.size() != (actual ? actual->size() : 0))
      return fail("passes another number of arguments than the function takes");
    for (size_t i = 0; i < formal.size(); ++i) {
      const Operand &o = (*actual)[i];
      if (o.kind != Operand::Name || o.variable < 0)
        return fail("passes what is no .param variable");
      uint64_t address;
      Space space;
      if (!variableAddress(o, address, space))
        return false;
      const Variable &have = frame->function->variables[o.variable];
      if (space != Space::Local || have.size < callee.variables[formal[i]].size)
        return fail("passes an argument of another size");
      offsets.push_back(address);
    }
    return true;
  };
  if (!match(callee.results, results) || !match(callee.params, arguments))
    return false;
  // Lanes that do not call jump over the body.
  const Instruction *own = insn;
  uint32_t skip = Inst::none;
  if (own->predicate >= 0) {
    Inst jump = make(Class::Branch, branchLanes);
    jump.predNegated = !jump.predNegated;
    skip = program.code.size();
    emit(jump);
  } else {
    Inst jump = make(Class::Branch, nothing);
    emit(jump);
  }
  if (!inlineFunction(callee, offsets, frame->depth + 1))
    return false;
  insn = own;
  if (skip != Inst::none)
    program.code[skip].target = program.code.size();
  return true;
}

bool Builder::fixUp() {
  for (const Fixup &fix : fixups) {
    const Frame &f = *frames[fix.frame];
    uint32_t body = f.function->body.size();
    if (!fix.label.empty()) {
      auto it = f.function->labels.find(fix.label);
      if (it == f.function->labels.end()) {
        insn = nullptr;
        error = "line " + std::to_string(program.code[fix.pc].line) + ": no label '" +
                std::string(fix.label.substr(0, 80)) + "'";
        return false;
      }
      body = it->second;
    }
    program.code[fix.pc].target = f.labels[body];
  }
  for (const TableFixup &fix : tableFixups) {
    const Frame &f = *frames[fix.frame];
    for (std::string_view label : fix.labels) {
      auto it = f.function->labels.find(label);
      if (it == f.function->labels.end()) {
        error = "line " + std::to_string(fix.line) + ": no label '" +
                std::string(label.substr(0, 80)) + "'";
        return false;
      }
      program.tables[fix.table].push_back(f.labels[it->second]);
    }
  }
  uint32_t align = program.dynamicAlign;
  if (!dynamicConstants.empty())
    program.sharedBytes = (program.sharedBytes + align - 1) / align * align;
  for (size_t index : dynamicConstants)
    program.constants[index].bits += sharedStart + program.sharedBytes;
  return error.empty();
}

// Post-dominators by the iterative algorithm of Cooper, Harvey and Kennedy, on single instructions
// that begin or end a block.
void markJoins(Program &program) {
  const auto &code = program.code;
  size_t n = code.size();
  auto successors = [&](uint32_t pc, std::vector<uint32_t> &out) {
    out.clear();
    const Inst &i = code[pc];
    if (i.run == branchLanes) {
      out.push_back(i.target);
      if (i.pred != Inst::none)
        out.push_back(pc + 1);
    } else if (i.run == branchTable) {
      out = program.tables[i.target];
      if (i.pred != Inst::none)
        out.push_back(pc + 1);
    } else if (i.run == exitLanes || i.run == trapLanes) {
      out.push_back(n); // the virtual end
      if (i.pred != Inst::none)
        out.push_back(pc + 1);
    } else {
      out.push_back(pc + 1);
    }
  };
  std::vector<uint32_t> starts; // of blocks
  std::vector<bool> leader(n + 1);
  std::vector<uint32_t> next;
  bool any = false;
  leader[0] = true;
  for (uint32_t pc = 0; pc < n; ++pc) {
    const Inst &i = code[pc];
    if (i.run != branchLanes && i.run != branchTable && i.run != exitLanes && i.run != trapLanes)
      continue;
    any |= i.run == branchTable || (i.run == branchLanes && i.pred != Inst::none);
    successors(pc, next);
    for (uint32_t to : next)
      leader[to] = true;
    leader[pc + 1] = true;
  }
  if (!any)
    return;
  std::vector<uint32_t> blockOf(n + 1);
  for (uint32_t pc = 0; pc < n; ++pc) {
    if (leader[pc])
      starts.push_back(pc);
    blockOf[pc] = starts.size() - 1;
  }
  uint32_t blocks = starts.size(), end = blocks;
  blockOf[n] = end;
  std::vector<std::vector<uint32_t>> out(blocks + 1), in(blocks + 1);
  for (uint32_t b = 0; b < blocks; ++b) {
    uint32_t last = (b + 1 < blocks ? starts[b + 1] : uint32_t(n)) - 1;
    successors(last, next);
    for (uint32_t to : next) {
      out[b].push_back(blockOf[to]);
      in[blockOf[to]].push_back(b);
    }
  }
  // Order of the reversed graph, from the end, without recursion.
  std::vector<uint32_t> order, number(blocks + 1, ~0u);
  std::vector<std::pair<uint32_t, size_t>> stack{{end, 0}};
  std::vector<bool> seen(blocks + 1);
  seen[end] = true;
  while (!stack.empty()) {
    auto &[b, k] = stack.back();
    if (k < in[b].size()) {
      uint32_t to = in[b][k++];
      if (!seen[to]) {
        seen[to] = true;
        stack.push_back({to, 0});
      }
    } else {
      number[b] = order.size();
      order.push_back(b);
      stack.pop_back();
    }
  }
  std::vector<uint32_t> idom(blocks + 1, ~0u);
  idom[end] = end;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = order.size() - 1; k-- > 0;) {
      uint32_t b = order[k], best = ~0u;
      for (uint32_t s : out[b]) {
        if (idom[s] == ~0u)
          continue;
        if (best == ~0u) {
          best = s;
          continue;
        }
        uint32_t x = best, y = s;
        while (x != y) {
          while (number[x] < number[y])
            x = idom[x];
          while (number[y] < number[x])
            y = idom[y];
        }
        best = x;
      }
      if (best != idom[b]) {
        idom[b] = best;
        changed = true;
      }
    }
  }
  for (uint32_t b = 0; b < blocks; ++b)
    if (out[b].size() > 1 && idom[b] != ~0u && idom[b] != end)
      program.code[starts[idom[b]]].join = true;
}

} // namespace llmc::ptx
