//===- Hyperparameters.cpp - the numbers of one model ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/Hyperparameters.h"
#include "frontends/common/ImportError.h"
#include "frontends/gguf/MetadataReader.h"
#include <cmath>

using namespace llmc;
using namespace llmc::gguf;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Larger heads than any model has; bounds the size of rope tables.
constexpr uint64_t kLargestHead = 4096;

class Reader {
public:
  Reader(const GgufSet &set, const Architecture &architecture, uint64_t context)
      : set(set), arch(architecture), context(context), keys(set.primary(), architecture.name) {}

  Expected<Hyperparameters> read();

private:
  void refuseUnsupported();
  void readSizes();
  void readScales();
  void readWindows();
  void readRope();
  std::vector<double> readFactors(StringRef tensor);
  void bad(const Twine &message) { keys.fail(corrupt(set.primary().path(), message)); }
  void cannot(const Twine &message) { keys.fail(unsupported(set.primary().path(), message)); }

  const GgufSet &set;
  const Architecture &arch;
  uint64_t context;
  MetadataReader keys;
  Hyperparameters h;
};

} // namespace

/// What changes the computation and has no op: refused, never ignored.
void Reader::refuseUnsupported() {
  struct Feature {
    StringRef key;
    double neutral;
    StringRef what;
  };
  static constexpr Feature kFeatures[] = {
      {"%.expert_count", 0, "mixtures of experts"},
      {"%.attention.clamp_kqv", 0, "clamped queries, keys and values"},
      {"%.attention.max_alibi_bias", 0, "ALiBi"},
      {"%.nextn_predict_layers", 0, "layers that predict further tokens"},
      {"%.rope.scaling.alpha", 0, "NTK-aware rope scaling"},
  };
  for (const Feature &feature : kFeatures)
    if (double value = keys.number(feature.key, feature.neutral); value != feature.neutral)
      cannot(keys.fullKey(feature.key) + " is " + numberText(value) + ": " + feature.what +
             " are unsupported");
  if (!keys.flag("%.attention.causal", true))
    cannot("attention.causal is false: only causal models are supported");
  if (keys.flag("%.use_parallel_residual", false))
    cannot("use_parallel_residual is true, which is unsupported");
}

void Reader::readSizes() {
  h.width = keys.requiredCount("%.embedding_length");
  h.contextLength = keys.requiredCount("%.context_length");
  h.epsilon =
      keys.requiredNumber(arch.norm == llm::NormKind::Rms ? "%.attention.layer_norm_rms_epsilon"
                                                          : "%.attention.layer_norm_epsilon");
  uint64_t layers = keys.requiredCount("%.block_count");
  // Every layer has tensors, which bounds the number of layers by what is in the file.
  if (layers == 0 || layers > set.tensorCount())
    bad(keys.fullKey("%.block_count") + " is " + Twine(layers) + ", with " +
        Twine(set.tensorCount()) + " tensors");
  if (keys.failed())
    return;
  std::vector<uint64_t> heads = keys.perLayer("%.attention.head_count", layers, std::nullopt);
  std::vector<uint64_t> mlp = keys.perLayer("%.feed_forward_length", layers, std::nullopt);
  std::vector<uint64_t> kvHeads = heads;
  if (keys.find("%.attention.head_count_kv"))
    kvHeads = keys.perLayer("%.attention.head_count_kv", layers, std::nullopt);
  if (keys.failed())
    return;
  for (uint64_t i = 0; i < layers; ++i) {
    if (heads[i] == 0 || kvHeads[i] == 0 || heads[i] % kvHeads[i])
      return bad("layer " + Twine(i) + " has " + Twine(heads[i]) + " heads and " +
                 Twine(kvHeads[i]) + " KV heads; one must be a multiple of the other, and not 0 (" +
                 keys.fullKey("%.attention.head_count_kv") + ")");
    if (mlp[i] == 0)
      return bad(keys.fullKey("%.feed_forward_length") + " of layer " + Twine(i) + " is 0");
    h.layers.push_back({heads[i], kvHeads[i], mlp[i], 0, false, true});
  }
  if (h.width == 0 || h.contextLength == 0)
    return bad("embedding_length or context_length is 0");
  h.headDim = keys.count("%.attention.key_length", h.width / heads[0]);
  if (uint64_t value = keys.count("%.attention.value_length", h.headDim); value != h.headDim)
    cannot("value heads of " + Twine(value) + " features with key heads of " + Twine(h.headDim) +
           " are unsupported");
  if (h.headDim == 0 || h.headDim > kLargestHead)
    cannot("heads of " + Twine(h.headDim) + " features are unsupported; 1 to " +
           Twine(kLargestHead) + " are possible");
}

