// What may not join a linear.
// RUN: llmc-opt %s --llmc-fuse-epilogue | FileCheck %s

llm.weight @w [16, 16] "q4_1" from 0 at 0
llm.weight @u [16, 16] "q4_1" from 0 at 512

// The product is needed by something else too.
// CHECK-LABEL: @other_use
// CHECK: %[[Y:.*]] = llm.linear %arg0 [@w] :
// CHECK: llm.act silu %[[Y]]
func.func @other_use(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %a = llm.act silu %y : tensor<?x16xf32>
  return %a, %y : tensor<?x16xf32>, tensor<?x16xf32>
}

// act(scale * y) is not scale * act(y).
// CHECK-LABEL: @order
// CHECK: llm.linear %arg0 [@w] {scale = 5.000000e-01 : f32}
// CHECK: llm.act silu
func.func @order(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %s = llm.scale %y by 0.5 : tensor<?x16xf32>
  %a = llm.act silu %s : tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}

// Nothing joins after a residual.
// CHECK-LABEL: @after_residual
// CHECK: llm.linear %arg0 [@w] residual(%arg1) :
// CHECK: llm.scale
func.func @after_residual(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] residual(%r) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %s = llm.scale %y by 0.5 : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// scale * softcap(y) is not softcap(scale * y).
// CHECK-LABEL: @softcap_scale
// CHECK: llm.linear %arg0 [@w] {softcap = 3.000000e+01 : f32}
// CHECK: llm.add %arg1, %{{.*}} {scale = 5.000000e-01 : f32}
func.func @softcap_scale(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %c = llm.softcap %y at 30.0 : tensor<?x16xf32>
  %z = llm.add %r, %c {scale = 0.5 : f32} : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// r + 0.5 * y is no sum that commutes: y is scaled, and r is no linear's residual then.
// CHECK-LABEL: @scaled_lhs
// CHECK: llm.linear %arg0 [@w] :
// CHECK: llm.add
func.func @scaled_lhs(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %z = llm.add %y, %r {scale = 0.5 : f32} : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// The glu has its operands the other way round.
// CHECK-LABEL: @swapped
// CHECK: llm.linear %arg0 [@w, @u] :
// CHECK: llm.glu
func.func @swapped(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %u, %g = llm.linear %x [@w, @u] : (tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>)
  %z = llm.glu silu %g, %u : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// One residual is enough.
// CHECK-LABEL: @two_residuals
// CHECK: llm.linear %arg0 [@w] residual(%arg1)
// CHECK: llm.add %{{.*}}, %arg1
func.func @two_residuals(%x: tensor<?x16xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = llm.linear %x [@w] residual(%r) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %z = llm.add %y, %r : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
