// A norm moves into all the linears that read it.
// RUN: llmc-opt %s --llmc-fuse-norm | FileCheck %s

llm.weight @a [16, 16] "q4_1" from 0 at 0
llm.weight @b [16, 16] "q4_1" from 0 at 512
llm.weight @g [16] "f32" from 0 at 1024

// CHECK-LABEL: @two
// CHECK-NOT: llm.norm %
// CHECK: llm.linear %arg0 [@a] {norm = #llm.norm<rms, @g, eps = [[EPS:.*]]>}
// CHECK: llm.linear %arg0 [@b] {norm = #llm.norm<rms, @g, eps = [[EPS]]>}
func.func @two(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %n = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %a = llm.linear %n [@a] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %b = llm.linear %n [@b] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %a, %b : tensor<?x16xf32>, tensor<?x16xf32>
}

// A residual is read as it was.
// CHECK-LABEL: @residual
// CHECK: llm.linear %arg0 [@a] residual(%arg0) {norm = #llm.norm<layer, @g bias @g
func.func @residual(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %n = llm.norm %x <layer, @g bias @g, eps = 1.0e-5> : tensor<?x16xf32>
  %a = llm.linear %n [@a] residual(%x) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}
