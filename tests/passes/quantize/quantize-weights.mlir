// Matrices get a quantize step by their use; tables and sensitive weights by rules of their own.
// RUN: llmc-opt %s '--llmc-quantize-weights=scheme=int4' | FileCheck %s --check-prefixes=CHECK,INT4
// RUN: llmc-opt %s '--llmc-quantize-weights=scheme=int4-mixed' | FileCheck %s --check-prefixes=CHECK,SMALL
// RUN: llmc-opt %s '--llmc-quantize-weights=scheme=int8-channel' | FileCheck %s --check-prefix=CHANNEL
// RUN: llmc-opt %s '--llmc-quantize-weights=scheme=q4_1 overrides=*down=int6_g128,token*=none,v=iq4_g64' | FileCheck %s --check-prefix=MAP
// RUN: llmc-opt %s '--llmc-quantize-weights=scheme=iq4_g32' | FileCheck %s --check-prefix=EXACT
// RUN: llmc-opt %s --llmc-quantize-weights | FileCheck %s --check-prefix=NONE
// NONE-NOT: quantize

// A table that is there in fewer bits than it would get is kept.
// CHECK: llm.weight @token_embd [64, 64] "q8_0" from 0 at 0{{$}}
// CHANNEL: llm.weight @token_embd [64, 64] "q8_0" from 0 at 0 recipe [#llm.quantize<"int8_row">]
// MAP: llm.weight @token_embd [64, 64] "q8_0" from 0 at 0{{$}}
llm.weight @token_embd [64, 64] "q8_0" from 0 at 0
// CHECK: llm.weight @output [64, 64] "f16" from 0 at 0 recipe [#llm.quantize<"int8_g32">]
// MAP: llm.weight @output {{.*}} recipe [#llm.quantize<"int8_g32">]
llm.weight @output [64, 64] "f16" from 0 at 0
// Steps before it stay.
// INT4: llm.weight @q {{.*}} recipe [#llm.slice_rows<0, 64>, #llm.quantize<"int4_g32_min">]
// SMALL: llm.weight @q {{.*}} recipe [#llm.slice_rows<0, 64>, #llm.quantize<"iq4_g32">]
// CHANNEL: llm.weight @q {{.*}} recipe [#llm.slice_rows<0, 64>, #llm.quantize<"int8_row">]
llm.weight @q [96, 64] "f32" from 0 at 0 recipe [#llm.slice_rows<0, 64>]
// The same grid in another layout, and codes of as many bits: kept. An encoding means just that.
// INT4: llm.weight @k [64, 64] "q4_1" from 0 at 0{{$}}
// SMALL: llm.weight @k [64, 64] "q4_1" from 0 at 0{{$}}
// EXACT: llm.weight @k {{.*}} recipe [#llm.quantize<"iq4_g32">]
llm.weight @k [64, 64] "q4_1" from 0 at 0
// CHANNEL: llm.weight @k [64, 64] "q4_1" from 0 at 0{{$}}
// INT4: llm.weight @v {{.*}} recipe [#llm.quantize<"int4_g32_min">]
// SMALL: llm.weight @v {{.*}} recipe [#llm.quantize<"int6_g64">]
// MAP: llm.weight @v {{.*}} recipe [#llm.quantize<"iq4_g64">]
llm.weight @v [64, 64] "bf16" from 0 at 0
// An importance moves into the step.
// INT4: llm.weight @up {{.*}} recipe [#llm.quantize<"int4_g32_min", importance = <"f32" from 1 at 64 stride 0>>]{{$}}
// MAP: llm.weight @up {{.*}} recipe [#llm.quantize<"int4_g32_min", importance = <"f32" from 1 at 64 stride 0>>]{{$}}
llm.weight @up [128, 64] "f32" from 0 at 0 {llm.importance = #llm.part<"f32" from 1 at 64 stride 0>}
// SMALL: llm.weight @down {{.*}} recipe [#llm.quantize<"int6_g64">]
// MAP: llm.weight @down {{.*}} recipe [#llm.quantize<"int6_g128">]
llm.weight @down [64, 128] "f32" from 0 at 0
// Vectors stay.
// CHECK: llm.weight @gain [64] "f32" from 0 at 0{{$}}
llm.weight @gain [64] "f32" from 0 at 0
// So does what no product reads.
// CHECK: llm.weight @unused [64, 64] "f32" from 0 at 0{{$}}
llm.weight @unused [64, 64] "f32" from 0 at 0
llm.kv @kv {heads = 1, head_dim = 64, encoding = "f16"}

func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = llm.embed %ids, @token_embd : (tensor<?xi32>) -> tensor<?x64xf32>
  %n = llm.norm %x <rms, @gain, eps = 1.0e-5> : tensor<?x64xf32>
  %q, %k, %v = llm.linear %n [@q, @k, @v] : (tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
  %a = llm.attention %q, %k, %v, %pos, @kv {heads = 1, scale = 0.125 : f32}
    : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xi32>) -> tensor<?x64xf32>
  %g = llm.linear %a [@up, @up] {gated, activation = #llm<activation silu>} : (tensor<?x64xf32>) -> tensor<?x128xf32>
  %d = llm.linear %g [@down] : (tensor<?x128xf32>) -> tensor<?x64xf32>
  %y = llm.linear %d [@output] : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
