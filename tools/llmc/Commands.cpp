//===- Commands.cpp - what the subcommands of llmc share ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc/Commands.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llmc;

llvm::Expected<std::string> llmc::tool::readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read " + path + ": " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}
