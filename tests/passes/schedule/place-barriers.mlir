// A barrier stands where a dispatch meets what another wrote, or writes what another read.
// RUN: llmc-opt %s '--pass-pipeline=builtin.module(sched.program(llmc-place-barriers))' | FileCheck %s

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// CHECK-LABEL: sched.program @write_read
// CHECK: sched.dispatch {{.*}}op_name = "write"
// CHECK-NEXT: sched.barrier
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "read"
sched.program @write_read attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @x>] {op_name = "write"}
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @x>] {op_name = "read"}
}

// CHECK-LABEL: sched.program @read_write
// CHECK: sched.dispatch {{.*}}op_name = "read"
// CHECK-NEXT: sched.barrier
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "write"
sched.program @read_write attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @x>] {op_name = "read"}
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @x>] {op_name = "write"}
}

// CHECK-LABEL: sched.program @write_write
// CHECK: sched.dispatch {{.*}}op_name = "write"
// CHECK-NEXT: sched.barrier
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "again"
sched.program @write_write attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @x>] {op_name = "write"}
  sched.dispatch @k <base = 1> [#sched.bind<update buffer @x>] {op_name = "again"}
}

// A dispatch that reads and writes a buffer in place has written it.
// CHECK-LABEL: sched.program @in_place
// CHECK: sched.dispatch {{.*}}op_name = "update"
// CHECK-NEXT: sched.barrier
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "read"
sched.program @in_place attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @x>, #sched.bind<write buffer @x>] {op_name = "update"}
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @x>] {op_name = "read"}
}

// The cache is memory too.
// CHECK-LABEL: sched.program @cache
// CHECK: sched.dispatch {{.*}}op_name = "append"
// CHECK-NEXT: sched.barrier
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "attend"
sched.program @cache attributes {max_rows = 1} {
  sched.dispatch @k <base = 1> [#sched.bind<write key @kv>] {op_name = "append"}
  sched.dispatch @k <base = 1> [#sched.bind<read key @kv>] {op_name = "attend"}
}

// One barrier serves all that came before it.
// CHECK-LABEL: sched.program @one
// CHECK: sched.dispatch {{.*}}op_name = "a"
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "b"
// CHECK-NEXT: sched.barrier
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "c"
// CHECK-NEXT: sched.dispatch {{.*}}op_name = "d"
sched.program @one attributes {max_rows = 1} {
  sched.buffer @x 64
  sched.buffer @y 64
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @x>] {op_name = "a"}
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @y>] {op_name = "b"}
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @x>] {op_name = "c"}
  sched.dispatch @k <base = 1> [#sched.bind<read buffer @y>] {op_name = "d"}
}
