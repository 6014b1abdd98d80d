//===- Architecture.h - model families as rows of a table -------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All families are the same decoder with a few choices. A row holds the
// choices; one builder (ModelBuilder) reads it. Sizes, and everything optional
// that a file shows by having a tensor (biases, a fused attn_qkv, an output
// matrix of its own, rope factors), are no choice of a family and not here.
//
// A layer, with what a row may switch in brackets:
//
//   h = [norm](x)                    attn_norm
//   q, k, v = linear(h)              attn_q, attn_k, attn_v
//   q, k = rope?([qk norm](q, k))    attn_q_norm, attn_k_norm
//   y = linear(attention(q, k, v))   attn_output
//   x = x + scale * [norm](y)        post_attention_norm
//   h = [norm](x)                    ffn_norm
//   y = mlp(h)                       ffn_gate, ffn_up, ffn_down
//   x = x + scale * [norm](y)        post_ffw_norm
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_ARCHITECTURE_H
#define LLMC_FRONTENDS_GGUF_ARCHITECTURE_H

#include "compiler/ir/Llm.h"
#include <optional>

namespace llmc::gguf {

enum class QkNorm { None, PerHead, Whole };

enum class Mlp {
  Gated,     ///< down(act(gate(h)) * up(h))
  FusedGate, ///< the same; gate and up are the halves of ffn_up
  Plain,     ///< down(act(up(h)))
};

/// Layers that see a window of positions only ("local"), and how their rope differs.
struct Windows {
  uint64_t size = 0;   ///< where the file has no attention.sliding_window; 0: no windows then
  uint64_t period = 1; ///< every period-th layer is global, where the file has no pattern
  double ropeBase = 0; ///< of local layers, where the file has no freq_base_swa; 0: the global one
  bool ropeScaled = true; ///< local layers have the model's rope scaling
};

struct Architecture {
  llvm::StringLiteral name;
  llm::RopeKind rope = llm::RopeKind::HalfSplit;
  llm::NormKind norm = llm::NormKind::Rms;
  bool normBefore = true; ///< attn_norm, ffn_norm
  bool normAfter = false; ///< post_attention_norm, post_ffw_norm
  QkNorm qkNorm = QkNorm::None;
  llm::Activation activation = llm::Activation::Silu;
  Mlp mlp = Mlp::Gated;
  bool embeddingTimesRootWidth = false;
  bool scaleKeys = false; ///< reads embedding_scale, residual_scale, attention.scale, logit_scale
  bool mlpScales = false; ///< the `.scale` tensors of ffn_* are applied
  std::optional<Windows> windows =
      std::nullopt; ///< without: attention.sliding_window has no effect
  std::optional<double> scoreCap =
      std::nullopt; ///< soft-cap of attention scores, where the file is silent
  std::optional<double> logitCap =
      std::nullopt; ///< soft-cap of logits, where the file is silent; 0: none
  /// Models of so many layers scale scores by width / heads instead of the head dim; 0: none do.
  uint64_t wideScaleLayers = 0;
  uint64_t noRopePeriod = 0;        ///< every so-many-th layer has no rope; 0: all have it
  bool ropeIfFinetuned = false;     ///< rope.scaling.finetuned = false means no rope
  bool positionTemperature = false; ///< reads attention.temperature_scale
};

llvm::ArrayRef<Architecture> architectures();
/// The row of that name, or null.
const Architecture *findArchitecture(llvm::StringRef name);

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_ARCHITECTURE_H
