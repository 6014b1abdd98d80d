//===- CodeObject.cpp - kernels become an ELF shared object ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/codegen/common/LlvmModule.h"
#include "compiler/codegen/cpu/Emitter.h"
#include "compiler/codegen/cpu/TensorKernel.h"
#include "lld/Common/Driver.h"
#include "llmc/kernel_abi.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

LLD_HAS_DRIVER(elf)

using namespace llmc;
using namespace llmc::cpu;
using mlir::ModuleOp;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

void cpu::registerCodegenDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::scf::SCFDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

llvm::Expected<const UkernelIsa *> cpu::resolveTarget(llvm::StringRef target) {
  if (target != "native") {
    if (const UkernelIsa *isa = lookupUkernelIsa(target))
      return isa;
    std::string known = "native";
    for (const UkernelIsa &isa : ukernelIsas())
      known += (", " + isa.name).str();
    return makeError("target '" + target + "' is not known; known targets: " + known);
  }
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  const auto arch = llvm::Triple(llvm::sys::getProcessTriple()).getArch();
  const UkernelIsa *best = nullptr;
  std::string own;
  for (const UkernelIsa &isa : ukernelIsas()) {
    if (llvm::Triple(isa.triple).getArch() != arch)
      continue;
    own += (own.empty() ? "" : ", ") + isa.name.str();
    if (llvm::all_of(isa.cpuFeatures, [&](llvm::StringRef f) { return host.lookup(f); }))
      best = &isa;
  }
  if (!best)
    return makeError("target 'native': this machine has none of the instruction sets that llmc "
                     "compiles for on its architecture" +
                     (own.empty() ? "" : " (" + own + ")") + "; name another target");
  return best;
}

//===----------------------------------------------------------------------===//
// MLIR
//===----------------------------------------------------------------------===//

mlir::OwningOpRef<ModuleOp> cpu::emitKernels(ModuleOp scheduled, const UkernelIsa &isa,
                                             const CodeOptions &options, CodeObject &object) {
  mlir::OwningOpRef<ModuleOp> module = ModuleOp::create(scheduled.getLoc());
  Emitter emitter(*module, options.fast && isa.bf16Tiles);
  auto emit = [&](auto op) {
    emitter.beginKernel(op.getLoc(), op.getSymName());
    emitKernel(emitter, op);
    emitter.endKernel();
    object.kernels.push_back(op.getSymName().str());
    object.scratchBytes[op.getSymName()] = emitter.scratchBytes();
  };
  for (mlir::Operation &op : scheduled.getOps())
    llvm::TypeSwitch<mlir::Operation *>(&op)
        .Case<sched::AttendKernelOp, sched::EmbedKernelOp, sched::LinearKernelOp,
              sched::PrepareKernelOp, sched::QkvKernelOp, sched::RopeTableKernelOp,
              sched::RowKernelOp, sched::TensorKernelOp>(emit)
        .Default([](mlir::Operation *) {});
  object.fast = emitter.changedArithmetic();
  copyGlobals(scheduled, *module);
  return module;
}

static llvm::Error lowerToLLVM(ModuleOp module, bool hasTensorKernels) {
  mlir::PassManager pm(module.getContext());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  pm.addPass(mlir::createLoopInvariantCodeMotionPass());
  if (hasTensorKernels)
    addTensorLowering(pm);
  pm.addPass(mlir::createSCFToControlFlowPass());
  pm.addPass(mlir::createConvertControlFlowToLLVMPass());
  pm.addPass(mlir::createArithToLLVMConversionPass());
  pm.addPass(mlir::createConvertFuncToLLVMPass());
  pm.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (failed(pm.run(module)))
    return makeError("lowering of kernels to the LLVM dialect failed");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// LLVM
//===----------------------------------------------------------------------===//

/// Defines the query function and the table of kernels.
static void addQuery(llvm::Module &module, llvm::ArrayRef<std::string> kernels) {
  llvm::LLVMContext &ctx = module.getContext();
  llvm::Type *pointer = llvm::PointerType::get(ctx, 0), *i32 = llvm::Type::getInt32Ty(ctx);
  llvm::SmallVector<llvm::Constant *> functions;
  for (const std::string &name : kernels)
    functions.push_back(module.getFunction(name));
  auto *arrayType = llvm::ArrayType::get(pointer, functions.size());
  auto *array =
      new llvm::GlobalVariable(module, arrayType, true, llvm::GlobalValue::InternalLinkage,
                               llvm::ConstantArray::get(arrayType, functions), "kernels");
  auto *tableType = llvm::StructType::get(i32, i32, pointer);
  auto *table = new llvm::GlobalVariable(
      module, tableType, true, llvm::GlobalValue::InternalLinkage,
      llvm::ConstantStruct::get(tableType, {llvm::ConstantInt::get(i32, LLMC_KERNEL_ABI_VERSION),
                                            llvm::ConstantInt::get(i32, functions.size()), array}),
      "library");
  auto *query =
      llvm::Function::Create(llvm::FunctionType::get(pointer, {i32}, false),
                             llvm::GlobalValue::ExternalLinkage, LLMC_QUERY_SYMBOL, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(ctx, "", query));
  llvm::Value *same =
      builder.CreateICmpEQ(query->getArg(0), llvm::ConstantInt::get(i32, LLMC_KERNEL_ABI_VERSION));
  builder.CreateRet(
      builder.CreateSelect(same, table, llvm::ConstantPointerNull::get(builder.getPtrTy())));
}

/// Gives a generated function the attributes that its instruction set asks for, and the target
/// features of the micro-kernels that it calls, so that they can be inlined: only functions whose
/// kernels use matrix tiles have that feature. A function calls kernels of equal features.
static void addAttributes(llvm::Function &function, const UkernelIsa &isa,
                          const llvm::StringSet<> &generated) {
  for (auto [key, value] : isa.functionAttributes)
    function.addFnAttr(key, value);
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
    if (!callee || callee->isIntrinsic() || generated.contains(callee->getName()))
      continue;
    function.addFnAttr(callee->getFnAttribute("target-features"));
    return;
  }
}

