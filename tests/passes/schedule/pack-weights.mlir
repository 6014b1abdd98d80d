// Matrices are packed, vectors become f32, what nothing uses is dropped.
// RUN: llmc-opt %s --llmc-pack-weights | FileCheck %s
// RUN: llmc-opt %s --llmc-pack-weights='layouts=panel16,warp32' | FileCheck %s --check-prefix=BOTH

// BOTH: llm.weight @table {{.*}} recipe [#llm.pack<"panel16", "warp32">]

// CHECK: llm.weight @table [32, 16] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @table [32, 16] "q8_0" from 0 at 0
// CHECK: llm.weight @w [48, 16] "q4_1" {{.*}} recipe [#llm.slice_rows<0, 16>, #llm.pack<"panel16">]
llm.weight @w [48, 16] "q4_1" from 0 at 1024 recipe [#llm.slice_rows<0, 16>]
// CHECK: llm.weight @g [16] "bf16" {{.*}} recipe [#llm.cast<"f32">]
llm.weight @g [16] "bf16" from 0 at 2048
// CHECK: llm.weight @b [16] "f32" from 0 at 4096{{$}}
llm.weight @b [16] "f32" from 0 at 4096
// CHECK-NOT: @unused
llm.weight @unused [16, 16] "f32" from 0 at 8192
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// CHECK: llm.kv @kv
// CHECK-NEXT: func.func @forward
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %q = llm.qkv %x, %pos [@w, @w, @w], @kv {heads = 1, norm = #llm.norm<rms, @g, eps = 1.0e-5>}
    : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  %a = llm.attend %q, %pos, @kv {heads = 1, scale = 0.25 : f32} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %h = llm.linear %a [@w] {biases = [@b]} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %n = llm.norm %h <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %y = llm.linear %n [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
