//===- Passes.td - from tensors to sched -----------------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_TENSOR_PASSES_TD
#define LLMC_PASSES_TENSOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormTensorDispatchesPass : Pass<"llmc-form-tensor-dispatches", "::mlir::ModuleOp"> {
  let summary = "turn the bufferized @graph into a program of dispatches";
  let description = [{
    `@graph` takes and gives memrefs of static shape: inputs, weights (`llm.weight`
    on the argument), then outputs. Every linalg op, loop nest or copy in it becomes a
    `sched.tensor_kernel` and a dispatch in `@main`; views and constants are
    repeated in each kernel that wants them. Tiles are the steps of the outermost
    parallel loop that has more than one. Allocations become buffers, inputs and
    outputs ports. Kernels that say the same are one.

    ```mlir
    func.func @graph(%x: memref<8xf32>, %y: memref<8xf32>) {
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) { ... }
    }
    // becomes
    sched.tensor_kernel @kernel0 { ^bb0(%x: ..., %y: ..., %begin: index, %end: index): ... }
    sched.program @main { ... sched.dispatch @kernel0 <base = 8> [...] }
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect", "::llmc::sched::SchedDialect",
      "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def FuseElementwisePass : Pass<"llmc-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "fuse element-wise producers into their consumers";
  let description = [{
    A `linalg.generic` without reductions joins its only user, unless that user
    reads each of its elements more than once: `exp(x)` is not computed anew for
    every column of a product.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

#endif // LLMC_PASSES_TENSOR_PASSES_TD
