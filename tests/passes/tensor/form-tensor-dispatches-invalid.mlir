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

// What is read between loops may have changed when a kernel would read it again.
// expected-error @+1 {{has a value between loops that no kernel can compute again}}
func.func @graph(%x: memref<4xf32>, %y: memref<4xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = [{name = "y", element = "float"}]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.load %x[%c0] : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %a, %y[%i] : memref<4xf32>
  }
  return
}

// -----

// expected-error @+1 {{needs more than 1099511627776 bytes for its values}}
func.func @graph(%x: memref<4294967296x4294967296xf32>) attributes {llm.inputs = [{name = "x", element = "float"}], llm.outputs = []} {
  return
}
