//===- TestKernels.cpp - the micro-kernels of every instruction set -------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernels.h"
#include "compiler/codegen/kernels/Ukernels.h"
#include "runtime/base/Cpu.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#if defined(__x86_64__)
#include "../amx/Emulator.h"
#endif

using namespace llmc;
using namespace llmc::test;

// Symbol prefix and target of what CMakeLists.txt links.
#if defined(__x86_64__)
#define UK_ISAS(X)                                                                                 \
  X(x86_64_v3, "x86-64-v3")                                                                        \
  X(x86_64_v4_vnni, "x86-64-v4+vnni") X(sapphirerapids, "sapphirerapids")
#elif defined(__aarch64__)
#define UK_ISAS(X) X(aarch64, "aarch64") X(aarch64_i8mm, "aarch64+i8mm")
#endif

#define DECLARE(prefix, name) extern "C" decltype(name) prefix##_##name;
#define ADDRESS(prefix, name) prefix##_##name,
#define DECLARE_ALL(prefix, target) UK_KERNELS(DECLARE, prefix)
#define TABLE(prefix, target) {target, UK_KERNELS(ADDRESS, prefix)},

UK_ISAS(DECLARE_ALL)

static rt::CpuFeatures features() {
#if defined(__x86_64__)
  return amx::features(amx::install());
#else
  return rt::CpuFeatures::host();
#endif
}

const std::vector<Kernels> &test::kernels() {
  static const auto all = [] {
    const Kernels tables[] = {UK_ISAS(TABLE)};
    const rt::CpuFeatures has = features();
    std::vector<Kernels> runnable;
    for (const Kernels &k : tables)
      if (llvm::all_of(lookupUkernelIsa(k.isa)->cpuFeatures, [&](llvm::StringRef feature) {
            return has.has({feature.data(), feature.size()});
          }))
        runnable.push_back(k);
    return runnable;
  }();
  return all;
}

#if defined(__x86_64__)
UK_BF16_KERNELS(DECLARE, sapphirerapids)
#endif

const Bf16Kernels *test::bf16Kernels(const char *isa) {
#if defined(__x86_64__)
  static const Bf16Kernels sapphireRapids = {UK_BF16_KERNELS(ADDRESS, sapphirerapids)};
  if (isa == std::string("sapphirerapids"))
    return &sapphireRapids;
#endif
  return nullptr;
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
