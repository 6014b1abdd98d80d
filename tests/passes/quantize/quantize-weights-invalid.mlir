// What the pass refuses, before anything is computed.
// RUN: not llmc-opt %s '--llmc-quantize-weights=scheme=int3' 2>&1 | FileCheck %s --check-prefix=SCHEME
// RUN: not llmc-opt %s '--llmc-quantize-weights=scheme=f16' 2>&1 | FileCheck %s --check-prefix=FLOAT
// RUN: not llmc-opt %s '--llmc-quantize-weights=scheme=int4_g32_zp' 2>&1 | FileCheck %s --check-prefix=ZP
// RUN: not llmc-opt %s '--llmc-quantize-weights=scheme=int4 overrides=w' 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not llmc-opt %s '--llmc-quantize-weights=scheme=int4 overrides=w=int7' 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not llmc-opt %s '--llmc-quantize-weights=scheme=int4 overrides=v*=int8_g32' 2>&1 | FileCheck %s --check-prefix=UNUSED
// SCHEME: cannot quantize to 'int3'; use int8, int8-channel, int4
// FLOAT: cannot quantize to 'f16'
// ZP: cannot quantize to 'int4_g32_zp'
// RULE: 'w' is not PATTERN=ENCODING
// TARGET: cannot quantize to 'int7'
// UNUSED: no matrix has a name like 'v*'
llm.weight @w [64, 64] "f32" from 0 at 0
llm.weight @vector [64] "f32" from 0 at 0

func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = llm.embed %ids, @w : (tensor<?xi32>) -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}
