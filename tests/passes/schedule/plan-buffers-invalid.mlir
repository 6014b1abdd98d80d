// Buffers that must not share bytes.
// RUN: llmc-opt %s '--pass-pipeline=builtin.module(sched.program(llmc-plan-buffers))' | FileCheck %s

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}

// No barrier stands between the two dispatches: they may run at the same time.
// CHECK-LABEL: sched.program @concurrent attributes {arena_size = 128 : i64
// CHECK-DAG: sched.buffer @a 64 at 0
// CHECK-DAG: sched.buffer @b 64 at 64
sched.program @concurrent attributes {max_rows = 1} {
  sched.buffer @a 64
  sched.buffer @b 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @a>] {op_name = "a"}
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @b>] {op_name = "b"}
}

// A dispatch's input and output live at the same time.
// CHECK-LABEL: sched.program @input_output attributes {arena_size = 128 : i64
// CHECK-DAG: sched.buffer @a 64 at 0
// CHECK-DAG: sched.buffer @b 64 at 64
sched.program @input_output attributes {max_rows = 1} {
  sched.buffer @a 64
  sched.buffer @b 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @a>] {op_name = "a"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @a>, #sched.bind<write buffer @b>] {op_name = "b"}
}

// A buffer lives up to its last use, also across dispatches that do not bind it.
// CHECK-LABEL: sched.program @long attributes {arena_size = 128 : i64
// CHECK-DAG: sched.buffer @residual 64 at 0
// CHECK-DAG: sched.buffer @a 64 at 64
// CHECK-DAG: sched.buffer @b 64 at 64
sched.program @long attributes {max_rows = 1} {
  sched.buffer @residual 64
  sched.buffer @a 64
  sched.buffer @b 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @residual>] {op_name = "r"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @a>] {op_name = "a"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @b>] {op_name = "b"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @residual>] {op_name = "use"}
}
