//===- CodeObject.cpp - kernels become PTX --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CodeObject.h"
#include "compiler/codegen/common/LlvmModule.h"
#include "compiler/codegen/cuda/Kernels.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llmc;
using namespace llmc::cuda;
using mlir::ModuleOp;

/// Kernels read and write so many floats at once.
static constexpr int64_t kRowUnit = 4;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static constexpr Target kTargets[] = {
    // The shared memory of compute capability 8.6, which runs code for 8.0, too.
    {"sm80", "sm_80", 80, 99 << 10},
    {"sm89", "sm_89", 89, 99 << 10},
    {"sm90", "sm_90", 90, 227 << 10},
};

llvm::ArrayRef<Target> cuda::targets() { return kTargets; }

const Target *cuda::lookupTarget(llvm::StringRef name) {
  for (const Target &target : kTargets)
    if (name == target.name || name == target.chip)
      return &target;
  return nullptr;
}

Launch cuda::launchFor(const LaunchSpec &spec, int64_t maxRows) {
  Launch launch{spec.grid, spec.block,
                spec.sharedBytes + spec.sharedBytesPerRow * std::min(maxRows, spec.sharedRows)};
  for (auto [blocks, rows] : llvm::zip(launch.grid, spec.rowsPerBlock))
    if (rows)
      blocks *= llvm::divideCeil(maxRows, rows);
  return launch;
}

void cuda::registerCodegenDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::gpu::GPUDialect,
                  mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect, mlir::scf::SCFDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// MLIR
//===----------------------------------------------------------------------===//

/// An error for a kernel whose rows or heads are not read in whole units, or are too long.
static llvm::Error checkSizes(mlir::Operation *op) {
  // Element-wise work takes any row: vocabularies have all sizes.
  auto row = llvm::dyn_cast<sched::RowKernelOp>(op);
  if (row && !row.getNormAttr())
    return llvm::Error::success();
  llvm::StringRef name = mlir::SymbolTable::getSymbolName(op).getValue();
  for (llvm::StringRef size : {"features", "head_dim"}) {
    auto attr = op->getAttrOfType<mlir::IntegerAttr>(size);
    int64_t value = attr ? attr.getInt() : 0;
    if (value % kRowUnit)
      return makeError("kernel '" + name + "' has " + size + " = " + llvm::Twine(value) +
                       "; GPUs read rows in units of " + llvm::Twine(kRowUnit) + " elements");
    if (size == "head_dim" && value > kMostHeadDim)
      return makeError("kernel '" + name + "' has heads of " + llvm::Twine(value) +
                       " elements; on GPUs they have at most " + llvm::Twine(kMostHeadDim));
  }
  return llvm::Error::success();
}

llvm::Expected<mlir::OwningOpRef<ModuleOp>>
cuda::emitKernels(ModuleOp scheduled, const Target &target, CodeObject &object) {
  mlir::OwningOpRef<ModuleOp> module = ModuleOp::create(scheduled.getLoc());
  auto builder = mlir::ImplicitLocOpBuilder::atBlockEnd(scheduled.getLoc(), module->getBody());
  Emitter emitter(mlir::gpu::GPUModuleOp::create(builder, "kernels"), target.capability);

  // What dispatches say of their kernels.
  llvm::StringMap<int64_t> bindings, mostRows;
  int64_t vocab = 0;
  for (auto program : scheduled.getOps<sched::ProgramOp>())
    for (auto dispatch : program.getOps<sched::DispatchOp>()) {
      bindings[dispatch.getKernel()] = dispatch.getBindings().size();
      int64_t &rows = mostRows[dispatch.getKernel()];
      rows = std::max(rows, int64_t(program.getMaxRows()));
    }
  llvm::Error refused = llvm::Error::success();
  auto emit = [&](auto op) {
    if (refused)
      return;
    llvm::StringRef name = op.getSymName();
    if ((refused = checkSizes(op)))
      return;
    auto dispatched = bindings.find(name);
    if (dispatched == bindings.end())
      return;
    emitter.beginKernel(op.getLoc(), name, dispatched->second);
    LaunchSpec launch = emitKernel(emitter, op);
    emitter.endKernel(launch);
    int64_t shared = launch.sharedBytes + launch.sharedBytesPerRow * launch.sharedRows;
    if (shared > target.sharedBytes)
      refused = makeError("kernel '" + name + "' needs " + llvm::Twine(shared) +
                          " bytes of shared memory; a block of " + target.name + " has " +
                          llvm::Twine(target.sharedBytes));
    object.kernels.push_back(name.str());
    object.launches[name] = launch;
  };
  for (mlir::Operation &op : scheduled.getOps())
    llvm::TypeSwitch<mlir::Operation *>(&op)
        .Case([&](sched::AttendKernelOp op) {
          emit(op);
          object.counterBytes =
              std::max(object.counterBytes, counterBytes(op, mostRows.lookup(op.getSymName())));
        })
        .Case([&](sched::LinearKernelOp op) {
          emit(op);
          if (op.getLogits())
            vocab = llvm::cast<sched::SegmentAttr>(op.getSegments()[0]).getRows();
        })
        .Case([&](sched::RowKernelOp op) {
          emit(op);
          if (op.getFn() == sched::RowFn::Logits)
            vocab = op.getFeatures();
        })
        .Case<sched::EmbedKernelOp, sched::PrepareKernelOp, sched::QkvKernelOp,
              sched::RopeTableKernelOp>(emit)
        .Case([&](sched::TensorKernelOp) {
          if (!refused)
            refused = makeError("graphs of tensors are compiled for CPUs only");
        })
        .Default([](mlir::Operation *) {});
  if (refused)
    return std::move(refused);
  emitter.beginKernel(scheduled.getLoc(), kPickKernel, 0);
  LaunchSpec pick = emitPickKernel(emitter, vocab);
  emitter.endKernel(pick);
  object.kernels.push_back(kPickKernel.str());
  object.launches[kPickKernel] = pick;
  return module;
}

