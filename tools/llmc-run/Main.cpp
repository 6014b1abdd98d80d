//===- Main.cpp - llmc-run: runs a compiled model -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Commands.h"

#include <cstdio>

int main(int argc, char **argv) {
  llmc::run::Options options;
  if (std::optional<int> exitStatus = llmc::run::parseOptions(argc, argv, options))
    return *exitStatus;
  llmc::rt::Status status = llmc::run::execute(options);
  if (status.ok())
    return 0;
  std::fprintf(stderr, "llmc-run: %s\n", status.message().c_str());
  return 1;
}