static llvm::Error linkUkernels(llvm::Module &module, const UkernelIsa &isa) {
  auto ukernels =
      llvm::parseBitcodeFile(llvm::MemoryBufferRef(isa.bitcode, "ukernels"), module.getContext());
  if (!ukernels)
    return ukernels.takeError();
  if (llvm::Linker::linkModules(module, std::move(*ukernels), llvm::Linker::LinkOnlyNeeded))
    return makeError("linking of the micro-kernels failed");
  for (llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic())
      return makeError("kernel calls '" + function.getName() + "', which no micro-kernel defines");
  return llvm::Error::success();
}

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const UkernelIsa &isa, bool quick,
                                                                std::string &error) {
  llvm::Triple triple(isa.triple);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  // Bits are part of the contract: the only fused operations are those the kernels wrote.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, isa.cpu, isa.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      quick ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Aggressive));
}

static llvm::Expected<std::string> emitObject(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager pm;
  if (machine.addPassesToEmitFile(pm, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return makeError("the target cannot emit object files");
  pm.run(module);
  return std::string(bytes);
}

/// Links one relocatable object to a shared object with lld, in process.
static llvm::Expected<std::string> linkShared(llvm::StringRef object) {
  llvm::SmallString<128> in, out;
  int fd;
  if (std::error_code ec = llvm::sys::fs::createTemporaryFile("llmc", "o", fd, in))
    return makeError("cannot create a temporary file: " + ec.message());
  llvm::raw_fd_ostream(fd, true) << object;
  if (std::error_code ec = llvm::sys::fs::createTemporaryFile("llmc", "so", out))
    return makeError("cannot create a temporary file: " + ec.message());
  // What the code generator calls by itself (memset, ...) must not slip in: nothing defines it.
  const char *args[] = {"ld.lld",    "-shared",     "-nostdlib",      "--hash-style=gnu",
                        "-z",        "noexecstack", "--no-undefined", "-o",
                        out.c_str(), in.c_str()};
  std::string diagnostics;
  llvm::raw_string_ostream stream(diagnostics);
  lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  auto file = llvm::MemoryBuffer::getFile(out, false, false);
  llvm::sys::fs::remove(in);
  llvm::sys::fs::remove(out);
  if (result.retCode || !file)
    return makeError("lld failed: " + diagnostics);
  return (*file)->getBuffer().str();
}

llvm::Expected<CodeObject> cpu::buildCodeObject(ModuleOp scheduled, const UkernelIsa &isa,
                                                const CodeOptions &options) {
  CodeObject object;
  llvm::StringRef dumpDir = options.dumpDir;
  mlir::OwningOpRef<ModuleOp> kernels = emitKernels(scheduled, isa, options, object);
  dumpText(dumpDir, "kernels.mlir", [&](llvm::raw_ostream &os) { kernels->print(os); });
  if (llvm::Error error = lowerToLLVM(*kernels, !scheduled.getOps<sched::TensorKernelOp>().empty()))
    return error;

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(*kernels, context, "kernels");
  if (!module)
    return makeError("translation of kernels to LLVM IR failed");
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(isa, options.quick, error);
  if (!machine)
    return makeError("no code generator for " + isa.triple + ": " + error);
  module->setTargetTriple(llvm::Triple(isa.triple));
  module->setDataLayout(machine->createDataLayout());

  llvm::StringSet<> entries(llvm::from_range, object.kernels);
  for (llvm::Function &function : *module) {
    if (function.isDeclaration())
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    // Instances of products are shared between kernels, not copied into them.
    if (!entries.contains(function.getName()))
      function.addFnAttr(llvm::Attribute::NoInline);
  }
  addQuery(*module, object.kernels);
  llvm::StringSet<> generated;
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      generated.insert(function.getName());
  if (llvm::Error linkError = linkUkernels(*module, isa))
    return linkError;
  for (llvm::Function &function : *module) {
    if (function.isDeclaration())
      continue;
    if (generated.contains(function.getName()))
      addAttributes(function, isa, generated);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.getName() != LLMC_QUERY_SYMBOL)
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  dumpText(dumpDir, "kernels.ll", [&](llvm::raw_ostream &os) { module->print(os, nullptr); });
  if (llvm::verifyModule(*module, &llvm::errs()))
    return makeError("generated kernels are not valid LLVM IR");
  optimizeModule(*module, *machine, options.quick);
  dumpText(dumpDir, "kernels.opt.ll", [&](llvm::raw_ostream &os) { module->print(os, nullptr); });
  llvm::Expected<std::string> relocatable = emitObject(*module, *machine);
  if (!relocatable)
    return relocatable.takeError();
  llvm::Expected<std::string> elf = linkShared(*relocatable);
  if (!elf)
    return elf.takeError();
  object.elf = std::move(*elf);
  return object;
}
