//===- Compile.cpp - from a model file to an artifact ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"
#include "compiler/artifact/Writer.h"
#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/codegen/cuda/CodeObject.h"
#include "compiler/driver/Calibrate.h"
#include "compiler/driver/Fidelity.h"
#include "compiler/driver/ImportSource.h"
#include "compiler/driver/Pooling.h"
#include "compiler/driver/Progress.h"
#include "compiler/driver/Report.h"
#include "compiler/ir/Sched.h"
#include "frontends/common/Vocabulary.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace llmc;
using mlir::ModuleOp;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

namespace {
/// Collects MLIR's diagnostics so that the first error can be the one line that the user sees.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (first.empty() && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
            llvm::raw_string_ostream stream(first);
            stream << diagnostic.getLocation() << ": " << diagnostic;
          }
          return mlir::success();
        }) {}

  llvm::Error error(llvm::StringRef phase) {
    return makeError("phase " + phase + " failed: " + (first.empty() ? "no reason given" : first));
  }

private:
  std::string first;
  mlir::ScopedDiagnosticHandler handler;
};

class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), progress(!options.quiet), context(registry()),
        folders(foldersOf(options.input)) {
    context.loadAllAvailableDialects();
  }

  llvm::Error run() {
    if (llvm::Error error = resolveTargets())
      return error;
    if (llvm::Error error = import())
      return error;
    if (!model.module)
      return emitVocabulary();
    if (llvm::Error error = checkContext())
      return error;
    describe();
    if (llvm::Error error = calibrateWeights())
      return error;
    for (Phase phase : kPhases) {
      if (phase == Phase::Codegen || phase == Phase::Emit)
        break;
      if (llvm::Error error = phase == Phase::Import ? llvm::Error::success() : runPasses(phase))
        return error;
      if (phase == Phase::Quantize && options.measure && pipeline.quantizes())
        for (const std::string &line : describeQuantized(*model.module, !options.calibrate.empty()))
          note(line);
      if (llvm::Error error = dump(phase))
        return error;
      if (phase == options.compileTo)
        return print(*model.module);
    }
    if (llvm::Error error = generateCode())
      return error;
    if (options.compileTo == Phase::Codegen)
      return llvm::Error::success();
    return write();
  }

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerLlmcDialects(registry);
    return registry;
  }

  llvm::Error resolveTargets() {
    for (const std::string &target : options.targets) {
      if (const cuda::Target *gpu = cuda::lookupTarget(target)) {
        if (!llvm::is_contained(gpus, gpu))
          gpus.push_back(gpu);
        continue;
      }
      llvm::Expected<const UkernelIsa *> isa = cpu::resolveTarget(target);
      if (!isa) {
        std::string message = llvm::toString(isa.takeError());
        for (const cuda::Target &gpu : cuda::targets())
          if (target != "native")
            message += (", " + gpu.name).str();
        return makeError(message);
      }
      if (!llvm::is_contained(isas, *isa))
        isas.push_back(*isa);
    }
    // The runtime takes the first variant that fits: best first.
    llvm::sort(isas, std::greater<>());
    llvm::sort(gpus, std::greater<>());
    pipeline.layouts.clear();
    if (!isas.empty())
      pipeline.layouts.push_back("panel16");
    if (!gpus.empty())
      pipeline.layouts.push_back("warp32");
    return llvm::Error::success();
  }

  llvm::Error import() {
    begin(phaseName(Phase::Import), "reading " + options.input);
    llvm::Expected<ImportedSource> source =
        importSource(options, folders, context,
                     [&](llvm::StringRef kind, const llvm::Twine &message) { say(kind, message); });
    if (!source)
      return source.takeError();
    model = std::move(source->model);
    whyGraph = std::move(source->whyGraph);
    return llvm::Error::success();
  }

  void warn(const llvm::Twine &message) { say("warning", message); }
  void note(const llvm::Twine &message) { say("note", message); }
  void say(llvm::StringRef kind, const llvm::Twine &message) {
    progress.finish();
    llvm::errs() << "llmc: " << kind << ": " << options.input << ": " << message << "\n";
  }

  /// Whether prefill may give other bits than decode. Tiles of bf16 are at least twice as fast as
  /// those that do: by default they are used where there are any.
  bool isFast() const { return options.numerics != Numerics::Strict; }

  llvm::Error checkContext() {
    pipeline.graph = bool(model.module->lookupSymbol("graph"));
    pipeline.quantScheme = options.quant;
    pipeline.quantOverrides = options.quantOverrides;
    if (pipeline.graph && pipeline.quantizes())
      return makeError(options.input + ": --quant is for language models, and this file is " +
                       "compiled as a graph of tensors" +
                       (whyGraph.empty() ? "" : ": " + whyGraph));
    if (!pipeline.quantizes() && !options.calibrate.empty())
      return makeError("--calibrate is of use with --quant or --quant-map only");
    if (!gpus.empty() && (pipeline.graph || isEncoder(*model.module)))
      return makeError(options.input + ": is " +
                       (pipeline.graph ? "a graph of tensors" : "a sentence encoder") +
                       ", which is compiled for CPUs only; leave out --target " + gpus[0]->name);
    if (pipeline.graph)
      return llvm::Error::success();
    auto trained = (*model.module)->getAttrOfType<mlir::IntegerAttr>("llm.context_length");
    info.trainContext = trained ? trained.getInt() : 0;
    if (isEncoder(*model.module))
      return checkEncoder();
    if (!options.pooling.empty() || options.normalize)
      return makeError(options.input + ": is no sentence encoder; --pooling and --normalize are "
                                       "for those");
    pipeline.context = options.context     ? options.context
                       : info.trainContext ? info.trainContext
                                           : pipeline.context;
    chooseActivations();
    return llvm::Error::success();
  }

  void chooseActivations() {
    Activations chosen = options.activations;
    if (chosen == Activations::Default)
      chosen = info.isEncoder ? Activations::Mixed : Activations::Int8;
    pipeline.f32Activations = chosen == Activations::F32;
    pipeline.f32Norms = chosen == Activations::Mixed;
  }

  /// A text is one step; by default it is cut where sentence-transformers cuts it.
  llvm::Error checkEncoder() {
    llvm::SmallVector<std::string> places(folders);
    if (!options.tokenizer.empty())
      places.push_back(options.tokenizer);
    llvm::Expected<PoolingChoice> choice =
        choosePooling(*model.module, options.pooling, options.normalize, places);
    if (!choice)
      return choice.takeError();
    if (options.maxKl >= 0 || !options.calibrate.empty())
      return makeError(options.input +
                       ": is a sentence encoder, which predicts no tokens; --max-kl "
                       "and --calibrate are for language models");
    info.isEncoder = true;
    info.pooling = choice->kind;
    info.normalize = choice->normalize;
    model.properties.emplace_back("pooling from", choice->source);
    int64_t most = info.trainContext ? info.trainContext : pipeline.context;
    int64_t usual = choice->maxTokens ? std::min(choice->maxTokens, most) : most;
    pipeline.context = options.context ? options.context : usual;
    // Longer than positions is refused where they are planned.
    pipeline.prefillRows = pipeline.context;
    chooseActivations();
    return llvm::Error::success();
  }

  std::string moduleString(llvm::StringRef name) {
    auto attr = (*model.module)->getAttrOfType<mlir::StringAttr>(name);
    return attr ? attr.str() : std::string();
  }

  /// Reads what the artifact says about the model before the function is scheduled away.
  void describe() {
    ModuleOp module = *model.module;
    info.name = moduleString("llm.name");
    info.architecture = moduleString("llm.architecture");
    info.source = llvm::sys::path::filename(options.input).str();
    info.properties = model.properties;
    info.isGraph = pipeline.graph;
    if (info.isGraph)
      return;
    info.activations = pipeline.f32Activations ? "f32" : pipeline.f32Norms ? "mixed" : "int8";
    info.context = pipeline.context;
    info.layers = llvm::range_size(module.getOps<llm::KvOp>());
    auto forward = module.lookupSymbol<mlir::func::FuncOp>(llm::kForwardName);
    forward.walk([&](llm::EmbedOp embed) { info.hidden = llm::features(embed); });
    info.width = llvm::cast<mlir::RankedTensorType>(forward.getResultTypes()[0]).getDimSize(1);
    info.vocab = vocabularyOf(module);
    if (auto tokens = int64_t(model.tokenizer.tokens.size()); tokens > info.vocab)
      warn("the tokenizer has " + llvm::Twine(tokens) + " tokens, the model only " +
           llvm::Twine(info.vocab) + "; texts with one of the others will be refused");
  }

  llvm::Error runPasses(Phase phase) {
    begin(phaseName(phase), ("phase " + phaseName(phase)).str());
    DiagnosticCollector diagnostics(context);
    mlir::PassManager pm(&context);
    buildPhasePipeline(pm, phase, pipeline);
    if (failed(pm.run(*model.module)))
      return diagnostics.error(phaseName(phase));
    return llvm::Error::success();
  }

  llvm::Error dump(Phase phase) {
    if (options.dumpDir.empty())
      return llvm::Error::success();
    if (std::error_code ec = llvm::sys::fs::create_directories(options.dumpDir))
      return makeError("cannot create '" + options.dumpDir + "': " + ec.message());
    llvm::SmallString<128> path(options.dumpDir);
    llvm::sys::path::append(path, llvm::Twine(unsigned(phase)) + "-" + phaseName(phase) + ".mlir");
    std::error_code ec;
    llvm::raw_fd_ostream stream(path, ec);
    if (ec)
      return makeError("cannot write '" + path + "': " + ec.message());
    model.module->print(stream);
    return llvm::Error::success();
  }

  llvm::Error print(ModuleOp module) {
    progress.finish();
    module.print(llvm::outs());
    return llvm::Error::success();
  }

  llvm::Error generateCode() {
    for (const cuda::Target *gpu : gpus)
      if (llvm::Error error = generateCode(*gpu))
        return error;
    for (const UkernelIsa *isa : isas) {
      if (options.compileTo == Phase::Codegen) {
        cpu::CodeObject object;
        mlir::OwningOpRef<ModuleOp> kernels =
            cpu::emitKernels(*model.module, *isa, {.fast = isFast()}, object);
        return print(*kernels);
      }
      begin(("codegen " + isa->name).str(), ("generating code for " + isa->name).str());
      DiagnosticCollector diagnostics(context);
      llvm::SmallString<128> folder;
      if (llvm::Error error = kernelDumpFolder(isa->name, folder))
        return error;
      llvm::Expected<cpu::CodeObject> object = cpu::buildCodeObject(
          *model.module, *isa, {.dumpDir = folder, .fast = isFast(), .quick = options.quick});
      if (!object)
        return object.takeError();
      if (options.numerics == Numerics::Fast && !object->fast)
        note("prefill of this model is not faster on " + isa->name +
             " in other arithmetic; its code is strict");
      ArtifactVariant variant{isa->name.str(),
                              isa->triple.str(),
                              {},
                              std::move(object->elf),
                              std::move(object->kernels),
                              std::move(object->scratchBytes),
                              object->fast,
                              "panel16",
                              std::nullopt};
      for (llvm::StringRef feature : isa->cpuFeatures)
        variant.features.push_back(feature.str());
      variants.push_back(std::move(variant));
    }
    bool fast = llvm::any_of(variants, [](const ArtifactVariant &v) { return v.fast; });
    info.numerics = fast ? "fast" : "strict";
    return llvm::Error::success();
  }

  llvm::Error generateCode(const cuda::Target &gpu) {
    if (options.compileTo == Phase::Codegen) {
      cuda::CodeObject object;
      llvm::Expected<mlir::OwningOpRef<ModuleOp>> kernels =
          cuda::emitKernels(*model.module, gpu, object);
      return kernels ? print(**kernels) : kernels.takeError();
    }
    begin(("codegen " + gpu.name).str(), ("generating code for " + gpu.name).str());
    DiagnosticCollector diagnostics(context);
    llvm::SmallString<128> folder;
    if (llvm::Error error = kernelDumpFolder(gpu.name, folder))
      return error;
    llvm::Expected<cuda::CodeObject> object =
        cuda::buildCodeObject(*model.module, gpu, {.dumpDir = folder});
    if (!object)
      return object.takeError();
    if (object->cubin.empty())
      note("there is no ptxas on this machine; " + gpu.name +
           " gets its code as PTX, which the driver compiles when the model is loaded");
    ArtifactVariant variant{gpu.name.str(),
                            "nvptx64-nvidia-cuda",
                            {},
                            std::move(object->cubin),
                            std::move(object->kernels),
                            {},
                            false,
                            "warp32",
                            ArtifactCuda{}};
    variant.cuda->computeCapability = gpu.capability;
    variant.cuda->ptx = std::move(object->ptx);
    variant.cuda->counterBytes = object->counterBytes;
    variant.cuda->pickKernel = cuda::kPickKernel.str();
    variant.cuda->launch = [launches = std::move(object->launches)](llvm::StringRef kernel,
                                                                    int64_t maxRows) {
      cuda::Launch launch = cuda::launchFor(launches.find(kernel)->second, maxRows);
      return ArtifactLaunch{launch.grid, launch.block, launch.sharedBytes};
    };
    variants.push_back(std::move(variant));
    return llvm::Error::success();
  }

  /// Where a target's kernels are dumped: several targets do not write over each other's.
  llvm::Error kernelDumpFolder(llvm::StringRef target, llvm::SmallVectorImpl<char> &folder) {
    folder.assign(options.dumpDir.begin(), options.dumpDir.end());
    if (folder.empty() || isas.size() + gpus.size() == 1)
      return llvm::Error::success();
    llvm::sys::path::append(folder, target);
    if (std::error_code ec = llvm::sys::fs::create_directories(folder))
      return makeError("cannot create '" + llvm::Twine(folder) + "': " + ec.message());
    return llvm::Error::success();
  }

  std::string outputPath() {
    if (!options.output.empty())
      return options.output;
    return (llvm::sys::path::stem(options.input) + ".llmc").str();
  }

  llvm::Error write() {
    begin(phaseName(Phase::Emit), "packing weights");
    ArtifactContents contents;
    contents.model = info;
    contents.tokenizer = &model.tokenizer;
    contents.chatTemplate = model.chatTemplate;
    if (model.module)
      contents.module = *model.module;
    contents.files = model.files;
    contents.variants = std::move(variants);
    // A lossy artifact gets its name when it is known to be good enough.
    const std::string path = needsMeasure() ? temporaryName("unmeasured") : outputPath();
    auto update = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    if (llvm::Error error = writeArtifact(path, contents, update, &report.errors))
      return error;
    progress.finish();
    if (needsMeasure()) {
      llvm::FileRemover remover(path);
      if (llvm::Error error = measure(path))
        return error;
      if (std::error_code ec = llvm::sys::fs::rename(path, outputPath()))
        return makeError("cannot write '" + outputPath() + "': " + ec.message());
      remover.releaseFile();
    }
    if (options.measure && pipeline.quantizes())
      if (std::string line = report.describeOutliers(*model.module); !line.empty())
        note(line);
    if (!whyGraph.empty())
      note("compiled as a graph of tensors, not as a language model: " + whyGraph);
    if (options.reportPath.empty())
      return llvm::Error::success();
    return report.write(options.reportPath, contents, outputPath());
  }

  /// True where a weight was quantized, and that shall be measured.
  bool needsMeasure() {
    if (!model.module || info.isEncoder)
      return false;
    return options.measure && llvm::any_of(model.module->getOps<llm::WeightOp>(), quantizeStep);
  }

  /// A file beside the artifact.
  std::string temporaryName(llvm::StringRef what) {
    return (outputPath() + "." + what + "." +
            llvm::Twine(uint64_t(llvm::sys::Process::getProcessId())))
        .str();
  }

  /// Options that make the same model for this machine, in a file beside the artifact that goes
  /// with `remover`.
  CompileOptions aside(llvm::StringRef what, llvm::FileRemover &remover) {
    CompileOptions other = options;
    other.output = temporaryName(what);
    other.targets = {"native"};
    other.quiet = true;
    other.measure = false;
    other.compileTo = Phase::Emit;
    other.dumpDir.clear();
    other.reportPath.clear();
    remover.setFile(other.output);
    return other;
  }

  /// The same, of the unchanged source.
  CompileOptions sourceAside(llvm::StringRef what, llvm::FileRemover &remover) {
    CompileOptions other = aside(what, remover);
    other.quant = "none";
    other.quantOverrides.clear();
    other.calibrate.clear();
    return other;
  }

  /// Runs the source in its reference mode and gives matrices the importance of their columns.
  llvm::Error calibrateWeights() {
    if (options.calibrate.empty())
      return llvm::Error::success();
    begin("calibrate", "compiling the source for calibration");
    auto text = llvm::MemoryBuffer::getFile(options.calibrate);
    if (!text)
      return makeError("cannot read '" + options.calibrate + "': " + text.getError().message());
    llvm::FileRemover remover;
    CompileOptions source = sourceAside("calibrated", remover);
    source.activations = Activations::F32;
    source.numerics = Numerics::Strict;
    if (llvm::Error error = compile(source))
      return error;
    progress.begin("calibrating");
    llvm::Expected<Calibration> calibration =
        calibrate(source.output, (*text)->getBuffer(),
                  [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    progress.finish();
    if (!calibration)
      return makeError(options.input + ": " + llvm::toString(calibration.takeError()));
    model.files.push_back(setImportance(*model.module, *calibration, model.files.size()));
    return llvm::Error::success();
  }

  /// Compares the artifact at `path` with one of the source, made for this and for this machine.
  llvm::Error measure(const std::string &path) {
    begin("measure", "compiling the source for comparison");
    llvm::FileRemover removeSource, removeNative;
    const CompileOptions source = sourceAside("source", removeSource);
    if (llvm::Error error = compile(source))
      return error;
    llvm::Expected<const UkernelIsa *> host = cpu::resolveTarget("native");
    if (!host)
      return host.takeError();
    std::string model = path;
    if (!llvm::is_contained(isas, *host)) {
      const CompileOptions native = aside("native", removeNative);
      model = native.output;
      if (llvm::Error error = compile(native))
        return error;
    }
    progress.begin("measuring");
    llvm::Expected<Fidelity> fidelity = measureFidelity(
        model, source.output, [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    progress.finish();
    if (!fidelity)
      return fidelity.takeError();
    report.fidelity = *fidelity;
    if (options.maxKl >= 0 && !(fidelity->meanKl <= options.maxKl))
      return makeError(llvm::formatv("{0}: --quant {1} gives a mean KL of {2:F4} against the "
                                     "source, more than --max-kl {3}; use more bits",
                                     options.input, options.quant, fidelity->meanKl, options.maxKl)
                           .str());
    llvm::errs() << llvm::formatv("llmc: against the source on {0} tokens: perplexity {1:F3} "
                                  "({2:F3}), mean KL {3:F4}, same top token {4:F1}%\n",
                                  fidelity->tokens, fidelity->perplexity,
                                  fidelity->sourcePerplexity, fidelity->meanKl,
                                  100 * fidelity->sameTop);
    return llvm::Error::success();
  }

  /// Starts a phase for the report and the terminal.
  void begin(llvm::StringRef phase, llvm::StringRef task) {
    report.beginPhase(phase);
    progress.begin(task);
  }

  /// A file without tensors gives an artifact that only tokenizes.
  llvm::Error emitVocabulary() {
    if (options.compileTo != Phase::Emit)
      return makeError(options.input + ": holds a vocabulary only; there is no IR to print");
    info.name = llvm::sys::path::stem(options.input).str();
    info.source = llvm::sys::path::filename(options.input).str();
    info.properties = model.properties;
    info.vocab = model.tokenizer.tokens.size();
    info.context = 1;
    return write();
  }

  const CompileOptions &options;
  Progress progress;
  CompileReport report;
  mlir::MLIRContext context;
  /// Where what stands beside the model may be.
  llvm::SmallVector<std::string> folders;
  std::string whyGraph; ///< why an ONNX file is not a language model, where it is none
  ImportedModel model;
  PipelineOptions pipeline;
  ArtifactModel info;
  std::vector<const UkernelIsa *> isas;
  std::vector<const cuda::Target *> gpus;
  std::vector<ArtifactVariant> variants;
};
} // namespace

llvm::Error llmc::compile(const CompileOptions &options) { return Compilation(options).run(); }