void Reader::readScales() {
  auto orOne = [](double scale) { return scale == 0 ? 1 : scale; };
  double scoreWidth = h.layers.size() == arch.wideScaleLayers ? double(h.width / h.layers[0].heads)
                                                              : double(h.headDim);
  h.attentionScale = 1 / std::sqrt(scoreWidth);
  if (arch.embeddingTimesRootWidth)
    h.embeddingScale = std::sqrt(double(h.width));
  if (arch.scaleKeys) {
    h.embeddingScale = orOne(keys.number("%.embedding_scale", 0));
    h.residualScale = orOne(keys.number("%.residual_scale", 0));
    if (double scale = keys.number("%.attention.scale", 0); scale != 0)
      h.attentionScale = scale;
    h.logitScale = 1 / orOne(keys.requiredNumber("%.logit_scale"));
  }
  if (arch.scoreCap)
    h.scoreCap = keys.number("%.attn_logit_softcapping", *arch.scoreCap);
  if (arch.logitCap)
    h.logitCap = keys.number("%.final_logit_softcapping", *arch.logitCap);
  if (h.scoreCap < 0 || h.logitCap < 0)
    bad("a soft-cap is negative");
}

void Reader::readWindows() {
  if (!arch.windows)
    return;
  uint64_t size = keys.count("%.attention.sliding_window", arch.windows->size);
  if (size == 0)
    return;
  constexpr StringRef kPattern = "%.attention.sliding_window_pattern";
  const MetaValue *pattern = keys.find(kPattern);
  std::vector<uint64_t> local;
  if (pattern && pattern->isArray)
    local = keys.perLayer(kPattern, h.layers.size(), std::nullopt);
  uint64_t period = local.empty() ? keys.count(kPattern, arch.windows->period) : 0;
  for (auto [i, layer] : llvm::enumerate(h.layers)) {
    layer.local = local.empty() ? period == 0 || i % period < period - 1 : local[i] != 0;
    layer.window = layer.local ? size : 0;
  }
}

/// The numbers of a float tensor of one per rotated pair; empty where there is no such tensor.
std::vector<double> Reader::readFactors(StringRef name) {
  const GgufSet::Place *place = set.find(name);
  if (!place)
    return {};
  const Tensor &tensor = *place->tensor;
  size_t pairs = size_t(h.rope.dims / 2);
  if (tensor.elements() != pairs) {
    bad("tensor " + quoted(name) + " has " + Twine(tensor.elements()) + " elements, " +
        Twine(pairs) + " rotated pairs need as many");
    return {};
  }
  std::vector<float> row(pairs);
  dequantizeRow(*tensor.encoding, set.data(*place), row.data(), pairs);
  for (float factor : row)
    if (!std::isfinite(factor) || factor == 0) {
      bad("tensor " + quoted(name) + " has an element that is zero or not finite");
      return {};
    }
  h.factorTensor = name.str();
  return {row.begin(), row.end()};
}

