//===- Passes.td - the KV cache's layout -----------------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_KV_PASSES_TD
#define LLMC_PASSES_KV_PASSES_TD

include "mlir/Pass/PassBase.td"

def PlanKvPass : Pass<"llmc-plan-kv", "::mlir::ModuleOp"> {
  let summary = "decide capacity, encoding and place of every layer's KV cache";
  let description = [{
    A layer without a window keeps `context` positions. A layer with a window
    keeps what a step of `max-rows` rows can see, in whole chunks of 256, if that
    is less; position p lives in slot p mod capacity. Keys of all layers come
    first in the order of the symbols, each followed by its values, every part
    at a multiple of 4096 bytes. The module attribute `llm.kv_bytes` gets the
    size of one sequence's area. A context beyond the rows of a table of learned
    positions is refused, and for bidirectional attention one beyond `max-rows`.

    ```mlir
    llm.kv @kv.0 {encoding = "f16", head_dim = 64 : i64, heads = 3 : i64, window = 512 : i64}
    // becomes, with context = 8192 and max-rows = 512
    llm.kv @kv.0 {capacity = 1280 : i64, ..., k_offset = 0 : i64, v_offset = 491520 : i64}
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
  let options = [
    Option<"context", "context", "int64_t", "4096", "positions that a sequence may have">,
    Option<"maxRows", "max-rows", "int64_t", "512", "rows of the largest step">,
    Option<"encoding", "encoding", "std::string", "\"\"",
           "f16 or f32; empty: as the caches say">];
}

#endif // LLMC_PASSES_KV_PASSES_TD
