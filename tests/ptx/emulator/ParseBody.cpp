//===- ParseBody.cpp - function bodies of PTX -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Parser.h"

#include <cstdlib>

namespace llmc::ptx {

constexpr size_t maxRegisters = 1u << 20;
constexpr size_t maxInstructions = 4u << 20;
constexpr size_t maxScopes = 64;

bool Parser::body(Function &f) {
  current = &f;
  if (!expect('{'))
    return false;
  size_t outer = scopes.size();
  scopes.emplace_back();
  while (scopes.size() > outer) {
    if (token.kind == Token::End)
      return fail("the body of '" + std::string(f.name) + "' does not end");
    if (take('}'))
      scopes.pop_back();
    else if (!statement())
      return false;
  }
  current = nullptr;
  return true;
}

bool Parser::statement() {
  if (take('{')) {
    if (scopes.size() >= maxScopes)
      return fail("too many nested blocks");
    scopes.emplace_back();
    return true;
  }
  if (take(';'))
    return true;
  if (token.kind == Token::Directive) {
    std::string_view name = token.text;
    if (name == ".loc" || name == ".file") {
      skipLine();
      return true;
    }
    if (name == ".pragma")
      return skipStatement();
    if (name == ".reg") {
      advance();
      return registers();
    }
    bool isExtern = name == ".extern";
    if (isExtern) {
      advance();
      name = token.text;
    }
    Space space;
    if (name == ".local")
      space = Space::Local;
    else if (name == ".shared")
      space = Space::Shared;
    else if (name == ".param")
      space = Space::Param;
    else if (name == ".global")
      space = Space::Global;
    else if (name == ".const")
      space = Space::Const;
    else
      return fail("unknown directive '" + std::string(name) + "'");
    advance();
    size_t first = current->variables.size();
    if (!variables(space, isExtern, current->variables))
      return false;
    for (size_t i = first; i < current->variables.size(); ++i)
      scopes.back().variables[current->variables[i].name] = i;
    return true;
  }
  return instruction();
}

bool Parser::registers() {
  if (token.kind != Token::Directive)
    return fail(".reg wants a type");
  Type type = typeNamed(token.text.substr(1));
  if (type == Type::None)
    return fail("unknown type '" + std::string(token.text) + "'");
  advance();
  do {
    if (token.kind != Token::Word)
      return fail("expected a register's name");
    std::string_view name = token.text;
    Declared declared{type, 0};
    advance();
    if (take('<')) {
      if (!unsignedNumber(declared.count, 1u << 30, "a range of registers") || !expect('>'))
        return false;
      if (!declared.count)
        return fail("an empty range of registers");
    }
    scopes.back().registers[name] = declared;
    // An outer register of the same name is hidden from here on.
    scopes.back().resolved.erase(name);
  } while (take(','));
  return expect(';');
}

int Parser::declareRegister(Type type, std::string_view name) {
  if (current->registers.size() >= maxRegisters) {
    fail("more than a million registers");
    return -1;
  }
  current->registers.push_back({name, type});
  return int(current->registers.size() - 1);
}

int Parser::findRegister(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  // %r07 is not the seventh.
  bool ranged = digits < name.size() && name.size() - digits <= 10 &&
                (name[digits] != '0' || name.size() == digits + 1);
  std::string_view prefix = name.substr(0, digits);
  uint64_t number = ranged ? strtoull(std::string(name.substr(digits)).c_str(), nullptr, 10) : 0;
  for (size_t i = scopes.size(); i-- > 0;) {
    Scope &scope = scopes[i];
    if (auto it = scope.resolved.find(name); it != scope.resolved.end())
      return it->second;
    auto it = scope.registers.find(name);
    if (it == scope.registers.end() || it->second.count) {
      it = ranged ? scope.registers.find(prefix) : scope.registers.end();
      if (it == scope.registers.end() || number >= it->second.count)
        continue;
    }
    int id = declareRegister(it->second.type, name);
    scope.resolved[name] = id;
    return id;
  }
  return -1;
}

int Parser::findVariable(std::string_view name) {
  for (size_t i = scopes.size(); i-- > 0;)
    if (auto it = scopes[i].variables.find(name); it != scopes[i].variables.end())
      return it->second;
  return -1;
}

bool Parser::label(std::string_view name, uint32_t line) {
  if (token.kind == Token::Directive) {
    if (token.text == ".branchtargets") {
      advance();
      BranchTable table;
      do {
        if (token.kind != Token::Word)
          return fail("expected a label");
        table.labels.push_back(token.text);
        advance();
      } while (take(','));
      current->branchTables[name] = std::move(table);
      return expect(';');
    }
    if (token.text == ".callprototype" || token.text == ".calltargets")
      return skipStatement();
  }
  if (!current->labels.emplace(name, current->body.size()).second)
    return failAt(line, "two labels '" + std::string(name) + "'");
  return true;
}

bool Parser::instruction() {
  Instruction insn;
  insn.line = token.line;
  if (take('@')) {
    insn.predicateNegated = take('!');
    insn.predicate = token.kind == Token::Word ? findRegister(token.text) : -1;
    if (insn.predicate < 0 || current->registers[insn.predicate].type != Type::Pred)
      return fail("'" + std::string(token.text.substr(0, 40)) + "' is no predicate register");
    advance();
  }
  if (token.kind != Token::Word)
    return fail("expected an instruction, got '" + std::string(token.text.substr(0, 40)) + "'");
  insn.opcode = token.text;
  insn.line = token.line;
  advance();
  if (insn.predicate < 0 && take(':'))
    return label(insn.opcode, insn.line);
  std::string_view rest = insn.opcode;
  for (size_t dot; (dot = rest.find('.')) != std::string_view::npos;) {
    rest = rest.substr(dot + 1);
    insn.modifiers.push_back(rest.substr(0, rest.find('.')));
  }
  if (current->body.size() >= maxInstructions)
    return fail("more than four million instructions");
  if (!take(';')) {
    do {
      insn.operands.emplace_back();
      if (insn.operands.size() > 64)
        return fail("too many operands");
      if (!operand(insn.operands.back(), 0))
        return false;
    } while (take(','));
    if (!expect(';'))
      return false;
  }
  current->body.push_back(std::move(insn));
  return true;
}

bool Parser::list(std::vector<Operand> &out, char end, unsigned depth) {
  if (take(end))
    return true;
  do {
    out.emplace_back();
    if (out.size() > 256)
      return fail("too many operands");
    if (!operand(out.back(), depth + 1))
      return false;
  } while (take(','));
  return expect(end);
}

bool Parser::operand(Operand &out, unsigned depth) {
  if (depth > 3)
    return fail("operands nest too deeply");
  if (take('{')) {
    out.kind = Operand::Vector;
    return list(out.elements, '}', depth);
  }
  if (take('(')) {
    out.kind = Operand::List;
    return list(out.elements, ')', depth);
  }
  if (take('['))
    return address(out);
  if (take('!')) {
    if (!operand(out, depth + 1))
      return false;
    if (out.kind != Operand::Reg)
      return fail("'!' wants a predicate register");
    out.negated = true;
    return true;
  }
  bool negative = token.is('-');
  if (negative)
    advance();
  bool inverted = !negative && token.is('~');
  if (inverted)
    advance();
  switch (token.kind) {
  case Token::Integer:
    out.kind = Operand::Int;
    out.bits = negative ? 0 - token.bits : inverted ? ~token.bits : token.bits;
    advance();
    return true;
  case Token::Float32:
    out.kind = Operand::Float32;
    out.bits = token.bits ^ (negative ? 1u << 31 : 0);
    advance();
    return true;
  case Token::Float64:
    out.kind = Operand::Float64;
    out.bits = token.bits ^ (negative ? uint64_t(1) << 63 : 0);
    advance();
    return true;
  case Token::Word:
    if (negative || inverted)
      return fail("'-' wants a number");
    if (!word(out))
      return false;
    if (take('|')) {
      Operand first = std::move(out);
      out = Operand();
      out.kind = Operand::Pair;
      out.elements.resize(2);
      out.elements[0] = std::move(first);
      return operand(out.elements[1], depth + 1);
    }
    return true;
  default:
    return fail("expected an operand, got '" + std::string(token.text.substr(0, 40)) + "'");
  }
}

bool Parser::word(Operand &out) {
  out.name = token.text;
  if (token.text == "_") {
    out.kind = Operand::Sink;
    advance();
    return true;
  }
  if (token.text == "WARP_SZ") {
    out.kind = Operand::Int;
    out.bits = 32;
    advance();
    return true;
  }
  out.reg = findRegister(token.text);
  if (!error.empty())
    return false;
  if (out.reg >= 0) {
    out.kind = Operand::Reg;
  } else if (token.text[0] == '%') {
    out.kind = Operand::Special;
  } else {
    out.kind = Operand::Name;
    out.variable = findVariable(token.text);
  }
  advance();
  if (out.kind == Operand::Name && (token.is('+') || token.is('-'))) {
    bool negative = token.is('-');
    advance();
    if (token.kind != Token::Integer)
      return fail("expected a number");
    out.offset = int64_t(negative ? 0 - token.bits : token.bits);
    advance();
  }
  return true;
}

bool Parser::address(Operand &out) {
  if (token.kind == Token::Word) {
    if (!word(out))
      return false;
    if (out.kind != Operand::Reg && out.kind != Operand::Name)
      return fail("an address is a register, a variable or a number");
  } else if (token.kind == Token::Integer) {
    out.offset = token.bits;
    advance();
  } else {
    return fail("an address is a register, a variable or a number");
  }
  out.kind = Operand::Address;
  if (token.is('+') || token.is('-')) {
    bool negative = token.is('-');
    advance();
    if (take('-'))
      negative = !negative;
    if (token.kind != Token::Integer)
      return fail("expected an offset");
    out.offset += negative ? 0 - token.bits : token.bits;
    advance();
  }
  return expect(']');
}

} // namespace llmc::ptx
