//===- WarpTest.cpp - lanes together, and atomics -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <bit>
#include <functional>

// What lanes do together, and atomics: one block, a result per thread.

using namespace llmc::ptx;

namespace {
/// Executes `code` in `threads` threads: %t is the thread, %m a pointer to 64 bytes of zeros, %r
/// the result. `want` gives what thread t has.
void check(const std::string &code, std::function<uint32_t(uint32_t)> want, uint32_t threads = 32,
           std::vector<uint32_t> *memory = nullptr) {
  for (const Options &o : allOptions()) {
    Harness h(o, 1 << 20);
    std::string error = h.loadError(ptx(
        ".visible .entry k(.param .u64 out, .param .u64 m) {\n"
        ".reg .b32 %t, %r, %q, %s; .reg .b64 %out, %m, %d, %x; .reg .pred %p, %o; .reg .f32 %f;\n"
        "ld.param.u64 %out, [out]; ld.param.u64 %m, [m]; mov.u32 %t, %tid.x; mov.u32 %r, 0;\n"
        "and.b32 %q, %t, 1; setp.eq.u32 %o, %q, 1; mul.wide.u32 %d, %t, 4; add.u64 %out, %out, "
        "%d;\n" +
        code + "\nst.global.u32 [%out], %r; ret; }"));
    ASSERT_EQ(error, "") << code;
    uint64_t out = h.allocate(threads * 4), m = h.upload(std::vector<uint32_t>(16));
    Error e = h.launch("k", 1, threads, out, m);
    ASSERT_FALSE(e) << code << ": " << e.message;
    auto got = h.download<uint32_t>(out, threads);
    for (uint32_t t = 0; t < threads; ++t)
      EXPECT_EQ(got[t], want(t)) << code << " thread " << t;
    if (memory)
      *memory = h.download<uint32_t>(m, 16);
  }
}
} // namespace

TEST(Warp, Shuffles) {
  check("shfl.sync.idx.b32 %r, %t, 5, 31, -1;", [](uint32_t) { return 5; });
  check("shfl.sync.up.b32 %r|%p, %t, 3, 0, -1; @!%p mov.u32 %r, 99;",
        [](uint32_t t) { return t < 3 ? 99 : t - 3; });
  check("shfl.sync.down.b32 %r|%p, %t, 3, 31, -1; @!%p mov.u32 %r, 99;",
        [](uint32_t t) { return t > 28 ? 99 : t + 3; });
  // Segments of 8 lanes.
  check("shfl.sync.down.b32 %r, %t, 3, 0x1807, -1;",
        [](uint32_t t) { return t % 8 > 4 ? t : t + 3; });
  check("shfl.sync.idx.b32 %r, %t, 2, 0x181f, -1;", [](uint32_t t) { return t / 8 * 8 + 2; });
  check("shfl.sync.bfly.b32 %r, %t, 21, 31, -1;", [](uint32_t t) { return t ^ 21; });
}

TEST(Warp, VotesAndMatches) {
  check("vote.sync.ballot.b32 %r, %o, -1;", [](uint32_t) { return 0xaaaaaaaau; });
  check("vote.sync.ballot.b32 %r, !%o, -1;", [](uint32_t) { return 0x55555555u; });
  check("vote.sync.any.pred %p, %o, -1; selp.u32 %r, 1, 0, %p;", [](uint32_t) { return 1; });
  check("vote.sync.all.pred %p, %o, -1; selp.u32 %r, 1, 0, %p;", [](uint32_t) { return 0; });
  check("vote.sync.uni.pred %p, %o, -1; selp.u32 %r, 1, 0, %p;", [](uint32_t) { return 0; });
  check("and.b32 %q, %t, 3; match.any.sync.b32 %r, %q, -1;",
        [](uint32_t t) { return 0x11111111u << (t & 3); });
  check("match.all.sync.b32 %r|%p, %q, -1; @%p mov.u32 %r, 7;", [](uint32_t) { return 0; });
  check("activemask.b32 %r;", [](uint32_t) { return ~0u; });
  check("@%o activemask.b32 %r;", [](uint32_t t) { return t & 1 ? 0xaaaaaaaau : 0; });
  check("elect.sync %r|%p, -1; selp.u32 %r, 1, 0, %p;", [](uint32_t t) { return t == 0; });
}

TEST(Warp, Reductions) {
  check("redux.sync.add.u32 %r, %t, -1;", [](uint32_t) { return 496; });
  check("sub.s32 %q, 10, %t; redux.sync.min.s32 %r, %q, -1;",
        [](uint32_t) { return uint32_t(-21); });
  check("redux.sync.xor.b32 %r, %t, -1;", [](uint32_t) { return 0; });
  check("redux.sync.or.b32 %r, %t, -1;", [](uint32_t) { return 31; });
  // A block of one and a half warps.
  check("bar.red.popc.u32 %r, 0, %o;", [](uint32_t) { return 24; }, 48);
  check("bar.red.and.pred %p, 0, %o; selp.u32 %r, 1, 0, %p;", [](uint32_t) { return 0; }, 48);
  check("bar.red.or.pred %p, 0, %o; selp.u32 %r, 1, 0, %p;", [](uint32_t) { return 1; }, 48);
}

TEST(Warp, Atomics) {
  std::vector<uint32_t> m;
  auto zero = [](uint32_t) { return 0; };
  check("red.global.add.u32 [%m], %t; red.global.max.s32 [%m+4], %t; red.global.or.b32 [%m+8], %t;"
        "red.global.add.f32 [%m+12], 0f3F000000; red.global.inc.u32 [%m+16], 9;"
        "red.global.add.noftz.f16x2 [%m+20], 0x3c004000;",
        zero, 64, &m);
  EXPECT_EQ(m[0], 2016u);
  EXPECT_EQ(m[1], 63u);
  EXPECT_EQ(m[2], 63u);
  EXPECT_EQ(std::bit_cast<float>(m[3]), 32.0f);
  EXPECT_EQ(m[4], 4u);
  EXPECT_EQ(m[5], 0x54005800u); // 64 and 128
  // Every thread sees another old value.
  check("atom.global.add.u32 %q, [%m], 1; shl.b32 %s, 1, %q; redux.sync.or.b32 %r, %s, -1;",
        [](uint32_t) { return ~0u; });
  check(
      "atom.global.cas.b32 %q, [%m], 0, 5; setp.eq.u32 %p, %q, 0; vote.sync.ballot.b32 %s, %p, -1;"
      "popc.b32 %r, %s;",
      [](uint32_t) { return 1; });
  check("cvt.u64.u32 %x, %t; atom.global.add.u64 %x, [%m], %x;", zero, 64, &m);
  EXPECT_EQ(m[0], 2016u);
}

TEST(Warp, MasksOfLanes) {
  check("mov.u32 %r, %lanemask_lt;", [](uint32_t t) { return (1u << t) - 1; });
  check("mov.u32 %r, %lanemask_ge;", [](uint32_t t) { return ~0u << t; });
  check(
      "mov.u32 %r, %laneid; mov.u32 %q, %warpid; mad.lo.u32 %r, %q, 100, %r;",
      [](uint32_t t) { return t / 32 * 100 + t % 32; }, 80);
}
