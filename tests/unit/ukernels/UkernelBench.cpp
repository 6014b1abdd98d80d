//===- UkernelBench.cpp - speed of the matmul kernels ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   ukernel-bench [encoding...]
//
// Specializes the embedded bitcode as generated code does, then measures per
// encoding: compile time of one instantiation, matrix-vector products over 96 MB
// of weights on two threads (GB/s of packed weights), and matrix products on one
// thread (10^9 multiply-adds per second; bf16: with the expansion of the panels).
//
//===----------------------------------------------------------------------===//

#include "Specialize.h"
#include "TestKernels.h"
#include "TestWeights.h"
#include "runtime/base/Cpu.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include <chrono>
#include <cstdio>
#include <thread>

using namespace llmc;
using namespace llmc::test;

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The best time of one call over `repeats` calls.
template <typename F> double best(int repeats, F f) {
  double least = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const double start = seconds();
    f();
    least = std::min(least, seconds() - start);
  }
  return least;
}

/// Runs f(0) and f(1) on two threads.
template <typename F> void onTwo(F f) {
  std::thread other([&] { f(1); });
  f(0);
  other.join();
}

struct Compiled {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void *run;
  double milliseconds;
};

Compiled compile(const UkernelIsa &isa, llvm::StringRef kernel, const std::vector<UkArg> &args) {
  const double start = seconds();
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = specialize(isa, *context, kernel, args);
  llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(isa.triple)};
  machine.setCPU(isa.cpu.str());
  if (!isa.features.empty())
    machine.addFeatures({isa.features.str()});
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  Compiled c;
  c.jit = llvm::cantFail(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(machine).create());
  llvm::cantFail(
      c.jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  c.run = llvm::cantFail(c.jit->lookup("run")).toPtr<void *>();
  c.milliseconds = (seconds() - start) * 1e3;
  return c;
}

std::vector<UkArg> formatArgs(const Encoding &encoding) {
  std::vector<UkArg> args;
  for (int32_t arg : kernelFormatArgs(encoding))
    args.push_back({UkArg::I32, arg});
  return args;
}

