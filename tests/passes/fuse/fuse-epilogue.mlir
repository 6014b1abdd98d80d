// What follows a linear joins it: activation, then scale, then soft-cap, then residual.
// RUN: llmc-opt %s --llmc-fuse-epilogue | FileCheck %s

llm.weight @w [16, 16] "q4_1" from 0 at 0
llm.weight @u [16, 16] "q4_1" from 0 at 512
llm.weight @b [16] "f32" from 0 at 1024

// CHECK-LABEL: @chain
// CHECK-NEXT: %[[Y:.*]] = llm.linear %arg0 [@w] residual(%arg1) {activation = #llm<activation gelu_tanh>, scale = 5.000000e-01 : f32, softcap = 3.000000e+01 : f32}
// CHECK-NEXT: return %[[Y]]
func.func @chain(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %a = llm.act gelu_tanh %y : tensor<?x16xf32>
  %s = llm.scale %a by 0.5 : tensor<?x16xf32>
  %c = llm.softcap %s at 30.0 : tensor<?x16xf32>
  %z = llm.add %r, %c : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// CHECK-LABEL: @gated
// CHECK-NEXT: llm.linear %arg0 [@w, @u] {activation = #llm<activation silu>, biases = [@b, unit], gated, llm.layer = 3 : i64}
// CHECK-NEXT: return
func.func @gated(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %g, %u = llm.linear %x [@w, @u] {biases = [@b, unit], llm.layer = 3} : (tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>)
  %z = llm.glu silu %g, %u : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// A plain sum commutes; a residual may be computed after the linear.
// CHECK-LABEL: @commuted
// CHECK: %[[N:.*]] = llm.norm %arg1
// CHECK: llm.linear %arg0 [@w] residual(%[[N]])
func.func @commuted(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %n = llm.norm %r <rms, @b, eps = 1.0e-5> : tensor<?x16xf32>
  %z = llm.add %y, %n : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// r + 0.25 * y: the scale is the linear's.
// CHECK-LABEL: @scaled_sum
// CHECK: llm.linear %arg0 [@w] residual(%arg1) {scale = 1.250000e-01 : f32}
func.func @scaled_sum(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] {scale = 0.5 : f32} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %z = llm.add %r, %y {scale = 0.25 : f32} : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
