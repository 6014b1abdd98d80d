// What llmc-fuse-qkv has made is left alone.
// RUN: llmc-opt %s --llmc-split-attention | FileCheck %s

llm.weight @w [16, 16] "q4_1" from 0 at 0
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// CHECK-LABEL: @f
// CHECK-NEXT: llm.qkv
// CHECK-NEXT: llm.attend
// CHECK-NEXT: return
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) -> tensor<?x16xf32> {
  %q = llm.qkv %x, %pos [@w, @w, @w], @kv {heads = 1} : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  %a = llm.attend %q, %pos, @kv {heads = 1, scale = 0.25 : f32} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}
