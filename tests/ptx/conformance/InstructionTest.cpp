//===- InstructionTest.cpp - single instructions --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"
#include "tests/ptx/emulator/Numbers.h"

#include <bit>
#include <cfenv>
#include <cmath>

// Single instructions, on all lanes, against values computed here.

using namespace llmc::ptx;

namespace {
/// Executes `code` in one thread: %a, %b, %c (u64), %ra, %rb, %rc (their low 32 bits), %fa, %fb,
/// %fc (the same as f32), %ha, %hb, %hc (16 bits) hold the inputs; the result is what it leaves in
/// %rd (64 bits), which begins with 0. %r and %h are for its own results; %x and %y are f64.
uint64_t eval(const std::string &code, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
  Harness h({}, 1 << 20);
  std::string error = h.loadError(ptx(
      ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out) {\n"
      ".reg .b64 %a, %b, %c, %rd, %out; .reg .b32 %ra, %rb, %rc, %r, %q; .reg .f32 %fa, %fb, %fc, "
      "%f;\n"
      ".reg .b16 %ha, %hb, %hc, %h; .reg .f64 %x, %y, %z; .reg .pred %p, %q0, %q1;\n"
      "ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u64 %out, "
      "[out];\n"
      "cvt.u32.u64 %ra, %a; cvt.u32.u64 %rb, %b; cvt.u32.u64 %rc, %c; mov.b32 %fa, %ra;\n"
      "mov.b32 %fb, %rb; mov.b32 %fc, %rc; cvt.u16.u32 %ha, %ra; cvt.u16.u32 %hb, %rb;\n"
      "cvt.u16.u32 %hc, %rc; mov.b64 %x, %a; mov.b64 %y, %b; mov.b64 %z, %c; mov.b64 %rd, 0;\n" +
      code + "\nst.global.u64 [%out], %rd; ret; }"));
  EXPECT_EQ(error, "") << code;
  if (!error.empty())
    return 0xbad;
  uint64_t out = h.allocate(8);
  Error e = h.launch("k", 1, 1, a, b, c, out);
  EXPECT_FALSE(e) << code << ": " << e.message;
  return h.download<uint64_t>(out, 1)[0];
}
/// The same, with a 32-bit result in %r.
uint32_t eval32(const std::string &code, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
  return uint32_t(eval(code + " cvt.u64.u32 %rd, %r;", a, b, c));
}
float evalF(const std::string &code, float a = 0, float b = 0, float c = 0) {
  return asFloat(eval32(code + " mov.b32 %r, %f;", asBits(a), asBits(b), asBits(c)));
}
} // namespace

