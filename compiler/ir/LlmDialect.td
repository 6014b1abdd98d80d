//===- LlmDialect.td - the llm dialect: what a model computes --*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_LLMDIALECT_TD
#define LLMC_COMPILER_IR_LLMDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Llm_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::llmc::llm";
  let summary = "what a language model computes, one op for one idea of a transformer";
  let description = [{
    A model is a module: `llm.weight`, `llm.kv` and `llm.rope_table` symbols and
    one function `@forward(%tokens: tensor<?xi32>, %positions: tensor<?xi32>)`
    that returns float32 logits. Every value is a tensor `[rows, features]` of
    float32; rows are the tokens of a step. Weights are symbols, never
    constants: the IR of a large model stays small.
  }];
  let useDefaultAttributePrinterParser = 1;
}

// A number of things of which there is at least one, and one that may be 0.
def Llm_Count : ConfinedAttr<I64Attr, [IntPositive]>;
def Llm_Size : ConfinedAttr<I64Attr, [IntNonNegative]>;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Llm_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}

// Values are the `kind` arguments of the micro-kernels (uk_act, uk_glu).
def Llm_Activation : Llm_Enum<"Activation", "element-wise activation", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Silu", 1, "silu">,
  I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">, I32EnumAttrCase<"GeluErf", 3, "gelu_erf">,
  I32EnumAttrCase<"Relu", 4, "relu">, I32EnumAttrCase<"ReluSquared", 5, "relu_squared">]>;
def Llm_ActivationAttr : EnumAttr<Llm_Dialect, Llm_Activation, "activation">;

def Llm_NormKind : Llm_Enum<"NormKind", "kind of normalization", [
  I32EnumAttrCase<"Rms", 0, "rms">, I32EnumAttrCase<"Layer", 1, "layer">]>;

def Llm_RopeKind : Llm_Enum<"RopeKind", "which features form a rotated pair", [
  I32EnumAttrCase<"HalfSplit", 0, "half_split">, I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;
def Llm_RopeKindAttr : EnumAttr<Llm_Dialect, Llm_RopeKind, "rope_kind">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Llm_Attr<string name, string mnem> : AttrDef<Llm_Dialect, name> { let mnemonic = mnem; }

def Llm_NormAttr : Llm_Attr<"Norm", "norm"> {
  let summary = "a normalization over the features of a row";
  let description = [{
    `rms`: x / sqrt(mean(x^2) + eps) * weight. `layer`: (x - mean) / sqrt(var +
    eps) * weight + bias. `#llm.norm<rms, @w, eps = 1.0e-5>`,
    `#llm.norm<layer, @w bias @b, eps = 1.0e-5>`.
  }];
  let parameters = (ins EnumParameter<Llm_NormKind>:$kind, "::mlir::FlatSymbolRefAttr":$weight,
      OptionalParameter<"::mlir::FlatSymbolRefAttr">:$bias, "::mlir::FloatAttr":$eps);
  let assemblyFormat = "`<` $kind `,` $weight (`bias` $bias^)? `,` `eps` `=` $eps `>`";
}

// Where the parts of a quantized weight lie.

def Llm_PartAttr : Llm_Attr<"Part", "part"> {
  let summary = "a tensor: elements of `kind` at `offset` of source file `file`";
  let description = [{
    `stride` elements from one row to the next; 0: all rows are the first one.
    Elements of 4 bits lie two in a byte, the first in the low half.
  }];
  let parameters = (ins StringRefParameter<"u4, i4, u8, i8, f32, f16 or bf16">:$kind,
      "int64_t":$file, "int64_t":$offset, "int64_t":$stride);
  let assemblyFormat = "`<` $kind `from` $file `at` $offset `stride` $stride `>`";
}

def Llm_PartsAttr : Llm_Attr<"Parts", "parts"> {
  let summary = "a weight whose codes, scales and offsets lie apart";
  let description = [{
    The weight's own place is that of its codes, `codes` is their kind (u4, i4,
    u8, i8) and `stride` the codes from one row to the next. `scales` has one
    element per row and group, `offsets` too: zero points in the kind of the
    codes, or float zero points or mins. `transposed`: the tensors are `[K][N]`
    and `[groups][N]`. MatMulNBits of 4 bits, 3 rows of 40, blocks of 32:

    ```mlir
    llm.weight @w [3, 40] "int4_g32_zp_f32" from 0 at 0
      parts <codes = "u4", stride = 64, scales = <"f32" from 0 at 96 stride 2>,
             offsets = <"u4" from 0 at 120 stride 2>>
    ```
  }];
  let parameters = (ins StringRefParameter<"kind of the codes">:$codes, "int64_t":$stride,
      "::llmc::llm::PartAttr":$scales, OptionalParameter<"::llmc::llm::PartAttr">:$offsets,
      DefaultValuedParameter<"bool", "false">:$transposed);
  let assemblyFormat = "`<` struct(params) `>`";
}

// Steps of a weight's recipe, applied in order to the source bytes.

def Llm_SliceRowsAttr : Llm_Attr<"SliceRows", "slice_rows"> {
  let summary = "keep `count` rows from `begin` on";
  let parameters = (ins "int64_t":$begin, "int64_t":$count);
  let assemblyFormat = "`<` $begin `,` $count `>`";
}

def Llm_TransposeAttr : Llm_Attr<"Transpose", "transpose"> {
  let summary = "the source is `[columns, rows]` of a float encoding; always first";
}

def Llm_CastAttr : Llm_Attr<"Cast", "cast"> {
  let summary = "convert to another float encoding (dequantizing where needed)";
  let parameters = (ins StringRefParameter<"target encoding">:$encoding);
  let assemblyFormat = "`<` $encoding `>`";
}

def Llm_ScaleAttr : Llm_Attr<"Scale", "scale"> {
  let summary = "multiply a float weight by a constant";
  let parameters = (ins "::mlir::FloatAttr":$factor);
  let assemblyFormat = "`<` $factor `>`";
}

def Llm_QuantizeAttr : Llm_Attr<"Quantize", "quantize"> {
  let summary = "quantize to another encoding, with the least weighted error";
  let description = [{
    `importance`: one float per column, the weight of its errors. All columns
    weigh the same without. A weight can only be packed after this step.
  }];
  let parameters = (ins StringRefParameter<"target encoding">:$encoding,
      OptionalParameter<"::llmc::llm::PartAttr">:$importance);
  let assemblyFormat = "`<` $encoding (`,` `importance` `=` $importance^)? `>`";
}

def Llm_PackAttr : Llm_Attr<"Pack", "pack"> {
  let summary = "lay rows out for a target's kernels";
  let description = [{
    One layout per kind of device that is compiled for: "panel16" for CPUs
    (compiler/weights/PanelLayout.h), "warp32" for GPUs (WarpLayout.h).
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$layouts);
  let assemblyFormat = "`<` $layouts `>`";
}

#endif // LLMC_COMPILER_IR_LLMDIALECT_TD
