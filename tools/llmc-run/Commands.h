//===- Commands.h - what llmc-run can do ------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_COMMANDS_H
#define LLMC_TOOLS_LLMCRUN_COMMANDS_H

#include "tools/llmc-run/Options.h"

namespace llmc::run {

/// Does what the options ask for. Text goes to standard output, everything else to standard error.
rt::Status execute(const Options &options);

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_COMMANDS_H
