//===- Calibrate.cpp - what matrices are multiplied with ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Calibrate.h"
#include "compiler/ir/Llm.h"
#include "compiler/weights/PanelLayout.h"
#include "runtime/base/Topology.h"
#include "runtime/device/cpu/Program.h"
#include "runtime/llm/Session.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>

using namespace llmc;
using namespace llmc::rt;

/// More text changes the means little.
static constexpr size_t kWindow = 512, kWindows = 32;

namespace {

/// Adds up the squares of what is multiplied, for every matrix of the prefill program.
class SquareSums : public StepObserver {
public:
  SquareSums(const fb::Artifact &header, const fb::Program &program);

  void done(size_t dispatch, std::span<void *const> buffers, const llmc_step_t &step) override;
  /// True where only the rows reach a matrix whose logits are wanted.
  bool wantsAllLogits() const { return logitsWanted; }
  void takeMeans(llvm::StringMap<std::vector<float>> &means) const;

private:
  /// What one dispatch multiplies.
  struct Product {
    std::vector<std::string> names;
    size_t columns = 0;
    bool outRows = false;
    std::vector<double> sums;
    uint64_t rows = 0;
  };
  std::vector<Product> products; ///< by dispatch; those without names multiply nothing
  bool logitsWanted = false;
};

SquareSums::SquareSums(const fb::Artifact &header, const fb::Program &program) {
  llvm::DenseMap<uint64_t, const fb::Weight *> matrices;
  for (const fb::Weight *weight : *header.weights())
    if (weight->shape()->size() == 2)
      matrices[weight->offset()] = weight;
  auto isWeight = [](const fb::Binding *binding) {
    return binding->kind() == fb::BindingKind::Weight;
  };
  // A product's first binding is its input, that of a look-up the table. Errors of a table come out
  // at its other end as well.
  for (const fb::Dispatch *dispatch : *program.dispatches())
    if (const auto *bindings = dispatch->bindings(); bindings && isWeight(bindings->Get(0)))
      matrices.erase(bindings->Get(0)->offset());
  for (const fb::Dispatch *dispatch : *program.dispatches()) {
    Product &product = products.emplace_back();
    if (!dispatch->bindings())
      continue;
    for (const fb::Binding *binding : *dispatch->bindings())
      if (const fb::Weight *matrix =
              isWeight(binding) ? matrices.lookup(binding->offset()) : nullptr) {
        product.names.push_back(matrix->name()->str());
        product.columns = matrix->shape()->Get(1);
      }
    product.sums.resize(product.columns);
    product.outRows = dispatch->tiles()->out_rows();
    logitsWanted |= product.outRows && !product.names.empty();
  }
}

void SquareSums::done(size_t dispatch, std::span<void *const> buffers, const llmc_step_t &step) {
  Product &product = products[dispatch];
  if (product.names.empty())
    return;
  const auto rows = size_t(product.outRows ? step.out_rows : step.rows);
  const auto *records = static_cast<const char *>(buffers[0]);
  const auto stride = size_t(ukActStride(ukActF32, int64_t(product.columns)));
  for (size_t row = 0; row < rows; ++row) {
    const auto *x = reinterpret_cast<const float *>(records + row * stride);
    for (size_t k = 0; k < product.columns; ++k)
      product.sums[k] += double(x[k]) * x[k];
  }
  product.rows += rows;
}

void SquareSums::takeMeans(llvm::StringMap<std::vector<float>> &means) const {
  for (const Product &product : products) {
    double total = 0;
    for (double sum : product.sums)
      total += sum;
    if (!(total > 0) || !std::isfinite(total))
      continue;
    std::vector<float> mean;
    for (double sum : product.sums)
      mean.push_back(float(sum / double(product.rows)));
    for (const std::string &name : product.names)
      means[name] = mean;
  }
}

StatusOr<Calibration> run(const std::string &path, llvm::StringRef text,
                          const std::function<void(uint64_t, uint64_t)> &progress) {
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool, WorkerPool::create(usableCores()));
  LLMC_ASSIGN_OR_RETURN(auto model, Model::load(path, {.device = DeviceKind::Cpu}));
  const Tokenizer *tokenizer = model->tokenizer();
  if (!tokenizer)
    return invalidArgument("the model has no tokenizer for the text of --calibrate");
  std::vector<int32_t> tokens;
  LLMC_RETURN_IF_ERROR(tokenizer->encode({text.data(), text.size()}, {}, tokens));
  if (tokens.empty())
    return invalidArgument("the text of --calibrate is empty");

  const fb::Program *prefill = findProgram(model->variant(), kPrefillProgram);
  SquareSums sums(model->artifact().header(), *prefill);
  const size_t length = std::min<size_t>(kWindow, model->info().context_length());
  const size_t windows = std::min((tokens.size() + length - 1) / length, kWindows);
  LLMC_ASSIGN_OR_RETURN(
      auto session,
      Session::create(model, pool, {.contextLimit = uint32_t(length), .promptObserver = &sums}));
  Calibration result;
  for (size_t i = 0; i < windows; ++i) {
    const size_t begin = i * length, count = std::min(length, tokens.size() - begin);
    const auto window = std::span(tokens).subspan(begin, count);
    if (tokenizer->addsBos())
      window[0] = tokenizer->bos();
    session->reset();
    LLMC_RETURN_IF_ERROR(sums.wantsAllLogits()
                             ? session->prefill(window, [](auto, auto) { return true; })
                             : session->prefill(window));
    result.tokens += count;
    progress(i + 1, windows);
  }
  sums.takeMeans(result.meanSquares);
  return result;
}

} // namespace

llvm::Expected<Calibration>
llmc::calibrate(const std::string &model, llvm::StringRef text,
                const std::function<void(uint64_t, uint64_t)> &progress) {
  StatusOr<Calibration> result = run(model, text, progress);
  if (!result.ok())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), result.status().message());
  return std::move(result.value());
}

SourceFile llmc::setImportance(mlir::ModuleOp module, const Calibration &calibration,
                               int64_t file) {
  std::vector<float> numbers;
  for (auto weight : module.getOps<llm::WeightOp>()) {
    auto found = calibration.meanSquares.find(weight.getSymName());
    if (found == calibration.meanSquares.end() ||
        int64_t(found->second.size()) != weight.getColumns())
      continue;
    weight->setAttr("llm.importance",
                    llm::PartAttr::get(module.getContext(), "f32", file,
                                       int64_t(numbers.size() * sizeof(float)), 0));
    llvm::append_range(numbers, found->second);
  }
  const llvm::StringRef bytes(reinterpret_cast<const char *>(numbers.data()),
                              numbers.size() * sizeof(float));
  return {"(calibration)", llvm::MemoryBuffer::getMemBufferCopy(bytes)};
}
