// Loops over buffers become kernels and dispatches, allocations buffers, arguments ports.
// RUN: llmc-opt %s --llmc-form-tensor-dispatches --split-input-file | FileCheck %s

llm.weight @w [64] "raw" from 0 at 0

// Tiles are the steps of the outermost loop that has more than one.
// CHECK: sched.tensor_kernel @kernel0
// CHECK: ^bb0(%[[X:.*]]: memref<1x4x2xf32>, %[[W:.*]]: memref<4x2xf32>, %[[OUT:.*]]: memref<1x4x2xf32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index):
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: memref.store {{.*}}, %[[OUT]]

// The second product says the same: one kernel. Copies are loops.
// CHECK: sched.tensor_kernel @kernel1
// CHECK-NOT: sched.tensor_kernel
// CHECK: sched.program @main attributes {max_rows = 1 : i64}
// CHECK: sched.buffer @b0 32
// CHECK: sched.port input "x" @b0 "float" [1, 4, 2]
// CHECK: sched.port output "y" @b1 "float" [4, 2]
// CHECK: sched.buffer @[[T:.*]] 32
// CHECK: sched.buffer @[[U:.*]] 32
// CHECK: sched.dispatch @kernel0 <base = 4> [#sched.bind<read buffer @b0>, #sched.bind<read weight @w>, #sched.bind<write buffer @[[T]]>]
// CHECK: sched.dispatch @kernel0 <base = 4> [#sched.bind<read buffer @[[T]]>, #sched.bind<read weight @w>, #sched.bind<write buffer @[[U]]>]
// CHECK: sched.dispatch @kernel1 <base = 4> [#sched.bind<read buffer @[[U]]>, #sched.bind<write buffer @b1>]
// CHECK-NOT: func.func
func.func @graph(%x: memref<1x4x2xf32>, %w: memref<4x2xf32> {llm.weight = @w}, %y: memref<4x2xf32>)
    attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = [{name = "y", element = "float"}]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<1x4x2xf32>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%c1, %c4, %c2) step (%c1, %c1, %c1) {
    %a = memref.load %x[%i, %j, %k] : memref<1x4x2xf32>
    %b = memref.load %w[%j, %k] : memref<4x2xf32>
    %p = arith.mulf %a, %b : f32
    memref.store %p, %t[%i, %j, %k] : memref<1x4x2xf32>
  }
  %u = memref.alloc() : memref<1x4x2xf32>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%c1, %c4, %c2) step (%c1, %c1, %c1) {
    %a = memref.load %t[%i, %j, %k] : memref<1x4x2xf32>
    %b = memref.load %w[%j, %k] : memref<4x2xf32>
    %p = arith.mulf %a, %b : f32
    memref.store %p, %u[%i, %j, %k] : memref<1x4x2xf32>
  }
  %v = memref.collapse_shape %u [[0, 1], [2]] : memref<1x4x2xf32> into memref<4x2xf32>
  memref.copy %v, %y : memref<4x2xf32> to memref<4x2xf32>
  return
}

// -----

// A number between loops goes through a buffer: what it was read from may change before it is used.
// CHECK: sched.tensor_kernel @kernel0
// CHECK: ^bb0(%[[X:.*]]: memref<4xf32>, %[[KEEP:.*]]: memref<f32>,
// CHECK: %[[A:.*]] = memref.load %[[X]]
// CHECK: memref.store %[[A]], %[[KEEP]][]
// CHECK: sched.tensor_kernel @kernel1
// CHECK: sched.tensor_kernel @kernel2
// CHECK: ^bb0(%[[KEPT:.*]]: memref<f32>, %[[Y:.*]]: memref<4xf32>,
// CHECK: %[[B:.*]] = memref.load %[[KEPT]][]
// CHECK: %[[N:.*]] = arith.negf %[[B]]
// CHECK: memref.store %[[N]], %[[Y]]
// CHECK: sched.program @main
// CHECK: sched.dispatch @kernel0 {{.*}}<read buffer @[[IN:.*]]>, #sched.bind<write buffer @[[PLACE:.*]]>]
// CHECK: sched.dispatch @kernel1 {{.*}}<write buffer @[[IN]]>]
// CHECK: sched.dispatch @kernel2 {{.*}}<read buffer @[[PLACE]]>, #sched.bind<write buffer
func.func @graph(%x: memref<4xf32>, %y: memref<4xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = [{name = "y", element = "float"}]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %a = memref.load %x[%c0] : memref<4xf32>
  %n = arith.negf %a : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %n, %y[%i] : memref<4xf32>
  }
  return
}
