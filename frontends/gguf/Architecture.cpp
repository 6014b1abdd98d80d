//===- Architecture.cpp - model families as rows of a table ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/Architecture.h"
#include "llvm/ADT/STLExtras.h"

using namespace llmc;
using namespace llmc::gguf;
using llm::Activation;
using llm::NormKind;
using llm::RopeKind;

// Checked against the graphs of llama.cpp (src/models), which write these files.
static constexpr Architecture kArchitectures[] = {
    {.name = "gemma", .activation = Activation::GeluTanh, .embeddingTimesRootWidth = true},
    {.name = "gemma2",
     .normAfter = true,
     .activation = Activation::GeluTanh,
     .embeddingTimesRootWidth = true,
     .windows = Windows{.size = 4096, .period = 2},
     .scoreCap = 50,
     .logitCap = 30,
     .wideScaleLayers = 46},
    {.name = "gemma3",
     .normAfter = true,
     .qkNorm = QkNorm::PerHead,
     .activation = Activation::GeluTanh,
     .embeddingTimesRootWidth = true,
     .windows = Windows{.period = 6, .ropeBase = 10000, .ropeScaled = false},
     .logitCap = 0,
     .wideScaleLayers = 62},
    {.name = "granite", .rope = RopeKind::Interleaved, .scaleKeys = true, .ropeIfFinetuned = true},
    {.name = "llama", .rope = RopeKind::Interleaved, .mlpScales = true},
    {.name = "mistral3",
     .rope = RopeKind::Interleaved,
     .mlpScales = true,
     .positionTemperature = true},
    {.name = "olmo2",
     .normBefore = false,
     .normAfter = true,
     .qkNorm = QkNorm::Whole,
     .windows = Windows{.period = 4, .ropeScaled = false}},
    {.name = "phi3", .mlp = Mlp::FusedGate},
    {.name = "qwen2"},
    {.name = "qwen3", .qkNorm = QkNorm::PerHead, .mlpScales = true},
    {.name = "smollm3", .rope = RopeKind::Interleaved, .noRopePeriod = 4},
    {.name = "starcoder2",
     .norm = NormKind::Layer,
     .activation = Activation::GeluTanh,
     .mlp = Mlp::Plain},
};

llvm::ArrayRef<Architecture> gguf::architectures() { return kArchitectures; }

const Architecture *gguf::findArchitecture(llvm::StringRef name) {
  const Architecture *row =
      llvm::find_if(kArchitectures, [&](const Architecture &a) { return a.name == name; });
  return row == std::end(kArchitectures) ? nullptr : row;
}
