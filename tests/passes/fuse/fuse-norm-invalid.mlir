// Norms that stay where they are.
// RUN: llmc-opt %s --llmc-fuse-norm | FileCheck %s

llm.weight @a [16, 16] "q4_1" from 0 at 0
llm.weight @g [16] "f32" from 0 at 1024
llm.weight @h [8] "f32" from 0 at 2048

// One use is not the input of a linear: the norm would be computed twice.
// CHECK-LABEL: @other_use
// CHECK: %[[N:.*]] = llm.norm %arg0
// CHECK: llm.linear %[[N]] [@a] :
func.func @other_use(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %n = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %a = llm.linear %n [@a] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %a, %n : tensor<?x16xf32>, tensor<?x16xf32>
}

// The residual of a linear is no input.
// CHECK-LABEL: @residual
// CHECK: %[[N:.*]] = llm.norm %arg0
// CHECK: llm.linear %[[N]] [@a] residual(%[[N]]) :
func.func @residual(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %n = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %a = llm.linear %n [@a] residual(%n) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}

// Parts of a row are normalized.
// CHECK-LABEL: @groups
// CHECK: %[[N:.*]] = llm.norm %arg0
// CHECK: llm.linear %[[N]] [@a] :
func.func @groups(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %n = llm.norm %x <rms, @h, eps = 1.0e-5> {groups = 2} : tensor<?x16xf32>
  %a = llm.linear %n [@a] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}

// The linear has a norm already.
// CHECK-LABEL: @normed
// CHECK: %[[N:.*]] = llm.norm %arg0 <layer
// CHECK: llm.linear %[[N]] [@a] {norm = #llm.norm<rms
func.func @normed(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %n = llm.norm %x <layer, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %a = llm.linear %n [@a] {norm = #llm.norm<rms, @g, eps = 1.0e-5>} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}
