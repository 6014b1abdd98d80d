//===- Specialize.cpp - kernels with constants, as generated code has them ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specialize.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace llmc;
using namespace llvm;

namespace {

void makeCaller(Module &module, const UkernelIsa &isa, StringRef kernel,
                const std::vector<test::UkArg> &args) {
  IRBuilder<> b(module.getContext());
  SmallVector<Type *> all, open;
  for (const test::UkArg &arg : args) {
    Type *type = arg.type == test::UkArg::Pointer ? static_cast<Type *>(b.getPtrTy())
                 : arg.type == test::UkArg::I32   ? b.getInt32Ty()
                                                  : b.getInt64Ty();
    all.push_back(type);
    if (!arg.value)
      open.push_back(type);
  }
  auto *caller = Function::Create(FunctionType::get(b.getVoidTy(), open, false),
                                  Function::ExternalLinkage, "run", module);
  for (auto [name, value] : isa.functionAttributes)
    caller->addFnAttr(name, value);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", caller));
  SmallVector<Value *> values;
  auto *next = caller->arg_begin();
  for (auto [arg, type] : zip(args, all))
    values.push_back(arg.value ? ConstantInt::getSigned(type, *arg.value)
                               : static_cast<Value *>(next++));
  b.CreateCall(module.getOrInsertFunction(kernel, FunctionType::get(b.getVoidTy(), all, false)),
               values);
  b.CreateRetVoid();
}

void optimize(Module &module) {
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  PassBuilder builder;
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, mam);
}

} // namespace

std::unique_ptr<Module> test::specialize(const UkernelIsa &isa, LLVMContext &context,
                                         StringRef kernel, const std::vector<UkArg> &args) {
  auto kernels = cantFail(parseBitcodeFile(MemoryBufferRef(isa.bitcode, isa.name), context));
  auto module = std::make_unique<Module>("specialized", context);
  module->setTargetTriple(Triple(isa.triple));
  module->setDataLayout(kernels->getDataLayout());
  makeCaller(*module, isa, kernel, args);
  if (Linker::linkModules(*module, std::move(kernels), Linker::LinkOnlyNeeded))
    return nullptr;
  module->getFunction("run")->addFnAttr(
      module->getFunction(kernel)->getFnAttribute("target-features"));
  internalizeModule(*module, [](const GlobalValue &g) { return g.getName() == "run"; });
  optimize(*module);
  return module;
}
