// llm.attention becomes a write of the cache, then a read.
// RUN: llmc-opt %s --llmc-split-attention | FileCheck %s

llm.kv @kv {heads = 1, head_dim = 24, encoding = "f16"}

// CHECK-LABEL: @f
// CHECK-NEXT: llm.kv_append %arg1, %arg1, %arg2, @kv {llm.layer = 2 : i64}
// CHECK-NEXT: %[[A:.*]] = llm.attend %arg0, %arg2, @kv {heads = 2 : i64, llm.layer = 2 : i64, scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32}
// CHECK-NEXT: return %[[A]]
func.func @f(%q: tensor<?x48xf32>, %k: tensor<?x24xf32>, %pos: tensor<?xi32>) -> tensor<?x48xf32> {
  %a = llm.attention %q, %k, %k, %pos, @kv {heads = 2, scale = 0.25 : f32, softcap = 50.0 : f32, llm.layer = 2}
    : (tensor<?x48xf32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?xi32>) -> tensor<?x48xf32>
  return %a : tensor<?x48xf32>
}

// CHECK-LABEL: @bidirectional
// CHECK: llm.attend %arg0, %arg2, @kv {bidirectional, heads = 2 : i64
func.func @bidirectional(%q: tensor<?x48xf32>, %k: tensor<?x24xf32>, %pos: tensor<?xi32>) -> tensor<?x48xf32> {
  %a = llm.attention %q, %k, %k, %pos, @kv {heads = 2, scale = 0.25 : f32, bidirectional}
    : (tensor<?x48xf32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?xi32>) -> tensor<?x48xf32>
  return %a : tensor<?x48xf32>
}
