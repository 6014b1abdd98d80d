//===- Parser.h - from text to a Module -------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_PARSER_H
#define LLMC_TESTS_PTX_EMULATOR_PARSER_H

#include "tests/ptx/emulator/Lexer.h"
#include "tests/ptx/emulator/Module.h"

namespace llmc::ptx {

/// A recursive-descent parser that stops at the first error.
class Parser {
public:
  Parser(Module &module) : module(module), lexer(module.text) { advance(); }
  bool run();
  std::string error;

private:
  struct Declared {
    Type type = Type::None;
    uint64_t count = 0; // 0: one register, else a range
  };
  /// A `{ }` of a function body: registers and variables seen there.
  struct Scope {
    std::unordered_map<std::string_view, Declared> registers;
    std::unordered_map<std::string_view, int> resolved;
    std::unordered_map<std::string_view, int> variables;
  };

  bool fail(const std::string &what) { return failAt(token.line, what); }
  bool failAt(uint32_t line, const std::string &what);
  void advance() { token = lexer.next(); }
  bool expect(char c);
  bool take(char c);
  bool unsignedNumber(uint64_t &value, uint64_t limit, const char *what);
  void skipLine();
  bool skipStatement();
  bool skipBraces();

  // Module level.
  bool topLevel();
  bool function(bool isEntry, bool isExtern);
  bool parameters(Function &f, std::vector<int> &list);
  bool functionDirectives(Function &f);
  /// Variables after their space's directive, up to and with the `;`.
  bool variables(Space space, bool isExtern, std::vector<Variable> &out);
  /// One: `.align 4 .b8 name[16]`, without `;`.
  bool variable(Variable &v, bool inList);
  bool initialiser(Variable &v);
  bool initialiserValue(Variable &v, uint64_t &at);

  // Function bodies (ParseBody.cpp).
  bool body(Function &f);
  bool statement();
  bool registers();
  bool label(std::string_view name, uint32_t line);
  bool instruction();
  bool operand(Operand &out, unsigned depth);
  bool word(Operand &out);
  bool address(Operand &out);
  bool list(std::vector<Operand> &out, char end, unsigned depth);
  int findRegister(std::string_view name);
  int findVariable(std::string_view name);
  int declareRegister(Type type, std::string_view name);

  Module &module;
  Lexer lexer;
  Token token;
  Function *current = nullptr;
  std::vector<Scope> scopes;
};

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_PARSER_H
