//===- MatrixTest.cpp - fragments and their instructions ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"
#include "tests/ptx/emulator/Numbers.h"

#include <random>

// ldmatrix, mma and the layout of the results against plain loops. Matrices go the way that kernels
// use: A row by row and B column by column in shared memory, ldmatrix into fragments, mma, and the
// accumulators stored at the rows and columns that the PTX ISA gives.

using namespace llmc::ptx;

namespace {
/// A (16 x K) and B (8 x K, by columns) are 32 bytes or less per row; D is 16 x 8 of f32 or s32.
std::string kernel(const std::string &mma, unsigned rowBytes, bool wide) {
  // Lane l gives row l % 16 of A, its left or right 16 bytes, and row l % 8 of B.
  std::string text = R"(.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d) {
  .reg .pred %p; .reg .b32 %r<32>; .reg .b64 %rd<12>; .reg .b32 %a<4>, %b<2>, %d<4>;
  .shared .align 16 .b8 sa[512]; .shared .align 16 .b8 sb[256];
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [d];
  mov.u32 %r1, %tid.x; mov.u32 %r2, sa; mov.u32 %r3, sb;
  mov.u32 %r4, %r1;
LOOP:
  shl.b32 %r5, %r4, 2; cvt.u64.u32 %rd4, %r5;
  setp.ge.u32 %p, %r5, ABYTES; @%p bra SKIPA;
  add.u64 %rd5, %rd1, %rd4; ld.global.u32 %r6, [%rd5]; add.u32 %r7, %r2, %r5; st.shared.u32 [%r7], %r6;
SKIPA:
  setp.ge.u32 %p, %r5, BBYTES; @%p bra SKIPB;
  add.u64 %rd5, %rd2, %rd4; ld.global.u32 %r6, [%rd5]; add.u32 %r7, %r3, %r5; st.shared.u32 [%r7], %r6;
SKIPB:
  add.u32 %r4, %r4, 32; setp.lt.u32 %p, %r4, 128; @%p bra LOOP;
  bar.warp.sync -1;
  and.b32 %r8, %r1, 15; mul.lo.u32 %r8, %r8, ROW; shr.u32 %r9, %r1, 4; shl.b32 %r9, %r9, 4;
  add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r2;
  and.b32 %r10, %r1, 7; mul.lo.u32 %r10, %r10, ROW; shr.u32 %r11, %r1, 3; and.b32 %r11, %r11, 1;
  shl.b32 %r11, %r11, 4; RIGHT add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r3;
  LOADS
  mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
  MMA
  shr.u32 %r12, %r1, 2; and.b32 %r13, %r1, 3;
  shl.b32 %r14, %r12, 3; shl.b32 %r15, %r13, 1; add.u32 %r14, %r14, %r15; shl.b32 %r14, %r14, 2;
  cvt.u64.u32 %rd6, %r14; add.u64 %rd6, %rd3, %rd6;
  st.global.v2.b32 [%rd6], {%d0, %d1};
  st.global.v2.b32 [%rd6+256], {%d2, %d3};
  ret; })";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  replace("ABYTES", std::to_string(16 * rowBytes));
  replace("BBYTES", std::to_string(8 * rowBytes));
  replace("ROW", std::to_string(rowBytes));
  replace("RIGHT", wide ? "" : "mov.u32 %r11, 0;");
  replace("LOADS", wide ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%r8];"
                          "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%b0, %b1}, [%r10];"
                        : "and.b32 %r9, %r1, 15; mul.lo.u32 %r8, %r9, " + std::to_string(rowBytes) +
                              "; add.u32 %r8, %r8, %r2;"
                              "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%a0, %a1}, [%r8];"
                              "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b0}, [%r10];");
  std::string operands =
      wide ? " {%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%d0,%d1,%d2,%d3};"
           : " {%d0,%d1,%d2,%d3}, {%a0,%a1}, {%b0}, {%d0,%d1,%d2,%d3};";
  replace("MMA", mma + operands);
  return ptx(text);
}

template <class T, class D, class Load, class Random>
void check(const std::string &mma, unsigned K, Load load, Random random) {
  unsigned rowBytes = K * sizeof(T);
  std::mt19937 engine(K);
  std::vector<T> a(16 * K), b(8 * K);
  for (auto *m : {&a, &b})
    for (T &x : *m)
      x = random(engine);
  for (const Options &o : allOptions()) {
    Harness h(o);
    h.load(kernel(mma, rowBytes, rowBytes == 32));
    uint64_t d = h.allocate(512);
    Error e = h.launch("k", 1, 32, h.upload(a), h.upload(b), d);
    ASSERT_FALSE(e) << e.message;
    auto got = h.download<D>(d, 128);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < 8; ++column) {
        double sum = 0;
        for (unsigned k = 0; k < K; ++k)
          sum += double(load(a[row * K + k])) * double(load(b[column * K + k]));
        EXPECT_EQ(got[row * 8 + column], D(sum)) << mma << " " << row << " " << column;
      }
  }
}
} // namespace