std::vector<UkArg> operator+(std::vector<UkArg> a, const std::vector<UkArg> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const UkArg openPointer = {UkArg::Pointer, {}}, open32 = {UkArg::I32, {}},
            open64 = {UkArg::I64, {}};

/// A packed weight of about `bytes`, K columns.
Aligned<uint8_t> makeWeight(const Encoding &encoding, int64_t K, size_t bytes, int64_t &panels) {
  const PackedLayout one = packedLayout(encoding, 16, K);
  panels = bytes / one.panelBytes;
  Aligned<uint8_t> w(panels * one.panelBytes);
  const auto source = randomWeights(encoding, 16, K, 1);
  packPanels(encoding, source.data(), 16, K, 0, 1, w.data());
  for (int64_t p = 1; p < panels; ++p)
    std::memcpy(w.data() + p * one.panelBytes, w.data(), one.panelBytes);
  return w;
}

void bench(const Kernels &kernels, const Encoding &encoding) {
  const UkernelIsa &isa = *lookupUkernelIsa(kernels.isa);
  const int64_t K = 768, maxRows = 512;
  const int32_t kind = encoding.isFloat() ? ukActF32 : ukActInt8;
  const int64_t stride = ukActStride(kind, K);
  const auto x = randomFloats(K * maxRows, 1);
  Aligned<char> acts(stride * maxRows);
  for (int64_t m = 0; m < maxRows; ++m)
    (kind == ukActInt8 ? kernels.uk_quantize_act
                       : kernels.uk_copy_act_f32)(&x[m * K], K, acts.data() + m * stride);

  const Compiled gemv = compile(
      isa, "uk_gemv",
      std::vector<UkArg>{openPointer, open32, openPointer, {UkArg::I64, K}, {UkArg::I32, kind}} +
          formatArgs(encoding) + std::vector<UkArg>{openPointer});
  const Compiled matmul =
      compile(isa, "uk_matmul",
              std::vector<UkArg>{openPointer,
                                 openPointer,
                                 {UkArg::I64, stride},
                                 open32,
                                 {UkArg::I64, K},
                                 {UkArg::I32, kind}} +
                  formatArgs(encoding) + std::vector<UkArg>{openPointer, open64});
  auto runGemv = reinterpret_cast<void (*)(const void *, int32_t, const void *, float *)>(gemv.run);
  auto runMatmul =
      reinterpret_cast<void (*)(const void *, const void *, int32_t, float *, int64_t)>(matmul.run);

  int64_t panels;
  Aligned<uint8_t> w = makeWeight(encoding, K, 96 << 20, panels);
  const int64_t panelBytes = packedLayout(encoding, 16, K).panelBytes;
  std::vector<float> out(panels * 16);
  const double vector = best(10, [&] {
    onTwo([&](int t) {
      const int64_t from = t ? panels / 2 : 0, to = t ? panels : panels / 2;
      runGemv(w.data() + from * panelBytes, int32_t(to - from), acts.data(), &out[from * 16]);
    });
  });
  std::printf("%-15s %-7s gemv %5.1f GB/s, compiled in %3.0f + %3.0f ms, GMAC/s at", kernels.isa,
              encoding.name.data(), panels * panelBytes / vector / 1e9, gemv.milliseconds,
              matmul.milliseconds);

  const int64_t N = 1536;
  std::vector<float> product(N * maxRows);
  for (int32_t rows : {1, 2, 4, 8, 16, 64, 512}) {
    const double time = best(5, [&] {
      kernels.uk_tiles_begin(rows, kind);
      for (int64_t p = 0; p < N / 16; ++p)
        runMatmul(w.data() + p * panelBytes, acts.data(), rows, &product[16 * p], N);
      kernels.uk_tiles_end(rows, kind);
    });
    std::printf("  %d: %.0f", rows, double(N) * K * rows / time / 1e9);
  }
  if (const Bf16Kernels *bf16 = bf16Kernels(kernels.isa)) {
    const UkFormat &f = encoding.format;
    const int64_t bf16Stride = ukActStride(ukActBf16, K);
    Aligned<char> bf16Acts(bf16Stride * maxRows), expanded(2 * ukBf16PanelBytes(K));
    for (int64_t m = 0; m < maxRows; ++m)
      bf16->uk_bf16_act(&x[m * K], K, bf16Acts.data() + m * bf16Stride);
    const double time = best(5, [&] {
      kernels.uk_tiles_begin(maxRows, ukActBf16);
      for (int64_t p = 0; p < N / 16; p += 2) {
        bf16->uk_bf16_panels(w.data() + p * panelBytes, 2, K, FORMAT(f), expanded.data());
        bf16->uk_bf16_matmul(expanded.data(), 2, bf16Acts.data(), bf16Stride, maxRows, K,
                             &product[16 * p], N);
      }
      kernels.uk_tiles_end(maxRows, ukActBf16);
    });
    std::printf("  bf16 %lld: %.0f", static_cast<long long>(maxRows),
                double(N) * K * maxRows / time / 1e9);
  }
  std::printf("\n");
}

/// Plain reads of 96 MB on two threads, in GB/s.
double readBandwidth() {
  const size_t count = (96 << 20) / 8;
  std::vector<uint64_t> memory(count, 1);
  uint64_t sums[2];
  const double time = best(10, [&] {
    onTwo([&](int t) {
      uint64_t sum = 0;
      for (size_t i = t * count / 2; i < (t + 1) * count / 2; ++i)
        sum += memory[i];
      sums[t] = sum;
    });
  });
  return sums[0] + sums[1] == count ? count * 8 / time / 1e9 : 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::vector<llvm::StringRef> names(argv + 1, argv + argc);
  if (names.empty())
    names = {"q4_1", "q8_0", "q5_0", "q4_k", "q6_k"};
  std::printf("plain read %.1f GB/s\n", readBandwidth());
  for (llvm::StringRef name : names) {
    const Encoding *encoding = lookupEncoding(name);
    if (!encoding) {
      std::fprintf(stderr, "unknown encoding '%s'\n", name.str().c_str());
      return 1;
    }
    for (const Kernels &k : kernels())
      if (rt::CpuFeatures::host().has("amx-tile") || !bf16Kernels(k.isa)) // not on the emulator
        bench(k, *encoding);
  }
}
