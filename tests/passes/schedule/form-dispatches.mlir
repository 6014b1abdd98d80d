// One layer in three programs: few rows (decode, verify) and many (prefill).
// RUN: llmc-opt %s '--llmc-form-dispatches=verify-rows=8 prefill-rows=64' | FileCheck %s
// RUN: llmc-opt %s '--llmc-form-dispatches=f32' | FileCheck %s --check-prefix=F32

llm.weight @table [32, 32] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @q [32, 32] "q4_1" from 0 at 2048 recipe [#llm.pack<"panel16">]
llm.weight @k [16, 32] "q4_1" from 0 at 4096 recipe [#llm.pack<"panel16">]
llm.weight @o [32, 32] "q4_1" from 0 at 8192 recipe [#llm.pack<"panel16">]
llm.weight @up [64, 32] "q4_1" from 0 at 16384 recipe [#llm.pack<"panel16">]
llm.weight @down [32, 64] "q4_1" from 0 at 32768 recipe [#llm.pack<"panel16">]
llm.weight @g [32] "f32" from 0 at 65536
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16", capacity = 512, k_offset = 0, v_offset = 16384}
llm.rope_table @rope half_split {inv_freq = array<f32: 1.0, 0.5>}

// The function is gone; programs share the kernels that say the same.
// CHECK-NOT: func.func
// CHECK-LABEL: sched.program @decode attributes {max_rows = 1 : i64}
// CHECK: sched.dispatch @rope_table_0 <base = 1, row_block = 1>
// CHECK: sched.dispatch @embed_0 <base = 1, row_block = 1> [#sched.bind<read weight @table>, #sched.bind<write buffer @[[X:x[.0-9]*]]>]
// Tiles of qkv are heads: 2 of the query, 1 of the key, 1 of the value.
// CHECK: sched.dispatch @qkv_0 <base = 4> [#sched.bind<read buffer @[[X]]>, #sched.bind<read weight @g>, #sched.bind<read weight @q>, #sched.bind<read weight @k>, #sched.bind<read weight @k>, #sched.bind<read buffer @rope.0>, #sched.bind<write buffer @[[Q:q[.0-9]*]]>, #sched.bind<write key @kv>, #sched.bind<write value @kv>] {layer = 0 : i64
// With few rows attention is split over chunks, and the projection merges the partials and adds in
// place.
// CHECK: sched.dispatch @attend_0 <base = 1, kv_chunk = 256> [#sched.bind<read buffer @[[Q]]>, #sched.bind<read key @kv>, #sched.bind<read value @kv>, #sched.bind<write buffer @[[P:partials[.0-9]*]]>]
// CHECK: sched.dispatch @linear_0 <base = 2> [#sched.bind<read buffer @[[P]]>, #sched.bind<read weight @o>, #sched.bind<read buffer @[[X]]>, #sched.bind<write buffer @[[X]]>] {layer = 0 : i64, op_name = "attn_out"}
// A gated pair shares its tiles: 4 panels.
// CHECK: sched.dispatch @linear_1 <base = 4> [#sched.bind<read buffer @[[X]]>, #sched.bind<read weight @g>, #sched.bind<read weight @up>, #sched.bind<read weight @up>, #sched.bind<write buffer @[[Y:y[.0-9]*]]>] {layer = 0 : i64, op_name = "ffn_up"}
// CHECK: sched.dispatch @linear_2 <base = 2> [#sched.bind<read buffer @[[Y]]>, #sched.bind<read weight @down>, #sched.bind<read buffer @[[X]]>, #sched.bind<write buffer @[[X]]>] {layer = 0 : i64, op_name = "ffn_down"}
// The head writes the step's logits: no output binding.
// CHECK: sched.dispatch @linear_3 <base = 2, out_rows = true> [#sched.bind<read buffer @[[X]]>, #sched.bind<read weight @g>, #sched.bind<read weight @table>] {op_name = "logits"}
// CHECK-NOT: sched.dispatch
// CHECK: sched.linear_kernel @linear_0
// CHECK-SAME: merge_chunks = 3 : i64, merge_heads = 2 : i64
// CHECK-SAME: prologue = #sched<prologue merge>

// CHECK-LABEL: sched.program @verify attributes {max_rows = 8 : i64}
// CHECK: sched.dispatch @qkv_0
// CHECK: sched.dispatch @attend_0

// With many rows the activation records are made once, and attention is split over blocks of rows.
// CHECK-LABEL: sched.program @prefill attributes {max_rows = 64 : i64}
// CHECK: sched.dispatch @prepare_0 <base = 1, row_block = 1> [#sched.bind<read buffer @[[X:x[.0-9]*]]>, #sched.bind<read weight @g>, #sched.bind<write buffer @[[ACT:act[.0-9]*]]>]
// CHECK: sched.dispatch @qkv_1 <base = 4> [#sched.bind<read buffer @[[ACT]]>,
// CHECK: sched.dispatch @attend_1 <base = 1, row_block = 8>
// CHECK: sched.dispatch @prepare_1
// CHECK: sched.dispatch @linear_4 <base = 2> {{.*}}op_name = "attn_out"
// Records of the wanted rows only.
// CHECK: sched.dispatch @[[HEAD:prepare_[0-9]]] <base = 1, row_block = 1, out_rows = true>
// CHECK: sched.prepare_kernel @[[HEAD]] {{.*}}out_rows


// F32: sched.linear_kernel @linear_0 {{.*}}act = #sched<act f32>
// F32-NOT: #sched<act int8>
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x32xf32>
  %q = llm.qkv %x, %pos [@q, @k, @k], @kv {heads = 2, rope = @rope, llm.layer = 0, norm = #llm.norm<rms, @g, eps = 1.0e-5>}
    : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  %a = llm.attend %q, %pos, @kv {heads = 2, scale = 0.25 : f32, llm.layer = 0} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %h = llm.linear %a [@o] residual(%x) {llm.layer = 0} : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  %m = llm.linear %h [@up, @up] {gated, activation = #llm<activation silu>, llm.layer = 0, norm = #llm.norm<rms, @g, eps = 1.0e-5>} : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %z = llm.linear %m [@down] residual(%h) {llm.layer = 0} : (tensor<?x64xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  %o = llm.out_rows %z : tensor<?x32xf32> -> tensor<?x32xf32>
  %y = llm.linear %o [@table] {norm = #llm.norm<rms, @g, eps = 1.0e-5>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
