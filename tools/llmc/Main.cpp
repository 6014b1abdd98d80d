//===- Main.cpp - the compiler's command line -----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc/Commands.h"
#include "llvm/Support/raw_ostream.h"

using namespace llmc;
using namespace llmc::tool;

int main(int argc, char **argv) {
  CLI::App app("llmc: an ahead-of-time compiler for language models", "llmc");
  app.require_subcommand(0, 1); // a word that is none shall be named first
  app.set_version_flag("--version", "llmc " LLMC_VERSION);
  Action action;
  addCompile(app, action);
  addInspect(app, action);
  addEval(app, action);
  addRenderTemplate(app, action);
  addOperators(app, action);
  addReport(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) { // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    llvm::errs() << "llmc: " << error.what() << " (see llmc --help)\n";
    return 1;
  }
  if (!action) {
    llvm::errs() << "llmc: a subcommand is needed (see llmc --help)\n";
    return 1;
  }
  if (llvm::Error error = action()) {
    llvm::errs() << "llmc: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
