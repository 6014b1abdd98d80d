//===- Profile.cpp - where the time of a program's steps goes -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Profile.h"

#include "runtime/schema/llmc_generated.h"

using namespace llmc::rt;

ProgramProfile::ProgramProfile(const fb::Program &program) : phase(program.name()->string_view()) {
  dispatches.reserve(program.dispatches()->size());
  for (const fb::Dispatch *record : *program.dispatches())
    dispatches.push_back({record->op() ? record->op()->string_view() : std::string_view(),
                          record->layer(), record->weight_bytes()});
}
