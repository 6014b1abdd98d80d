//===- CheckerTest.cpp - what the checks must find ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/conformance/Harness.h"

#include <functional>

// For each class of errors a kernel that has it, and the same kernel without it. Both run with
// every seed, and with copies that land early and late.

using namespace llmc::ptx;

namespace {
/// Runs the kernel `k` with all options; the error must be of the kind in every run, and name a
/// line.
void expectAll(const std::string &text, ErrorKind kind, uint32_t grid, uint32_t block,
               std::function<Error(Harness &)> launch) {
  for (const Options &o : allOptions()) {
    Harness h(o);
    h.load(text);
    Error e = launch(h);
    EXPECT_STREQ(nameOf(e.kind), nameOf(kind))
        << e.message << " seed " << o.seed << " late " << o.lateCopies;
    if (kind != ErrorKind::None && kind == e.kind) {
      EXPECT_NE(e.message.find("k"), std::string::npos);
      EXPECT_EQ(e.message.find('\n'), std::string::npos);
    }
  }
}

/// The kernel gets an output of 4 KiB without values and an input of 4 KiB.
void expect(const std::string &body, ErrorKind kind, uint32_t block = 64, uint32_t grid = 1) {
  std::string text = ptx(".visible .entry k(.param .u64 out, .param .u64 in) {\n"
                         ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<8>;\n"
                         ".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar;\n"
                         "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"
                         "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;\n"
                         "add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n"
                         "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;\n"
                         "xor.b32 %r5, %r3, 128; add.u32 %r5, %r5, %r2; mov.u32 %r20, bar;\n" +
                         body + "\nret;\n}\n");
  expectAll(text, kind, grid, block, [&](Harness &h) {
    std::vector<uint32_t> in(1024);
    for (unsigned i = 0; i < 1024; ++i)
      in[i] = i;
    return h.launch("k", grid, block, h.allocate(4096), h.upload(in));
  });
}
} // namespace

TEST(Checker, MissingBarrier) {
  expect(
      "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd4], %r6;",
      ErrorKind::None);
  expect("st.shared.u32 [%r4], 0; bar.sync 0;"
         "st.shared.u32 [%r4], %r1; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd4], %r6;",
         ErrorKind::Race);
}

TEST(Checker, MissingBarrierBeforeReuse) {
  std::string before = "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r6, [%r5];";
  std::string after = "st.shared.u32 [%r4], %r6; st.global.u32 [%rd4], %r6;";
  expect(before + "bar.sync 0;" + after, ErrorKind::None);
  expect(before + after, ErrorKind::Race);
}

TEST(Checker, MissingWarpSync) {
  // Within a warp: lane ^ 1.
  std::string address = "xor.b32 %r5, %r3, 4; add.u32 %r5, %r5, %r2; st.shared.u32 [%r4], %r1;";
  std::string read = "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd4], %r6;";
  expect(address + "bar.warp.sync -1;" + read, ErrorKind::None);
  expect(address + read, ErrorKind::Race);
}

TEST(Checker, OverlappingWrite) {
  expect("shr.u32 %r6, %r1, 1; mul.wide.u32 %rd6, %r6, 4; add.u64 %rd6, %rd1, %rd6;"
         "st.global.u32 [%rd6], %r1;",
         ErrorKind::Race);
  // By bytes there is no overlap.
  expect("cvt.u64.u32 %rd6, %r1; add.u64 %rd6, %rd1, %rd6; st.global.u8 [%rd6], %r1;",
         ErrorKind::None);
}

TEST(Checker, RaceOfBlocks) {
  expect("mov.u32 %r6, %ctaid.x; st.global.u32 [%rd4], %r6;", ErrorKind::Race, 32, 4);
  expect("mov.u32 %r6, %ctaid.x; red.global.add.u32 [%rd5], %r6;", ErrorKind::None, 32, 4);
}

TEST(Checker, MisalignedVector) {
  expect("mul.wide.u32 %rd6, %r1, 8; add.u64 %rd6, %rd2, %rd6;"
         "ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd6]; st.global.u32 [%rd4], %r6;",
         ErrorKind::Misaligned);
  expect("mul.wide.u32 %rd6, %r1, 16; add.u64 %rd6, %rd2, %rd6;"
         "ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd6]; st.global.u32 [%rd4], %r6;",
         ErrorKind::None);
}

TEST(Checker, OutOfBounds) {
  expect("ld.global.u32 %r6, [%rd5+3844]; st.global.u32 [%rd4], %r6;", ErrorKind::OutOfBounds);
  expect("ld.global.u32 %r6, [%rd5+3840]; st.global.u32 [%rd4], %r6;", ErrorKind::None);
  expect("st.global.u32 [%rd4+-4], %r1;", ErrorKind::OutOfBounds);
  expect("mov.u64 %rd6, 16; ld.global.u32 %r6, [%rd6];", ErrorKind::OutOfBounds);
  expect("st.shared.u32 [%r4+1024], %r1;", ErrorKind::OutOfBounds);
  expect("ld.param.u64 %rd6, [out+16];", ErrorKind::OutOfBounds);
}

