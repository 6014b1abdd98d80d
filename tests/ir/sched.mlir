// Every op and attribute of the sched dialect prints what it parses.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

llm.weight @w [32, 16] "q4_1" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @g [16] "f32" from 0 at 512
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// CHECK: sched.embed_kernel @embed {encoding = "q4_1", features = 16 : i64, scale = 1.000000e+00 : f32, vocab = 32 : i64}
sched.embed_kernel @embed {vocab = 32, features = 16, encoding = "q4_1", scale = 1.0 : f32}
// CHECK: sched.rope_table_kernel @rope_table {inv_freq = array<f32: 1.000000e+00>, mscale = 1.000000e+00 : f32}
sched.rope_table_kernel @rope_table {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
// CHECK: sched.prepare_kernel @prepare {act = #sched<act int8>, features = 16 : i64, norm = #sched.norm<rms, bias = false, eps = 9.99999974E-6 : f32>, out_rows}
sched.prepare_kernel @prepare {features = 16, act = #sched<act int8>, out_rows,
                               norm = #sched.norm<rms, bias = false, eps = 1.0e-5 : f32>}
// CHECK: sched.linear_kernel @linear
// CHECK-SAME: gated
// CHECK-SAME: norm = #sched.norm<layer, bias = true
// CHECK-SAME: prologue = #sched<prologue norm>
// CHECK-SAME: segments = [#sched.segment<16, "q4_1", bias = true>, #sched.segment<16, "q4_1", bias = false>]
sched.linear_kernel @linear {features = 16, act = #sched<act f32>, prologue = #sched<prologue norm>,
  norm = #sched.norm<layer, bias = true, eps = 1.0e-5 : f32>, gated, max_rows = 16,
  segments = [#sched.segment<16, "q4_1", bias = true>, #sched.segment<16, "q4_1", bias = false>],
  activation = #llm<activation silu>, scale = 1.0 : f32, softcap = 0.0 : f32}
// CHECK: sched.linear_kernel @merge
// CHECK-SAME: merge_chunks = 3 : i64, merge_heads = 2 : i64, merge_window = 256 : i64
sched.linear_kernel @merge {features = 16, act = #sched<act int8>, prologue = #sched<prologue merge>,
  merge_heads = 2, merge_window = 256, merge_chunks = 3, residual, logits, max_rows = 1,
  segments = [#sched.segment<16, "q8_0", bias = false>], activation = #llm<activation none>,
  scale = 1.0 : f32, softcap = 0.0 : f32}
// CHECK: sched.qkv_kernel @qkv
// CHECK-SAME: rope_kind = #llm<rope_kind interleaved>
sched.qkv_kernel @qkv {features = 16, act = #sched<act int8>, prologue = #sched<prologue rows>,
  segments = [#sched.segment<16, "q4_1", bias = false>, #sched.segment<16, "q4_1", bias = false>,
              #sched.segment<16, "q4_1", bias = false>],
  heads = 1, kv_heads = 1, head_dim = 16, rope_pairs = 8, rope_kind = #llm<rope_kind interleaved>,
  kv_encoding = "f16", capacity = 256, max_rows = 1}
// CHECK: sched.attend_kernel @attend
// CHECK-SAME: split
sched.attend_kernel @attend {heads = 1, kv_heads = 1, head_dim = 16, scale = 0.25 : f32,
  softcap = 0.0 : f32, window = 0, capacity = 256, kv_encoding = "f16", split, row_block = 0,
  max_chunks = 2}
// CHECK: sched.row_kernel @row {activation = #llm<activation silu>, features = 16 : i64, fn = #sched<row_fn glu>}
sched.row_kernel @row {fn = #sched<row_fn glu>, features = 16, activation = #llm<activation silu>}

// CHECK: sched.program @decode attributes {arena_size = 128 : i64, max_rows = 1 : i64} {
sched.program @decode attributes {max_rows = 1, arena_size = 128} {
  // CHECK-NEXT: sched.buffer @x 64{{$}}
  sched.buffer @x 64
  // CHECK-NEXT: sched.buffer @y 64 at 64
  sched.buffer @y 64 at 64
  // CHECK-NEXT: sched.dispatch @embed <base = 1, row_block = 1> [#sched.bind<read weight @w>, #sched.bind<write buffer @x>] {op_name = "embed"}
  sched.dispatch @embed <base = 1, row_block = 1> [#sched.bind<read weight @w>, #sched.bind<write buffer @x>] {op_name = "embed"}
  // CHECK-NEXT: sched.barrier
  sched.barrier
  // CHECK-NEXT: sched.dispatch @attend <base = 1, kv_chunk = 256, window = 512> [#sched.bind<update buffer @x>, #sched.bind<read key @kv>, #sched.bind<read value @kv>, #sched.bind<write buffer @y>] {layer = 3 : i64, op_name = "attention"}
  sched.dispatch @attend <base = 1, kv_chunk = 256, window = 512> [#sched.bind<update buffer @x>, #sched.bind<read key @kv>, #sched.bind<read value @kv>, #sched.bind<write buffer @y>] {op_name = "attention", layer = 3}
  // CHECK-NEXT: sched.dispatch @merge <base = 1, out_rows = true>
  sched.dispatch @merge <base = 1, out_rows = true> [#sched.bind<read buffer @x>] {op_name = "head"}
}
