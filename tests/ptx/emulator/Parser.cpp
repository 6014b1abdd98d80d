//===- Parser.cpp - declarations of PTX -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Parser.h"

#include <cstring>

namespace llmc::ptx {

// A text larger than these is refused: no kernel needs them.
constexpr size_t maxText = 256u << 20;
constexpr uint64_t maxVariable = 1u << 28;
constexpr uint64_t maxInitialised = 1u << 28;

unsigned sizeOf(Type type) {
  switch (type) {
  case Type::None:
  case Type::Pred:
    return 0;
  case Type::U8:
  case Type::S8:
  case Type::B8:
  case Type::E4M3:
  case Type::E5M2:
    return 1;
  case Type::U16:
  case Type::S16:
  case Type::B16:
  case Type::F16:
  case Type::BF16:
  case Type::E4M3x2:
  case Type::E5M2x2:
    return 2;
  case Type::U64:
  case Type::S64:
  case Type::B64:
  case Type::F64:
    return 8;
  case Type::B128:
    return 16;
  default:
    return 4;
  }
}

bool isFloat(Type type) { return type >= Type::F16; }
bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }

Type typeNamed(std::string_view name) {
  static const std::unordered_map<std::string_view, Type> names = {
      {"pred", Type::Pred},     {"u8", Type::U8},     {"u16", Type::U16},
      {"u32", Type::U32},       {"u64", Type::U64},   {"s8", Type::S8},
      {"s16", Type::S16},       {"s32", Type::S32},   {"s64", Type::S64},
      {"b8", Type::B8},         {"b16", Type::B16},   {"b32", Type::B32},
      {"b64", Type::B64},       {"b128", Type::B128}, {"f16", Type::F16},
      {"f16x2", Type::F16x2},   {"bf16", Type::BF16}, {"bf16x2", Type::BF16x2},
      {"tf32", Type::TF32},     {"f32", Type::F32},   {"f64", Type::F64},
      {"e4m3", Type::E4M3},     {"e5m2", Type::E5M2}, {"e4m3x2", Type::E4M3x2},
      {"e5m2x2", Type::E5M2x2},
  };
  auto it = names.find(name);
  return it == names.end() ? Type::None : it->second;
}

bool Parser::failAt(uint32_t line, const std::string &what) {
  if (error.empty())
    error = "line " + std::to_string(line) + ": " + what;
  return false;
}

bool Parser::expect(char c) {
  if (!token.is(c))
    return fail(std::string("expected '") + c + "', got '" + std::string(token.text.substr(0, 40)) +
                "'");
  advance();
  return true;
}

bool Parser::take(char c) {
  if (!token.is(c))
    return false;
  advance();
  return true;
}

bool Parser::unsignedNumber(uint64_t &value, uint64_t limit, const char *what) {
  if (token.kind != Token::Integer || token.bits > limit)
    return fail(std::string(what) + " is not a number up to " + std::to_string(limit));
  value = token.bits;
  advance();
  return true;
}

void Parser::skipLine() {
  uint32_t line = token.line;
  while (token.kind != Token::End && token.line == line)
    advance();
}

bool Parser::skipStatement() {
  while (token.kind != Token::End && !token.is(';'))
    advance();
  return expect(';');
}

bool Parser::skipBraces() {
  while (token.kind != Token::End && !token.is('{'))
    advance();
  unsigned depth = 0;
  do {
    if (token.kind == Token::End)
      return fail("a '{' without its '}'");
    depth += token.is('{');
    depth -= token.is('}');
    advance();
  } while (depth);
  return true;
}

bool Parser::run() {
  if (module.text.size() > maxText)
    return fail("the text is larger than 256 MiB");
  while (token.kind != Token::End)
    if (!topLevel())
      return false;
  if (module.target.empty())
    return fail("no .target");
  return true;
}

