//===- BitcodeTest.cpp - the embedded bitcode folds to straight code ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specialize.h"
#include "TestKernels.h"
#include "compiler/weights/Format.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace llmc;
using llmc::test::UkArg;

namespace {

// Without AVX2 the tests of this binary would compare nothing.
TEST(Bitcode, ThisCpuRunsSomeKernels) {
  if (llmc::test::kernels().empty())
    GTEST_SKIP() << "no instruction set of the micro-kernels on this cpu";
  for (const llmc::test::Kernels &k : llmc::test::kernels())
    EXPECT_NE(lookupUkernelIsa(k.isa), nullptr);
}

TEST(Bitcode, KernelsCarryTheAttributesThatAreAskedOfCallers) {
  for (const UkernelIsa &isa : ukernelIsas()) {
    llvm::LLVMContext context;
    auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(isa.bitcode, isa.name), context);
    ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
    EXPECT_FALSE(llvm::verifyModule(**module, &llvm::errs()));
    EXPECT_EQ((*module)->getTargetTriple().str(), isa.triple);
    for (const llvm::Function &f : **module) {
      SCOPED_TRACE(f.getName().str());
      if (f.isDeclaration()) {
        EXPECT_TRUE(f.isIntrinsic());
        continue;
      }
      // Functions of single values (Scalar.cpp) may be called.
      const bool scalar =
          f.hasLocalLinkage() || f.getName().ends_with("_f32") || f.getName().ends_with("_f64");
      EXPECT_TRUE(scalar || f.hasFnAttribute(llvm::Attribute::AlwaysInline));
      EXPECT_EQ(f.getFnAttribute("target-cpu").getValueAsString(), isa.cpu);
      for (auto [name, value] : isa.functionAttributes)
        EXPECT_TRUE(f.hasFnAttribute(name)) << name.str();
    }
  }
  EXPECT_EQ(lookupUkernelIsa("pdp-11"), nullptr);
}

// With constants no branch on the format, no call and no stack slot is left.
TEST(Bitcode, MatmulFoldsForEveryEncoding) {
  const int64_t K = 512;
  std::vector<const Encoding *> all;
  for (const Encoding &encoding : encodings())
    all.push_back(&encoding);
  for (const char *name : {"int4_g16_zp", "int4_g128_f32", "int8_row_f32", "f8_e4m3"})
    all.push_back(lookupEncoding(name));
  for (const UkernelIsa &isa : ukernelIsas())
    for (const Encoding *each : all) {
      const Encoding &encoding = *each;
      SCOPED_TRACE(isa.name.str() + " " + encoding.name.str());
      const int32_t kind = encoding.isFloat() ? ukActF32 : ukActInt8;
      std::vector<UkArg> args = {
          {UkArg::Pointer, {}}, {UkArg::Pointer, {}}, {UkArg::I64, ukActStride(kind, K)},
          {UkArg::I32, {}},     {UkArg::I64, K},      {UkArg::I32, kind}};
      for (int32_t arg : kernelFormatArgs(encoding))
        args.push_back({UkArg::I32, arg});
      args.push_back({UkArg::Pointer, {}});
      args.push_back({UkArg::I64, 64});
      llvm::LLVMContext context;
      const auto module = specialize(isa, context, "uk_matmul", args);
      ASSERT_TRUE(module);
      for (const llvm::Function &f : *module)
        EXPECT_TRUE(f.getName() == "run" || f.isIntrinsic()) << f.getName().str();
      // The sums of tiles go through memory.
      if (isa.bf16Tiles)
        continue;
      for (const llvm::Instruction &i : llvm::instructions(module->getFunction("run")))
        EXPECT_FALSE(llvm::isa<llvm::AllocaInst>(i));
    }
}

} // namespace
