//===- LlvmModule.cpp - what every code generator does with LLVM ----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/common/LlvmModule.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llmc;

void llmc::optimizeModule(llvm::Module &module, llvm::TargetMachine &machine, bool quick) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder
      .buildPerModuleDefaultPipeline(quick ? llvm::OptimizationLevel::O1
                                           : llvm::OptimizationLevel::O3)
      .run(module, mam);
}

void llmc::dumpText(llvm::StringRef dir, llvm::StringRef name,
                    llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (dir.empty())
    return;
  llvm::SmallString<128> path(dir);
  llvm::sys::path::append(path, name);
  std::error_code ec;
  llvm::raw_fd_ostream stream(path, ec);
  if (!ec)
    print(stream);
}
