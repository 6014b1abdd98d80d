//===- Commands.h - the subcommands of llmc ---------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMC_COMMANDS_H
#define LLMC_TOOLS_LLMC_COMMANDS_H

#include "runtime/base/Status.h"
#include "llvm/Support/Error.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace llmc::tool {

/// What the command line asks for; run after all of it has been read. The error is one line that
/// names the file, the place and the remedy.
using Action = std::function<llvm::Error()>;

/// Each adds its subcommand, which sets `action` when it is chosen.
void addCompile(CLI::App &app, Action &action);
void addInspect(CLI::App &app, Action &action);
void addEval(CLI::App &app, Action &action);
void addRenderTemplate(CLI::App &app, Action &action);
void addOperators(CLI::App &app, Action &action);
void addReport(CLI::App &app, Action &action);

inline llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

inline llvm::Error makeError(const rt::Status &status) { return makeError(status.message()); }

/// The bytes of a file.
llvm::Expected<std::string> readFile(const std::string &path);

} // namespace llmc::tool

#endif // LLMC_TOOLS_LLMC_COMMANDS_H
