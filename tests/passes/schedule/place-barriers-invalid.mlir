// Where no barrier is needed there is none.
// RUN: llmc-opt %s '--pass-pipeline=builtin.module(sched.program(llmc-place-barriers))' | FileCheck %s

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
llm.weight @w [16] "f32" from 0 at 0
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// Dispatches that share nothing, or only read.
// CHECK-LABEL: sched.program @independent
// CHECK-NOT: sched.barrier
// CHECK: op_name = "last"
sched.program @independent attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.buffer @y 64
  sched.buffer @z 64
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @z>, #sched.bind<read weight @w>, #sched.bind<write buffer @x>] {op_name = "first"}
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @z>, #sched.bind<read weight @w>, #sched.bind<write buffer @y>] {op_name = "last"}
}

// Keys and values of one cache are different memory.
// CHECK-LABEL: sched.program @cache
// CHECK-NOT: sched.barrier
// CHECK: op_name = "values"
sched.program @cache attributes {max_rows = 1} {
  sched.dispatch @k <base = 1> [#sched.bind<write key @kv>] {op_name = "keys"}
  sched.dispatch @k <base = 1> [#sched.bind<write value @kv>] {op_name = "values"}
}

// A barrier that stands already is enough.
// CHECK-LABEL: sched.program @present
// CHECK: sched.barrier
// CHECK-NOT: sched.barrier
// CHECK: op_name = "read"
sched.program @present attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @x>] {op_name = "write"}
  sched.barrier
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @x>] {op_name = "read"}
}
