//===- LlmOps.td - operations of the llm dialect ---------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_LLMOPS_TD
#define LLMC_COMPILER_IR_LLMOPS_TD

include "LlmDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Llm_Op<string mnemonic, list<Trait> traits = []> : Op<Llm_Dialect, mnemonic, traits>;

/// [rows, features]; the number of features is always known.
def Llm_Rows : Type<And<[TensorRankOf<[F32], [2]>.predicate,
    CPred<"!::llvm::cast<::mlir::ShapedType>($_self).isDynamicDim(1)">]>,
    "float32 rows of a known number of features", "::mlir::RankedTensorType">;
def Llm_Ids : TensorRankOf<[I32], [1]>;

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

def Llm_WeightOp : Llm_Op<"weight", [Symbol]> {
  let summary = "a weight: where its bytes come from and how its final bytes are made";
  let description = [{
    `shape` is `[rows, columns]` of the source, or `[columns]` for a vector.
    The bytes are row-major blocks of `encoding` at `offset` of source file
    number `file`; `parts` says where scales lie that are not in the blocks. The
    recipe's steps make the final bytes; the artifact writer
    evaluates them weight by weight.

    ```mlir
    llm.weight @blk.0.attn_q.weight [576, 576] "q4_1" from 0 at 4096 recipe [#llm.pack<"panel16">]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$shape, StrAttr:$encoding,
      Llm_Size:$file, Llm_Size:$offset, DefaultValuedAttr<ArrayAttr, "{}">:$recipe,
      OptionalAttr<Llm_PartsAttr>:$parts);
  let assemblyFormat = [{
    $sym_name $shape $encoding `from` $file `at` $offset (`parts` $parts^)?
    (`recipe` $recipe^)? attr-dict
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::ArrayRef<int64_t>":$shape,
      "::llvm::StringRef":$encoding, "int64_t":$file, "int64_t":$offset,
      CArg<"::mlir::ArrayAttr", "{}">:$recipe), [{
    build($_builder, $_state, name, shape, encoding, file, offset,
          recipe ? recipe : $_builder.getArrayAttr({}), PartsAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Shape after the recipe's steps.
    ::llvm::SmallVector<int64_t> getFinalShape();
    /// Encoding after the recipe's steps.
    ::llvm::StringRef getFinalEncoding();
    /// Rows and columns after the recipe; a vector is one row.
    int64_t getRows() { auto s = getFinalShape(); return s.size() == 2 ? s[0] : 1; }
    int64_t getColumns() { return getFinalShape().back(); }
    void appendStep(::mlir::Attribute step);
  }];
}

def Llm_KvOp : Llm_Op<"kv", [Symbol]> {
  let summary = "the key/value cache of one attention layer";
  let description = [{
    `window` is the number of visible positions, the current one included; 0:
    all. `plan-kv` sets `capacity` (positions kept; position p lives in slot
    p mod capacity) and the offsets in a sequence's KV area.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$heads, Llm_Count:$head_dim,
      StrAttr:$encoding, DefaultValuedAttr<Llm_Size, "0">:$window,
      OptionalAttr<Llm_Count>:$capacity, OptionalAttr<Llm_Size>:$k_offset,
      OptionalAttr<Llm_Size>:$v_offset);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Llm_RopeTableOp : Llm_Op<"rope_table", [Symbol]> {
  let summary = "rotary position embedding: frequencies and layout";
  let description = [{
    Pair i of a head is rotated by `position * inv_freq[i]`; cosine and sine
    are multiplied by `mscale` (YaRN's attention factor). 2 * |inv_freq|
    features of a head are rotated, the rest pass through. Scaling (linear,
    yarn, llama3, longrope) is already in the frequencies.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_RopeKindAttr:$kind,
      DenseF32ArrayAttr:$inv_freq, DefaultValuedAttr<F32Attr, "1.0f">:$mscale);
  let assemblyFormat = "$sym_name $kind attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Model ops
//===----------------------------------------------------------------------===//

def Llm_EmbedOp : Llm_Op<"embed", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "rows of an embedding table, times `scale`";
  let description = "The ids are the step's tokens or its positions (learned positions).";
  let arguments = (ins Llm_Ids:$tokens, FlatSymbolRefAttr:$weight,
      DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$tokens `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Llm_LinearOp : Llm_Op<"linear", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "y = x W^T + b, with what was fused into it";
  let description = [{
    h = norm(input) if there is a norm, else input. For each weight i:
    y_i = h W_i^T + b_i. `gated` (exactly two weights, one result): y =
    activation(y_0) * y_1; otherwise each y_i passes the activation. Then
    y = y * scale, y = softcap * tanh(y / softcap) if softcap is not 0, and
    y = residual + y if there is a residual (one result only).
    `biases[i]` is a symbol or `unit` where weight i has none.
  }];
  let arguments = (ins Llm_Rows:$input, Optional<Llm_Rows>:$residual, ArrayAttr:$weights,
      OptionalAttr<ArrayAttr>:$biases, OptionalAttr<Llm_NormAttr>:$norm,
      DefaultValuedAttr<Llm_ActivationAttr, "::llmc::llm::Activation::None">:$activation,
      UnitAttr:$gated, DefaultValuedAttr<F32Attr, "1.0f">:$scale,
      DefaultValuedAttr<F32Attr, "0.0f">:$softcap);
  let results = (outs Variadic<Llm_Rows>:$results);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::Value":$input,
      "::mlir::ArrayAttr":$weights, CArg<"::mlir::ArrayAttr", "{}">:$biases,
      CArg<"::llmc::llm::NormAttr", "{}">:$norm), [{
    build($_builder, $_state, types, input, /*residual=*/{}, weights, biases, norm,
          ActivationAttr::get($_builder.getContext(), Activation::None), /*gated=*/{},
          $_builder.getF32FloatAttr(1.0f), $_builder.getF32FloatAttr(0.0f));
  }]>];
  let assemblyFormat = [{
    $input $weights (`residual` `(` $residual^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FlatSymbolRefAttr getWeight(unsigned i) {
      return ::llvm::cast<::mlir::FlatSymbolRefAttr>(getWeights()[i]);
    }
    /// The bias of weight i, or null.
    ::mlir::FlatSymbolRefAttr getBias(unsigned i) {
      return getBiases() ? ::llvm::dyn_cast<::mlir::FlatSymbolRefAttr>((*getBiases())[i])
                         : ::mlir::FlatSymbolRefAttr();
    }
    /// True if nothing but bias is applied after the product.
    bool hasPlainEpilogue();
  }];
}

def Llm_NormOp : Llm_Op<"norm", [Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "normalize each of `groups` equal parts of every row";
  let arguments = (ins Llm_Rows:$input, Llm_NormAttr:$norm,
      DefaultValuedAttr<Llm_Count, "1">:$groups);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input $norm attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Llm_AddOp : Llm_Op<"add", [Pure, SameOperandsAndResultType]> {
  let summary = "lhs + scale * rhs";
  let arguments = (ins Llm_Rows:$lhs, Llm_Rows:$rhs, DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
}

def Llm_ActOp : Llm_Op<"act", [Pure, SameOperandsAndResultType]> {
  let summary = "element-wise activation";
  let arguments = (ins Llm_Rows:$input, Llm_ActivationAttr:$activation);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$activation $input attr-dict `:` type($input)";
}

def Llm_GluOp : Llm_Op<"glu", [Pure, SameOperandsAndResultType]> {
  let summary = "activation(gate) * up";
  let arguments = (ins Llm_Rows:$gate, Llm_Rows:$up, Llm_ActivationAttr:$activation);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$activation $gate `,` $up attr-dict `:` type($gate)";
}

def Llm_ScaleOp : Llm_Op<"scale", [Pure, SameOperandsAndResultType]> {
  let summary = "multiply by a constant";
  let arguments = (ins Llm_Rows:$input, F32Attr:$factor);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Llm_SoftcapOp : Llm_Op<"softcap", [Pure, SameOperandsAndResultType]> {
  let summary = "cap * tanh(x / cap)";
  let arguments = (ins Llm_Rows:$input, F32Attr:$cap);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `at` $cap attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Llm_RopeOp : Llm_Op<"rope", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "rotate the pairs of each head by the row's position";
  let arguments = (ins Llm_Rows:$input, Llm_Ids:$positions, FlatSymbolRefAttr:$table,
      Llm_Count:$heads);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $positions `,` $table attr-dict `:` type($input) `,` type($positions) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_KvAppendOp : Llm_Op<"kv_append", [MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "write keys and values of the step's rows to a KV cache";
  let arguments = (ins Llm_Rows:$key, Llm_Rows:$value, Llm_Ids:$positions, FlatSymbolRefAttr:$kv);
  let assemblyFormat = "$key `,` $value `,` $positions `,` $kv attr-dict `:` type(operands)";
}

class Llm_AttendBase<string mnemonic, list<Trait> traits> : Llm_Op<mnemonic,
    !listconcat(traits, [DeclareOpInterfaceMethods<SymbolUserOpInterface>])> {
  let hasVerifier = 1;
}

def Llm_AttendOp : Llm_AttendBase<"attend", [MemoryEffects<[MemRead]>]> {
  let summary = "softmax(q k^T * scale) v over the visible positions of a KV cache";
  let description = [{
    Row i at position p sees the cached positions max(0, p - window + 1) .. p.
    Query head h uses KV head h / (heads / kv heads). `softcap` caps the scores.
    `bidirectional`: every row sees all rows of the step, too; such a model
    computes a text in one step, and its cache has no window.
  }];
  let arguments = (ins Llm_Rows:$query, Llm_Ids:$positions, FlatSymbolRefAttr:$kv, Llm_Count:$heads,
      F32Attr:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$softcap, UnitAttr:$bidirectional);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$query `,` $positions `,` $kv attr-dict `:` type($query) `,` type($positions) `->` type($result)";
}

def Llm_AttentionOp : Llm_AttendBase<"attention", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "append keys and values to a KV cache, then attend";
  let description = "The canonical form that frontends produce: `llm.kv_append` then `llm.attend`.";
  let arguments = (ins Llm_Rows:$query, Llm_Rows:$key, Llm_Rows:$value, Llm_Ids:$positions,
      FlatSymbolRefAttr:$kv, Llm_Count:$heads, F32Attr:$scale,
      DefaultValuedAttr<F32Attr, "0.0f">:$softcap, UnitAttr:$bidirectional);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $positions `,` $kv attr-dict
    `:` functional-type(operands, results)
  }];
}

def Llm_QkvOp : Llm_Op<"qkv", [MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "fused query/key/value projection, head norms, rope and KV write";
  let description = [{
    h = norm(input); q, k, v = h W^T + b for the three weights; q and k are
    normalized per head (`q_norm`, `k_norm`) and rotated (`rope`) where given;
    k and v go to the cache. The result is the query.
  }];
  let arguments = (ins Llm_Rows:$input, Llm_Ids:$positions, ArrayAttr:$weights,
      OptionalAttr<ArrayAttr>:$biases, OptionalAttr<Llm_NormAttr>:$norm,
      OptionalAttr<Llm_NormAttr>:$q_norm, OptionalAttr<Llm_NormAttr>:$k_norm,
      OptionalAttr<FlatSymbolRefAttr>:$rope, FlatSymbolRefAttr:$kv, Llm_Count:$heads);
  let results = (outs Llm_Rows:$query);
  let assemblyFormat = [{
    $input `,` $positions $weights `,` $kv attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FlatSymbolRefAttr getWeight(unsigned i) {
      return ::llvm::cast<::mlir::FlatSymbolRefAttr>(getWeights()[i]);
    }
    ::mlir::FlatSymbolRefAttr getBias(unsigned i) {
      return getBiases() ? ::llvm::dyn_cast<::mlir::FlatSymbolRefAttr>((*getBiases())[i])
                         : ::mlir::FlatSymbolRefAttr();
    }
  }];
}

def Llm_OutRowsOp : Llm_Op<"out_rows", [Pure]> {
  let summary = "the rows whose logits the step wants";
  let arguments = (ins Llm_Rows:$input);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

#endif // LLMC_COMPILER_IR_LLMOPS_TD
