//===- SchedEnums.td - enums of the sched dialect --------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_IR_SCHEDENUMS_TD
#define LLMC_COMPILER_IR_SCHEDENUMS_TD

include "mlir/IR/EnumAttr.td"

class Sched_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::sched";
  let genSpecializedAttr = 0;
}

def Sched_BindKind : Sched_Enum<"BindKind", "what a binding points at", [
  I32EnumAttrCase<"Buffer", 0, "buffer">, I32EnumAttrCase<"Weight", 1, "weight">,
  I32EnumAttrCase<"Key", 2, "key">, I32EnumAttrCase<"Value", 3, "value">]>;

def Sched_Access : Sched_Enum<"Access", "what a dispatch does to a binding", [
  I32EnumAttrCase<"Read", 0, "read">, I32EnumAttrCase<"Write", 1, "write">,
  I32EnumAttrCase<"Update", 2, "update">]>;

def Sched_PortKind : Sched_Enum<"PortKind", "who fills the buffer of a port", [
  I32EnumAttrCase<"Input", 0, "input">, I32EnumAttrCase<"Output", 1, "output">]>;

// How activations reach the dot products. In prefill code generation puts bf16 in the place of the
// others, for targets with tiles and where bits may differ from decode's.
def Sched_ActKind : Sched_Enum<"ActKind", "arithmetic of activations", [
  I32EnumAttrCase<"Int8", 0, "int8">, I32EnumAttrCase<"F32", 1, "f32">,
  I32EnumAttrCase<"BF16", 2, "bf16">]>;

def Sched_Prologue : Sched_Enum<"Prologue", "what a linear kernel's input is", [
  I32EnumAttrCase<"Packed", 0, "packed">, I32EnumAttrCase<"Rows", 1, "rows">,
  I32EnumAttrCase<"Norm", 2, "norm">, I32EnumAttrCase<"Merge", 3, "merge">]>;

def Sched_RowFn : Sched_Enum<"RowFn", "element-wise work on whole rows", [
  I32EnumAttrCase<"Norm", 0, "norm">, I32EnumAttrCase<"Add", 1, "add">,
  I32EnumAttrCase<"Act", 2, "act">, I32EnumAttrCase<"Glu", 3, "glu">,
  I32EnumAttrCase<"Scale", 4, "scale">, I32EnumAttrCase<"Softcap", 5, "softcap">,
  I32EnumAttrCase<"Rope", 6, "rope">, I32EnumAttrCase<"KvAppend", 7, "kv_append">,
  I32EnumAttrCase<"NormAdd", 8, "norm_add">, I32EnumAttrCase<"Logits", 9, "logits">]>;

#endif // LLMC_COMPILER_IR_SCHEDENUMS_TD
