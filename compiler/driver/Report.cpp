//===- Report.cpp - what a compilation did, as JSON -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Report.h"
#include "compiler/weights/Recipe.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llmc;

llm::QuantizeAttr llmc::quantizeStep(llm::WeightOp weight) {
  for (mlir::Attribute step : weight.getRecipe())
    if (auto quantize = llvm::dyn_cast<llm::QuantizeAttr>(step))
      return quantize;
  return {};
}

std::vector<std::string> llmc::describeQuantized(mlir::ModuleOp module, bool calibrated) {
  unsigned kept = 0, all = 0, uneven = 0;
  constexpr unsigned kNamed = 4;
  std::string names;
  for (auto weight : module.getOps<llm::WeightOp>()) {
    if (weight.getFinalShape().size() != 2)
      continue;
    llm::QuantizeAttr step = quantizeStep(weight);
    ++all;
    kept += !step;
    if (step && !step.getImportance() && ++uneven <= kNamed)
      names += (names.empty() ? "" : ", ") + weight.getSymName().str();
  }
  std::vector<std::string> lines;
  if (kept)
    lines.push_back(
        (kept == all ? "all " + llvm::Twine(all) : llvm::Twine(kept) + " of " + llvm::Twine(all))
            .str() +
        " matrices stay as they are: they have no more bits than --quant asks for, or "
        "a rule says so");
  if (calibrated && uneven)
    lines.push_back("calibration says nothing about the inputs of " + names +
                    (uneven > kNamed ? " and " + std::to_string(uneven - kNamed) + " more" : "") +
                    ": all their errors weigh the same");
  return lines;
}

std::string CompileReport::describeOutliers(mlir::ModuleOp module) const {
  llvm::StringMap<std::vector<double>> byEncoding;
  auto restOf = [&](llm::WeightOp weight) {
    return errors.lookup(weight.getSymName()).relativeToRest();
  };
  for (auto weight : module.getOps<llm::WeightOp>())
    if (quantizeStep(weight))
      byEncoding[weight.getFinalEncoding()].push_back(restOf(weight));
  for (auto &entry : byEncoding)
    llvm::sort(entry.second);
  // Matrices of one model quantize alike: what is far off has outliers that ruin their groups.
  constexpr double kFar = 2.5, kLeast = 0.05;
  constexpr unsigned kNamed = 4;
  std::string names;
  unsigned count = 0;
  for (auto weight : module.getOps<llm::WeightOp>()) {
    if (!quantizeStep(weight))
      continue;
    llvm::ArrayRef<double> all = byEncoding[weight.getFinalEncoding()];
    const double usual = all[all.size() / 2], rest = restOf(weight);
    if (rest < kLeast || rest < kFar * usual || ++count > kNamed)
      continue;
    names += (names.empty() ? "" : ", ") +
             llvm::formatv("{0} ({1:F2}, where {2:F2} is usual)", weight.getSymName(), rest, usual)
                 .str();
  }
  if (names.empty())
    return names;
  return "outliers ruin what is grouped with them in " + names +
         (count > kNamed ? " and " + std::to_string(count - kNamed) + " more" : "") +
         "; --quant-map can give more bits or smaller groups";
}

void CompileReport::endPhase() {
  if (running.empty())
    return;
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  phases.push_back({std::exchange(running, ""), elapsed.count()});
}

void CompileReport::beginPhase(llvm::StringRef name) {
  endPhase();
  running = name.str();
  start = std::chrono::steady_clock::now();
}

static void writeWeights(llvm::json::OStream &json, const ArtifactContents &contents,
                         const llvm::StringMap<QuantizeError> &errors) {
  mlir::ModuleOp module = contents.module;
  for (auto weight : module.getOps<llm::WeightOp>()) {
    llvm::Expected<Recipe> recipe = Recipe::create(weight, contents.files);
    double bits = 0;
    if (recipe)
      bits = 8.0 * recipe->bytes() / (double(weight.getRows()) * weight.getColumns());
    else
      llvm::consumeError(recipe.takeError());
    json.object([&] {
      json.attribute("name", weight.getSymName());
      json.attribute("rows", weight.getRows());
      json.attribute("columns", weight.getColumns());
      json.attribute("from", weight.getEncoding());
      json.attribute("to", weight.getFinalEncoding());
      json.attribute("bits_per_weight", bits);
      json.attribute("error", errors.lookup(weight.getSymName()).relative());
      if (llm::QuantizeAttr step = quantizeStep(weight)) {
        json.attribute("rest_error", errors.lookup(weight.getSymName()).relativeToRest());
        json.attribute("calibrated", bool(step.getImportance()));
      }
    });
  }
}

static void writePrograms(llvm::json::OStream &json, const ArtifactContents &contents) {
  mlir::ModuleOp module = contents.module;
  for (auto program : module.getOps<sched::ProgramOp>()) {
    auto dispatches = llvm::range_size(program.getOps<sched::DispatchOp>());
    auto barriers = llvm::range_size(program.getOps<sched::BarrierOp>());
    json.object([&] {
      json.attribute("name", program.getSymName());
      json.attribute("max_rows", int64_t(program.getMaxRows()));
      json.attribute("dispatches", int64_t(dispatches));
      json.attribute("barriers", int64_t(barriers));
      if (contents.model.layers)
        json.attribute("barriers_per_layer", double(barriers) / contents.model.layers);
      json.attribute("arena_bytes", int64_t(program.getArenaSize().value_or(0)));
    });
  }
}

llvm::Error CompileReport::write(llvm::StringRef path, const ArtifactContents &contents,
                                 llvm::StringRef artifact) {
  endPhase();
  std::error_code ec;
  llvm::raw_fd_ostream stream(path, ec);
  if (ec)
    return llvm::createStringError(ec, "cannot write '" + path + "': " + ec.message());
  uint64_t bytes = 0;
  (void)llvm::sys::fs::file_size(artifact, bytes);
  llvm::json::OStream json(stream, 2);
  json.object([&] {
    json.attribute("source", contents.model.source);
    json.attribute("artifact", artifact);
    json.attribute("artifact_bytes", int64_t(bytes));
    json.attributeArray("phases", [&] {
      for (const PhaseTime &phase : phases)
        json.object([&] {
          json.attribute("name", phase.name);
          json.attribute("seconds", phase.seconds);
        });
    });
    json.attributeArray("weights", [&] {
      if (contents.module)
        writeWeights(json, contents, errors);
    });
    if (fidelity)
      json.attributeObject("fidelity", [&] {
        json.attribute("perplexity", fidelity->perplexity);
        json.attribute("source_perplexity", fidelity->sourcePerplexity);
        json.attribute("mean_kld", fidelity->meanKl);
        json.attribute("same_top", fidelity->sameTop);
        json.attribute("tokens", int64_t(fidelity->tokens));
      });
    json.attributeArray("programs", [&] {
      if (contents.module)
        writePrograms(json, contents);
    });
    json.attributeArray("variants", [&] {
      for (const ArtifactVariant &variant : contents.variants)
        json.object([&] {
          json.attribute("target", variant.target);
          json.attribute("numerics", variant.fast ? "fast" : "strict");
          json.attribute("kernels", int64_t(variant.kernels.size()));
          json.attribute("code_bytes", int64_t(variant.code.size()));
        });
    });
  });
  stream << "\n";
  return llvm::Error::success();
}
