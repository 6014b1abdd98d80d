// Attention that stays llm.attention.
// RUN: llmc-opt %s --llmc-fuse-qkv | FileCheck %s
// RUN: llmc-opt %s --llmc-fuse-qkv | not grep llm.qkv

llm.weight @q [32, 32] "q4_1" from 0 at 0
llm.weight @k [16, 32] "q4_1" from 0 at 1024
llm.weight @v [16, 32] "q4_1" from 0 at 2048
llm.weight @g [32] "f32" from 0 at 3072
llm.weight @h [16] "f32" from 0 at 4096
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.rope_table @rope half_split {inv_freq = array<f32: 1.0, 0.5>}
llm.rope_table @other half_split {inv_freq = array<f32: 1.0, 0.25>}
llm.weight @q24 [48, 32] "q4_1" from 0 at 0
llm.weight @k24 [24, 32] "q4_1" from 0 at 0
llm.kv @kv24 {heads = 1, head_dim = 24, encoding = "f16"}

// Heads of 24 features are not whole panels of 16.
// CHECK-LABEL: @head_dim
// CHECK: llm.linear
// CHECK: llm.attention
func.func @head_dim(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x48xf32> {
  %q, %k, %v = llm.linear %x [@q24, @k24, @k24] : (tensor<?x32xf32>) -> (tensor<?x48xf32>, tensor<?x24xf32>, tensor<?x24xf32>)
  %a = llm.attention %q, %k, %v, %pos, @kv24 {heads = 2, scale = 0.25 : f32}
    : (tensor<?x48xf32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?xi32>) -> tensor<?x48xf32>
  return %a : tensor<?x48xf32>
}

// Query and key are rotated by different tables.
// CHECK-LABEL: @tables
// CHECK: llm.linear
// CHECK: llm.attention
func.func @tables(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qr = llm.rope %q, %pos, @rope {heads = 2} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %kr = llm.rope %k, %pos, @other {heads = 1} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %a = llm.attention %qr, %kr, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// Only the query is rotated.
// CHECK-LABEL: @query_only
// CHECK: llm.linear
// CHECK: llm.attention
func.func @query_only(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qr = llm.rope %q, %pos, @rope {heads = 2} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %a = llm.attention %qr, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// The key is rotated by other positions than the attention's.
// CHECK-LABEL: @positions
// CHECK: llm.linear
// CHECK: llm.attention
func.func @positions(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qr = llm.rope %q, %pos, @rope {heads = 2} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %kr = llm.rope %k, %pos2, @rope {heads = 1} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %a = llm.attention %qr, %kr, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// The value is normalized.
// CHECK-LABEL: @value_norm
// CHECK: llm.linear
// CHECK: llm.attention
func.func @value_norm(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %vn = llm.norm %v <rms, @h, eps = 1.0e-5> {groups = 1} : tensor<?x16xf32>
  %a = llm.attention %q, %k, %vn, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// The query is normalized as a whole row, not per head.
// CHECK-LABEL: @row_norm
// CHECK: llm.linear
// CHECK: llm.attention
func.func @row_norm(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qn = llm.norm %q <rms, @g, eps = 1.0e-5> {groups = 1} : tensor<?x32xf32>
  %a = llm.attention %qn, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// Head norms are rms norms.
// CHECK-LABEL: @layer_norm
// CHECK: llm.linear
// CHECK: llm.attention
func.func @layer_norm(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qn = llm.norm %q <layer, @h, eps = 1.0e-5> {groups = 2} : tensor<?x32xf32>
  %a = llm.attention %qn, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// The norm comes after the rope.
// CHECK-LABEL: @norm_after_rope
// CHECK: llm.linear
// CHECK: llm.attention
func.func @norm_after_rope(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qr = llm.rope %q, %pos, @rope {heads = 2} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %qn = llm.norm %qr <rms, @h, eps = 1.0e-5> {groups = 2} : tensor<?x32xf32>
  %kr = llm.rope %k, %pos, @rope {heads = 1} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %kn = llm.norm %kr <rms, @h, eps = 1.0e-5> {groups = 1} : tensor<?x16xf32>
  %a = llm.attention %qn, %kn, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// The key has another use.
// CHECK-LABEL: @key_twice
// CHECK: llm.linear
// CHECK: llm.attention
func.func @key_twice(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %a = llm.attention %q, %k, %k, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// Key and value stand the other way round in the projection.
// CHECK-LABEL: @swapped
// CHECK: llm.linear
// CHECK: llm.attention
func.func @swapped(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %pos2: tensor<?xi32>) -> tensor<?x32xf32> {
  %q, %k, %v = llm.linear %x [@q, @k, @v] : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %a = llm.attention %q, %v, %k, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}
