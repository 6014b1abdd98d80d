//===- TestKernels.cpp - the micro-kernels of every instruction set -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "../amx/Emulator.h"
#include "compiler/codegen/kernels/Ukernels.h"
#include <cmath>

using namespace llmc;
using namespace llmc::test;

#define X(name)                                                                                    \
  extern "C" decltype(name) x86_64_v3_##name;                                                      \
  extern "C" decltype(name) x86_64_v4_vnni_##name;                                                 \
  extern "C" decltype(name) sapphirerapids_##name;
UK_KERNELS(X)
#undef X
#define X(name) extern "C" decltype(name) sapphirerapids_##name;
UK_BF16_KERNELS(X)
#undef X

const std::vector<Kernels> &test::kernels() {
  static const auto all = [] {
#define X(name) x86_64_v3_##name,
    const Kernels v3 = {"x86-64-v3", UK_KERNELS(X)};
#undef X
#define X(name) x86_64_v4_vnni_##name,
    const Kernels v4Vnni = {"x86-64-v4+vnni", UK_KERNELS(X)};
#undef X
#define X(name) sapphirerapids_##name,
    const Kernels sapphireRapids = {"sapphirerapids", UK_KERNELS(X)};
#undef X
    const rt::CpuFeatures features = amx::features(amx::install());
    std::vector<Kernels> runnable;
    for (const Kernels &k : {v3, v4Vnni, sapphireRapids}) {
      bool has = true;
      for (llvm::StringRef feature : lookupUkernelIsa(k.isa)->cpuFeatures)
        has &= features.has({feature.data(), feature.size()});
      if (has)
        runnable.push_back(k);
    }
    return runnable;
  }();
  return all;
}

const Bf16Kernels *test::bf16Kernels(const char *isa) {
#define X(name) sapphirerapids_##name,
  static const Bf16Kernels sapphireRapids = {UK_BF16_KERNELS(X)};
#undef X
  return isa == std::string("sapphirerapids") ? &sapphireRapids : nullptr;
}

std::vector<float> test::randomFloats(size_t n, unsigned seed, float deviation) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> x(n);
  for (float &v : x)
    v = normal(rng);
  return x;
}

double test::ulps(float got, double expected) {
  if (double(got) == expected)
    return 0;
  const float at = std::max(std::fabs(float(expected)), 0x1p-126f);
  return std::fabs(got - expected) / (std::nextafter(at, INFINITY) - at);
}
