//===- SchedOps.td - operations of the sched dialect -----------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_SCHEDOPS_TD
#define LLMC_COMPILER_IR_SCHEDOPS_TD

include "SchedDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Sched_Op<string mnemonic, list<Trait> traits = []> : Op<Sched_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Kernels. Bindings are listed in the order that code generation expects.
//===----------------------------------------------------------------------===//

class Sched_Kernel<string mnemonic> : Sched_Op<mnemonic, [Symbol]> {
  let assemblyFormat = "$sym_name attr-dict";
}

def Sched_EmbedKernelOp : Sched_Kernel<"embed_kernel"> {
  let summary = "tile = row: out[row] = scale * table[token[row]]";
  let description = "Bindings: table, out. `positions`: of the row's position, not of its token.";
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$vocab, Llm_Count:$features,
      StrAttr:$encoding, F32Attr:$scale, UnitAttr:$positions);
}

def Sched_RopeTableKernelOp : Sched_Kernel<"rope_table_kernel"> {
  let summary = "tile = row: cosines and sines of the row's position";
  let description = "Bindings: out ([rows][cos pairs, sin pairs]).";
  let arguments = (ins SymbolNameAttr:$sym_name, DenseF32ArrayAttr:$inv_freq, F32Attr:$mscale);
}

def Sched_PrepareKernelOp : Sched_Kernel<"prepare_kernel"> {
  let summary = "tile = row: normalize a row and make it an activation record";
  let description = [{
    Bindings: x, [norm weight, [norm bias]], out. With `out_rows`, tile i is row
    out_begin + i of x and record i of out. `prefill`: see linear_kernel.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$features, Sched_ActKindAttr:$act,
      OptionalAttr<Sched_NormSpecAttr>:$norm, UnitAttr:$out_rows, UnitAttr:$prefill);
}

def Sched_LinearKernelOp : Sched_Kernel<"linear_kernel"> {
  let summary = "tile = panel of 16 output features";
  let description = [{
    Bindings: input (records for `packed`, float rows otherwise, partials of an
    attend kernel for `merge`), [norm weight, [norm bias]], per segment weight and
    [bias], then [residual], then per result the output (none with `logits`).
    `add_norm`: the input is that binding plus another one that is normalized
    before; its bindings follow the first: other, weight, [bias], and with
    `keep_sum` where the sum is written.
    Tiles are the panels of the segments in order; a gated pair shares its tile.
    `prefill`: of the prefill program only (not in the reference mode), and with
    records made by kernels that say the same. With fast numerics a target may
    multiply them in another arithmetic; every record has room for one of bf16,
    and there is room for whole blocks of 16 rows. See llm.linear for the
    arithmetic.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$features, Sched_ActKindAttr:$act,
      Sched_PrologueAttr:$prologue, OptionalAttr<Sched_NormSpecAttr>:$norm, ArrayAttr:$segments,
      UnitAttr:$gated, Llm_ActivationAttr:$activation, F32Attr:$scale, F32Attr:$softcap,
      UnitAttr:$residual, UnitAttr:$out_rows, UnitAttr:$logits, Llm_Count:$max_rows,
      DefaultValuedAttr<Llm_Size, "0">:$merge_heads, DefaultValuedAttr<Llm_Size, "0">:$merge_window,
      DefaultValuedAttr<Llm_Size, "0">:$merge_chunks, UnitAttr:$prefill,
      OptionalAttr<Sched_NormSpecAttr>:$add_norm, UnitAttr:$keep_sum);
  let hasVerifier = 1;
}

def Sched_QkvKernelOp : Sched_Kernel<"qkv_kernel"> {
  let summary = "tile = head: project, normalize, rotate; keys and values go to the cache";
  let description = [{
    Bindings: input, [norm weight, [norm bias]], per segment (q, k, v) weight and
    [bias], [q norm weight], [k norm weight], [rope rows], query out, key cache,
    value cache. Tiles: the query heads, then the key heads, then the value heads.
    `prefill`, `add_norm`, `keep_sum`: see linear_kernel.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$features, Sched_ActKindAttr:$act,
      Sched_PrologueAttr:$prologue, OptionalAttr<Sched_NormSpecAttr>:$norm, ArrayAttr:$segments,
      Llm_Count:$heads, Llm_Count:$kv_heads, Llm_Count:$head_dim, OptionalAttr<Sched_NormSpecAttr>:$q_norm,
      OptionalAttr<Sched_NormSpecAttr>:$k_norm, Llm_Size:$rope_pairs, Llm_RopeKindAttr:$rope_kind,
      StrAttr:$kv_encoding, Llm_Count:$capacity, Llm_Count:$max_rows, UnitAttr:$prefill,
      OptionalAttr<Sched_NormSpecAttr>:$add_norm, UnitAttr:$keep_sum);
  let hasVerifier = 1;
}

def Sched_AttendKernelOp : Sched_Kernel<"attend_kernel"> {
  let summary = "attention over fixed chunks of the KV cache";
  let description = [{
    Bindings: query, key cache, value cache, out. `split`: tile = (chunk, KV
    head), out = partials [row][head][chunk - first chunk] of 16 + head_dim floats
    (m, l, 14 unused, o), first chunk being that of the step's row 0;
    otherwise tile = (KV head, block of rows), chunks merged in order, out =
    float rows. Both give the same bits. `bidirectional` (not
    with `split`): a row sees all positions up to the step's last one.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$heads, Llm_Count:$kv_heads,
      Llm_Count:$head_dim, F32Attr:$scale, F32Attr:$softcap, Llm_Size:$window, Llm_Count:$capacity,
      StrAttr:$kv_encoding, UnitAttr:$split, Llm_Size:$row_block, Llm_Count:$max_chunks,
      UnitAttr:$bidirectional);
}

def Sched_RowKernelOp : Sched_Kernel<"row_kernel"> {
  let summary = "tile = row: element-wise work";
  let description = [{
    Bindings by function: norm: x, weight, [bias], out; add: lhs, rhs, out;
    norm_add: residual, x, weight, [bias], out; act, scale, softcap: x, out;
    glu: gate, up, out; rope: x, rope rows, out; kv_append: k, v, key cache, value
    cache; logits: x (writes the step's logits).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Sched_RowFnAttr:$fn, Llm_Count:$features,
      DefaultValuedAttr<Llm_Count, "1">:$groups, OptionalAttr<Sched_NormSpecAttr>:$norm,
      DefaultValuedAttr<Llm_ActivationAttr, "::llmc::llm::Activation::None">:$activation,
      DefaultValuedAttr<F32Attr, "1.0f">:$factor, DefaultValuedAttr<Llm_Size, "0">:$rope_pairs,
      DefaultValuedAttr<Llm_RopeKindAttr, "::llmc::llm::RopeKind::HalfSplit">:$rope_kind,
      DefaultValuedAttr<StrAttr, "\"f16\"">:$kv_encoding, DefaultValuedAttr<Llm_Size, "0">:$capacity,
      UnitAttr:$out_rows);
}

def Sched_TensorKernelOp : Sched_Op<"tensor_kernel", [Symbol, NoTerminator, SingleBlock,
    IsolatedFromAbove]> {
  let summary = "tile = a step of the outermost parallel loop: loops over buffers";
  let description = [{
    Work that no llm op says: scf loops that read and write memrefs. The block's
    arguments are the bindings, memrefs of static shape without a layout, then the
    first tile and one past the last, of type index. Constants are `memref.global`s
    of the module.

    ```mlir
    sched.tensor_kernel @exp {
    ^bb0(%x: memref<8xf32>, %out: memref<8xf32>, %begin: index, %end: index):
      %step = arith.constant 1 : index
      scf.for %i = %begin to %end step %step {
        %v = memref.load %x[%i] : memref<8xf32>
        %e = math.exp %v : f32
        memref.store %e, %out[%i] : memref<8xf32>
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def Sched_ProgramOp : Sched_Op<"program", [Symbol, SymbolTable, NoTerminator, SingleBlock,
    NoRegionArguments, IsolatedFromAbove]> {
  let summary = "what a step of up to max_rows rows runs";
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$max_rows,
      OptionalAttr<Llm_Size>:$arena_size);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Sched_BufferOp : Sched_Op<"buffer", [Symbol]> {
  let summary = "activations of a step; `offset` in the arena is set by plan-buffers";
  let arguments = (ins SymbolNameAttr:$sym_name, Llm_Count:$bytes, OptionalAttr<Llm_Size>:$offset);
  let assemblyFormat = "$sym_name $bytes (`at` $offset^)? attr-dict";
  let hasVerifier = 1;
}

def Sched_PortOp : Sched_Op<"port", [HasParent<"ProgramOp">]> {
  let summary = "an input or output of a program: a buffer that has a name for the caller";
  let description = [{
    The caller fills the buffers of inputs before the program runs and reads those
    of outputs after it: they share their bytes with no other buffer. `element`
    is a name of ONNX's types in lower case ("float", "int64", "bool", ...).
  }];
  let arguments = (ins Sched_PortKindAttr:$kind, StrAttr:$name, FlatSymbolRefAttr:$buffer,
      StrAttr:$element, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$kind $name $buffer $element $shape attr-dict";
}

def Sched_DispatchOp : Sched_Op<"dispatch", [HasParent<"ProgramOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a kernel over its tiles";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Sched_TilesAttr:$tiles, ArrayAttr:$bindings,
      StrAttr:$op_name, DefaultValuedAttr<I64Attr, "-1">:$layer);
  let assemblyFormat = "$kernel $tiles $bindings attr-dict";
  let hasVerifier = 1;
}

def Sched_BarrierOp : Sched_Op<"barrier", [HasParent<"ProgramOp">]> {
  let summary = "all workers meet";
  let assemblyFormat = "attr-dict";
}

#endif // LLMC_COMPILER_IR_SCHEDOPS_TD