void Reader::readRope() {
  RopeParameters &rope = h.rope;
  rope.kind = arch.rope;
  rope.dims = int64_t(keys.count("%.rope.dimension_count", h.headDim));
  rope.base = keys.number("%.rope.freq_base", 10000);
  if (rope.dims == 0 || rope.dims % 2 || uint64_t(rope.dims) > h.headDim)
    return bad(keys.fullKey("%.rope.dimension_count") + " is " + Twine(rope.dims) +
               "; an even number up to the head's " + Twine(h.headDim) + " features is expected");
  if (!(rope.base > 1))
    return bad(keys.fullKey("%.rope.freq_base") + " is " + numberText(rope.base) +
               "; more than 1 is expected");

  RopeScaling &scaling = rope.scaling;
  std::string type = keys.text("%.rope.scaling.type", "linear");
  double factor = keys.number("%.rope.scaling.factor", keys.number("%.rope.scale_linear", 0));
  if (factor < 0)
    return bad(keys.fullKey("%.rope.scaling.factor") + " is negative");
  scaling.factor = factor == 0 ? 1 : factor;
  scaling.originalContext =
      double(keys.count("%.rope.scaling.original_context_length", h.contextLength));
  if (type == "yarn")
    scaling.kind = RopeScaling::Kind::Yarn;
  else if (type == "linear" || type == "longrope")
    scaling.kind = scaling.factor == 1 ? RopeScaling::Kind::None : RopeScaling::Kind::Linear;
  else if (type != "none")
    return cannot(keys.fullKey("%.rope.scaling.type") + " is " + quoted(type) +
                  "; none, linear, yarn and longrope are supported");
  h.ropeNote = scaling.kind == RopeScaling::Kind::None
                   ? "unscaled"
                   : type + ", factor " + numberText(scaling.factor);

  // Converters write a model's explicit attention factor as yarn_attn_factor; it replaces the rule.
  if (const char *key = "%.rope.scaling.attn_factor"; keys.find(key))
    scaling.attentionFactor = keys.number(key, 1);
  if (type == "yarn") {
    if (const char *key = "%.rope.scaling.yarn_attn_factor"; keys.find(key))
      scaling.attentionFactor = keys.number(key, 1);
    scaling.betaFast = keys.number("%.rope.scaling.yarn_beta_fast", scaling.betaFast);
    scaling.betaSlow = keys.number("%.rope.scaling.yarn_beta_slow", scaling.betaSlow);
    scaling.logMultiplier = keys.number("%.rope.scaling.yarn_log_multiplier", 0);
    if (!(scaling.betaFast > 0 && scaling.betaSlow > 0 && scaling.originalContext > 0))
      return bad("yarn's beta_fast, beta_slow and original context must be positive");
  }

  rope.factors = readFactors("rope_freqs.weight");
  if (rope.factors.empty()) {
    bool isLong = double(context ? context : h.contextLength) > scaling.originalContext;
    rope.factors = readFactors(isLong ? "rope_factors_long.weight" : "rope_factors_short.weight");
    if (!rope.factors.empty())
      h.ropeNote += isLong ? ", long factors" : ", short factors";
  } else {
    h.ropeNote += ", factors of rope_freqs";
  }

  if (arch.positionTemperature && keys.number("%.attention.temperature_scale", 0) != 0) {
    // Scores grow with log(1 + floor(position / original context)): by 0 within that context.
    h.contextLength = std::min(h.contextLength, uint64_t(scaling.originalContext));
    h.ropeNote += ", context limited to " + std::to_string(h.contextLength) +
                  " positions, where the attention temperature is 1";
  }

  h.localRope = rope;
  if (arch.windows) {
    double base = arch.windows->ropeBase == 0 ? rope.base : arch.windows->ropeBase;
    h.localRope.base = keys.number("%.rope.freq_base_swa", base);
    h.localRope.factors.clear();
    if (!arch.windows->ropeScaled)
      h.localRope.scaling = {};
    if (!(h.localRope.base > 1))
      return bad(keys.fullKey("%.rope.freq_base_swa") + " is not more than 1");
  }

  bool hasRope = !arch.ropeIfFinetuned || keys.flag("%.rope.scaling.finetuned", true);
  for (auto [i, layer] : llvm::enumerate(h.layers))
    layer.rope = hasRope && !(arch.noRopePeriod && (i + 1) % arch.noRopePeriod == 0);
}

Expected<Hyperparameters> Reader::read() {
  for (auto step : {&Reader::refuseUnsupported, &Reader::readSizes, &Reader::readScales,
                    &Reader::readWindows, &Reader::readRope}) {
    (this->*step)();
    if (keys.failed())
      return keys.takeError();
  }
  return std::move(h);
}

Expected<Hyperparameters>
gguf::readHyperparameters(const GgufSet &set, const Architecture &architecture, uint64_t context) {
  return Reader(set, architecture, context).read();
}