TEST(Instruction, IntegerArithmetic) {
  EXPECT_EQ(eval32("add.s32 %r, %ra, %rb;", 0xffffffff, 2), 1u);
  EXPECT_EQ(eval32("add.sat.s32 %r, %ra, %rb;", 0x7fffffff, 2), 0x7fffffffu);
  EXPECT_EQ(eval32("sub.sat.s32 %r, %ra, %rb;", 0x80000000, 2), 0x80000000u);
  EXPECT_EQ(eval32("mul.hi.s32 %r, %ra, %rb;", uint32_t(-3), 5), 0xffffffffu);
  EXPECT_EQ(eval32("mul.hi.u32 %r, %ra, %rb;", 0xffffffff, 0xffffffff), 0xfffffffeu);
  EXPECT_EQ(eval("mul.wide.s32 %rd, %ra, %rb;", uint32_t(-3), 7), uint64_t(-21));
  EXPECT_EQ(eval("mad.wide.u32 %rd, %ra, %rb, %c;", 0xffffffff, 2, 5), 0x200000003u);
  EXPECT_EQ(eval32("mad.lo.s32 %r, %ra, %rb, %rc;", 7, uint32_t(-8), 1), uint32_t(-55));
  EXPECT_EQ(eval32("mad.hi.u32 %r, %ra, %rb, %rc;", 1u << 31, 6, 1), 4u);
  EXPECT_EQ(eval32("div.s32 %r, %ra, %rb;", uint32_t(-7), 2), uint32_t(-3));
  EXPECT_EQ(eval32("rem.s32 %r, %ra, %rb;", uint32_t(-7), 2), uint32_t(-1));
  EXPECT_EQ(eval32("min.s32 %r, %ra, %rb;", uint32_t(-7), 2), uint32_t(-7));
  EXPECT_EQ(eval32("max.u32 %r, %ra, %rb;", uint32_t(-7), 2), uint32_t(-7));
  EXPECT_EQ(eval32("abs.s32 %r, %ra;", uint32_t(-7)), 7u);
  EXPECT_EQ(eval32("sad.s32 %r, %ra, %rb, %rc;", uint32_t(-7), 5, 100), 112u);
  EXPECT_EQ(eval32("mul24.lo.s32 %r, %ra, %rb;", 0xfffffe, 3), uint32_t(-6));
  EXPECT_EQ(eval32("add.u16 %h, %ha, %hb; cvt.u32.u16 %r, %h;", 0xffff, 2), 1u);
  EXPECT_EQ(eval32("mul.wide.s16 %r, %ha, %hb;", 0xffff, 5), uint32_t(-5));
  EXPECT_EQ(eval("add.cc.u32 %r, %ra, %rb; addc.u32 %q, %rc, 0; mov.b64 %rd, {%r, %q};", 0xffffffff,
                 2, 7),
            0x800000001u);
  EXPECT_EQ(eval("sub.cc.u32 %r, %ra, %rb; subc.u32 %q, %rc, 0; mov.b64 %rd, {%r, %q};", 1, 2, 7),
            0x6ffffffffu);
  EXPECT_EQ(eval("mad.lo.cc.u32 %r, %ra, %rb, %rc; madc.hi.u32 %q, %ra, %rb, 0;"
                 "mov.b64 %rd, {%r, %q};",
                 0xffffffff, 0xffffffff, 0xffffffff),
            0xffffffffull * 0xffffffff + 0xffffffff);
}