TEST(Checker, UninitialisedRead) {
  expect("ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd4], %r6;", ErrorKind::Uninitialised);
  expect("ld.shared.u32 %r6, [%r4]; st.global.u32 [%rd4], %r6;", ErrorKind::Uninitialised);
  // The upper half of a word was never written.
  expect("st.shared.u16 [%r4], %r1; ld.shared.u32 %r6, [%r4]; st.global.u32 [%rd4], %r6;",
         ErrorKind::Uninitialised);
}

TEST(Checker, DivergentBarrier) {
  // Odd lanes come to another barrier than even ones.
  expect("and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra A;"
         "bar.sync 0; bra.uni B; A: bar.sync 0; B: st.global.u32 [%rd4], %r1;",
         ErrorKind::Divergent);
  // What parts and meets again before is in order.
  expect("and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra A;"
         "add.u32 %r1, %r1, 4; bra.uni B; A: add.u32 %r1, %r1, 8; B: bar.sync 0;"
         "st.global.u32 [%rd4], %r1;",
         ErrorKind::None);
}

TEST(Checker, DivergentShuffle) {
  expect("and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra A;"
         "shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1; bra.uni B;"
         "A: shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1; B: st.global.u32 [%rd4], %r7;",
         ErrorKind::Divergent);
  // Masks of those that come.
  expect("and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra A;"
         "shfl.sync.bfly.b32 %r7, %r1, 2, 31, 0xaaaaaaaa; bra.uni B;"
         "A: shfl.sync.bfly.b32 %r7, %r1, 2, 31, 0x55555555; B: st.global.u32 [%rd4], %r7;",
         ErrorKind::None);
  expect("and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0;"
         "@%p1 shfl.sync.bfly.b32 %r7, %r1, 1, 31, 0x55555555;",
         ErrorKind::Divergent);
}

TEST(Checker, Deadlock) {
  // One warp waits where the other does not come.
  expect("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; A: bar.sync 0;", ErrorKind::Deadlock);
  expect("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 32; A: bar.sync 0;", ErrorKind::None);
  expect("bar.sync 2, 96;", ErrorKind::Deadlock);
}

TEST(Checker, EndlessLoop) {
  Options o;
  o.maxInstructions = 100000;
  Harness h(o);
  h.load(ptx(".visible .entry k() { A: bra A; }"));
  EXPECT_EQ(h.launch("k", 1, 32).kind, ErrorKind::Endless);
}

TEST(Checker, Trap) { expect("trap;", ErrorKind::Trap); }

namespace {
// Thread t copies 4 bytes and reads what its neighbour, 32 away, has copied.
const std::string copyIn = "cp.async.ca.shared.global [%r4], [%rd5], 4; cp.async.commit_group;";
const std::string readBack = "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd4], %r6;";
} // namespace

TEST(Checker, MissingWait) {
  expect(copyIn + "cp.async.wait_group 0; bar.sync 0;" + readBack, ErrorKind::None);
  expect(copyIn + "bar.sync 0;" + readBack, ErrorKind::NotWaited);
  // A wait that leaves the group in flight.
  expect(copyIn + "cp.async.wait_group 1; bar.sync 0;" + readBack, ErrorKind::NotWaited);
  // A wait without the barrier: the neighbour's copy is not known.
  expect("st.shared.u32 [%r4], 0; bar.sync 0;" + copyIn + "cp.async.wait_group 0;" + readBack,
         ErrorKind::Race);
}

TEST(Checker, CopyOverwritesWhatIsRead) {
  std::string first = "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r7, [%r5];";
  std::string second = copyIn + "cp.async.wait_all; st.global.u32 [%rd4], %r7;";
  expect(first + "bar.sync 0;" + second, ErrorKind::None);
  expect(first + second, ErrorKind::Race);
}

