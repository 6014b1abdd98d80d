// Query, key and value of one attention, and gate and up of one glu, become one linear each.
// RUN: llmc-opt %s --llmc-merge-projections | FileCheck %s

llm.weight @q [32, 32] "q4_1" from 0 at 0
llm.weight @k [16, 32] "q4_1" from 0 at 1024
llm.weight @v [16, 32] "q4_1" from 0 at 2048
llm.weight @bk [16] "f32" from 0 at 3072
llm.weight @head_gain [16] "f32" from 0 at 3136
llm.weight @gate [64, 32] "q4_1" from 0 at 4096
llm.weight @up [64, 32] "q4_1" from 0 at 8192
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.rope_table @rope half_split {inv_freq = array<f32: 1.0, 0.5>}

// Norms and rope may stand between a projection and the attention.
// CHECK-LABEL: @attention
// CHECK: %[[QKV:.*]]:3 = llm.linear %arg0 [@q, @k, @v] {llm.layer = 7 : i64} : (tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
// CHECK-NOT: llm.linear
// CHECK: llm.norm %[[QKV]]#0
// CHECK: llm.rope %[[QKV]]#1
// CHECK: llm.attention %{{.*}}, %{{.*}}, %[[QKV]]#2
func.func @attention(%x: tensor<?x32xf32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %q = llm.linear %x [@q] {llm.layer = 7} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %qn = llm.norm %q <rms, @head_gain, eps = 1.0e-5> {groups = 2} : tensor<?x32xf32>
  %k = llm.linear %x [@k] : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %kr = llm.rope %k, %pos, @rope {heads = 1} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %v = llm.linear %x [@v] : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %a = llm.attention %qn, %kr, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// A projection without a bias beside one with a bias.
// CHECK-LABEL: @bias
// CHECK: llm.linear %arg0 [@q, @k, @v] {biases = [unit, @bk, unit]}
func.func @bias(%x: tensor<?x32xf32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %q = llm.linear %x [@q] : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %k = llm.linear %x [@k] {biases = [@bk]} : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %v = llm.linear %x [@v] : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %a = llm.attention %q, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// The gate comes first, whichever is computed first.
// CHECK-LABEL: @glu
// CHECK: %[[M:.*]]:2 = llm.linear %arg0 [@gate, @up]
// CHECK: llm.glu silu %[[M]]#0, %[[M]]#1
func.func @glu(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %u = llm.linear %x [@up] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %g = llm.linear %x [@gate] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %y = llm.glu silu %g, %u : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
