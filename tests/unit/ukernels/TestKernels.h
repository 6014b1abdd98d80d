//===- TestKernels.h - the micro-kernels of every instruction set ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests run over all instruction sets that this CPU has. A kernel whose oracle
// is bit-exact is thereby the same on all of them; the others are compared.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_UKERNELS_TESTKERNELS_H
#define LLMC_TESTS_UNIT_UKERNELS_TESTKERNELS_H

#define UK_EXPORT extern "C"
#include "compiler/codegen/kernels/Uk.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

/// X(prefix, name) for every kernel.
#define UK_KERNELS(X, prefix)                                                                      \
  X(prefix, uk_matmul)                                                                             \
  X(prefix, uk_gemv)                                                                               \
  X(prefix, uk_tiles_begin)                                                                        \
  X(prefix, uk_tiles_end)                                                                          \
  X(prefix, uk_dequant_row)                                                                        \
  X(prefix, uk_quantize_act)                                                                       \
  X(prefix, uk_copy_act_f32)                                                                       \
  X(prefix, uk_rms_norm)                                                                           \
  X(prefix, uk_layer_norm)                                                                         \
  X(prefix, uk_add)                                                                                \
  X(prefix, uk_scale)                                                                              \
  X(prefix, uk_act)                                                                                \
  X(prefix, uk_glu)                                                                                \
  X(prefix, uk_softcap)                                                                            \
  X(prefix, uk_block_max)                                                                          \
  X(prefix, uk_rope_table)                                                                         \
  X(prefix, uk_rope)                                                                               \
  X(prefix, uk_k_store)                                                                            \
  X(prefix, uk_v_store)                                                                            \
  X(prefix, uk_kv_widen)                                                                           \
  X(prefix, uk_attend_chunk)                                                                       \
  X(prefix, uk_attend_merge)                                                                       \
  X(prefix, uk_attend_finish)

namespace llmc::test {

struct Kernels {
  const char *isa;
#define FIELD(prefix, name) decltype(&::name) name;
  UK_KERNELS(FIELD, )
#undef FIELD
};

/// Those of Tiles.cpp in Uk.h that only some instruction sets have.
#define UK_BF16_KERNELS(X, prefix)                                                                 \
  X(prefix, uk_bf16_act) X(prefix, uk_bf16_panels) X(prefix, uk_bf16_matmul)

struct Bf16Kernels {
#define FIELD(prefix, name) decltype(&::name) name;
  UK_BF16_KERNELS(FIELD, )
#undef FIELD
};
/// Of `isa`; null where it has none.
const Bf16Kernels *bf16Kernels(const char *isa);

/// The instruction sets that this CPU, or an emulator of tile instructions on it, can run, weakest
/// first.
const std::vector<Kernels> &kernels();

/// 64-byte aligned memory, filled with 0xff (NaNs) so that what is not written shows.
template <typename T> class Aligned {
public:
  explicit Aligned(size_t count) : count(count) {
    size_t bytes = (count * sizeof(T) + 63) / 64 * 64 + 64;
    memory.reset(static_cast<T *>(std::aligned_alloc(64, bytes)));
    std::memset(static_cast<void *>(memory.get()), 0xff, bytes);
  }
  T *data() { return memory.get(); }
  const T *data() const { return memory.get(); }
  T &operator[](size_t i) { return memory.get()[i]; }
  const T &operator[](size_t i) const { return memory.get()[i]; }
  size_t size() const { return count; }

private:
  struct Free {
    void operator()(T *p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> memory;
  size_t count;
};

/// n floats from a normal distribution of that deviation.
std::vector<float> randomFloats(size_t n, unsigned seed, float deviation = 1);

/// Distance in units in the last place of a float at `expected`.
double ulps(float got, double expected);

#define EXPECT_SAME_BITS(got, expected, n)                                                         \
  EXPECT_EQ(std::memcmp(got, expected, (n) * sizeof(float)), 0)

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_UKERNELS_TESTKERNELS_H