TEST(Matrix, F16) {
  auto random = [](auto &e) { return floatToHalf(float(int(e() % 401) - 200) / 64); };
  auto load = [](uint16_t h) { return halfToFloat(h); };
  check<uint16_t, float>("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, load, random);
  check<uint16_t, float>("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8, load, random);
}

TEST(Matrix, BF16) {
  auto random = [](auto &e) { return floatToBF16(float(int(e() % 401) - 200) / 64); };
  auto load = [](uint16_t h) { return bf16ToFloat(h); };
  check<uint16_t, float>("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, load, random);
  check<uint16_t, float>("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8, load, random);
}

TEST(Matrix, Bytes) {
  check<int8_t, int32_t>(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, [](int8_t x) { return x; },
      [](auto &e) { return int8_t(e()); });
  check<uint8_t, int32_t>(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", 32, [](uint8_t x) { return x; },
      [](auto &e) { return uint8_t(e()); });
  check<int8_t, int32_t>(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", 16, [](int8_t x) { return x; },
      [](auto &e) { return int8_t(e()); });
}

TEST(Matrix, FP8) {
  auto random = [](auto &e) { return uint8_t(e() % 0x60 | (e() & 0x80)); };
  check<uint8_t, float>(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 32,
      [](uint8_t x) { return decode(x, formatE4M3); }, random);
}

TEST(Matrix, TF32) {
  // An f32 is two columns of 16 bits: ldmatrix moves it as a whole.
  auto random = [](auto &e) { return asBits(float(int(e() % 401) - 200) / 64); };
  check<uint32_t, float>(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8,
      [](uint32_t x) { return asFloat(x); }, random);
}

TEST(Matrix, WantsTheWholeWarp) {
  std::string text = kernel("@%p mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 32, true);
  text.replace(text.find("mov.b32 %d0, 0;"), 15, "setp.lt.u32 %p, %r1, 16; mov.b32 %d0, 0;");
  Harness h;
  h.load(text);
  std::vector<uint16_t> a(256), b(128);
  Error e = h.launch("k", 1, 32, h.upload(a), h.upload(b), h.allocate(512));
  EXPECT_STREQ(nameOf(e.kind), "divergence");
}

TEST(Matrix, TransposesAndStores) {
  // ldmatrix.trans, movmatrix and stmatrix undo each other.
  std::string text = ptx(R"(.visible .entry k(.param .u64 out) {
  .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .pred %p;
  .shared .align 16 .b8 s[128]; .shared .align 16 .b8 t[128];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r12, t;
  shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
  shl.b32 %r5, %r1, 1; add.u32 %r6, %r5, 1; shl.b32 %r6, %r6, 16; or.b32 %r5, %r5, %r6;
  st.shared.u32 [%r4], %r5; bar.warp.sync -1;
  and.b32 %r7, %r1, 7; shl.b32 %r7, %r7, 4; add.u32 %r8, %r2, %r7; add.u32 %r13, %r12, %r7;
  ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r9}, [%r8];
  movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r9;
  stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r13], {%r10};
  bar.warp.sync -1;
  cvt.u64.u32 %rd2, %r3; add.u64 %rd1, %rd1, %rd2; add.u32 %r14, %r12, %r3;
  ld.shared.u32 %r11, [%r14]; st.global.v2.u32 [%rd1], {%r11, %r9};
  ret; })");
  text.replace(text.find("cvt.u64.u32 %rd2, %r3;"), 22, "mul.wide.u32 %rd2, %r1, 8;");
  Harness h;
  h.load(text);
  uint64_t out = h.allocate(256);
  Error e = h.launch("k", 1, 32, out);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<uint32_t>(out, 64);
  for (unsigned l = 0; l < 32; ++l) {
    // Element (r, c) is 8 r + c; lane l holds (l / 4, 2 (l % 4)) and the next.
    unsigned r = l / 4, c = 2 * (l % 4);
    EXPECT_EQ(got[2 * l + 1], (8 * c + r) | (8 * (c + 1) + r) << 16); // transposed
    EXPECT_EQ(got[2 * l], (8 * c + r) | (8 * (c + 1) + r) << 16);     // stored transposed
  }
}
