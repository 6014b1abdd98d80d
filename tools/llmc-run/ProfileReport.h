//===- ProfileReport.h - a session's profile, for people and programs -*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is one JSON object:
//
//   model, variant, threads
//   phases      [{phase, steps, ns}]
//   dispatches  [{phase, layer, op, calls, ns, bytes}], in the order of execution
//
// layer is -1 outside the layers, calls the steps in which the dispatch had
// something to do, bytes the weights that all its calls read. The ns of a phase
// are the wall time of its steps and the sum over its dispatches.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMCRUN_PROFILEREPORT_H
#define LLMC_TOOLS_LLMCRUN_PROFILEREPORT_H

#include "runtime/device/Profile.h"
#include "runtime/llm/Model.h"

#include <span>
#include <string>

namespace llmc::run {

/// Writes the file `path`, and a table by phase and op to stderr. The error says why the file
/// cannot be written.
rt::Status reportProfile(const rt::Model &model, unsigned threads,
                         std::span<const rt::ProgramProfile *const> profiles,
                         const std::string &path);

} // namespace llmc::run

#endif // LLMC_TOOLS_LLMCRUN_PROFILEREPORT_H
