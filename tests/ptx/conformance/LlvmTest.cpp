//===- LlvmTest.cpp - what LLVM's NVPTX back end writes -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

using namespace llmc::ptx;

// PTX as LLVM writes it: untyped registers, parameters by value, arrays without a size.

namespace {
const char *const source = R"(
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.fma.f32(float, float, float)
declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)
declare float @llvm.nvvm.ex2.approx.f(float)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
@smem = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @dot(ptr addrspace(1) readonly align 16 %a, ptr addrspace(1) readonly align 16 %b, ptr addrspace(1) %o, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %i2, %loop ]
  %acc = phi float [ 0.0, %entry ], [ %acc2, %loop ]
  %ix = sext i32 %i to i64
  %pa = getelementptr <4 x half>, ptr addrspace(1) %a, i64 %ix
  %pb = getelementptr <4 x half>, ptr addrspace(1) %b, i64 %ix
  %va = load <4 x half>, ptr addrspace(1) %pa, align 8
  %vb = load <4 x half>, ptr addrspace(1) %pb, align 8
  %m = fmul <4 x half> %va, %vb
  %m0 = extractelement <4 x half> %m, i32 0
  %m1 = extractelement <4 x half> %m, i32 1
  %m2 = extractelement <4 x half> %m, i32 2
  %m3 = extractelement <4 x half> %m, i32 3
  %f0 = fpext half %m0 to float
  %f1 = fpext half %m1 to float
  %f2 = fpext half %m2 to float
  %f3 = fpext half %m3 to float
  %s0 = fadd float %acc, %f0
  %s1 = fadd float %s0, %f1
  %s2 = fadd float %s1, %f2
  %acc2 = fadd float %s2, %f3
  %i2 = add i32 %i, 32
  %c = icmp slt i32 %i2, %n
  br i1 %c, label %loop, label %done
done:
  %tx = sext i32 %t to i64
  %ps = getelementptr float, ptr addrspace(3) @smem, i64 %tx
  store float %acc2, ptr addrspace(3) %ps
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %z = icmp eq i32 %t, 0
  br i1 %z, label %sum, label %end
sum:
  br label %sl
sl:
  %j = phi i64 [ 0, %sum ], [ %j2, %sl ]
  %r = phi float [ 0.0, %sum ], [ %r2, %sl ]
  %pj = getelementptr float, ptr addrspace(3) @smem, i64 %j
  %vj = load float, ptr addrspace(3) %pj
  %r2 = fadd float %r, %vj
  %j2 = add i64 %j, 1
  %jc = icmp ult i64 %j2, 32
  br i1 %jc, label %sl, label %st
st:
  store float %r2, ptr addrspace(1) %o
  br label %end
end:
  ret void
}
define ptx_kernel void @mixed(ptr addrspace(1) %p, ptr byval([4 x i32]) align 4 %s) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %tx = zext i32 %t to i64
  %k = and i64 %tx, 3
  %ps = getelementptr i32, ptr %s, i64 %k
  %v = load i32, ptr %ps
  %q = sdiv i32 %v, 3
  %b = trunc i32 %v to i8
  %bs = sext i8 %b to i32
  %h = sitofp i32 %bs to bfloat
  %h2 = fadd bfloat %h, 0xR3FC0
  %f = fpext bfloat %h2 to float
  %e = call float @llvm.nvvm.ex2.approx.f(float 3.0)
  %g = fadd float %f, %e
  %x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %q, i32 1, i32 31)
  %gi = fptosi float %g to i32
  %r = add i32 %gi, %x
  %po = getelementptr i32, ptr addrspace(1) %p, i64 %tx
  store i32 %r, ptr addrspace(1) %po
  ret void
}
)";

class Llvm : public testing::Test {
protected:
  void SetUp() override {
    static const std::string text = llc(source);
    if (text.empty())
      GTEST_SKIP() << "llc is not there";
    h.load(text);
  }
  Harness h;
};
} // namespace

TEST_F(Llvm, DotProduct) {
  std::vector<_Float16> a(64 * 4), b(64 * 4);
  float want = 0;
  for (int i = 0; i < 256; ++i) {
    a[i] = _Float16(i % 7 - 3);
    b[i] = _Float16(i % 5);
    want += float(a[i]) * float(b[i]);
  }
  uint64_t out = h.allocate(4);
  LaunchConfig c;
  c.block[0] = 32;
  c.dynamicShared = 128;
  Error e = h.launchWith("dot", c, h.upload(a), h.upload(b), out, 64);
  ASSERT_FALSE(e) << e.message;
  EXPECT_EQ(h.download<float>(out, 1)[0], want);
}

TEST_F(Llvm, ParameterByValue) {
  struct {
    int v[4];
  } s = {{300, -7, 0x180, 12}};
  uint64_t out = h.allocate(128);
  Error e = h.launch("mixed", 1, 32, out, s);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<int>(out, 32);
  for (int t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], int(float(int8_t(s.v[t % 4])) + 1.5f + 8) + s.v[(t ^ 1) % 4] / 3);
}