TEST(Instruction, Bits) {
  EXPECT_EQ(eval32("shl.b32 %r, %ra, %rb;", 1, 32), 0u);
  EXPECT_EQ(eval32("shr.s32 %r, %ra, %rb;", 0x80000000, 40), 0xffffffffu);
  EXPECT_EQ(eval32("shr.u32 %r, %ra, %rb;", 0x80000000, 31), 1u);
  EXPECT_EQ(eval32("shf.l.wrap.b32 %r, %ra, %rb, %rc;", 0x80000001, 0x12345678, 36), 0x23456788u);
  EXPECT_EQ(eval32("shf.r.clamp.b32 %r, %ra, %rb, %rc;", 1, 0x12345678, 40), 0x12345678u);
  EXPECT_EQ(eval32("bfe.u32 %r, %ra, 4, 8;", 0xabcd), 0xbcu);
  EXPECT_EQ(eval32("bfe.s32 %r, %ra, 4, 8;", 0xabcd), 0xffffffbcu);
  EXPECT_EQ(eval32("bfe.s32 %r, %ra, 28, 8;", 0x80000000), 0xfffffff8u);
  EXPECT_EQ(eval32("bfe.u32 %r, %ra, 40, 8;", ~0u), 0u);
  EXPECT_EQ(eval32("bfi.b32 %r, %ra, %rb, 8, 4;", 0xabc, 0x11111), 0x11c11u);
  EXPECT_EQ(eval32("brev.b32 %r, %ra;", 1), 0x80000000u);
  EXPECT_EQ(eval32("popc.b64 %r, %a;", 0xff000000000000ffull), 16u);
  EXPECT_EQ(eval32("clz.b32 %r, %ra;", 0), 32u);
  EXPECT_EQ(eval32("bfind.s32 %r, %ra;", 0xfffffff0), 3u);
  EXPECT_EQ(eval32("bfind.u32 %r, %ra;", 0), ~0u);
  for (unsigned table : {0x96u, 0xe8u, 0xeau, 0x1u, 0xc0u}) {
    uint32_t a = 0x12345678, b = 0x9abcdef0, c = 0x0f1e2d3c, want = 0;
    for (int k = 0; k < 32; ++k)
      want |= (table >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k;
    EXPECT_EQ(eval32("lop3.b32 %r, %ra, %rb, %rc, " + std::to_string(table) + ";", a, b, c), want);
  }
  EXPECT_EQ(eval32("prmt.b32 %r, %ra, %rb, 0x7531;", 0x33221100, 0x77665544), 0x77553311u);
  EXPECT_EQ(eval32("prmt.b32 %r, %ra, %rb, 0x98ba;", 0x80ff7f01, 0), 0x0000ffffu);
  EXPECT_EQ(eval32("prmt.b32.f4e %r, %ra, %rb, 2;", 0x33221100, 0x77665544), 0x55443322u);
  EXPECT_EQ(eval32("dp4a.s32.s32 %r, %ra, %rb, %rc;", 0xff02fd04, 0x01020304, 10),
            uint32_t(-1 + 4 - 9 + 16 + 10));
  EXPECT_EQ(eval32("dp4a.u32.s32 %r, %ra, %rb, %rc;", 0xff000000, 0xff000000, 0), uint32_t(-255));
  EXPECT_EQ(eval32("dp2a.lo.s32.s32 %r, %ra, %rb, %rc;", 0xfffe0003, 0x0201, 1),
            uint32_t(-4 + 3 + 1));
  EXPECT_EQ(eval32("bmsk.clamp.b32 %r, 4, 8;"), 0xff0u);
  EXPECT_EQ(eval("bfi.b64 %rd, %a, %b, 32, 32;", 0x12345678, 0x9abcdef0), 0x123456789abcdef0u);
  EXPECT_EQ(eval("shr.s64 %rd, %a, 60;", 1ull << 63), uint64_t(-8));
}

TEST(Instruction, RoundingOfF32) {
  const float values[] = {1,     3,          7,        0.1f,    1e-20f, 1e20f,
                          -0.3f, 1.0000001f, 16777216, -1e-38f, 5e-40f};
  const std::pair<const char *, int> modes[] = {
      {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (auto [name, mode] : modes)
    for (float a : values)
      for (float b : values) {
        fesetround(mode);
        volatile float x = a, y = b, sum = x + y, product = x * y, quotient = x / y,
                       root = std::sqrt(std::fabs(x)), fused = std::fma(x, y, x);
        fesetround(FE_TONEAREST);
        std::string m = name;
        EXPECT_EQ(evalF("add." + m + ".f32 %f, %fa, %fb;", a, b), sum) << m << a << " " << b;
        EXPECT_EQ(evalF("mul." + m + ".f32 %f, %fa, %fb;", a, b), product) << m << a << " " << b;
        EXPECT_EQ(evalF("div." + m + ".f32 %f, %fa, %fb;", a, b), quotient) << m << a << " " << b;
        EXPECT_EQ(evalF("fma." + m + ".f32 %f, %fa, %fb, %fa;", a, b), fused) << m << a << " " << b;
        if (b == 1)
          EXPECT_EQ(evalF("sqrt." + m + ".f32 %f, %fa;", std::fabs(a)), root) << m << a;
      }
}

TEST(Instruction, SpecialCasesOfF32) {
  float nan = NAN;
  EXPECT_EQ(evalF("min.f32 %f, %fa, %fb;", nan, 3), 3);
  EXPECT_EQ(evalF("max.f32 %f, %fa, %fb;", 3, nan), 3);
  EXPECT_TRUE(std::isnan(evalF("max.NaN.f32 %f, %fa, %fb;", 3, nan)));
  EXPECT_TRUE(std::signbit(evalF("min.f32 %f, %fa, %fb;", 0.0f, -0.0f)));
  EXPECT_EQ(eval32("add.f32 %f, %fa, %fb; mov.b32 %r, %f;", asBits(INFINITY), asBits(-INFINITY)),
            0x7fffffffu);
  EXPECT_EQ(evalF("add.ftz.f32 %f, %fa, %fb;", 1e-40f, 0), 0);
  EXPECT_EQ(evalF("mul.ftz.f32 %f, %fa, %fb;", 1e-30f, 1e-10f), 0);
  EXPECT_EQ(evalF("add.sat.f32 %f, %fa, %fb;", 3, -5), 0);
  EXPECT_EQ(evalF("fma.rn.sat.f32 %f, %fa, %fb, %fc;", 3, 5, 2), 1);
  EXPECT_EQ(evalF("ex2.approx.f32 %f, %fa;", 10), 1024);
  EXPECT_EQ(evalF("lg2.approx.f32 %f, %fa;", 1024), 10);
  EXPECT_EQ(evalF("rsqrt.approx.f32 %f, %fa;", 16), 0.25f);
  EXPECT_EQ(evalF("rcp.approx.ftz.f32 %f, %fa;", 1e-40f), INFINITY);
  EXPECT_EQ(evalF("copysign.f32 %f, %fa, %fb;", -1, 5), -5);
  EXPECT_EQ(eval32("setp.ltu.f32 %p, %fa, %fb; selp.u32 %r, 1, 0, %p;", asBits(nan), 0), 1u);
  EXPECT_EQ(eval32("setp.ne.f32 %p, %fa, %fb; selp.u32 %r, 1, 0, %p;", asBits(nan), 0), 0u);
  EXPECT_EQ(eval32("setp.lt.and.s32 %p|%q0, %ra, %rb, !%q1; selp.u32 %r, 1, 0, %q0;", 2, 1),
            1u | 1);
  EXPECT_EQ(eval32("set.gt.u32.s32 %r, %ra, %rb;", 2, 1), ~0u);
  EXPECT_EQ(eval32("slct.u32.s32 %r, %ra, %rb, %rc;", 2, 1, uint32_t(-1)), 1u);
  EXPECT_EQ(eval32("testp.subnormal.f32 %p, %fa; selp.u32 %r, 1, 0, %p;", 1), 1u);
}

TEST(Instruction, Conversions) {
  EXPECT_EQ(eval32("cvt.rni.s32.f32 %r, %fa;", asBits(2.5f)), 2u);
  EXPECT_EQ(eval32("cvt.rzi.s32.f32 %r, %fa;", asBits(-2.9f)), uint32_t(-2));
  EXPECT_EQ(eval32("cvt.rmi.s32.f32 %r, %fa;", asBits(-2.1f)), uint32_t(-3));
  EXPECT_EQ(eval32("cvt.rzi.u32.f32 %r, %fa;", asBits(-5.0f)), 0u);
  EXPECT_EQ(eval32("cvt.rzi.s32.f32 %r, %fa;", asBits(1e20f)), 0x7fffffffu);
  EXPECT_EQ(eval32("cvt.rzi.s32.f32 %r, %fa;", asBits(NAN)), 0u);
  EXPECT_EQ(eval32("cvt.rn.f32.u32 %f, %ra; mov.b32 %r, %f;", 0xffffffff), asBits(4294967296.0f));
  EXPECT_EQ(eval32("cvt.rz.f32.u32 %f, %ra; mov.b32 %r, %f;", 0xffffffff), asBits(4294967040.0f));
  EXPECT_EQ(eval32("cvt.rn.f32.s64 %f, %a; mov.b32 %r, %f;", 0x7fffffc000000001),
            asBits(float(0x7fffffc000000001)));
  EXPECT_EQ(eval32("cvt.sat.s8.s32 %r, %ra;", 300), 127u);
  EXPECT_EQ(eval32("cvt.s32.s8 %r, %ra;", 0x180), uint32_t(-128));
  EXPECT_EQ(eval32("cvt.u32.u8 %r, %ra;", 0x180), 0x80u);
  EXPECT_EQ(eval("cvt.s64.s32 %rd, %ra;", uint32_t(-2)), uint64_t(-2));
  EXPECT_EQ(eval32("cvt.rn.f16x2.f32 %r, %fa, %fb;", asBits(1.0f), asBits(-2.0f)), 0x3c00c000u);
  EXPECT_EQ(eval32("cvt.rn.bf16x2.f32 %r, %fa, %fb;", asBits(1.0f), asBits(-2.0f)), 0x3f80c000u);
  EXPECT_EQ(eval32("cvt.rn.relu.bf16x2.f32 %r, %fa, %fb;", asBits(1.0f), asBits(-2.0f)),
            0x3f800000u);
  EXPECT_EQ(eval32("cvt.rn.satfinite.e4m3x2.f32 %h, %fa, %fb; cvt.u32.u16 %r, %h;", asBits(1.0f),
                   asBits(1000.0f)),
            0x387eu);
  EXPECT_EQ(eval32("cvt.rn.satfinite.e5m2x2.f32 %h, %fa, %fb; cvt.u32.u16 %r, %h;", asBits(-1.25f),
                   asBits(1e-9f)),
            0xbd00u);
  EXPECT_EQ(eval32("cvt.rn.f16x2.e4m3x2 %r, %ha;", 0x387e), 0x3c005f00u);
  EXPECT_EQ(eval32("cvt.rna.tf32.f32 %r, %fa;", 0x3f801000), 0x3f802000u);
  EXPECT_EQ(eval32("cvt.rni.f32.f32 %f, %fa; mov.b32 %r, %f;", asBits(-2.5f)), asBits(-2.0f));
  EXPECT_EQ(eval32("cvt.f32.f16 %f, %ha; mov.b32 %r, %f;", 0x3555),
            asBits(float(_Float16(1.0 / 3))));
  EXPECT_EQ(eval("cvt.f64.f32 %x, %fa; mov.b64 %rd, %x;", asBits(0.1f)),
            std::bit_cast<uint64_t>(double(0.1f)));
}

TEST(Instruction, Halves) {
  auto h = [](double x) { return uint32_t(std::bit_cast<uint16_t>(_Float16(x))); };
  // 1 + 2^-11 + a little: two roundings would give 1.
  EXPECT_EQ(eval32("fma.rn.f16 %h, %ha, %hb, %hc; cvt.u32.u16 %r, %h;", h(0x1p-11), h(1.0009765625),
                   h(1)),
            h(1.0009765625));
  EXPECT_EQ(eval32("add.f16x2 %r, %ra, %rb;", h(1) | h(2) << 16, h(0.5) | h(-2) << 16), h(1.5));
  EXPECT_EQ(eval32("fma.rn.relu.f16x2 %r, %ra, %rb, %rc;", h(1) | h(2) << 16, h(3) | h(3) << 16,
                   h(-5) | h(-5) << 16),
            h(1) << 16);
  EXPECT_EQ(eval32("mul.rn.bf16x2 %r, %ra, %rb;", 0x3f804000, 0xc0404040), 0xc04040c0u);
  EXPECT_EQ(eval32("max.NaN.f16x2 %r, %ra, %rb;", 0x7e003c00, 0x3c004000), 0x7fff4000u);
  EXPECT_EQ(eval32("min.f16 %h, %ha, %hb; cvt.u32.u16 %r, %h;", 0x8000, 0), 0x8000u);
  EXPECT_EQ(eval32("neg.f16x2 %r, %ra;", 0x3c00bc00), 0xbc003c00u);
  EXPECT_EQ(eval32("setp.gt.f16x2 %p|%q0, %ra, %rb; selp.u32 %r, 1, 0, %q0;", h(1) | h(3) << 16,
                   h(2) | h(2) << 16),
            1u);
  EXPECT_EQ(eval32("ex2.approx.f16x2 %r, %ra;", h(3) | h(-1) << 16), h(8) | h(0.5) << 16);
}

TEST(Instruction, FormatsAreExact) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    float f = halfToFloat(uint16_t(bits));
    if (f != f)
      continue;
    EXPECT_EQ(decode(bits, formatF16), f);
    EXPECT_EQ(encode(f, formatF16, Rounding::Nearest), bits);
    double x = f * (1 + 0x1p-12);
    EXPECT_EQ(encode(x, formatF16, Rounding::Nearest), std::bit_cast<uint16_t>(_Float16(x)))
        << bits;
  }
  for (unsigned bits = 0; bits < 256; ++bits)
    for (const Format *f : {&formatE4M3, &formatE5M2})
      if (double x = decode(bits, *f); x == x)
        EXPECT_EQ(encode(x, *f, Rounding::Nearest), bits);
  EXPECT_EQ(decode(0x7e, formatE4M3), 448);
  EXPECT_EQ(decode(0x7b, formatE5M2), 57344);
  EXPECT_EQ(decode(0x01, formatE4M3), 0x1p-9);
}

TEST(Instruction, ScopesAndVectors) {
  EXPECT_EQ(eval32("{ .reg .b16 low, high; mov.b32 {low, high}, %ra; mov.b32 %r, {high, low}; }",
                   0x12345678),
            0x56781234u);
  EXPECT_EQ(eval32("{ .reg .b32 %ra; mov.u32 %ra, 5; mov.u32 %r, %ra; } add.u32 %r, %r, %ra;", 100),
            105u);
  EXPECT_EQ(eval("mov.b64 {_, %r}, %a; cvt.u64.u32 %rd, %r;", 0x123456789abcdef0), 0x12345678u);
}
