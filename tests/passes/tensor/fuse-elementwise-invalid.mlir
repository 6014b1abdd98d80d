// What is read more than once is computed once.
// RUN: llmc-opt %s '--pass-pipeline=builtin.module(func.func(llmc-fuse-elementwise))' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#vec = affine_map<(i) -> (i)>
#row = affine_map<(i, j) -> (i)>

// The vector is broadcast along rows.
// CHECK-LABEL: func.func @broadcast
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.mulf
func.func @broadcast(%x: tensor<2xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %f = tensor.empty() : tensor<2xf32>
  %z = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]} ins(%x : tensor<2xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = math.exp %p : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %e = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%z, %y : tensor<2xf32>, tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.mulf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// Two users.
// CHECK-LABEL: func.func @shared
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.negf
func.func @shared(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %f = tensor.empty() : tensor<2xf32>
  %z = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]} ins(%x : tensor<2xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = math.exp %p : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %s = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]} ins(%z : tensor<2xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.negf %p : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  return %z, %s : tensor<2xf32>, tensor<2xf32>
}
