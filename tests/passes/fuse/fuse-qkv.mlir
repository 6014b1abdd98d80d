// A merged projection with head norms, rope and the KV write becomes llm.qkv.
// RUN: llmc-opt %s --llmc-fuse-qkv | FileCheck %s

llm.weight @q [32, 32] "q4_1" from 0 at 0
llm.weight @k [16, 32] "q4_1" from 0 at 1024
llm.weight @v [16, 32] "q4_1" from 0 at 2048
llm.weight @g [32] "f32" from 0 at 3072
llm.weight @h [16] "f32" from 0 at 4096
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.rope_table @rope half_split {inv_freq = array<f32: 1.0, 0.5>}

// CHECK-LABEL: @everything
// CHECK-NEXT: %[[Q:.*]] = llm.qkv %arg0, %arg1 [@q, @k, @v], @kv
// CHECK-SAME: biases = [unit, @h, unit]
// CHECK-SAME: heads = 2 : i64
// CHECK-SAME: k_norm = #llm.norm<rms, @h
// CHECK-SAME: llm.layer = 5 : i64
// CHECK-SAME: norm = #llm.norm<rms, @g
// CHECK-SAME: q_norm = #llm.norm<rms, @h
// CHECK-SAME: rope = @rope
// CHECK-NEXT: llm.attend %[[Q]], %arg1, @kv {heads = 2 : i64, scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32}
// CHECK-NEXT: return
func.func @everything(%x: tensor<?x32xf32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] {biases = [unit, @h, unit], llm.layer = 5, norm = #llm.norm<rms, @g, eps = 1.0e-5>}
    : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qn = llm.norm %q <rms, @h, eps = 1.0e-5> {groups = 2} : tensor<?x32xf32>
  %kn = llm.norm %k <rms, @h, eps = 1.0e-5> : tensor<?x16xf32>
  %qr = llm.rope %qn, %pos, @rope {heads = 2} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %kr = llm.rope %kn, %pos, @rope {heads = 1} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %a = llm.attention %qr, %kr, %v, %pos, @kv {heads = 2, scale = 0.25 : f32, softcap = 50.0 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// Layers without rope and without head norms.
// CHECK-LABEL: @bare
// CHECK-NEXT: llm.qkv %arg0, %arg1 [@q, @k, @v], @kv {heads = 2 : i64}
// CHECK-NEXT: llm.attend
func.func @bare(%x: tensor<?x32xf32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %a = llm.attention %q, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}
