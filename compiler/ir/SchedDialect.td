//===- SchedDialect.td - who computes it, when and where -------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_SCHEDDIALECT_TD
#define LLMC_COMPILER_IR_SCHEDDIALECT_TD

include "LlmDialect.td"
include "SchedEnums.td"

def Sched_Dialect : Dialect {
  let name = "sched";
  let cppNamespace = "::llmc::sched";
  let summary = "dispatches, buffers and barriers";
  let description = [{
    A `sched.program` is a list of dispatches over planned buffers. A dispatch
    runs a kernel over its tiles; tiles are independent of each other. A
    barrier stands only where data crosses tiles. Kernels are symbols that say
    everything code generation needs; layers of equal shape share one kernel.
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
  let useDefaultAttributePrinterParser = 1;
}

def Sched_ActKindAttr : EnumAttr<Sched_Dialect, Sched_ActKind, "act">;
def Sched_PrologueAttr : EnumAttr<Sched_Dialect, Sched_Prologue, "prologue">;
def Sched_PortKindAttr : EnumAttr<Sched_Dialect, Sched_PortKind, "port_kind">;
def Sched_RowFnAttr : EnumAttr<Sched_Dialect, Sched_RowFn, "row_fn">;

class Sched_Attr<string name, string mnem> : AttrDef<Sched_Dialect, name> { let mnemonic = mnem; }

def Sched_BindAttr : Sched_Attr<"Bind", "bind"> {
  let summary = "one argument of a dispatch";
  let parameters = (ins EnumParameter<Sched_Access>:$access, EnumParameter<Sched_BindKind>:$kind,
      "::mlir::FlatSymbolRefAttr":$symbol);
  let assemblyFormat = "`<` $access $kind $symbol `>`";
}

def Sched_NormSpecAttr : Sched_Attr<"NormSpec", "norm"> {
  let summary = "a normalization inside a kernel; weight and bias are bindings";
  let parameters = (ins EnumParameter<Llm_NormKind>:$kind, "bool":$bias, "::mlir::FloatAttr":$eps);
  let assemblyFormat = "`<` $kind `,` `bias` `=` $bias `,` `eps` `=` $eps `>`";
}

def Sched_SegmentAttr : Sched_Attr<"Segment", "segment"> {
  let summary = "one weight matrix of a linear kernel";
  let parameters = (ins "int64_t":$rows, StringRefParameter<"encoding">:$encoding, "bool":$bias);
  let assemblyFormat = "`<` $rows `,` $encoding `,` `bias` `=` $bias `>`";
}

// Number of tiles of a dispatch in a step; see `Tiles` in runtime/schema/llmc.fbs.
def Sched_TilesAttr : Sched_Attr<"Tiles", "tiles"> {
  let summary = "number of tiles as a function of the step";
  let parameters = (ins "int64_t":$base, DefaultValuedParameter<"int64_t", "0">:$row_block,
      DefaultValuedParameter<"int64_t", "0">:$kv_chunk, DefaultValuedParameter<"int64_t", "0">:$window,
      DefaultValuedParameter<"bool", "false">:$out_rows);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // LLMC_COMPILER_IR_SCHEDDIALECT_TD
