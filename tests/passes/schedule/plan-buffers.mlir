// Buffers that are never needed at the same time share bytes.
// RUN: llmc-opt %s '--pass-pipeline=builtin.module(sched.program(llmc-plan-buffers))' | FileCheck %s

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}

// A chain: a is dead when c is written. 100 bytes take 128.
// CHECK-LABEL: sched.program @chain attributes {arena_size = 384 : i64
// CHECK-DAG: sched.buffer @a 256 at 0
// CHECK-DAG: sched.buffer @b 100 at 256
// CHECK-DAG: sched.buffer @c 256 at 0
sched.program @chain attributes {max_rows = 1} {
  sched.buffer @a 256
  sched.buffer @b 100
  sched.buffer @c 256
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @a>] {op_name = "a"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @a>, #sched.bind<write buffer @b>] {op_name = "b"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @b>, #sched.bind<write buffer @c>] {op_name = "c"}
}

// The largest comes first; a hole is used: d fits between a and c.
// CHECK-LABEL: sched.program @hole attributes {arena_size = 448 : i64
// CHECK-DAG: sched.buffer @a 256 at 0
// CHECK-DAG: sched.buffer @b 128 at 256
// CHECK-DAG: sched.buffer @c 64 at 384
// CHECK-DAG: sched.buffer @d 128 at 0
sched.program @hole attributes {max_rows = 1} {
  sched.buffer @c 64
  sched.buffer @b 128
  sched.buffer @a 256
  sched.buffer @d 128
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @a>, #sched.bind<write buffer @b>, #sched.bind<write buffer @c>] {op_name = "abc"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @c>, #sched.bind<read buffer @b>, #sched.bind<write buffer @d>] {op_name = "d"}
}

// A buffer that no dispatch binds is dropped.
// CHECK-LABEL: sched.program @unused attributes {arena_size = 64 : i64
// CHECK-NOT: sched.buffer @nothing
// CHECK: sched.buffer @x 4 at 0
sched.program @unused attributes {max_rows = 1} {
  sched.buffer @nothing 4096
  sched.buffer @x 4
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @x>] {op_name = "x"}
}

// The caller reads and writes ports outside the program: their bytes are their own.
// CHECK-LABEL: sched.program @ports attributes {arena_size = 192 : i64
// CHECK-DAG: sched.buffer @in 64 at [[IN:.*]]
// CHECK-DAG: sched.buffer @a 64 at [[A:.*]]
// CHECK-DAG: sched.buffer @out 64 at [[OUT:.*]]
sched.program @ports attributes {max_rows = 1} {
  sched.buffer @in 64
  sched.port input "x" @in "float" [16]
  sched.buffer @out 64
  sched.port output "y" @out "float" [16]
  sched.buffer @a 64
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @in>, #sched.bind<write buffer @a>] {op_name = "first"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @a>, #sched.bind<write buffer @out>] {op_name = "second"}
}
