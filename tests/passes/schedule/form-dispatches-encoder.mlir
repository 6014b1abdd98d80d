// Learned positions, and attention to the whole step: never split over chunks, whose merge would
// look no further than a row's own position.
// RUN: llmc-opt %s '--llmc-form-dispatches=verify-rows=8 prefill-rows=64' | FileCheck %s

llm.weight @table [32, 32] "f32" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @places [64, 32] "f32" from 0 at 4096 recipe [#llm.pack<"panel16">]
llm.weight @o [32, 32] "f32" from 0 at 16384 recipe [#llm.pack<"panel16">]
llm.kv @kv {heads = 2, head_dim = 16, encoding = "f16", capacity = 512, k_offset = 0, v_offset = 65536}

// One program, which takes a text as a whole.
// CHECK-NOT: sched.program @{{decode|verify|prefill}}
// CHECK-LABEL: sched.program @encode
// CHECK: sched.dispatch @[[TOKENS:embed_[0-9]]] {{.*}}read weight @table
// CHECK: sched.dispatch @[[PLACES:embed_[0-9]]] {{.*}}read weight @places
// CHECK: sched.dispatch @[[ATTEND:attend_[0-9]]] <base = 2, row_block = 8>
// CHECK: sched.embed_kernel @[[TOKENS]]
// CHECK-NOT: positions
// CHECK: sched.embed_kernel @[[PLACES]] {{.*}}positions
// CHECK: sched.attend_kernel @[[ATTEND]] {{.*}}bidirectional
// CHECK-NOT: sched.program
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %t = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x32xf32>
  %p = llm.embed %pos, @places : (tensor<?xi32>) -> tensor<?x32xf32>
  %x = llm.add %t, %p : tensor<?x32xf32>
  llm.kv_append %x, %x, %pos, @kv : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a = llm.attend %x, %pos, @kv {heads = 2, scale = 0.25 : f32, bidirectional} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %y = llm.linear %a [@o] : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