static llvm::Error lowerToLLVM(ModuleOp module) {
  mlir::PassManager pm(module.getContext());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  pm.addPass(mlir::createSCFToControlFlowPass());
  pm.addPass(mlir::createConvertControlFlowToLLVMPass());
  pm.addPass(mlir::createArithToLLVMConversionPass());
  pm.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (failed(pm.run(module)))
    return makeError("lowering of kernels to the LLVM dialect failed");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// LLVM
//===----------------------------------------------------------------------===//

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const Target &target,
                                                                std::string &error) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *nvptx = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!nvptx)
    return nullptr;
  llvm::TargetOptions options;
  // Bits are part of the contract: the only fused operations are those the kernels wrote.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // PTX 7.8, of CUDA 11.8, knows all three targets.
  return std::unique_ptr<llvm::TargetMachine>(
      nvptx->createTargetMachine(triple, target.chip, "+ptx78", options, std::nullopt, std::nullopt,
                                 llvm::CodeGenOptLevel::Aggressive));
}

llvm::Expected<CodeObject> cuda::buildCodeObject(ModuleOp scheduled, const Target &target,
                                                 const CodeOptions &options) {
  CodeObject object;
  llvm::Expected<mlir::OwningOpRef<ModuleOp>> kernels = emitKernels(scheduled, target, object);
  if (!kernels)
    return kernels.takeError();
  dumpText(options.dumpDir, "kernels.mlir", [&](llvm::raw_ostream &os) { (*kernels)->print(os); });
  if (llvm::Error error = lowerToLLVM(**kernels))
    return error;
  llvm::LLVMContext context;
  auto gpuModule = *(*kernels)->getOps<mlir::gpu::GPUModuleOp>().begin();
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(gpuModule, context, "kernels");
  if (!module)
    return makeError("translation of kernels to LLVM IR failed");
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(target, error);
  if (!machine)
    return makeError("no code generator for " + target.name + ": " + error);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  dumpText(options.dumpDir, "kernels.ll",
           [&](llvm::raw_ostream &os) { module->print(os, nullptr); });
  if (llvm::verifyModule(*module, &llvm::errs()))
    return makeError("generated kernels are not valid LLVM IR");
  optimizeModule(*module, *machine);
  dumpText(options.dumpDir, "kernels.opt.ll",
           [&](llvm::raw_ostream &os) { module->print(os, nullptr); });
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager pm;
  if (machine->addPassesToEmitFile(pm, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return makeError("LLVM cannot write PTX");
  pm.run(*module);
  object.ptx = std::string(text);
  auto dumpPtx = [&] {
    dumpText(options.dumpDir, "kernels.ptx", [&](llvm::raw_ostream &os) { os << object.ptx; });
  };
  dumpPtx();
  std::string ptxas = options.assemble ? findPtxas() : "";
  if (ptxas.empty())
    return object;
  std::string log;
  llvm::Expected<std::string> cubin = assembleWithoutSpills(ptxas, object.ptx, target, log);
  if (!cubin)
    return cubin.takeError();
  dumpPtx();
  dumpText(options.dumpDir, "ptxas.txt", [&](llvm::raw_ostream &os) { os << log; });
  object.cubin = std::move(*cubin);
  return object;
}
