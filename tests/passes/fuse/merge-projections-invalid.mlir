// Projections that are not merged.
// RUN: llmc-opt %s --llmc-merge-projections | FileCheck %s

llm.weight @gate [64, 32] "q4_1" from 0 at 0
llm.weight @up [64, 32] "q4_1" from 0 at 8192
llm.weight @g [32] "f32" from 0 at 16384
llm.weight @q [32, 32] "q4_1" from 0 at 0
llm.weight @k [16, 32] "q4_1" from 0 at 1024
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// Of different inputs.
// CHECK-LABEL: @inputs
// CHECK: llm.linear %arg0 [@gate] :
// CHECK: llm.linear %arg1 [@up] :
func.func @inputs(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x [@gate] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %u = llm.linear %y [@up] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %z = llm.glu silu %g, %u : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// With different norms.
// CHECK-LABEL: @norms
// CHECK: llm.linear %arg0 [@gate] {norm
// CHECK: llm.linear %arg0 [@up] :
func.func @norms(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x [@gate] {norm = #llm.norm<rms, @g, eps = 1.0e-5>} : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %u = llm.linear %x [@up] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %z = llm.glu silu %g, %u : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// Where something was fused into one of them: its results would share the epilogue.
// CHECK-LABEL: @epilogue
// CHECK: llm.linear %arg0 [@gate] {scale
// CHECK: llm.linear %arg0 [@up] :
func.func @epilogue(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x [@gate] {scale = 2.0 : f32} : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %u = llm.linear %x [@up] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %z = llm.glu silu %g, %u : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// One linear as gate and up.
// CHECK-LABEL: @same
// CHECK: %[[G:.*]] = llm.linear %arg0 [@gate] :
// CHECK: llm.glu silu %[[G]], %[[G]]
func.func @same(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x [@gate] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %z = llm.glu silu %g, %g : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// A value that is no projection.
// CHECK-LABEL: @value
// CHECK: llm.linear %arg0 [@q] :
// CHECK: llm.linear %arg0 [@k] :
func.func @value(%x: tensor<?x32xf32>, %v: tensor<?x16xf32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %q = llm.linear %x [@q] : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %k = llm.linear %x [@k] : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %a = llm.attention %q, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}