namespace {
/// A pipeline through one buffer, twice: the first warp copies, the second reads; `parity` is what
/// the reader waits for in the second round.
std::string pipeline(const char *secondParity, const char *release) {
  std::string text = R"(
    add.u32 %r21, %r20, 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [%r20], 32;
    mbarrier.init.shared.b64 [%r2+512], 32;
  READY:
    bar.sync 0;
    and.b32 %r10, %r1, 31; shl.b32 %r11, %r10, 2; add.u32 %r12, %r2, %r11;
    cvt.u64.u32 %rd6, %r11; add.u64 %rd6, %rd2, %rd6;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra READER;
    cp.async.ca.shared.global [%r12], [%rd6], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];
  EMPTY:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r2+512], 0;
    @!%p3 bra EMPTY;
    cp.async.ca.shared.global [%r12], [%rd6+128], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];
    cp.async.wait_all;
    bra.uni END;
  READER:
    xor.b32 %r13, %r12, 4;
  FULL1:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r20], 0;
    @!%p3 bra FULL1;
    ld.shared.u32 %r14, [%r13];
    RELEASE
  FULL2:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r20], PARITY;
    @!%p3 bra FULL2;
    ld.shared.u32 %r15, [%r13];
    add.u32 %r14, %r14, %r15;
    st.global.u32 [%rd4], %r14;
  END:
)";
  text.replace(text.find("PARITY"), 6, secondParity);
  text.replace(text.find("RELEASE"), 7, release);
  return text;
}
const char *const arrive = "mbarrier.arrive.shared.b64 _, [%r2+512];";
} // namespace

TEST(Checker, PipelineOfMbarriers) { expect(pipeline("1", arrive), ErrorKind::None); }

TEST(Checker, WrongParity) {
  // The second wait is over at once, and reads what the second copy overwrites.
  for (const Options &o : allOptions()) {
    Harness h(o);
    std::string body = pipeline("0", arrive);
    h.load(ptx(".visible .entry k(.param .u64 out, .param .u64 in) {\n"
               ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>;\n"
               ".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar;\n"
               "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"
               "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3;\n"
               "mov.u32 %r2, s; mov.u32 %r20, bar;\n" +
               body + "ret; }"));
    std::vector<uint32_t> in(1024, 1);
    Error e = h.launch("k", 1, 64, h.allocate(4096), h.upload(in));
    EXPECT_TRUE(e.kind == ErrorKind::Race || e.kind == ErrorKind::NotWaited) << e.message;
  }
}

TEST(Checker, WaitWithoutArrival) {
  // Nobody releases the buffer: the writer waits for ever.
  expect(pipeline("1", ""), ErrorKind::Deadlock);
}

TEST(Checker, ArrivalsTooMany) {
  expect("setp.ne.u32 %p1, %r1, 0; @%p1 bra A; mbarrier.init.shared.b64 [%r20], 63; A: bar.sync 0;"
         "mbarrier.arrive.shared.b64 %rd6, [%r20]; mbarrier.arrive.shared.b64 %rd6, [%r20];",
         ErrorKind::None);
  expect("mbarrier.arrive.shared.b64 %rd6, [%r20];", ErrorKind::Barrier);
}

TEST(Checker, MissingDependencyWait) {
  std::string body = R"(.visible .entry k(.param .u64 p) {
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    BEFORE
    ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1;
    MIDDLE
    st.global.u32 [%rd1], %r2;
    AFTER
    ret; })";
  auto run = [&](const char *at) {
    std::string text = body;
    for (const char *place : {"BEFORE", "MIDDLE", "AFTER"})
      text.replace(text.find(place), strlen(place),
                   std::string(place) == at ? "griddepcontrol.wait;" : "");
    Harness h;
    h.load(ptx(text));
    uint64_t p = h.upload(std::vector<uint32_t>(32, 5));
    LaunchConfig c;
    c.block[0] = 32;
    Error e = h.launchWith("k", c, p);
    EXPECT_FALSE(e) << e.message;
    c.programmatic = true;
    for (int i = 0; i < 3 && !e; ++i)
      e = h.launchWith("k", c, p);
    if (!e)
      EXPECT_EQ(h.download<uint32_t>(p, 1)[0], 9u);
    return e.kind;
  };
  EXPECT_EQ(run("BEFORE"), ErrorKind::None);
  EXPECT_EQ(run("MIDDLE"), ErrorKind::Race); // reads what the launch before may still write
  EXPECT_EQ(run("AFTER"), ErrorKind::Race);
  EXPECT_EQ(run("nowhere"), ErrorKind::Race);
}

TEST(Checker, BadLaunches) {
  Harness h;
  h.load(ptx(
      ".visible .entry k(.param .u64 p) .maxntid 64, 1, 1 { .shared .b8 s[64000]; .reg .b32 %r<2>;"
      " mov.u32 %r1, s; ret; }"));
  EXPECT_EQ(h.launch("k", 1, 64, uint64_t(0)).kind, ErrorKind::None);
  EXPECT_EQ(h.launch("k", 1, 65, uint64_t(0)).kind, ErrorKind::BadLaunch);
  EXPECT_EQ(h.launch("k", 1, 0, uint64_t(0)).kind, ErrorKind::BadLaunch);
  LaunchConfig c;
  c.block[0] = 32;
  c.dynamicShared = 200 << 10;
  EXPECT_EQ(h.launchWith("k", c, uint64_t(0)).kind, ErrorKind::BadLaunch);
}
