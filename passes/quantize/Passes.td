//===- Passes.td - weights of fewer bits -----------------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_QUANTIZE_PASSES_TD
#define LLMC_PASSES_QUANTIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def QuantizeWeightsPass : Pass<"llmc-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "quantize the matrices of a model";
  let description = [{
    Appends a `quantize` step to the recipes of matrices. `scheme` is the name of
    a scheme or of an encoding:

    | Scheme | Matrices | Values and down projections | Embedding and head |
    |---|---|---|---|
    | `int8` | `int8_g32` | the same | the same |
    | `int8-channel` | `int8_row` | the same | the same |
    | `int4` | `int4_g32_min` | the same | `int8_g32` |
    | `int4-mixed` | `iq4_g32` | `int6_g64` | `int8_g32` |
    | an encoding | it | the same | `int8_g32`, or it where it has more bits |

    Which weight is what follows from its use: the table of `llm.embed`, the
    weights of the product that is returned, the third weight of `llm.qkv`, the
    product of a gated product. `overrides` come first, in order: PATTERN=ENCODING,
    with `*` for any text; `none` keeps the weight.

    A weight that is quantized already is kept as it is where it has the same
    grid (same bits, group, scales), where it has no more bits than it would
    get, and, with `int8`, `int4` and `int4-mixed`, where its codes have no more
    bits than the new ones. A weight may carry `llm.importance`, a `#llm.part` with one float per
    column, which becomes the importance of the step.

    ```mlir
    llm.weight @w [64, 64] "f32" from 0 at 0
    // becomes, with scheme = int4
    llm.weight @w [64, 64] "f32" from 0 at 0 recipe [#llm.quantize<"int4_g32_min">]
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
  let options = [
    Option<"scheme", "scheme", "std::string", "\"none\"", "scheme, encoding or none">,
    ListOption<"overrides", "overrides", "std::string", "PATTERN=ENCODING, first match counts">];
}

#endif // LLMC_PASSES_QUANTIZE_PASSES_TD
