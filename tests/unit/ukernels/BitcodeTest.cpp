//===- BitcodeTest.cpp - the embedded bitcode folds to straight code ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Ukernels.h"
#include "compiler/weights/Format.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include <gtest/gtest.h>

using namespace llmc;
using namespace llvm;

namespace {

std::unique_ptr<Module> parse(const UkernelIsa &isa, LLVMContext &context) {
  auto module = parseBitcodeFile(MemoryBufferRef(isa.bitcode, isa.name), context);
  if (!module) {
    ADD_FAILURE() << toString(module.takeError());
    return nullptr;
  }
  return std::move(*module);
}

TEST(Bitcode, KernelsCarryTheAttributesThatAreAskedOfCallers) {
  for (const UkernelIsa &isa : ukernelIsas()) {
    LLVMContext context;
    const auto module = parse(isa, context);
    ASSERT_TRUE(module);
    EXPECT_FALSE(verifyModule(*module, &errs()));
    EXPECT_EQ(module->getTargetTriple().str(), isa.triple);
    for (const Function &f : *module) {
      if (f.isDeclaration()) {
        EXPECT_TRUE(f.isIntrinsic()) << f.getName().str() << " has no body";
        continue;
      }
      EXPECT_TRUE(f.hasFnAttribute(Attribute::AlwaysInline)) << f.getName().str();
      EXPECT_EQ(f.getFnAttribute("target-cpu").getValueAsString(), isa.cpu);
      for (auto [name, value] : isa.functionAttributes)
        EXPECT_TRUE(f.hasFnAttribute(name) || name == "min-legal-vector-width") << name.str();
    }
  }
  EXPECT_EQ(lookupUkernelIsa("pdp-11"), nullptr);
}

/// A function `run(w, act, rows, out)` that calls uk_matmul with all else constant.
Function *makeCaller(Module &module, const UkernelIsa &isa, const Encoding &encoding, int64_t K) {
  LLVMContext &context = module.getContext();
  IRBuilder<> b(context);
  Type *ptr = b.getPtrTy();
  auto *type = FunctionType::get(b.getVoidTy(), {ptr, ptr, b.getInt32Ty(), ptr}, false);
  auto *caller = Function::Create(type, Function::ExternalLinkage, "run", module);
  for (auto [name, value] : isa.functionAttributes)
    caller->addFnAttr(name, value);
  b.SetInsertPoint(BasicBlock::Create(context, "entry", caller));

  const int32_t kind = encoding.isFloat() ? ukActF32 : ukActInt8;
  SmallVector<Value *> args = {
      caller->getArg(0), caller->getArg(1), b.getInt64(ukActStride(kind, K)),
      caller->getArg(2), b.getInt64(K),     b.getInt32(kind)};
  for (int32_t arg : kernelFormatArgs(encoding))
    args.push_back(b.getInt32(arg));
  args.append({caller->getArg(3), b.getInt64(64)});
  SmallVector<Type *> types;
  for (Value *arg : args)
    types.push_back(arg->getType());
  b.CreateCall(
      module.getOrInsertFunction("uk_matmul", FunctionType::get(b.getVoidTy(), types, false)),
      args);
  b.CreateRetVoid();
  return caller;
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

// With constants no branch on the format, no call and no stack slot is left.
TEST(Bitcode, MatmulFoldsForEveryEncoding) {
  for (const UkernelIsa &isa : ukernelIsas())
    for (const Encoding &encoding : encodings()) {
      SCOPED_TRACE(isa.name.str() + " " + encoding.name.str());
      LLVMContext context;
      Module module("test", context);
      module.setTargetTriple(Triple(isa.triple));
      makeCaller(module, isa, encoding, 512);
      auto kernels = parse(isa, context);
      ASSERT_TRUE(kernels);
      module.setDataLayout(kernels->getDataLayout());
      ASSERT_FALSE(Linker::linkModules(module, std::move(kernels), Linker::LinkOnlyNeeded));
      internalizeModule(module, [](const GlobalValue &g) { return g.getName() == "run"; });
      optimize(module);

      unsigned bodies = 0;
      for (const Function &f : module)
        bodies += !f.isDeclaration();
      EXPECT_EQ(bodies, 1u);
      for (const Instruction &inst : instructions(module.getFunction("run"))) {
        EXPECT_FALSE(llvm::isa<AllocaInst>(inst));
        auto *call = dyn_cast<CallBase>(&inst);
        EXPECT_TRUE(!call ||
                    (call->getCalledFunction() && call->getCalledFunction()->isIntrinsic()));
      }
    }
}

} // namespace
