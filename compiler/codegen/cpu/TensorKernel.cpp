//===- TensorKernel.cpp - loops over buffers as a CPU kernel --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a sched.tensor_kernel is MLIR already; it only needs the kernel
// ABI around it, and functions for what has no instruction.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/TensorKernel.h"
#include "compiler/codegen/cpu/Emitter.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

void cpu::emitKernel(Emitter &e, sched::TensorKernelOp op) {
  ImplicitLocOpBuilder &builder = e.getBuilder();
  LLVMTypeConverter converter(e.context());
  IRMapping mapping;
  Block &body = op.getBody().front();
  for (BlockArgument arg : body.getArguments().drop_back(2)) {
    auto type = cast<MemRefType>(arg.getType());
    Value buffer =
        MemRefDescriptor::fromStaticShape(builder, op.getLoc(), converter, type, e.nextBinding());
    mapping.map(arg, UnrealizedConversionCastOp::create(builder, type, buffer).getResult(0));
  }
  auto tiles = body.getArguments().take_back(2);
  for (auto [arg, tile] : {std::pair(tiles[0], e.tileBegin()), std::pair(tiles[1], e.tileEnd())})
    mapping.map(arg, arith::IndexCastOp::create(builder, builder.getIndexType(), tile));
  for (Operation &inner : body)
    builder.clone(inner, mapping);
}

void cpu::copyGlobals(ModuleOp scheduled, ModuleOp kernels) {
  OpBuilder builder = OpBuilder::atBlockBegin(kernels.getBody());
  for (auto global : scheduled.getOps<memref::GlobalOp>())
    builder.clone(*global);
}

/// The micro-kernel (Scalar.cpp) that computes a math op; empty where an instruction does.
static StringRef functionOf(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("math.acos", "acos")
      .Case("math.acosh", "acosh")
      .Case("math.asin", "asin")
      .Case("math.asinh", "asinh")
      .Case("math.atan", "atan")
      .Case("math.atanh", "atanh")
      .Case("math.cos", "cos")
      .Case("math.cosh", "cosh")
      .Case("math.erf", "erf")
      .Case("math.exp", "exp")
      .Case("math.expm1", "expm1")
      .Case("math.log", "log")
      .Case("math.log1p", "log1p")
      .Case("math.powf", "pow")
      .Case("math.sin", "sin")
      .Case("math.sinh", "sinh")
      .Case("math.tan", "tan")
      .Case("math.tanh", "tanh")
      .Case("arith.remf", "fmod")
      .Default("");
}

namespace {
/// Functions of math.h become calls of micro-kernels: there is no library.
struct LowerMath : PassWrapper<LowerMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerMath)

  void runOnOperation() override {
    SmallVector<std::pair<Operation *, StringRef>> calls;
    getOperation().walk([&](Operation *op) {
      if (StringRef name = functionOf(op); !name.empty())
        calls.push_back({op, name});
    });
    for (auto [op, name] : calls) {
      Type type = op->getResult(0).getType();
      if (!type.isF32() && !type.isF64()) {
        op->emitOpError("computes in ") << type << ", for which there is no micro-kernel";
        return signalPassFailure();
      }
      std::string symbol = ("uk_" + name + (type.isF32() ? "_f32" : "_f64")).str();
      if (!getOperation().lookupSymbol(symbol)) {
        OpBuilder top = OpBuilder::atBlockBegin(getOperation().getBody());
        auto function =
            func::FuncOp::create(top, op->getLoc(), symbol,
                                 top.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
        function.setPrivate();
      }
      OpBuilder builder(op);
      auto call = func::CallOp::create(builder, op->getLoc(), symbol, op->getResultTypes(),
                                       op->getOperands());
      op->replaceAllUsesWith(call);
      op->erase();
    }
  }
};
} // namespace

void cpu::addTensorLowering(PassManager &pm) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(arith::createArithExpandOpsPass());
  pm.addPass(std::make_unique<LowerMath>());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertIndexToLLVMPass());
}
