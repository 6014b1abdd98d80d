//===- ParserTest.cpp - texts and their errors ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <random>

using namespace llmc::ptx;

namespace {
std::string errorOf(const std::string &body) { return Harness({}, 1 << 20).loadError(ptx(body)); }
std::string bodyError(const std::string &code) {
  return errorOf(
      ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred "
      "%p<2>; .reg .f32 %f<2>;\n" +
      code + "\nret;\n}");
}

const char *const sample = R"(
.const .align 4 .b8 tab[8] = {0, 0, 128, 63, 0, 0, 0, 64};
.global .align 8 .u64 pointer[2] = {tab, generic(tab)+4};
.extern .shared .align 16 .b8 dyn[];
.func (.param .b32 result) twice(.param .b32 x) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x]; shl.b32 %r2, %r1, 1; st.param.b32 [result], %r2; ret;
}
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[16]) .maxntid 128, 1, 1 .minnctapersm 2 {
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  .loc 1 2 3
  .pragma "nounroll";
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
  ts: .branchtargets A, B, A, C;
  brx.idx %r2, ts;
A: { .param .b32 a; .param .b32 r; st.param.b32 [a+0], %r1; call.uni (r), twice, (a); ld.param.b32 %r3, [r+0]; }
  bra.uni C;
B: mov.u32 %r3, -7;
C: setp.gt.s32 %p1, %r3, 0;
  @!%p1 mov.u32 %r3, 0f3F800000;
  shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd2, %r4; add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";
} // namespace

TEST(Parser, Sample) {
  Harness h;
  h.load(ptx(sample));
  struct {
    uint64_t a, b;
  } s = {};
  uint64_t out = h.allocate(16);
  Error e = h.launch("k", 1, 3, out, s);
  ASSERT_FALSE(e) << e.message;
  auto got = h.download<uint32_t>(out, 3);
  EXPECT_EQ(got[0], 0x3f800000u);
  EXPECT_EQ(got[1], 0x3f800000u);
  EXPECT_EQ(got[2], 4u);
}

TEST(Parser, ErrorsNameTheirLine) {
  EXPECT_EQ(bodyError("frobnicate.u32 %r1, %r2;"), "line 6: 'frobnicate.u32' is not known");
  EXPECT_EQ(bodyError("add.u32.fast %r1, %r2, %r3;"),
            "line 6: 'add.u32.fast' has a modifier that is not known: '.fast'");
  EXPECT_EQ(bodyError("\n\nadd.u32 %r1, %rd2, %r3;"),
            "line 8: 'add.u32' has an operand of 8 bytes where 4 are wanted");
  EXPECT_EQ(bodyError("add.u32 %r1, %r2;"), "line 6: 'add.u32' has 2 operands");
  EXPECT_EQ(bodyError("mov.u32 %r1, %r4;"), "line 6: 'mov.u32' reads '%r4', which is no register");
  EXPECT_EQ(bodyError("bra nowhere;"), "line 6: no label 'nowhere'");
  EXPECT_EQ(bodyError("wgmma.fence.sync.aligned;"),
            "line 6: 'wgmma.fence.sync.aligned' is not known");
  EXPECT_NE(bodyError("@%r1 ret;").find("line 6: "), std::string::npos);
  EXPECT_NE(bodyError("ld.global.u32 %r1, [%rd1;").find("line 6: expected ']'"), std::string::npos);
  EXPECT_NE(bodyError("mov.u64 %rd1, missing;").find("which is no variable"), std::string::npos);
  EXPECT_NE(bodyError("call nothing;").find("has no body"), std::string::npos);
  EXPECT_NE(
      errorOf(".func f() { call f; ret; } .visible .entry k() { call f; ret; }").find("recursion"),
      std::string::npos);
  EXPECT_NE(errorOf(".global .b8 huge[99999999999];").find("line 4"), std::string::npos);
  EXPECT_NE(Harness().loadError("garbage").find("line 1"), std::string::npos);
  EXPECT_NE(Harness().loadError("").find("no .target"), std::string::npos);
}

TEST(Parser, TruncatedAndMutatedTexts) {
  std::string whole = ptx(sample);
  for (size_t n = 0; n < whole.size(); n += 3)
    Harness({}, 1 << 20).loadError(whole.substr(0, n));
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (unsigned k = 0; k <= random() % 4; ++k) {
      size_t at = random() % text.size();
      switch (random() % 3) {
      case 0:
        text[at] = "{}[]();,.:%@!<>=-+0123456789abrst\0"[random() % 35];
        break;
      case 1:
        text.erase(at, random() % 12);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 20));
        break;
      }
    }
    Options o;
    o.maxInstructions = 10000;
    Harness h(o, 1 << 20);
    if (!h.loadError(text).empty() || !h.module->kernel("k"))
      continue;
    // Whatever it does now, it is an error and not a crash.
    Program *program = h.module->kernel("k");
    LaunchConfig c;
    c.block[0] = 32;
    c.params.resize(program->paramBytes);
    h.machine.launch(*program, c);
  }
}