bool Parser::topLevel() {
  if (token.kind != Token::Directive)
    return fail("expected a directive, got '" + std::string(token.text.substr(0, 40)) + "'");
  bool isExtern = false;
  while (token.text == ".visible" || token.text == ".extern" || token.text == ".weak" ||
         token.text == ".common") {
    isExtern |= token.text == ".extern";
    advance();
  }
  std::string_view name = token.text;
  if (name == ".version") {
    advance();
    // 9.0 is lexed as a decimal.
    if (token.kind != Token::Float64)
      return fail(".version wants MAJOR.MINOR");
    double version;
    memcpy(&version, &token.bits, 8);
    if (!(version >= 1 && version < 100))
      return fail("no such .version");
    module.major = unsigned(version);
    module.minor = unsigned(version * 10 + 0.5) % 10;
    advance();
    return true;
  }
  if (name == ".target") {
    advance();
    if (token.kind != Token::Word || token.text.substr(0, 3) != "sm_")
      return fail(".target wants sm_NN");
    module.target = token.text;
    advance();
    while (take(','))
      advance();
    return true;
  }
  if (name == ".address_size") {
    advance();
    if (token.kind != Token::Integer || token.bits != 64)
      return fail("only .address_size 64 is supported");
    advance();
    return true;
  }
  if (name == ".file" || name == ".loc") {
    skipLine();
    return true;
  }
  if (name == ".section")
    return skipBraces();
  if (name == ".pragma")
    return skipStatement();
  if (name == ".entry" || name == ".func") {
    advance();
    return function(name == ".entry", isExtern);
  }
  Space space;
  if (name == ".global")
    space = Space::Global;
  else if (name == ".const")
    space = Space::Const;
  else if (name == ".shared")
    space = Space::Shared;
  else
    return fail("unknown directive '" + std::string(name) + "'");
  advance();
  size_t first = module.variables.size();
  if (!variables(space, isExtern, module.variables))
    return false;
  for (size_t i = first; i < module.variables.size(); ++i)
    if (!module.variableIndex.emplace(module.variables[i].name, i).second &&
        !module.variables[i].isExtern)
      return fail("'" + std::string(module.variables[i].name) + "' is defined twice");
  return true;
}

bool Parser::variables(Space space, bool isExtern, std::vector<Variable> &out) {
  Variable common;
  common.space = space;
  common.isExtern = isExtern;
  Variable v = common;
  if (!variable(v, false))
    return false;
  out.push_back(v);
  while (take(',')) {
    Variable next;
    next.space = space;
    next.isExtern = isExtern;
    next.type = v.type;
    next.align = v.align;
    if (!variable(next, true))
      return false;
    out.push_back(next);
  }
  return expect(';');
}

bool Parser::variable(Variable &v, bool inList) {
  v.line = token.line;
  uint64_t lanes = 1;
  while (token.kind == Token::Directive) {
    std::string_view name = token.text.substr(1);
    if (name == "align") {
      advance();
      uint64_t align;
      if (!unsignedNumber(align, 1 << 16, ".align"))
        return false;
      if (!align || (align & (align - 1)))
        return fail(".align is not a power of two");
      v.align = align;
      continue;
    }
    if (name == "attribute") {
      advance();
      while (token.kind != Token::End && !token.is(')'))
        advance();
      if (!expect(')'))
        return false;
      continue;
    }
    if (name == "v2" || name == "v4") {
      lanes = name[1] - '0';
    } else if (name == "ptr" || name == "global" || name == "shared" || name == "const" ||
               name == "local" || name == "generic") {
      // Said of a pointer parameter: no more than a hint.
    } else {
      Type type = typeNamed(name);
      if (type == Type::None || type == Type::Pred)
        return fail("unknown type '." + std::string(name) + "'");
      v.type = type;
      if (v.align < sizeOf(type))
        v.align = sizeOf(type);
    }
    advance();
  }
  if (v.type == Type::None)
    return fail("a variable without a type");
  if (token.kind != Token::Word)
    return fail("expected a name");
  v.name = token.text;
  advance();
  v.size = sizeOf(v.type) * lanes;
  bool open = false;
  while (take('[')) {
    uint64_t count = 0;
    if (token.is(']'))
      open = true;
    else if (!unsignedNumber(count, maxVariable, "an array's size"))
      return false;
    v.size = count > maxVariable / (v.size ? v.size : 1) ? maxVariable + 1 : v.size * count;
    if (v.size > maxVariable)
      return fail("'" + std::string(v.name) + "' is larger than 256 MiB");
    if (!expect(']'))
      return false;
  }
  if (open && !v.isExtern && !token.is('='))
    return fail("'" + std::string(v.name) + "' has no size");
  if (token.is('=')) {
    advance();
    return initialiser(v);
  }
  return true;
}

bool Parser::initialiser(Variable &v) {
  uint64_t at = 0;
  unsigned depth = 0;
  do {
    if (token.is('{')) {
      ++depth;
      advance();
    } else if (token.is('}') && depth) {
      --depth;
      advance();
    } else if (!initialiserValue(v, at)) {
      return false;
    }
    if (depth)
      take(',');
  } while (depth);
  if (v.size == 0)
    v.size = at;
  if (at > v.size)
    return fail("more initial values than '" + std::string(v.name) + "' has room for");
  v.init.resize(v.size);
  return true;
}

