//===- llmc-opt.cpp - runs single passes for tests ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Phases.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  llmc::registerLlmcDialects(registry);
  llmc::registerLlmcPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "llmc's optimizer driver\n", registry));
}
