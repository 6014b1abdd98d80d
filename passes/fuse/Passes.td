//===- Passes.td - fusing llm ops ------------------------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_FUSE_PASSES_TD
#define LLMC_PASSES_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FuseEpiloguePass : Pass<"llmc-fuse-epilogue", "::mlir::ModuleOp"> {
  let summary = "move what follows a linear into it";
  let description = [{
    Scale, soft-cap, activation, gated activation and residual add join the
    `llm.linear` that produces their input, where that has no other use.

    ```mlir
    %y = llm.linear %x [@w] : ...
    %r = llm.add %h, %y : ...
    // becomes
    %r = llm.linear %x [@w] residual(%h) : ...
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def FuseNormPass : Pass<"llmc-fuse-norm", "::mlir::ModuleOp"> {
  let summary = "move a normalization into the linears that consume it";
  let description = [{
    ```mlir
    %n = llm.norm %x #llm.norm<rms, @g, eps = 1.0e-5> : ...
    %y = llm.linear %n [@w] : ...
    // becomes
    %y = llm.linear %x [@w] {norm = #llm.norm<rms, @g, eps = 1.0e-5>} : ...
    ```
    A norm stays where it is if any use is not the input of a linear, or if it
    normalizes parts of a row.
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def FuseQkvPass : Pass<"llmc-fuse-qkv", "::mlir::ModuleOp"> {
  let summary = "head norms, rope and KV write join the projection";
  let description = [{
    `llm.attention` whose query, key and value come from one merged `llm.linear`,
    through nothing but head norms and rope, becomes `llm.qkv` and `llm.attend`.
    Heads must be whole panels (a multiple of 16 features), and query and key
    must use the same rope table.
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def MergeProjectionsPass : Pass<"llmc-merge-projections", "::mlir::ModuleOp"> {
  let summary = "query, key and value, and gate and up, become one linear each";
  let description = [{
    ```mlir
    %q = llm.linear %n [@wq] : ...
    %k = llm.linear %n [@wk] : ...
    %v = llm.linear %n [@wv] : ...
    // becomes
    %q, %k, %v = llm.linear %n [@wq, @wk, @wv] : ...
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def SelectOutRowsPass : Pass<"llmc-select-out-rows", "::mlir::ModuleOp"> {
  let summary = "compute logits only for the rows that want them";
  let description = [{
    Puts `llm.out_rows` on the result of `@forward` and moves it up through
    row-wise ops, so that the head runs on the wanted rows only.
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

def SplitAttentionPass : Pass<"llmc-split-attention", "::mlir::ModuleOp"> {
  let summary = "llm.attention becomes llm.kv_append and llm.attend";
  let description = "The form that scheduling takes where `llmc-fuse-qkv` did not apply.";
  let dependentDialects = ["::llmc::llm::LlmDialect"];
}

#endif // LLMC_PASSES_FUSE_PASSES_TD
