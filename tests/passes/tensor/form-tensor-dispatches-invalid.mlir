// RUN: llmc-opt %s --llmc-form-tensor-dispatches --split-input-file --verify-diagnostics

// expected-error @+1 {{has no function @graph of one block to schedule}}
module {}

// -----

// expected-error @+1 {{does not name its inputs and outputs}}
func.func @graph(%x: memref<4xf32>) {
  return
}

// -----

// expected-error @+1 {{has an argument of type 'memref<?xf32>' where a buffer of static shape is expected}}
func.func @graph(%x: memref<?xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = []} {
  return
}

// -----

// expected-error @+1 {{has more arguments than inputs and outputs}}
func.func @graph(%x: memref<4xf32>, %y: memref<4xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = []} {
  return
}

// -----

// expected-error @+1 {{has fewer arguments than inputs and outputs}}
func.func @graph() attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = []} {
  return
}

// -----

// Buffers that a loop chooses are not known while compiling.
// expected-error @+1 {{has a value between loops that no kernel can compute again}}
func.func @graph(%x: memref<4xf32>, %y: memref<4xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = [{name = "y", element = "float"}]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4xf32>
  %last, %other = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %t, %b = %x) -> (memref<4xf32>, memref<4xf32>) {
    memref.store %zero, %a[%i] : memref<4xf32>
    scf.yield %b, %a : memref<4xf32>, memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %v = memref.load %last[%i] : memref<4xf32>
    memref.store %v, %y[%i] : memref<4xf32>
  }
  return
}

// -----

// expected-error @+1 {{needs more than 1099511627776 bytes for its values}}
func.func @graph(%x: memref<4294967296x4294967296xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = []} {
  return
}