bool Parser::initialiserValue(Variable &v, uint64_t &at) {
  unsigned size = sizeOf(v.type);
  if (at + size > maxInitialised)
    return fail("an initialiser larger than 256 MiB");
  if (v.init.size() < at + size)
    v.init.resize(at + size);
  if (token.kind == Token::Word) {
    Relocation r;
    r.at = at;
    r.generic = token.text == "generic";
    if (r.generic) {
      advance();
      if (!expect('('))
        return false;
    }
    r.symbol = token.text;
    if (token.kind != Token::Word || size != 8)
      return fail("an address as an initial value wants a 64-bit type");
    advance();
    if (r.generic && !expect(')'))
      return false;
    if (take('+')) {
      r.addend = token.bits;
      if (token.kind != Token::Integer)
        return fail("expected a number");
      advance();
    }
    v.relocations.push_back(r);
    at += size;
    return true;
  }
  bool negative = take('-');
  uint64_t bits = token.bits;
  switch (token.kind) {
  case Token::Integer:
    if (negative)
      bits = 0 - bits;
    if (v.type == Type::F32 || v.type == Type::F64) {
      double value = double(int64_t(bits));
      float narrow = float(value);
      bits = 0;
      if (v.type == Type::F32)
        memcpy(&bits, &narrow, 4);
      else
        memcpy(&bits, &value, 8);
    }
    break;
  case Token::Float32:
    if (negative)
      bits ^= 1u << 31;
    break;
  case Token::Float64:
    if (negative)
      bits ^= uint64_t(1) << 63;
    if (v.type == Type::F32) {
      double value;
      memcpy(&value, &bits, 8);
      float narrow = float(value);
      bits = 0;
      memcpy(&bits, &narrow, 4);
    }
    break;
  default:
    return fail("expected an initial value");
  }
  memcpy(v.init.data() + at, &bits, size < 8 ? size : 8);
  at += size;
  advance();
  return true;
}

bool Parser::parameters(Function &f, std::vector<int> &list) {
  if (!expect('('))
    return false;
  if (take(')'))
    return true;
  do {
    Variable v;
    v.space = Space::Param;
    if (token.text != ".param")
      return fail("expected .param");
    advance();
    v.isExtern = false;
    if (!variable(v, true))
      return false;
    list.push_back(f.variables.size());
    if (!scopes.back().variables.emplace(v.name, f.variables.size()).second)
      return fail("two parameters '" + std::string(v.name) + "'");
    f.variables.push_back(v);
  } while (take(','));
  return expect(')');
}

bool Parser::functionDirectives(Function &f) {
  while (token.kind == Token::Directive) {
    std::string_view name = token.text;
    uint64_t value[3] = {1, 1, 1};
    if (name == ".pragma") {
      if (!skipStatement())
        return false;
      continue;
    }
    if (name == ".noreturn" || name == ".explicitcluster" || name == ".blocksareclusters") {
      advance();
      continue;
    }
    if (name != ".maxntid" && name != ".reqntid" && name != ".minnctapersm" && name != ".maxnreg" &&
        name != ".maxclusterrank" && name != ".reqnctapercluster")
      return fail("unknown directive '" + std::string(name) + "'");
    advance();
    unsigned n = 0;
    do {
      if (n == 3)
        return fail("too many numbers");
      if (!unsignedNumber(value[n++], 1 << 20, "a limit"))
        return false;
    } while (take(','));
    if (name == ".maxntid" || name == ".reqntid")
      f.maxThreads = value[0] * value[1] * value[2];
    if (name == ".reqntid")
      for (unsigned i = 0; i < 3; ++i)
        f.requiredThreads[i] = value[i];
    if (name == ".reqnctapercluster" && value[0] * value[1] * value[2] > 1)
      return fail("clusters are not supported");
  }
  return true;
}

bool Parser::function(bool isEntry, bool isExtern) {
  Function f;
  f.isEntry = isEntry;
  f.line = token.line;
  scopes.assign(1, {});
  if (!isEntry && token.is('(') && !parameters(f, f.results))
    return false;
  if (token.kind != Token::Word)
    return fail("expected a function's name");
  f.name = token.text;
  advance();
  if (token.is('(') && !parameters(f, f.params))
    return false;
  if (!functionDirectives(f))
    return false;
  if (take(';')) {
    f.isDeclaration = true;
    if (!module.functionIndex.count(f.name)) {
      module.functionIndex[f.name] = module.functions.size();
      module.functions.push_back(std::move(f));
    }
    return true;
  }
  if (!body(f))
    return false;
  auto it = module.functionIndex.find(f.name);
  if (it != module.functionIndex.end()) {
    if (!module.functions[it->second].isDeclaration)
      return failAt(f.line, "'" + std::string(f.name) + "' is defined twice");
    module.functions[it->second] = std::move(f);
    return true;
  }
  module.functionIndex[f.name] = module.functions.size();
  module.functions.push_back(std::move(f));
  return true;
}

std::unique_ptr<Module> parse(std::string text, std::string &error) {
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  // A driver hands over text with its terminator.
  while (!module->text.empty() && module->text.back() == '\0')
    module->text.pop_back();
  Parser parser(*module);
  if (!parser.run()) {
    error = parser.error;
    return nullptr;
  }
  return module;
}

} // namespace llmc::ptx
